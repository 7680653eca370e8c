"""Evaluations that survive: servers that fail in every way, processes that are killed, and budgets.
Every episode is accounted for, and none is played twice.
"""

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest
from talking_server import HANG, RESOLVES, call, refused, said, talking, without_pauses
from test_command_line import refusal
from test_command_line import run as run_command

from logtriage.bench.episode_file import Journal, read_journal
from logtriage.bench.evaluation import EPISODES, Plan, evaluate, make_plan
from logtriage.bench.intervals import score_table
from logtriage.bench.registry import make_policy
from logtriage.bench.rollouts import HOPELESS, Brake, rollout, rollout_each, solved
from logtriage.bench.strata import detection_table
from logtriage.bench.telling import describe_errors
from logtriage.play.conversation import TEXT
from logtriage.play.episode import Episode
from logtriage.play.scoring import Score
from logtriage.play.tools import ToolSession
from logtriage.policies.llm.endpoint import EndpointPolicy
from logtriage.policies.policy import Played, Tokens
from logtriage.policies.scripted import ConstantPolicy
from logtriage.real.cases import load_source
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

SETTINGS = {"split": "test"}
ASKS = said(call("request_more_logs", '{"service": "all"}'))


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Seconds of every pause of the client, none of which is waited for."""
    return without_pauses(monkeypatch)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.jsonl"


def coordinates(frame):
    return list(frame[["policy", "task", "index", "attempt"]].itertuples(index=False, name=None))


def test_scripted_policies_earn_what_they_earn_in_a_rollout(path):
    plan = Plan(list(TASKS), "test", 6, first=3)
    policies = ("random", "trace")
    found = evaluate(
        [make_policy(name) for name in policies], plan, Journal(path, SETTINGS), progress=False
    )
    plain = pd.concat(
        [rollout(make_policy(name), list(TASKS), "test", 6, 3, progress=False) for name in policies]
    )
    own = found.frame[plain.columns].drop(columns="seconds")
    pd.testing.assert_frame_equal(own, plain.drop(columns="seconds").reset_index(drop=True))
    _, lines, _ = read_journal(path)
    assert len(lines) == len(own) == 36 and found.unplayed == 0


# Whatever a server does with the requests of some episodes, by the number of the request.
TROUBLES = {
    "busy": lambda number, passed: (
        refused(429, headers={"Retry-After": "20"}) if passed < 60 else RESOLVES
    ),
    "tool_use_failed": lambda number, passed: refused(400, code="tool_use_failed"),
    "413": lambda number, passed: refused(413),
    "500": lambda number, passed: refused(500),
    "null arguments": lambda number, passed: said(call("escalate", None)),
    "no choices": lambda number, passed: (200, {}, {"choices": []}),
    "hangs": lambda number, passed: HANG,
}
ENDS = {"busy": "resolve", "tool_use_failed": "timeout", "null arguments": "timeout"}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_episode_is_accounted_for_and_none_is_played_twice(trouble, path, clock):
    plan = Plan(["single_crash"], "test", 8)
    unlucky = [ToolSession(Episode.open("single_crash", "test", index)).opening for index in (2, 5)]

    def answer(body, number):
        if body["messages"][1]["content"] in unlucky:
            return TROUBLES[trouble](number, sum(clock))
        return RESOLVES

    with talking(answer) as (url, talk):

        def play(resume):
            policy = EndpointPolicy(url, "toy", workers=2, timeout=0.6)
            journal = Journal(path, SETTINGS, resume=resume)
            return evaluate([policy], plan, journal, progress=False)

        policy = EndpointPolicy(url, "toy", workers=2, timeout=0.6)
        journal = Journal(path, SETTINGS)
        each = rollout_each(policy, plan.tasks, "test", plan.indices)
        for result in islice(each, 3):  # then the process dies
            journal.add(result)
        each.close()
        found = play(resume=True)
        asked = len(talk.requests)
        again = play(resume=True)
        assert len(talk.requests) == asked  # nothing was left to play
    assert sorted(found.frame["index"]) == list(range(8)) and found.unplayed == 0
    pd.testing.assert_frame_equal(found.frame, again.frame)
    _, lines, _ = read_journal(path)
    assert Counter(line["row"]["index"] for line in lines) == Counter(range(8))
    closed = found.frame.set_index("index")["closed_by"]
    assert {*closed[[2, 5]]} == {ENDS.get(trouble, "error")}
    assert {*closed.drop([2, 5])} == {"resolve"}
    failed = found.frame[found.frame["closed_by"] == "error"]
    assert failed["score"].isna().all() and failed["error"].ne("").all()
    if len(failed):
        table = score_table(found.frame)
        assert list(table["errors"]) == [2]  # counted beside the mean, and left out of it
        mean = found.frame["score"].dropna().mean()
        assert table["score"][0].startswith(f"{mean:.3f} [")
        assert describe_errors(found.frame)[0].startswith("toy: 2 of 8 episodes have no score")
        assert detection_table(found.frame)["real faults detected"][0].endswith(" of 6")
    else:
        assert "errors" not in score_table(found.frame)


def test_a_server_that_parses_no_tools_is_said(path):
    with talking(lambda *_: said(content='{"name": "resolve", "arguments": {}}')) as (url, _):
        plan = Plan(["single_crash"], "test", 40)
        found = evaluate(
            [EndpointPolicy(url, "toy")], plan, Journal(path, SETTINGS), progress=False
        )
        assert found.frame["score"].isna().all() and found.unplayed + len(found.frame) == 40
        assert "choose --tools text" in found.reason
        policy = EndpointPolicy(url, "toy", protocol=TEXT)
        found = evaluate([policy], plan, progress=False)
    assert set(found.frame["closed_by"]) == {"resolve"}


def test_who_fails_without_end_is_asked_no_more(path):
    with talking(lambda *_: refused(403)) as (url, talk):
        plan = Plan(list(TASKS), "test", 50)
        policy = EndpointPolicy(url, "toy", workers=4)
        found = evaluate([policy], plan, Journal(path, SETTINGS), progress=False)
        assert HOPELESS <= len(found.frame) < HOPELESS + 4
        assert found.unplayed == 150 - len(found.frame) and "errors in a row" in found.reason
        with pytest.raises(ConnectionError, match="errors in a row"):
            rollout(EndpointPolicy(url, "toy"), ["single_crash"], "test", 50, progress=False)
    with talking(lambda *_: RESOLVES) as (url, talk):  # the key was mended
        journal = Journal(path, SETTINGS, resume=True, again=True)
        found = evaluate([EndpointPolicy(url, "toy")], plan, journal, progress=False)
        assert len(talk.requests) == 150 and not found.frame["error"].any()
    # What was played again counts once, here and to whoever reads the file.
    journal = Journal(path, SETTINGS, resume=True)
    assert len(journal.rows) == 150 and not any(row["error"] for row in journal.rows.values())


def test_a_budget_ends_the_beginning_of_episodes_and_not_those_under_way(path):
    plan = Plan(["single_crash"], "test", 10)
    with talking(lambda body, number: ASKS if number % 2 == 0 else RESOLVES) as (url, _):

        def play(budget):
            journal = Journal(path, SETTINGS, resume=path.exists())
            policy = EndpointPolicy(url, "toy", workers=1)
            return evaluate([policy], plan, journal, budget=budget, progress=False)

        found = play(500)  # an episode takes 220
        assert len(found.frame) == 3 and found.unplayed == 7 and found.frame["error"].eq("").all()
        assert "660 tokens are spent, of a budget of 500" in found.reason
        assert play(500).unplayed == 7  # what the file tells of is spent, too
        assert len(play(1_000).frame) == 5
        assert play(None).unplayed == 0


def test_what_errors_cost_is_spent_when_they_are_played_again(path):
    plan, fails = Plan(["single_crash"], "test", 3), [True]

    def answer(body, number):
        if len(body["messages"]) == 2:
            return ASKS
        return refused(413) if fails[0] else RESOLVES

    with talking(answer) as (url, _):

        def play(budget, again):
            journal = Journal(path, SETTINGS, resume=path.exists(), again=again)
            policy = EndpointPolicy(url, "toy", workers=1)
            return evaluate([policy], plan, journal, budget=budget, progress=False)

        play(None, False)  # three errors, of 110 tokens each
        fails[0] = False
        found = play(500, True)  # 220 more for the first
        assert "550 tokens are spent, of a budget of 500" in found.reason and found.unplayed == 2
        assert Journal(path, SETTINGS, resume=True).spent == 550


def test_two_policies_of_one_name_are_refused(path):
    # The rows of the one would stand for the other, and be listed twice.
    journal = Journal(path, SETTINGS)
    twice = [make_policy("trace"), make_policy("trace")]
    with pytest.raises(ValueError, match="two policies are called trace"):
        evaluate(twice, Plan(["single_crash"], "test", 2), journal, progress=False)
    assert journal.rows == {}


@pytest.mark.parametrize("arguments", ["[" * 300 + "]" * 300, '{"a":' * 980 + "1" + "}" * 980])
def test_deep_arguments_cost_a_step_and_not_the_evaluation(arguments, path):
    deep = said(call("escalate", f'{{"team": {arguments}}}'))
    with talking(lambda body, number: RESOLVES if number % 2 else deep) as (url, _):
        plan = Plan(["single_crash"], "test", 3)
        policy = EndpointPolicy(url, "toy", workers=1)
        found = evaluate([policy], plan, Journal(path, SETTINGS), progress=False)
    assert set(found.frame["steps"]) == {2} and found.frame["error"].eq("").all()


def test_a_budget_that_cannot_be_kept_is_none(path):
    silent = said(call("resolve", "{}"), usage=None)
    with talking(lambda *_: silent) as (url, talk):
        plan = Plan(["single_crash"], "test", 10)
        policy = EndpointPolicy(url, "toy", workers=1)
        found = evaluate([policy], plan, Journal(path, SETTINGS), budget=500, progress=False)
    assert "nobody tells" in found.reason and len(talk.requests) == 1


def test_attempts_are_episodes_of_their_own():
    found = evaluate(
        [make_policy("random")], Plan(["single_crash"], "test", 4, attempts=3), progress=False
    )
    rows = coordinates(found.frame)
    assert rows == [
        ("random", "single_crash", i, attempt) for attempt in range(3) for i in range(4)
    ]
    assert found.frame.groupby("attempt")["score"].apply(tuple).nunique() > 1


def test_a_half_written_line_is_dropped_and_a_broken_one_is_told(path):
    plan = Plan(["single_crash"], "test", 5)
    whole = evaluate([make_policy("loudest")], plan, Journal(path, SETTINGS), progress=False)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][: len(lines[4]) // 2])
    journal = Journal(path, SETTINGS, resume=True)
    assert len(journal.rows) == 3
    found = evaluate([make_policy("loudest")], plan, journal, progress=False)
    drop = {"columns": "seconds"}
    pd.testing.assert_frame_equal(found.frame.drop(**drop), whole.frame.drop(**drop))
    assert len(read_journal(path)[1]) == 5
    path.write_bytes(lines[0] + b"{broken\n" + lines[1])
    with pytest.raises(ValueError, match="line 2, is no JSON"):
        Journal(path, SETTINGS, resume=True)


def test_a_file_is_gone_on_with_only_by_the_same_settings_and_when_asked_to(path):
    plan = Plan(["single_crash"], "test", 2)
    evaluate([make_policy("loudest")], plan, Journal(path, SETTINGS), progress=False)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"holds 2 episodes; go on with them by --resume"):
        Journal(path, SETTINGS)
    with pytest.raises(ValueError, match=r"another split \('test', not 'train'\), tools"):
        Journal(path, {"split": "train", "tools": "text"}, resume=True)
    head = json.loads(before.splitlines()[0])
    head["settings"]["benchmark"] = "1.0"
    path.write_bytes(json.dumps(head).encode() + b"\n" + before.split(b"\n", 1)[1])
    with pytest.raises(ValueError, match=r"another benchmark \('1.0'"):
        Journal(path, SETTINGS, resume=True)
    for other in ('{"policy": "trace"}\n', "[]\n"):
        path.write_text(other)
        with pytest.raises(ValueError, match="no file of `evaluate --trajectories`"):
            Journal(path, SETTINGS, resume=True)


def test_a_file_that_is_not_ours_is_left_as_it_is(path):
    # Without the end of a line there is no first line to look at.
    for other in (b"notes of mine", b"{", b'{"logtriage": "settings"', b"\x00"):
        path.write_bytes(other)
        if other == b"{":  # so begins a head that was not written to its end
            Journal(path, SETTINGS, resume=True)
            continue
        with pytest.raises(ValueError, match="no file of `evaluate --trajectories`"):
            Journal(path, SETTINGS, resume=True)
        assert path.read_bytes() == other
    Journal(path := path.with_name("own.jsonl"), SETTINGS)
    whole = path.read_bytes()
    for length in range(len(whole)):  # a process that was killed while it wrote the head
        path.write_bytes(whole[:length])
        Journal(path, SETTINGS)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["[]", "7", "{}", '{"row": {}}', '{"row": {"policy": []}}'])
def test_a_line_that_is_none_is_told(line, path):
    Journal(path, SETTINGS)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match="line 2, is no trajectory"):
        Journal(path, SETTINGS, resume=True)
    head = json.loads(path.read_text().splitlines()[0])
    for settings in ([], None, "x"):
        path.write_text(json.dumps({**head, "settings": settings}) + "\n")
        with pytest.raises(ValueError, match="tells no settings"):
            Journal(path, SETTINGS, resume=True)
        assert "tells no settings" in refusal("replay", path)


def test_what_others_wrote_reaches_no_terminal_as_it_is(path):
    """Controls of a terminal are text here: they would colour, erase and retitle."""
    evil = "\x1b]0;mine\x07\x1b[2J"
    with talking(lambda *_: refused(413, f"no {evil}")) as (url, _):
        plan = Plan(["single_crash"], "test", 2)
        found = evaluate([EndpointPolicy(url, f"toy{evil}")], plan, progress=False)
    assert "\x1b" not in "".join(found.frame["error"])
    told = describe_errors(found.frame.assign(error=f"no {evil}"))
    assert len(told) == 2 and all(one.isprintable() for one in told)
    evaluate([make_policy("trace")], plan, Journal(path, SETTINGS), progress=False)
    head, *lines = map(json.loads, path.read_text().splitlines())
    lines[0]["row"]["policy"] = lines[1]["row"]["task"] = evil
    lines[1]["steps"] = []
    path.write_text("".join(json.dumps(one) + "\n" for one in (head, *lines)))
    told = run_command("replay", path)
    assert "\x1b" not in told.output and "\\x1b" in told.output


def test_rows_of_a_server_are_not_mixed_with_those_of_here(path):
    # It may play on a call graph of its own.
    Journal(path, {"split": "test", "audit": False, "server": "http://there:8000"})
    path.write_text(path.read_text() + "\n".join([_a_line(path), ""]))
    asked = ("evaluate", "--policy", "trace", "--trajectories", path, "--resume")
    assert "another server ('http://there:8000', not None)" in refusal(*asked)
    there = refusal(*asked, "--env-url", "http://127.0.0.1:9/")
    assert "not 'http://127.0.0.1:9')" in there


def _a_line(path):
    """A line of an episode that was played."""
    own = path.with_name("line.jsonl")
    plan = Plan(["single_crash"], "test", 1)
    evaluate([make_policy("trace")], plan, Journal(own, SETTINGS), progress=False)
    return own.read_text().splitlines()[1]


def test_nothing_of_the_truth_stands_in_the_file(path):
    # Somebody who does not answer: neither root, remedy nor team may be in there but as text of the
    # world, which names every service, so the keys are what is looked at.
    plan = Plan(["cascading_failure"], "test", 3)
    evaluate([ConstantPolicy([])], plan, Journal(path, SETTINGS), progress=False)
    _, lines, _ = read_journal(path)
    assert {key for line in lines for key in line} == {"row", "opening", "steps", "messages"}
    assert not {"root", "remedy", "team", "fault", "real"} & {
        key for one in lines for key in one["row"]
    }
    assert {key for one in lines for step in one["steps"] for key in step} == {
        *("action", "value", "confidence", "observation")
    }


def test_rows_come_as_episodes_end():
    # The third episode is not begun before the first is told of.
    opened = []

    def opening(task, split, index):
        opened.append(index)
        return Episode.open(task, split, index)

    each = rollout_each(
        make_policy("trace"), ["single_crash"], "test", range(9), open_episode=opening
    )
    next(each)
    assert opened == [0]


def test_a_brake_looks_at_what_is_in_a_row():
    episode = Episode.open("single_crash", "test", 0)
    brake = Brake()
    for error in [*["no"] * (HOPELESS - 1), "", *["no"] * (HOPELESS - 1)]:
        brake.see(Played(episode, 0.0, error))
        assert not brake.reason
    brake.see(Played(episode, 0.0, "at last"))
    assert "the last one: at last" in brake.reason
    brake = Brake(100, 60)
    brake.see(Played(episode, 0.0, tokens=Tokens(30, 9)))
    assert not brake.reason
    brake.see(Played(episode, 0.0, tokens=Tokens(1, 0)))
    assert brake.reason and brake.spent == 100


@pytest.mark.parametrize(
    "parts, is_solved",
    [
        ((1, 1, 1, 1, 1, 0, 1, 1.0), True),
        ((0, 1, 1, 0, 0, 0, 1, 0.6), True),  # slow, and the severity wrong
        ((1, 1, 0, 1, 0.5, 0.1, 1, 0.6), True),  # the second remedy healed it
        ((1, 1, 0, 1, 0, 0, 1, 0.65), False),  # named, not healed
        ((1, 0, 1, 1, 1, 0, 1, 0.65), False),  # healed by chance
        ((1, 1, 1, 0, 1, 0, 0, 0.0), False),  # the gate
        ((0, 1, 0, 0, 0, 0, 1, 1.0), True),  # a score of the root cause alone
        ((0, 0, 0, 0, 0, 0, 1, 0.0), False),
    ],
)
def test_solved_is_named_healed_and_let_through(parts, is_solved):
    assert solved(Score(*parts)) is is_solved


@pytest.mark.parametrize("name, least", [("oracle", 1.0), ("constant", 0.0)])
def test_who_knows_solves_and_who_does_not_rarely_does(name, least):
    found = evaluate(
        [make_policy(name)], Plan(["silent_degradation"], "test", 20), progress=False
    ).frame
    alarms = found["closed_by"] == "ignore"
    assert found["solved"].mean() == 1.0 if least else found["solved"].mean() < 0.6
    assert alarms.any() or name == "constant"


def test_the_file_of_a_journal_may_be_in_a_new_folder(tmp_path):
    path = Path(tmp_path / "a" / "b.jsonl")
    Journal(path, SETTINGS)
    assert Journal(path, SETTINGS).rows == {}  # nothing was played, so nothing is lost


def test_a_plan_is_of_incidents_that_there_are():
    assert make_plan(["all"], "test") == Plan(list(TASKS), "test", EPISODES)
    assert make_plan(["real"], "petshop") == Plan(["real"], "petshop", 26)
    assert make_plan(["real"], "petshop", 3, first=23).indices == range(23, 26)
    for asked, said_so in (
        ((["real"], "test"), "choose one of petshop"),
        ((["real"], "petshop", 4, 23), "incidents 0 to 25, and 4 from 23 on were asked for"),
        ((["real"], "petshop", None, 26), "incidents 0 to 25"),
        ((["real", "single_crash"], "petshop"), "leave out other tasks"),
        ((["real"], "petshop", None, 0, 1, DEFAULT_TOPOLOGY), "and the topology"),
        ((["all"], "petshop"), "unknown split 'petshop'"),
        ((["nonsense"], "test"), "unknown task 'nonsense'"),
    ):
        with pytest.raises(ValueError, match=said_so):
            make_plan(*asked)


def test_real_incidents_are_evaluated_and_replayed(path):
    """By the root cause alone; the top three are counted from what was blamed, in order."""
    asked = ("--task", "real", "--split", "petshop")
    told = run_command("evaluate", *asked, "--policy", "unexplained", "--trajectories", path)
    assert told.exit_code == 0 and "scored: root cause alone" in told.stdout, told.output
    rows = [line["row"] for line in read_journal(path)[1]]
    cases = load_source("petshop").cases
    right = [row["blamed"].split()[0] == cases[row["index"]].truth.root for row in rows]
    assert [row["score"] for row in rows] == [float(one) for one in right] and len(rows) == 26
    (line,) = [line for line in told.stdout.splitlines() if line.split()[:1] == ["unexplained"]]
    assert f"{sum(right) / 26:.3f} [" in line and "1.000 [" in line
    confirmed = run_command("replay", path)
    assert confirmed.exit_code == 0 and "26 MATCH" in confirmed.stdout
    assert "leave out --audit" in refusal("evaluate", *asked, "--audit")
    assert "on real incidents choose one of" in refusal("evaluate", *asked, "--policy", "nobody")
