"""How real cases are made: the steps on made-up data, and packing what is shipped."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import real_cases
from real_cases import calm, measure, packed, petshop_case, rounded

from logtriage.real.cases import FOLDER, SOURCES


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_shipped_packs_to_itself(name):
    shipped = gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())
    data = packed(json.loads(shipped))
    assert gzip.decompress(data) == shipped
    assert data == packed(json.loads(shipped))  # no time of day in it


def test_a_measure_and_its_baseline():
    found = measure("web", "cpu", "%", [5.0, np.nan], pd.Series([1.0, 2.0, 3.0, np.nan, 10.0]))
    *_, values, usual, low, high, deviation = rounded(found)
    assert values == [5.0, None] and usual == 2.5 and (low, high) == (1.15, 8.95)
    assert deviation == pytest.approx(1.0 / 0.6745, rel=0.01)
    assert measure("web", "cpu", "%", [1.0], pd.Series([np.nan]))[4:] == [None] * 4


def test_minutes_without_a_fault():
    injected = [10_000, 11_000]
    times = pd.Series([9_000, 9_941, 10_000, 10_329, 10_330, 10_720, 10_721, 10_940, 11_400])
    expected = [True, False, False, False, True, True, False, False, True]
    assert calm(times, injected).tolist() == expected
    assert not calm(pd.Series([10_700]), [10_000, 10_760]).any()  # a minute before the next


def test_a_case_of_petshop(tmp_path):
    heads = [
        ("Shop A", "latency", "Average"),
        ("Shop A", "requests", "Sum"),
        ("Db", "latency", "p95"),
    ]
    columns = pd.MultiIndex.from_tuples(heads, names=["microservice", "metric", "statistic"])
    scenario = tmp_path / "dataset" / "low"
    place, calm_place = scenario / "train" / "issue_0", scenario / "noissue"
    place.mkdir(parents=True)
    calm_place.mkdir()
    shown = pd.DataFrame([[0.1, 9, 1.0], [0.9, 8, 2.0]], [1000.0, 1300.0], columns)
    shown.to_csv(place / "metrics.csv")
    usual = pd.DataFrame([[0.1, 10, 1.0], [0.3, 10, 1.0]], [0.0, 300.0], columns)
    usual.to_csv(calm_place / "metrics.csv")
    graph = pd.DataFrame([[0, 1], [0, 0]], ["Shop A", "Db"], ["Shop A", "Db"])
    graph.to_csv(scenario / "graph.csv")
    target = {
        "target": {"node": "Shop A", "metric": "latency", "timestamp": 1240},
        "root_cause": {"node": "Db", "metric": None},
        "metadata": {"reproducibility": {"command": "x" * 200}},
    }
    (place / "target.json").write_text(json.dumps(target))
    shipped = {"window": {}, "truth": {"origin": "low/train/issue_0", "fault": "overload"}}
    case = petshop_case(tmp_path, shipped)
    assert case["services"] == ["Db", "Shop_A"] and case["calls"] == [["Shop_A", "Db"]]
    assert case["window"] == {"minutes": [-4.0, 1.0], "zero": 1}
    assert case["measures"][1][:5] == ["Shop_A", "latency", "ms", [100.0, 900.0], 200.0]
    assert case["alerts"] == [["Shop_A", "latency", 900.0]]
    assert case["truth"]["root"] == "Db" and case["truth"]["fault"] == "overload"
    assert len(case["truth"]["how"]) == real_cases.LONGEST


def test_alerts_by_our_rules():
    case = {
        "services": ["web", "shop"],
        "calls": [["web", "shop"]],
        "measures": [
            ["web", "p95", "ms", [90.0] * 3 + [30.0] * 3, 10.0],
            ["shop", "p95", "ms", [99.0, 9.0, 9.0, 9.0, 31.0, 9.0], 10.0],
        ],
        "users": [["users", "success", "%", [100.0] * 5 + [94.0], 100.0]],
    }
    assert list(real_cases.slow_alerts(case)) == [["shop", "p95", 31.0]]
    assert list(real_cases.users_alerts(case)) == [["web", "errors", 6.0]]
