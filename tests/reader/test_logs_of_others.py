"""Logs that others made: what documents say of them is what comes out."""

import json
from pathlib import Path

import pytest
from root_cause_bench import RESULTS, measure, summary

from logreader.answer import answer_of
from logreader.log import read_log

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads(RESULTS.read_text())
DOCUMENT = (ROOT / "docs" / "logs.md").read_text()
EXAMPLE = "examples/inventory-pool.ndjson"
INCIDENT = "inventory-connection-pool-exhaustion"  # what it is called where it comes from


def test_the_example_is_answered_as_documented_and_as_published(monkeypatch):
    monkeypatch.chdir(ROOT)
    answer = answer_of(read_log([EXAMPLE]))
    assert answer.text() in DOCUMENT
    (published,) = [row for row in PUBLISHED["incidents"] if row["incident"] == INCIDENT]
    suspects = [suspect.service for suspect in answer.suspects]
    assert (published["sure"], published["suspects"]) == (answer.sure, suspects)


def test_the_published_counts_are_those_of_the_published_answers():
    assert len(PUBLISHED["incidents"]) == 24 and PUBLISHED["commit"][:7] in DOCUMENT
    assert summary(PUBLISHED["incidents"]) in DOCUMENT


@pytest.mark.parametrize(
    ("root", "rank"), [("inventoryservice", 1), ("cartservice-1", 3), ("web", 0)]
)
def test_an_incident_is_measured_by_its_label(tmp_path, root, rank):
    folder = tmp_path / INCIDENT
    files = {
        "environment/data/logs.ndjson": (ROOT / EXAMPLE).read_text(),
        "environment/data/alert.json": json.dumps({"service": "frontend"}),
        "tests/ground_truth.json": json.dumps({"first_failing_service": root}),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    row = measure(folder)
    assert (row["found"], row["alert"]) == (rank, "frontend")
    assert row["most_trouble"] == "inventoryservice"
