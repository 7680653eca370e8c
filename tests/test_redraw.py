"""`make redraw`: every committed figure from the committed tables, which stay as they are."""

import runpy
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_redraw_writes_every_committed_figure_and_nothing_else(tmp_path, capsys):
    for folder in ("scripts", "results"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.*")}
    figures = {path for path in before if path.suffix == ".png"}
    for path in figures:
        path.write_bytes(b"")
    runpy.run_path(str(tmp_path / "scripts" / "redraw.py"), run_name="__main__")
    after = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.*")}
    assert after.keys() == before.keys()
    for path, data in after.items():
        assert data.startswith(b"\x89PNG") if path in figures else data == before[path], path
    assert len(capsys.readouterr().out.splitlines()) == len(figures) >= 9
