"""ATIF: what is exported keeps the schema, and mistakes in it are found."""

import json

import pytest
from pydantic import ValidationError
from test_replay import Talker, written

from logtriage.bench.atif import Trajectory, as_atif, name_of
from logtriage.bench.episode_file import read_journal
from logtriage.bench.evaluation import Plan
from logtriage.bench.registry import make_policy


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A trajectory of a script, and one of somebody who talks."""
    path = tmp_path_factory.mktemp("atif") / "out.jsonl"
    plan = Plan(["cascading_failure"], "test", 2)
    written(path, [make_policy("trace"), Talker("runs/talker 1")], plan)
    lines = read_journal(path)[1]
    return [as_atif(lines[at], "MATCH") for at in (1, 3)]


def test_what_was_done_and_what_it_brought_stand_in_it(documents):
    script, talk = documents
    assert [step["source"] for step in script["steps"]][:2] == ["user", "agent"]
    assert "model_name" not in script["agent"] and talk["agent"]["model_name"] == "runs/talker 1"
    assert [step["source"] for step in talk["steps"]] == ["system", "user", *["agent"] * 3]
    first = talk["steps"][2]
    assert [one["function_name"] for one in first["tool_calls"]] == [
        *("request_more_logs", "escalate", "escalate")
    ]
    sources = [one["source_call_id"] for one in first["observation"]["results"]]
    assert sources == [one["tool_call_id"] for one in first["tool_calls"]]
    assert "source_call_id" not in talk["steps"][3]["observation"]["results"][0]  # no call was read
    for document in documents:
        metrics, extra = document["final_metrics"], document["extra"]
        assert metrics["total_steps"] == len(document["steps"])
        assert 0.0 <= metrics["extra"]["score"] <= 1.0 and extra["replay"] == "MATCH"
        assert json.loads(json.dumps(document)) == document
        assert not {"root", "remedy", "team"} & {*extra, *metrics["extra"]}


def test_names_are_those_of_files():
    row = {"policy": "../runs/x y", "task": "t", "split": "s", "index": 3, "attempt": 0}
    # A digest, since others come to the same: one would overwrite the other.
    assert name_of(row).startswith("runs-x-y_t_s_3_0-") and "/" not in name_of(row)
    names = {name_of({**row, "policy": name}) for name in ("a/b", "a-b", "a b", "\ud800")}
    assert len(names) == 4 and "a-b_t_s_3_0" in names


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda one: one.update(schema_version="ATIF-v9"), "schema_version"),
        (lambda one: one.update(score=1.0), "score"),
        (lambda one: one["steps"].clear(), "steps"),
        (lambda one: one["steps"][1].update(step_id=7), "they count from 1"),
        (lambda one: one["steps"][0].update(tool_calls=[]), "an agent's"),
        (lambda one: one["steps"][2]["tool_calls"][0].update(tool_call_id="x"), "no call of step"),
        (lambda one: one["steps"][2]["tool_calls"][0].update(arguments="all"), "arguments"),
        (lambda one: one["agent"].pop("version"), "version"),
    ],
)
def test_a_mistake_is_found(change, told, documents):
    document = json.loads(json.dumps(documents[1]))
    Trajectory.model_validate(document)
    change(document)
    with pytest.raises(ValidationError, match=told):
        Trajectory.model_validate(document)
