"""Policies on real incidents: what is published comes out again, and the comparison is fair."""

import pandas as pd
import pytest

from triagelab.bench import recorded_results as real
from triagelab.bench.intervals import wilson
from triagelab.bench.published import RESULTS
from triagelab.real.cases import SOURCES
from triagelab.realistic.production_policies import RANKER


@pytest.fixture(scope="module")
def published():
    return pd.read_parquet(RESULTS / "real" / "cases.parquet")


def test_the_published_rows_come_out_again(published):
    again = real.play_rules()
    before = published[published["policy"].isin(real.SCRIPTED)].drop(columns="seed")
    before = before.reset_index(drop=True)
    pd.testing.assert_frame_equal(again, before, check_dtype=False)


@pytest.mark.parametrize("source, top1", zip(SOURCES, (0.96, 0.48, 0.85), strict=True))
def test_ours_is_above_every_other_that_has_not_learned_kinds_of_fault(published, source, top1):
    table = real.real_table(published).set_index(["policy", "source", "part"])
    every = table.xs((source, "all"), level=("source", "part"))["top1"]
    ours = every[real.OURS].mean
    assert ours == pytest.approx(top1, abs=0.005)
    others = every.drop([real.OURS, RANKER])
    assert all(share.mean < ours for share in others)
    held_back = table.xs((source, "held back"), level=("source", "part"))["top1"]
    for name in ("commonest", "worst_callee", "trace"):
        assert held_back[real.OURS].mean > held_back[name].mean


def test_cases_of_a_group_count_as_one():
    rows = [(f"a{at}", "a", 1.0) for at in range(8)] + [("b0", "b", 0.0), ("b1", "b", 0.0)]
    same = {"policy": "p", "source": "petshop", "half": "held back", "fault": "f"}
    frame = pd.DataFrame(rows, columns=["case", "root", "top1"]).assign(**same)
    frame["top3"] = frame["top1"]
    again = pd.concat([frame, frame])  # a second attempt at each
    for row in (real.real_table(frame).iloc[0], real.real_table(again).iloc[0]):
        assert (row["cases"], row["groups"]) == (10, 2)
        assert row["top1"] == wilson(0.8, 10) and row["by_group"] == wilson(0.5, 2)
