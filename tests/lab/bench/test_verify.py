"""Trajectories verified: what was done is confirmed, what was changed afterwards is found."""

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
from helpers import refusal, run
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from talking_server import call, refused, said, talking

from logtriage.play.actions import Action
from logtriage.play.conversation import TEXT, tool_call
from logtriage.play.episode import Episode
from logtriage.policies.policy import ConversationPolicy
from logtriage.world.tasks import TASKS
from triagelab.bench.evaluation import evaluate, suite_plan
from triagelab.bench.journal import Line, open_journal, read_trajectories
from triagelab.bench.registry import Player, behind_endpoint, scripted
from triagelab.bench.rollouts import Plan
from triagelab.bench.verify import DRIFT, MATCH, MISMATCH, MISSING, Checked, verify, verify_line

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
            asks = Action("request_more_logs", ("all",))
            calls = [asks, *(Action("escalate", (team,)) for team in ("nobody", "sre"))]
        elif turn == 1:
            return {"role": "assistant", "content": "<tool_call>{broken"}, None
        else:
            calls = [Action("resolve"), Action("resolve")] if self.begun % 3 != 1 else []
        made = [tool_call(action) for action in calls]
        return {"role": "assistant", "content": "", **({"tool_calls": made} if made else {})}, None


TALKER = Player("talker", {"weights": "none"}, lambda begun: Talker("talker"))


def written(path, players, plan):
    policies = {player.name: player.settings for player in players}
    with open_journal(path, {"split": plan.split, "policies": policies}) as journal:
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


def check(line):
    """What becomes of a line; what has not the shape of one is refused when a file is read."""
    try:
        Line.model_validate(line, strict=True)
    except ValidationError:
        return Checked(("", ("", 0, 0)), MISMATCH, str(line))
    return verify_line(line, Episode.open, {})


def rewrite(path, change):
    """Change a file: `change` takes the header and the lines, as they are read."""
    head, *lines = map(json.loads, path.read_text().splitlines())
    change(head, lines)
    path.write_text("".join(json.dumps(part) + "\n" for part in (head, *lines)))


def verdicts(path):
    return [checked.verdict for checked in verify(path)]


def test_what_was_played_matches(talked, tmp_path):
    policies = [scripted(name) for name in ("random", "novice", "loudest", "trace")]
    for split in ("test", "unseen_topology", "unseen_wording"):
        path = written(tmp_path / f"{split}.jsonl", policies, Plan(list(TASKS), split, 2))
        assert verdicts(path) == [MATCH] * 24
    path = written(tmp_path / "own.jsonl", [scripted("belief")], Plan(["single_crash"], "test", 2))
    assert verdicts(path) == [MATCH] * 2
    assert all(line["row"]["confidence"] for line in read_trajectories(path)[1])
    # conversations, with all that went wrong in them
    lines = read_trajectories(talked)[1]
    assert verdicts(talked) == [MATCH] * 6
    assert {line["row"]["closed_by"] for line in lines} == {"timeout", "resolve"}
    kinds = [step["action"] for step in lines[1]["steps"]]
    assert kinds == ["request_more_logs", "", "escalate", "", "resolve"]


def test_a_changed_row_is_found(line):
    # Written out, so that a column that is left out of what is confirmed is missed.
    for name in COLUMNS:
        changed = deepcopy(line)
        value = changed["row"][name]
        changed["row"][name] = value + 1e-9 if isinstance(value, float) else {1: 2}.get(value, "0")
        changed["row"] |= {"confidence": 0.5} if name == "confidence" else {}
        changed["row"] |= {"solved": not value} if name == "solved" else {}
        checked = check(changed)
        assert checked.verdict == MISMATCH and name in checked.reason
        changed["row"].pop(name)
        assert check(changed).verdict == MISMATCH
    for field, value in (("index", 0), ("task", "single_crash"), ("split", "train")):
        assert check({**line, "row": {**line["row"], field: value}}).verdict == MISMATCH
    drifted = check({**line, "row": {**line["row"], "benchmark": "1.0", "score": 1.0}})
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


def test_a_changed_action_is_found(line, talked):
    for whole in (line, read_trajectories(talked)[1][1]):
        for changed in changes(whole):
            assert changed["steps"] == whole["steps"] or check(changed).verdict == MISMATCH


def test_a_changed_opening_or_conversation_is_found(talked):
    line = read_trajectories(talked)[1][1]
    assert check({**line, "opening": line["opening"] + "!"}).verdict == MISMATCH
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
            assert check(changed).verdict == MISMATCH, (at, new)
    longer = {**line, "messages": [*line["messages"], {"role": "assistant", "content": "Done!"}]}
    assert "after the end" in check(longer).reason
    counted = {**line, "row": {**line["row"], "prompt_tokens": 5}}
    assert check(counted).verdict == MATCH
    assert "left out" in check({**counted, "messages": []}).reason


