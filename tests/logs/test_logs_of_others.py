"""Logs that others made: what documents say of them is what comes out."""

import json
from pathlib import Path

import pytest
from root_cause_bench import RESULTS, measure, summary

from logtriage.logs.answer import answer_of
from logtriage.logs.log import read_log

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "logs.md").read_text()
EXAMPLES = ROOT / "examples"


def test_the_first_example_is_answered_as_documented(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert answer_of(read_log(["examples/inventory-pool.ndjson"])).text() in DOCUMENT


def test_the_published_counts_are_those_of_the_published_answers():
    published = json.loads(RESULTS.read_text())
    assert len(published["incidents"]) == 24 and published["commit"][:7] in DOCUMENT
    assert summary(published["incidents"]) in DOCUMENT


@pytest.mark.parametrize("root, found", [("inventoryservice", 1), ("cartservice-1", 3), ("web", 0)])
def test_an_incident_is_measured_by_its_label(tmp_path, root, found):
    name = "inventory-connection-pool-exhaustion"
    data, tests = tmp_path / name / "environment" / "data", tmp_path / name / "tests"
    data.mkdir(parents=True)
    tests.mkdir()
    (data / "logs.ndjson").write_bytes((EXAMPLES / "inventory-pool.ndjson").read_bytes())
    (data / "alert.json").write_text(json.dumps({"service": "frontend"}))
    (tests / "ground_truth.json").write_text(json.dumps({"first_failing_service": root}))
    row = measure(tmp_path / name)
    assert (row["found"], row["sure"], row["alert"]) == (found, "likely", "frontend")
    assert row["most_trouble"] == "inventoryservice"
    # The published answer is still the answer.
    (published,) = [
        one for one in json.loads(RESULTS.read_text())["incidents"] if one["incident"] == name
    ]
    assert row["suspects"] == published["suspects"]
