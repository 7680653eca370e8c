"""The notebooks' first cell on Colab: it leaves Colab's own torch and its companions where they
are, and brings what a GPU needs to those that use one. `test_docs` compares the versions.
"""

import os
import site
import subprocess
import sys
import venv

import nbformat
import pytest
from test_docs import ROOT, install_lines, requirements

import logtriage

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GPU = set(requirements((ROOT / "requirements-gpu.txt").read_text()))
PACKAGES = ("logtriage", "triagelab", "logreader")
# Where the cell leads, and where our packages are imported from.
IMPORTED = f"""
print(os.getcwd())
for name in {PACKAGES!r}:
    print(__import__(name).__file__)
"""
NO_GPU = ("01", "05", "06", "07", "09")  # notebooks that have nothing to do on one
# Colab has these, built for each other and for its driver: another one breaks what the rest needs.
COLABS_OWN = {"torch", "numpy", "pandas", "jupyter", "ipywidgets"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_installs_what_it_needs_and_nothing_of_colabs(path):
    needs = set(install_lines(path))
    assert {"trl", "transformers", "peft", "openenv"} <= needs and not COLABS_OWN & needs
    assert GPU & needs == (set() if path.name.startswith(NO_GPU) else GPU)


def install_cell(path):
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = (c.source for c in cells if "skip-execution" in c.metadata.get("tags", ()))
    return cell


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_keeps_runs_asks_for_drive_first(path):
    # The question for consent waits two minutes, and must not wait behind an installation.
    cell = install_cell(path)
    keeps_runs = "run_folder(" in path.read_text()
    assert ("drive.mount" in cell) is keeps_runs
    assert not keeps_runs or cell.index("drive.mount") < cell.index("%pip")


def run_cell(python, script, home):
    """What becomes of a cell on Colab, but for the GPU."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [python, "-m", "IPython", "--no-banner", "--colors=NoColor", script],
        cwd=script.parent,
        env={**kept, "COLAB_GPU": "", "IPYTHONDIR": str(home), "HOME": str(home)},
        capture_output=True,
        text=True,
    )


def test_without_the_repository_a_cell_says_what_to_do(tmp_path):
    # As on Colab, where there is neither Google Drive here nor anything at the address.
    cell = install_cell(NOTEBOOKS[-1]).replace("/content/", f"{tmp_path}/content/")
    cell = cell.replace(f"https://github.com/{logtriage.REPOSITORY}", f"file://{tmp_path}/none")
    (tmp_path / "cell.ipy").write_text(cell)
    done = run_cell(sys.executable, tmp_path / "cell.ipy", tmp_path)
    said = done.stdout + done.stderr
    assert "could not be cloned: set REPOSITORY" in said
    assert "Traceback" not in said and "chdir" not in said and "pip" not in said


def test_a_cell_is_rehearsed_in_a_fresh_environment(tmp_path):
    """As on Colab, but that the repository is this one and its requirements are installed."""
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=True)
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "installed.pth").write_text("\n".join(site.getsitepackages()))
    content = tmp_path / "content"
    cell = install_cell(NOTEBOOKS[-2]).replace("/content/", f"{content}/")
    cell = cell.replace(f"https://github.com/{logtriage.REPOSITORY}", f"file://{ROOT}")
    script = tmp_path / "notebooks" / "cell.ipy"
    script.parent.mkdir()
    script.write_text(f"{cell}\n{IMPORTED}")
    done = run_cell(fresh / "bin" / "python", script, tmp_path)
    lines = done.stdout.splitlines()[-len(PACKAGES) - 1 :]
    assert lines[0] == str(content / "logtriage" / "notebooks"), done.stdout + done.stderr
    assert all(line.startswith(str(packages)) for line in lines[1:]), lines
