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
ENTRIES = ("server/app.py", "client.py", "adapters/remote.py")


def imports(path):
    """The modules of the package and the names of the libraries that a module imports, wherever."""
    package, libraries = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            libraries |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            libraries.add(node.module.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            target = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found = [target.with_suffix(".py"), *(target / f"{one.name}.py" for one in node.names)]
            package |= {one for one in [*found, target / "__init__.py"] if one.is_file()}
    return package, libraries


def test_the_server_and_the_client_import_what_the_package_installs():
    waiting, seen, libraries = [ROOT / "logtriage" / one for one in ENTRIES], set(), set()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            package, found = imports(path)
            libraries |= found
            # `logtriage/__init__.py` imports the adapter for verifiers when that asks for it.
            waiting += package - {ROOT / "logtriage" / "__init__.py"}
    installed = {re.match(r"[a-z0-9]+", need)[0] for need in PROJECT["dependencies"]}
    installed = {{"pyyaml": "yaml"}.get(name, name) for name in installed}
    assert len(seen) > 20 and "openenv" in libraries
    brought = {"markupsafe"}  # by Jinja
    assert libraries - set(sys.stdlib_module_names) - brought <= installed


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
