"""Published results are of the code, and the results page misses none."""

import pandas as pd
import pytest

from triagelab.bench.published import RESULTS
from triagelab.bench.strata import with_truth

SETS = sorted({path.parents[1] for path in RESULTS.glob("*/seed-*/evaluation.parquet")})


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
