"""The notebooks' first cell on Colab: it leaves Colab's own torch and its companions where they
are, and brings what a GPU needs to those that use one. `test_docs` compares the versions.
"""

import nbformat
import pytest
from test_docs import ROOT, install_lines, requirements

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GPU = set(requirements((ROOT / "requirements-gpu.txt").read_text()))
NO_GPU = ("01", "05", "06", "07", "09")  # notebooks that have nothing to do on one
# Colab has these, built for each other and for its driver: another one breaks what the rest needs.
COLABS_OWN = {"torch", "numpy", "pandas", "jupyter", "ipywidgets"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_installs_what_it_needs_and_nothing_of_colabs(path):
    needs = set(install_lines(path))
    assert {"trl", "transformers", "peft", "openenv"} <= needs and not COLABS_OWN & needs
    assert GPU & needs == (set() if path.name.startswith(NO_GPU) else GPU)


def test_the_t4_notebook_mounts_drive_before_it_installs():
    # The question for consent waits two minutes, and must not wait behind an installation.
    cells = nbformat.read(ROOT / "notebooks" / "08_t4_end_to_end.ipynb", as_version=4).cells
    (cell,) = (c.source for c in cells if "skip-execution" in c.metadata.get("tags", ()))
    assert cell.index("drive.mount") < cell.index("%pip") and "WARNING" in cell
