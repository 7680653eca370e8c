"""Every figure of `results` is drawn from its tables, which stay as they are."""

import shutil

from publish import RESULTS, draw_track, drawings


def test_a_folder_is_drawn_with_all_its_figures_and_nothing_else(tmp_path):
    figures = {*RESULTS.rglob("*.png")}
    assert {path.parent for path in figures} == {*drawings()}
    folder = tmp_path / "novice"
    shutil.copytree(RESULTS / "novice", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for path in folder.glob("*.png"):
        path.write_bytes(b"")
    assert {path.name for path in draw_track(folder)} == {
        path.name for path in folder.glob("*.png")
    }
    for path in folder.iterdir():
        if path.is_file():
            data, known = path.read_bytes(), before.pop(path.name)
            assert data.startswith(b"\x89PNG") if path.suffix == ".png" else data == known
    assert not before
