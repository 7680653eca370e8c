"""The notebooks' first cell on Colab: it asks for just what the project asks for, and leaves
Colab's own torch and its companions where they are.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from hashlib import sha1
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from packaging.utils import canonicalize_name
from test_docs import requirements

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GPU = requirements((ROOT / "requirements-gpu.txt").read_text())
LISTED = {**requirements((ROOT / "requirements.txt").read_text()), **GPU}
NO_GPU = ("01", "05", "06", "07", "09")  # notebooks that have nothing to do on one
# Colab has these, built for each other and for its driver: another one breaks what the rest needs.
COLABS_OWN = {"torch", "numpy", "pandas", "jupyter", "ipywidgets"}


def install_cell(path):
    """The text of the cell that installs, which is the one that tests skip."""
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = (c for c in cells if "skip-execution" in c.metadata.get("tags", ()))
    return cell.source


def installs(path):
    """What each `%pip install` of a notebook asks for, one list of texts a line; the project itself
    is left out.
    """
    lines = (line.strip() for line in install_cell(path).splitlines())
    asked = [shlex.split(line)[2:] for line in lines if line.startswith("%pip install")]
    needs = [[w for w in words if not w.startswith(("-", "/"))] for words in asked]
    return [words for words in needs if words]


def complaints(asked, gpu):
    """What is wrong with the texts of requirements that a notebook asks for."""
    needs = requirements("\n".join(asked))
    found = [f"{name} is Colab's own" for name in sorted(COLABS_OWN & set(needs))]
    for name, need in needs.items():
        if name not in LISTED:
            found.append(f"{name} is in no requirements file")
        elif need.specifier != LISTED[name].specifier:
            found.append(f"{need} is {LISTED[name]} elsewhere")
    if gpu and not set(GPU) <= set(needs):
        found.append(f"{', '.join(sorted(set(GPU) - set(needs)))} missing")
    if not gpu and set(GPU) & set(needs):
        found.append(f"{', '.join(sorted(set(GPU) & set(needs)))} without a use")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_installs_what_the_project_asks_for(path):
    asked = [need for line in installs(path) for need in line]
    assert {"trl", "transformers", "peft", "openenv"} <= set(requirements("\n".join(asked)))
    assert complaints(asked, gpu=not path.name.startswith(NO_GPU)) == []


def test_what_a_notebook_must_not_ask_for_is_found():
    assert complaints(["trl==1.14.1"], gpu=False) == ["trl==1.14.1 is trl==1.14.2 elsewhere"]
    assert complaints(["torch==2.13.0", "numpy"], gpu=False) == [
        "numpy is Colab's own",
        "torch is Colab's own",
        "numpy is in no requirements file",
    ]
    everything = [str(need) for need in GPU.values()]
    assert complaints(everything, gpu=True) == []
    assert complaints(everything[:-1], gpu=True) == ["bitsandbytes missing"]
    assert complaints(everything[:1], gpu=False) == ["unsloth without a use"]


# -- what pip would do there ----------------------------------------------------------------------

# What Colab had installed on 2026-08-19 on its GPU machines, as its makers publish it. It is read
# from there and no part of this repository; COLAB_FREEZE may name a copy.
COMMIT = "a72407924822ea377410b69f0a290150bcb5c9c2"
FREEZE = f"https://raw.githubusercontent.com/googlecolab/backend-info/{COMMIT}/pip-freeze.gpu.txt"
BLOB = "70a0dd998b2704d4210bd8d7f1370ee8acb90879"  # git's name of its content
PYTHON = "3.13"  # Colab's at that time

STAYS = {"torch", "torchvision", "transformers", "numpy", "pandas", "peft"}


def frozen():
    """Name to version of what Colab has. What was installed from an address is left out: nothing
    here depends on it.
    """
    if "COLAB_FREEZE" in os.environ:
        content = Path(os.environ["COLAB_FREEZE"]).read_bytes()
    else:
        try:
            with urlopen(FREEZE, timeout=30) as answer:
                content = answer.read()
        except URLError as error:
            pytest.skip(f"{FREEZE} cannot be read ({error}); name a copy by COLAB_FREEZE")
    assert sha1(b"blob %d\0" % len(content) + content).hexdigest() == BLOB
    lines = [line.partition("==") for line in content.decode().splitlines()]
    return {name: version for name, equal, version in lines if equal and name[0] != "#"}


def colabs_python():
    """An interpreter of Colab's version: pip reads off it which wheels fit."""
    name = f"python{PYTHON}"
    kept = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}*/bin/{name}"), reverse=True)
    for found in (shutil.which(name), *kept):
        # pyenv puts a program of this name on the path even where it is not chosen
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    pytest.skip(f"there is no {name}, which Colab has; install it on the path or by pyenv")


def pretend(site, name, version, needs=()):
    """Have pip believe that a package is installed: it reads of it no more than this file."""
    for old in site.glob(f"{canonicalize_name(name).replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    folder = site / f"{canonicalize_name(name).replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {need}" for need in needs)]
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """(an interpreter whose pip takes Colab's packages for installed, their versions by name)."""
    versions, folder = frozen(), tmp_path_factory.mktemp("colab")
    subprocess.run([colabs_python(), "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = f"pip=={versions.pop('pip')}"  # this one is installed: it is what decides
    subprocess.run([python, "-m", "pip", "install", "--quiet", pip], check=True)
    (site,) = folder.glob("lib/*/site-packages")
    for name, version in versions.items():
        pretend(site, name, version)
    return python, {canonicalize_name(name): version for name, version in versions.items()}


@pytest.mark.slow
def test_colabs_own_packages_stay(colab, tmp_path):
    python, before = colab
    (site,) = python.parents[1].glob("lib/*/site-packages")
    moved, added = {}, {}
    fullest = max((installs(path) for path in NOTEBOOKS), key=lambda lines: sum(map(len, lines)))
    for line in fullest:  # the cell's commands one after the other, as there
        report = tmp_path / "report.json"
        command = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--report", report]
        subprocess.run([*command, *line], check=True)
        for item in json.loads(report.read_text())["install"]:
            new = item["metadata"]
            name = canonicalize_name(new["name"])
            (moved if name in before else added)[name] = new["version"]
            # the next line finds it there, as on Colab
            pretend(site, new["name"], new["version"], new.get("requires_dist", ()))
    assert set(GPU) | {"trl"} <= set(added)  # or nothing was resolved
    assert not STAYS & set(moved), {name: moved[name] for name in STAYS & set(moved)}
    # What moves is told: one of these that is loaded already stays what it was until a restart.
    said = re.search(r"It moves these .*?: (.*?)\.", (ROOT / "docs" / "t4.md").read_text())[1]
    assert set(said.split(", ")) == set(moved), moved
