"""Published results are of the code, and the results page misses none."""

import pandas as pd
import pytest

from triagelab.bench.published import RESULTS
from triagelab.bench.strata import with_truth
from triagelab.bench.sweep_tables import read_sweep, score

SETS = sorted({path.parents[1] for path in RESULTS.glob("*/seed-*/evaluation.parquet")})
SWEEPS = sorted(path.parent for path in RESULTS.glob("*/sweep.json"))


@pytest.mark.parametrize("folder", SWEEPS, ids=lambda folder: folder.name)
def test_summaries_are_of_the_episodes_beside_them(folder):
    record, frame = read_sweep(folder)
    row = next(row for row in record["rows"] if row != record["against"])
    own = frame[frame["row"].isin(["", row, record["against"]])]
    again = score(own, record["against"]).set_index(["row", "task"]).loc[row]
    kept = pd.read_parquet(folder / "summary.parquet").set_index(["row", "task"]).loc[row]
    columns = [name for name in again.columns if name != "verdict"]  # of all rows of the table
    pd.testing.assert_frame_equal(again[columns], kept[columns])


def test_the_results_page_misses_no_folder():
    text = (RESULTS / "README.md").read_text()
    for folder in (path for path in RESULTS.iterdir() if path.is_dir()):
        assert f"({folder.name}" in text, folder.name  # a link


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_truth_is_that_of_the_version_that_was_played(folder):
    # `oracle` dismisses false alarms and nothing else, so it says which incidents were some.
    for path in folder.glob("seed-*/evaluation.parquet"):
        frame = with_truth(pd.read_parquet(path))
        oracle = frame[frame.policy == "oracle"]
        assert len(oracle) and ((oracle["closed_by"] == "ignore") == ~oracle["real"]).all()
        assert (oracle["severity"] == 1).all()
