"""The package alone: it plays and serves without what it does not install. In a fresh environment
that needs a package index; slow.
"""

import shutil
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

import pytest
from helpers import free_port

ROOT = Path(__file__).parents[1]
# Of the extras or of requirements.txt. What OpenEnv brings, such as numpy, is not listed.
HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "ipywidgets", "matplotlib", "scipy"}
HEAVY |= {"networkx", "pandas", "PIL", "pyarrow", "verifiers", "papermill", "inspect_ai"}
USE = """
import logtriage.client, logtriage.adapters.remote, logtriage.server.app
from logtriage.environment import TriageEnvironment
env = TriageEnvironment()
assert "api-gateway" in env.reset().text and "<svg" in env.render_web({})
"""
NOT_INSTALLED = """
try:
    env.reset(task="real")
except ValueError as error:
    assert "pip install" in str(error)
else:
    raise AssertionError("real incidents are in another package")
"""


def test_the_package_plays_and_serves_without_what_it_does_not_install():
    project = tomllib.loads((ROOT / "logtriage" / "pyproject.toml").read_text())["project"]
    assert not HEAVY & set(project["dependencies"])
    block = f"import sys; sys.modules.update(dict.fromkeys({HEAVY}))"
    real = "assert env.reset(task='real', split='petshop', index=0).text"
    # OpenEnv is imported without gradio, which is left to others.
    gradio = "from importlib.util import find_spec\n"
    gradio += "assert 'gradio' not in sys.modules and find_spec('gradio')"
    subprocess.run([sys.executable, "-c", f"{block}\n{USE}{real}\n{gradio}"], check=True, cwd=ROOT)


@pytest.mark.slow
def test_the_package_alone_plays_and_serves_without_torch(tmp_path):
    # Installed as the image and `make serve` do. `make test-core` installs it as pip does.
    folder = shutil.copytree(ROOT / "logtriage", tmp_path / "folder")  # pip leaves its build there
    venv.create(tmp_path, with_pip=True)
    python, quiet = tmp_path / "bin" / "python", {"check": True, "cwd": tmp_path}
    install = [python, "-m", "pip", "install", "--quiet"]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    (openenv,) = (name for name in project["dependencies"] if name.startswith("openenv"))
    assert openenv in (folder / "server" / "Dockerfile").read_text()
    wanted = folder / "server" / "requirements.txt"
    subprocess.run([*install, "--requirement", wanted], **quiet)
    subprocess.run([*install, "--no-deps", openenv, folder], **quiet)
    alone = (
        f"import importlib.util\nassert not importlib.util.find_spec('torch')\n{USE}{NOT_INSTALLED}"
    )
    alone += f"assert {str(ROOT)!r} not in logtriage.__file__"
    subprocess.run([python, "-c", alone], **quiet)
    port = free_port()
    command = [tmp_path / "bin" / "server", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert f"http://127.0.0.1:{port}/web" in server.stdout.readline()
        oracle = [python, folder / "validation" / "oracle.py", f"http://127.0.0.1:{port}"]
        for _ in range(50):  # what is said comes just before what is served
            done = subprocess.run(oracle, cwd=tmp_path, capture_output=True, text=True)
            if done.returncode == 0:
                break
            time.sleep(0.2)
        server.terminate()
    assert float(done.stdout) == 1.0, done.stderr
