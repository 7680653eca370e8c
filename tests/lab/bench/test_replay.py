"""Trajectories played again: what was done is confirmed, what was changed afterwards is found."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from talking_server import call, refused, said, talking

from logtriage.play.actions import Action
from logtriage.play.conversation import TEXT, tool_call
from logtriage.play.episode import Episode
from logtriage.policies.policy import ConversationPolicy
from logtriage.world.tasks import TASKS
from triagelab.bench.evaluation import evaluate
from triagelab.bench.registry import Player, behind_endpoint, scripted
from triagelab.bench.replay import (
    DRIFT,
    FORGED,
    MATCH,
    MISSING,
    UNSCORED,
    Line,
    Replayed,
    open_journal,
    read_trajectories,
    replay,
    replay_line,
)
from triagelab.bench.rollouts import Plan

COLUMNS = (
    *("score", "severity", "root_cause", "remediation", "escalation", "speed"),
    *("cost", "gate", "steps", "closed_by", "confidence", "solved", "blamed"),
)


class Talker(ConversationPolicy):
    """Asks well and badly, walks away from every third incident, and resolves the others."""

    begun = 0  # conversations

    def reply(self, messages, seed):
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn == 0:
            self.begun += 1
            calls = [
                Action("request_more_logs", ("all",)),
                Action("escalate", ("nobody",)),
                Action("escalate", ("sre",)),
            ]
        elif turn == 1:
            return {"role": "assistant", "content": "<tool_call>{broken"}, None
        else:
            calls = [Action("resolve"), Action("resolve")] if self.begun % 3 != 1 else []
        made = [tool_call(one) for one in calls]
        return {"role": "assistant", "content": "", **({"tool_calls": made} if made else {})}, None


TALKER = Player("talker", {"weights": "none"}, lambda begun: Talker("talker"))


def written(path, players, plan):
    settings = {"split": plan.split, "policies": {one.name: one.settings for one in players}}
    with open_journal(path, settings) as journal:
        evaluate(players, plan, journal)
    return path


@pytest.fixture(scope="module")
def talked(tmp_path_factory):
    path = tmp_path_factory.mktemp("talked") / "out.jsonl"
    return written(path, [TALKER], Plan(["cascading_failure"], "test", 6))


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """A trajectory of `trace`."""
    path = tmp_path_factory.mktemp("line") / "out.jsonl"
    written(path, [scripted("trace")], Plan(["cascading_failure"], "test", 2))
    return read_trajectories(path)[1][1]


def replayed(line):
    """What becomes of a line; what has not the shape of one is refused when a file is read."""
    try:
        Line.model_validate(line, strict=True)
    except ValidationError:
        return Replayed(("", ("", 0, 0)), FORGED, str(line))
    return replay_line(line, Episode.open, {})


def rewrite(path, change):
    """Change a file: `change` takes the header and the lines, as they are read."""
    head, *lines = map(json.loads, path.read_text().splitlines())
    change(head, lines)
    path.write_text("".join(json.dumps(one) + "\n" for one in (head, *lines)))


def verdicts(path):
    return [one.verdict for one in replay(path)]


def test_what_was_played_matches(talked, tmp_path):
    policies = [scripted(name) for name in ("random", "novice", "loudest", "trace")]
    for split in ("test", "unseen_topology", "unseen_wording"):
        path = written(tmp_path / f"{split}.jsonl", policies, Plan(list(TASKS), split, 2))
        assert verdicts(path) == [MATCH] * 24
    path = written(tmp_path / "own.jsonl", [scripted("belief")], Plan(["single_crash"], "test", 2))
    assert verdicts(path) == [MATCH] * 2
    assert all(one["row"]["confidence"] for one in read_trajectories(path)[1])
    # conversations, with all that went wrong in them
    lines = read_trajectories(talked)[1]
    assert verdicts(talked) == [MATCH] * 6
    assert {one["row"]["closed_by"] for one in lines} == {"timeout", "resolve"}
    kinds = [step["action"] for step in lines[1]["steps"]]
    assert kinds == ["request_more_logs", "", "escalate", "", "resolve"]


def test_a_changed_row_is_forged(line):
    # Written out, so that a column that is left out of what is confirmed is missed.
    for name in COLUMNS:
        changed = deepcopy(line)
        value = changed["row"][name]
        changed["row"][name] = value + 1e-9 if isinstance(value, float) else {1: 2}.get(value, "0")
        changed["row"] |= {"confidence": 0.5} if name == "confidence" else {}
        changed["row"] |= {"solved": not value} if name == "solved" else {}
        found = replayed(changed)
        assert found.verdict == FORGED and name in found.reason
        changed["row"].pop(name)
        assert replayed(changed).verdict == FORGED
    for field, value in (("index", 0), ("task", "single_crash"), ("split", "train")):
        assert replayed({**line, "row": {**line["row"], field: value}}).verdict == FORGED
    drifted = replayed({**line, "row": {**line["row"], "benchmark": "1.0", "score": 1.0}})
    assert drifted.verdict == DRIFT and "1.0" in drifted.reason


def changes(line):
    """The line with each of its steps changed, left out, or done twice."""
    for at, step in enumerate(line["steps"]):
        for new in (
            [{**step, "action": "escalate", "value": "security"}],
            [{**step, "value": "nobody"}],
            [{**step, "observation": step["observation"] + " "}],
            [],
            [step, step],
        ):
            steps = [*line["steps"][:at], *new, *line["steps"][at + 1 :]]
            yield {**line, "steps": steps}


def test_a_changed_action_is_forged(line, talked):
    for told in (line, read_trajectories(talked)[1][1]):
        for changed in changes(told):
            assert changed["steps"] == told["steps"] or replayed(changed).verdict == FORGED


def test_a_changed_opening_or_conversation_is_forged(talked):
    line = read_trajectories(talked)[1][1]
    assert replayed({**line, "opening": line["opening"] + "!"}).verdict == FORGED
    others = [tool_call(Action("identify_root_cause", ("checkout",))), tool_call(Action("resolve"))]
    for at, message in enumerate(line["messages"]):
        if message["role"] == "assistant":  # what it wrote is what was done
            news = ({"tool_calls": others}, {"tool_calls": None, "content": "I looked."})
        elif message["role"] == "system" or message["content"] == "Incident closed.":
            continue  # of a call after the end, which was no step
        else:
            news = ({"content": "nothing"},)
        for new in news:
            changed = deepcopy(line)
            changed["messages"][at] |= new
            assert replayed(changed).verdict == FORGED, (at, new)
    longer = {**line, "messages": [*line["messages"], {"role": "assistant", "content": "Done!"}]}
    assert "after the end" in replayed(longer).reason
    counted = {**line, "row": {**line["row"], "prompt_tokens": 5}}
    assert replayed(counted).verdict == MATCH
    assert "left out" in replayed({**counted, "messages": []}).reason


def test_a_line_that_was_left_out_is_missing(tmp_path):
    # Who leaves out what went badly shows a better mean.
    plan = Plan(["single_crash", "cascading_failure"], "test", 3, attempts=2)
    path = written(tmp_path / "out.jsonl", [scripted("loudest"), scripted("trace")], plan)
    head, *lines = path.read_text().splitlines(keepends=True)
    for at in (1, len(lines) - 1):  # in the middle, and the last one
        path.write_text("".join([head, *lines[:at], *lines[at + 1 :]]))
        *others, missing = replay(path)
        row = json.loads(lines[at])["row"]
        assert missing.verdict == MISSING and [one.verdict for one in others] == [MATCH] * 23
        assert missing.where == (row["policy"], (row["task"], row["index"], row["attempt"]))
    rewrite(path, lambda head, lines: lines[0]["row"].update(index=10**30))
    assert verdicts(path) == [FORGED, *[MATCH] * 22]  # and nobody counts up to there


def test_a_file_that_contradicts_itself_is_forged(tmp_path):
    plan = Plan(["single_crash"], "test", 2)
    path = written(tmp_path / "out.jsonl", [scripted("trace")], plan)
    whole = path.read_bytes()
    for change in (
        {"split": "train"},
        {"benchmark": "1.0"},
        {"policies": {"belief": {}}},
        {"policies": {}},
    ):
        rewrite(path, lambda head, lines, change=change: head["settings"].update(change))
        found = replay(path)
        assert [one.verdict for one in found] == [FORGED] * 2
        assert all("the header" in one.reason for one in found)
        path.write_bytes(whole)
    # An episode counts once: who played one twice could show the better one.
    rewrite(path, lambda head, lines: lines.append(lines[0]))
    assert verdicts(path) == [FORGED, MATCH, MATCH]
    # A model's conversation cannot be left out.
    path = written(tmp_path / "talked.jsonl", [TALKER], plan)
    assert verdicts(path) == [MATCH] * 2
    rewrite(path, lambda head, lines: lines[0].update(messages=[]))
    assert verdicts(path) == [FORGED, MATCH]


def test_errors_have_no_score_and_are_superseded(tmp_path):
    path = tmp_path / "out.jsonl"
    plan, asks = Plan(["single_crash"], "test", 3), call("request_more_logs", '{"service": "all"}')

    def answer(body, number):
        return said(asks) if len(body["messages"]) == 2 else refused(413, "too long")

    with talking(answer) as (url, _):
        written(path, [behind_endpoint(url, "toy")], plan)
    assert verdicts(path) == [UNSCORED] * 3
    _, *lines = map(json.loads, path.read_text().splitlines())
    for name in COLUMNS:
        if name != "closed_by":
            forged = deepcopy(lines[0])
            forged["row"][name] = True if name == "solved" else 0.5
            assert replayed(forged).verdict == FORGED, name
    lines[1]["row"]["error"] = ""
    assert replayed(lines[1]).verdict == FORGED
    wrote = '{"name": "resolve", "arguments": {}}'
    with talking(lambda *_: said(content=wrote)) as (url, _):
        text = behind_endpoint(url, "toy", protocol=TEXT)
        own = {"toy": text.settings}
        rewrite(path, lambda head, lines: head["settings"].update(policies=own))
        written(path, [text], plan)
    assert verdicts(path) == [MATCH] * 3  # seven lines, three episodes


NESTED = json.loads('{"a":' * 50 + "1" + "}" * 50)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["row", "opening", "steps", "messages", "more"]),
    st.sampled_from(["task", "split", "index", "policy", "closed_by", "benchmark"]),
    ANYTHING,
)
def test_a_line_may_hold_anything(line, field, column, value):
    found = replayed({**line, field: value})
    assert found.verdict == (MATCH if (field, value) == ("messages", []) else FORGED)
    found = replayed({**line, "row": {**line["row"], column: value}})
    assert found.verdict in (MATCH, DRIFT, FORGED)


def test_what_cannot_be_read_is_forged(talked):
    whole = read_trajectories(talked)[1][1]
    for change in (
        lambda one: one["row"].pop("prompt_tokens"),
        lambda one: one["row"].pop("score"),
        lambda one: one["row"].update(score=[1.0]),
        lambda one: one["row"].update(completion_tokens="7"),
        lambda one: one["row"].update(prompt_tokens=-7),
        lambda one: one["messages"][0].pop("role"),
        lambda one: one["messages"][2].pop("role"),
        lambda one: one["messages"][2].update(tool_calls=7),
        lambda one: one["messages"][2]["tool_calls"][0].pop("function"),
        lambda one: one["messages"][2]["tool_calls"][0]["function"].update(arguments=NESTED),
        lambda one: one["messages"].append(7),
    ):
        line = deepcopy(whole)
        change(line)
        assert replayed(line).verdict == FORGED
