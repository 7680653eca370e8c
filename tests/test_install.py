"""The package alone: its server imports nothing that it does not install, and starts in a fresh
environment. That one needs a package index; slow.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "logtriage" / "pyproject.toml").read_text())["project"]
LOADED = """
import sys
import logtriage.adapters.remote, logtriage.client, logtriage.server.app
assert not {"torch", "verifiers"} & set(sys.modules)
print(*(module.__file__ for name, module in sys.modules.items() if name.startswith("logtriage")))
"""


def imported(path):
    """The names of the libraries that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def test_the_server_and_the_client_import_what_the_package_installs():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, cwd=ROOT, capture_output=True, text=True
    )
    found = {name for path in done.stdout.split() for name in imported(Path(path))}
    installed = {re.match(r"[a-z0-9]+", need)[0] for need in PROJECT["dependencies"]}
    assert "openenv" in found
    # Jinja brings MarkupSafe.
    assert found - set(sys.stdlib_module_names) - {"markupsafe"} <= installed


USE = """
import importlib.util
import logtriage.client, logtriage.adapters.remote, logtriage.server.app
from logtriage.environment import TriageEnvironment
assert ROOT not in logtriage.__file__
heavy = ("torch", "transformers", "ipywidgets", "scipy", "matplotlib", "networkx", "pyarrow")
assert not [name for name in heavy if importlib.util.find_spec(name)]
assert "api-gateway" in TriageEnvironment().reset().text
assert TriageEnvironment().reset(task="real", split="petshop", index=0).text
"""


@pytest.mark.slow
def test_the_package_alone_plays_and_serves_without_torch(tmp_path):
    folder = shutil.copytree(ROOT / "logtriage", tmp_path / "folder")  # pip leaves its build there
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", folder], check=True, cwd=tmp_path)
    subprocess.run([python, "-c", f"ROOT = {str(ROOT)!r}\n{USE}"], check=True, cwd=tmp_path)
    done = subprocess.run(
        [tmp_path / "bin" / "server", "--help"],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "--sessions" in done.stdout and sys.prefix not in done.stdout
