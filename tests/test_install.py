"""The package alone, in a fresh environment: light, from the folder and from a git URL. Needs a
package index; slow.

The git URL is of this repository, and so installs what was committed last.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USE = """
import importlib.util, sys
from logtriage.environment import TriageEnvironment
from logtriage.policies.scripted import TracePolicy
from logtriage.bench.rollouts import rollout
import logtriage, logtriage.client, logtriage.adapters.remote, logtriage.server.app
assert ROOT not in logtriage.__file__
heavy = ("torch", "transformers", "trl", "jupyter", "ipywidgets")
assert not [name for name in heavy if importlib.util.find_spec(name)]
assert "api-gateway" in TriageEnvironment().reset().text
assert len(rollout(TracePolicy(), ["single_crash"], episodes=2, progress=False)) == 2
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", ["folder", f"git+file://{ROOT}#subdirectory=logtriage"])
def test_the_package_alone_plays_and_serves_without_torch(source, tmp_path):
    if source == "folder":  # a copy, since pip leaves its build in it
        source = shutil.copytree(ROOT / "logtriage", tmp_path / "folder")
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", source], check=True, cwd=tmp_path)
    subprocess.run([python, "-c", f"ROOT = {str(ROOT)!r}\n{USE}"], check=True, cwd=tmp_path)
    told = subprocess.run(
        [tmp_path / "bin" / "server", "--help"],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "--sessions" in told.stdout and sys.prefix not in told.stdout
