"""Logs that others made: what documents say of them is what comes out."""

import json
from pathlib import Path

from logreader.answer import answer_of
from logreader.log import read_log

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "results" / "own-logs" / "root-cause-bench.json").read_text())
EXAMPLE = "examples/inventory-pool.ndjson"
INCIDENT = "inventory-connection-pool-exhaustion"  # what it is called where it comes from


def test_the_example_is_answered_as_documented_and_as_published(monkeypatch):
    monkeypatch.chdir(ROOT)
    answer = answer_of(read_log([EXAMPLE]))
    assert answer.text() in Path("docs/logs.md").read_text()
    (published,) = [row for row in PUBLISHED["incidents"] if row["incident"] == INCIDENT]
    suspects = [suspect.service for suspect in answer.suspects]
    assert (published["sure"], published["suspects"]) == (answer.sure, suspects)
