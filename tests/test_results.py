"""Published results are of the code, and figures are drawn from their tables, which stay."""

import json
import shutil

import pandas as pd
import pytest
from publish import RESULTS, draw_track, drawings

from logtriage.world.tasks import TASKS
from triagelab.bench.score_tables import read_sweep, score
from triagelab.bench.strata import with_truth

SETS = sorted({path.parents[1] for path in RESULTS.glob("*/seed-*/evaluation.parquet")})
SWEEPS = sorted(path.parent for path in RESULTS.glob("*/sweep.json"))


@pytest.mark.parametrize("folder", SWEEPS, ids=lambda folder: folder.name)
def test_summaries_are_of_the_episodes_beside_them(folder):
    record, frame = read_sweep(folder)
    row = next(row for row in record["rows"] if row != record["against"])
    own = frame[frame["row"].isin(["", row, record["against"]])]
    found = score(own, record["against"]).set_index(["row", "task"]).loc[row]
    kept = pd.read_parquet(folder / "summary.parquet").set_index(["row", "task"]).loc[row]
    shown = [name for name in found.columns if name != "verdict"]  # of all rows of the table
    pd.testing.assert_frame_equal(found[shown], kept[shown])


def test_the_results_page_misses_no_folder():
    text = (RESULTS / "README.md").read_text()
    for folder in (path for path in RESULTS.iterdir() if path.is_dir()):
        assert folder.name in text


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_truth_is_that_of_the_version_that_was_played(folder):
    # `oracle` dismisses false alarms and nothing else, so it says which incidents were some.
    for path in folder.glob("seed-*/evaluation.parquet"):
        frame = with_truth(pd.read_parquet(path))
        oracle = frame[frame.policy == "oracle"]
        assert len(oracle) and ((oracle["closed_by"] == "ignore") == ~oracle["real"]).all()
        assert (oracle["severity"] == 1).all()


def test_no_published_rule_without_diagnosis_beats_loudest():
    found = json.loads((RESULTS / "benchmark" / "exploits.json").read_text())
    assert {row["task"] for row in found["rows"]} == set(TASKS)
    for row in found["rows"]:
        assert row["test"] < row["loudest"], row["rule"]


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
