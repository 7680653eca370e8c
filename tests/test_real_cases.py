"""How real cases are made: the steps on made-up data, and packing what is shipped."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import real_cases
from real_cases import calm, differences, packed, petshop_case, read_shipped, rounded, series

from logtriage.real.cases import FOLDER, SOURCES, Source


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_shipped_packs_to_itself(name):
    source = read_shipped(name)
    data = packed(source)
    assert gzip.decompress(data) == gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())
    assert data == packed(json.loads(gzip.decompress(data)))  # no time of day in it
    assert len(Source.model_validate_json(gzip.decompress(data)).cases) == len(source["cases"])


def test_figures_keep_three_digits():
    assert rounded({"a": [1234.5, float("nan"), 7], "b": "x"}) == {"a": [1230.0, None, 7], "b": "x"}


def test_a_metric_and_what_is_usual():
    found = rounded(series([5.0, float("nan")], pd.Series([1.0, 2.0, 3.0, np.nan, 10.0])))
    assert found["values"] == [5.0, None] and found["usual"] == 2.5
    assert found["mad"] == pytest.approx(1.0 / 0.6745, rel=0.01)
    assert found["range"] == [1.15, 8.95]
    assert series([1.0], pd.Series([np.nan]))["usual"] is None


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
    place, calm_place = (tmp_path / "dataset" / "low" / one for one in ("train/issue_0", "noissue"))
    for folder in (place, calm_place):
        folder.mkdir(parents=True)
    shown = pd.DataFrame([[0.1, 9, 1.0], [0.9, 8, 2.0]], [1000.0, 1300.0], columns)
    shown.to_csv(place / "metrics.csv")
    pd.DataFrame([[0.1, 10, 1.0], [0.3, 10, 1.0]], [0.0, 300.0], columns).to_csv(
        calm_place / "metrics.csv"
    )
    target = {
        "target": {"node": "Shop A", "metric": "latency", "timestamp": 1240},
        "root_cause": {"node": "Db"},
        "metadata": {"reproducibility": {"command": "x" * 200}},
    }
    target["root_cause"]["metric"] = None
    (place / "target.json").write_text(json.dumps(target))
    pd.DataFrame([[0, 1], [0, 0]], ["Shop A", "Db"], ["Shop A", "Db"]).to_csv(
        tmp_path / "dataset" / "low" / "graph.csv"
    )
    case = rounded(petshop_case(tmp_path, "low/train/issue_0"))
    assert case["services"] == ["Db", "Shop_A"] and case["calls"] == [["Shop_A", "Db"]]
    assert case["window"]["minutes"] == [-4.0, 1.0] and case["window"]["zero"] == 1
    assert case["metrics"]["Shop_A"]["latency_ms"]["values"] == [100.0, 900.0]
    assert case["metrics"]["Shop_A"]["latency_ms"]["usual"] == 200.0
    assert case["alerts"][0]["value"] == 900.0 and case["truth"]["root"] == "Db"
    assert len(case["truth"]["how"]) == real_cases.LONGEST


def test_differences_say_where():
    one, other = {"a": [1, {"b": 2}], "c": 1}, {"a": [1, {"b": 3}], "c": 1}
    assert differences(one, other) == ["/a/1/b: 2 is not 3"] and not differences(one, one)
    assert differences([1], [1, 2]) == [": [1] is not [1, 2]"]


def test_alerts_by_our_rules():
    usual = {"mad": 1.0, "range": [0.0, 1.0]}
    case = {
        "services": ["web", "shop"],
        "calls": [["web", "shop"]],
        "metrics": {
            "shop": {"server_p95_ms": {"values": [99.0, 9.0, 9.0, 9.0, 31.0, 9.0], "usual": 10.0}},
            "web": {"server_p95_ms": {"values": [90.0] * 3 + [30.0] * 3, "usual": 10.0}},
        },
        "users": {"success_pct": {"values": [100.0] * 5 + [94.0], "usual": 100.0, **usual}},
    }
    assert [one["service"] for one in real_cases.slow_alerts(case)] == ["shop"]
    (told,) = real_cases.users_alerts(case)
    assert (told["service"], told["value"], told["usual"]) == ("web", 6.0, 0.0)
