"""The same statistics of real and of simulated incidents."""

import math

import pandas as pd
import pytest

from logtriage.bench.realism import (
    STATISTICS,
    realism_frame,
    realism_table,
    seen_real,
    seen_simulated,
    statistics,
    summarised,
)
from logtriage.real.cases import load_source


def test_a_real_case():
    source = load_source("nezha-onlineboutique")
    found = statistics(seen_real("nezha-onlineboutique", 0))
    assert (found["services"], found["longest_path"], found["kinds_of_metric"]) == (10, 3, 6)
    assert found["shared"] == pytest.approx(4 / 9)
    assert source.cases[0].truth.root == "emailservice" and found["root_alerted"] == 1.0
    assert math.isnan(found["lines_per_minute"]) and math.isnan(found["root_tells"])


def test_only_the_wire_tells_of_a_delay_in_the_network():
    cases = load_source("nezha-onlineboutique").cases
    delays = [at for at, case in enumerate(cases) if case.truth.fault == "network_delay"]
    others = [at for at, case in enumerate(cases) if case.truth.fault == "cpu_contention"]
    on_wire = {
        at: statistics(seen_real("nezha-onlineboutique", at))["on_the_wire"]
        for at in (*delays, *others)
    }
    assert sum(on_wire[at] for at in delays) >= len(delays) - 3
    assert sum(on_wire[at] for at in others) == 0


def test_a_simulated_incident():
    found = statistics(seen_simulated("single_crash", 0))
    assert (found["services"], found["shared"], found["on_the_wire"]) == (7, 0.0, 0.0)
    assert found["kinds_of_metric"] == 2 and found["lines_per_minute"] == 12.0
    # A triangle of 20 %: nine of ten values lie within 14 % of the usual.
    assert found["band"] == pytest.approx(0.137, abs=0.001)


def test_false_alarms_have_no_root_and_are_left_out():
    seen = [seen_simulated("silent_degradation", index) for index in range(20)]
    assert 0 < sum(one is None for one in seen) < 12
    frame = realism_frame(20, sources=(), tasks=("silent_degradation",))
    assert len(frame) == sum(one is not None for one in seen)


def test_the_table_stands_side_by_side():
    frame = realism_frame(3, sources=("nezha-trainticket",), tasks=("single_crash",))
    assert set(STATISTICS) <= set(frame.columns) and len(frame) == 23 + 3
    table = realism_table(frame)
    assert list(table.columns) == ["nezha-trainticket", "single_crash"]
    assert table.loc["services"].tolist() == ["28", "7"]
    assert table.loc["log lines a minute", "nezha-trainticket"] == "1990"
    assert table.loc["an alert on the root", "nezha-trainticket"].endswith(" of 23")


@pytest.mark.parametrize(
    ("how", "text"),
    [("median", "2"), ("mean", "2.67"), ("quartiles", "2 (1.5 to 3.5)"), ("most", "2 (5)")],
)
def test_values_are_put_together(how, text):
    assert summarised(pd.Series([1.0, 2.0, 5.0, math.nan]), how) == text
    assert summarised(pd.Series([math.nan]), how) == "-"


def test_a_share_says_of_how_many():
    assert summarised(pd.Series([1.0, 0.0, 1.0, math.nan]), "share") == "2 of 3"
