"""Every figure of `results` from its tables, which stay as they are."""

import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copied(tmp_path):
    """A copy of the scripts and of the results, whose figures are empty."""
    for folder in ("scripts", "results"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for path in figures_in(tmp_path / "results"):
        path.write_bytes(b"")
    return tmp_path


def figures_in(folder):
    return set(folder.rglob("*.png"))


def test_a_folder_is_drawn_with_all_its_figures_and_nothing_else(copied):
    drawings = runpy.run_path(str(copied / "scripts" / "redraw.py"))["drawings"]()
    figures = figures_in(copied / "results")
    assert {path.parent for path in figures} == set(drawings)
    folder = copied / "results" / "novice"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert set(drawings[folder](folder)) == figures_in(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after.keys() == before.keys()
    for name, data in after.items():
        assert data.startswith(b"\x89PNG") if name.endswith(".png") else data == before[name], name