def test_rows_are_written_when_all_are_confirmed(tmp_path):
    path, rows = tmp_path / "out.jsonl", tmp_path / "row.json"
    written(path, [scripted("loudest")], Plan(["single_crash"], "test", 3))
    assert "cannot write" in refusal("verify", path, "--json", tmp_path / "gone" / "rows.json")
    confirmed = run("verify", path, "--json", rows)
    assert confirmed.exit_code == 0 and "3 MATCH" in confirmed.stdout, confirmed.output
    assert [row["index"] for row in json.loads(rows.read_text())] == [0, 1, 2]
    rewrite(path, lambda head, lines: lines[1]["row"].update(score=0.123))
    rows.unlink()
    refused = run("verify", path, "--json", rows)
    assert refused.exit_code == 1 and "2 MATCH, 1 MISMATCH" in refused.stdout
    assert "MISMATCH loudest single_crash 1 0: score is" in refused.stdout and not rows.exists()
    assert len(re.findall(r"loudest +single_crash 0\.\d+ \[", refused.stdout)) == 1  # the mean


def test_what_cannot_be_read_is_refused(tmp_path):
    assert "No such file" in refusal("verify", tmp_path / "gone.jsonl")
    path, shop = tmp_path / "shop.jsonl", Path(__file__).parents[3] / "examples" / "shop.yaml"
    played = ("--policy", "trace", "--task", "single_crash", "--episodes", 3, "--topology", shop)
    assert run("evaluate", *played, "--trajectories", path).exit_code == 0
    assert "another call graph" in refusal("verify", path)
    assert "3 MATCH" in run("verify", path, "--topology", shop).stdout


def test_a_line_that_was_left_out_is_missing(tmp_path):
    # Who leaves out what went badly shows a better mean.
    plan = Plan(["single_crash", "cascading_failure"], "test", 3, attempts=2)
    path = written(tmp_path / "out.jsonl", [scripted("loudest"), scripted("trace")], plan)
    head, *lines = path.read_text().splitlines(keepends=True)
    for at in (1, len(lines) - 1):  # in the middle, and the last one
        path.write_text("".join([head, *lines[:at], *lines[at + 1 :]]))
        *others, missing = verify(path)
        row = json.loads(lines[at])["row"]
        assert missing.verdict == MISSING and [other.verdict for other in others] == [MATCH] * 23
        assert missing.where == (row["policy"], (row["task"], row["index"], row["attempt"]))
    rewrite(path, lambda head, lines: lines[0]["row"].update(index=10**30))
    assert verdicts(path) == [MISMATCH, *[MATCH] * 22]  # and nobody counts up to there


def test_a_suite_has_gaps_that_are_not_missing(tmp_path):
    path = written(tmp_path / "out.jsonl", [scripted("loudest")], suite_plan("lite"))
    assert verdicts(path) == [MATCH] * 30
    head, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head, *lines[:-1]]))
    assert verdicts(path) == [*[MATCH] * 29, MISSING]


def test_a_file_that_contradicts_itself_is_found(tmp_path):
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
        checks = verify(path)
        assert [checked.verdict for checked in checks] == [MISMATCH] * 2
        assert all("the header" in checked.reason for checked in checks)
        path.write_bytes(whole)
    # An episode counts once: who played one twice could show the better one.
    rewrite(path, lambda head, lines: lines.append(lines[0]))
    assert verdicts(path) == [MISMATCH, MATCH, MATCH]
    # A model's conversation cannot be left out.
    path = written(tmp_path / "talked.jsonl", [TALKER], plan)
    assert verdicts(path) == [MATCH] * 2
    rewrite(path, lambda head, lines: lines[0].update(messages=[]))
    assert verdicts(path) == [MISMATCH, MATCH]


def test_errors_have_no_score_and_are_superseded(tmp_path):
    path = tmp_path / "out.jsonl"
    plan, asks = Plan(["single_crash"], "test", 3), call("request_more_logs", '{"service": "all"}')

    def answer(body, number):
        return said(asks) if len(body["messages"]) == 2 else refused(413, "too long")

    with talking(answer) as (url, _):
        written(path, [behind_endpoint(url, "toy")], plan)
    assert verdicts(path) == ["UNSCORED"] * 3
    _, *lines = map(json.loads, path.read_text().splitlines())
    for name in COLUMNS:
        if name != "closed_by":
            changed = deepcopy(lines[0])
            changed["row"][name] = True if name == "solved" else 0.5
            assert check(changed).verdict == MISMATCH, name
    lines[1]["row"]["error"] = ""
    assert check(lines[1]).verdict == MISMATCH
    wrote = '{"name": "resolve", "arguments": {}}'
    with talking(lambda *_: said(content=wrote)) as (url, _):
        text = behind_endpoint(url, "toy", protocol=TEXT)
        own = {"toy": text.settings}
        rewrite(path, lambda head, lines: head["settings"].update(policies=own))
        written(path, [text], plan)
    assert verdicts(path) == [MATCH] * 3  # seven lines, three episodes


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
    verdict = check({**line, field: value}).verdict
    assert verdict == (MATCH if (field, value) == ("messages", []) else MISMATCH)
    verdict = check({**line, "row": {**line["row"], column: value}}).verdict
    assert verdict in (MATCH, DRIFT, MISMATCH)
