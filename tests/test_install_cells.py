"""The notebooks' first cell on Colab: it asks for just what the project asks for, and leaves
Colab's own torch and its companions where they are.
"""

import shlex
from pathlib import Path

import nbformat
import pytest
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


def test_the_t4_notebook_mounts_drive_before_it_installs():
    # The question for consent waits two minutes, and must not wait behind an installation.
    cell = install_cell(ROOT / "notebooks" / "08_t4_end_to_end.ipynb")
    assert cell.index("drive.mount") < cell.index("%pip") and "WARNING" in cell
