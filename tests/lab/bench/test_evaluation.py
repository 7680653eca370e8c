"""Evaluations that survive: servers that fail in every way, and processes that are killed. Every
episode is accounted for, and none is played twice.
"""

import json
from itertools import islice

import pandas as pd
import pytest
from helpers import refusal
from talking_server import RESOLVES, refused, talking, without_pauses
from test_command_line import run as run_command

from logtriage.catalogue import suite_places
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from logtriage.policies.scripted import ConstantPolicy
from logtriage.registry import make_policy
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from triagelab.bench import benchmark, evaluation
from triagelab.bench.evaluation import evaluate, make_plan, report, suite_plan
from triagelab.bench.journal import open_journal, read_trajectories
from triagelab.bench.published import RESULTS
from triagelab.bench.registry import POLICIES, Player, behind_endpoint, scripted
from triagelab.bench.rollouts import EPISODES, MAX_CONSECUTIVE_ERRORS, Plan, rollout, rollout_each
from triagelab.bench.score_tables import attempts_table, detection_table, score_table
from triagelab.language_models.endpoint import EndpointPolicy
from triagelab.real.cases import load_source

SETTINGS = {"split": "test"}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    without_pauses(monkeypatch)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "out.jsonl"
    file.touch()  # as mktemp leaves it
    return file


def player(policy):
    return Player(policy.name, {}, lambda begun: policy)


def rows_in(path, settings=SETTINGS):
    with open_journal(path, settings) as journal:
        return journal.rows


def played(players, plan, path, **options):
    with open_journal(path, SETTINGS) as journal:
        return evaluate(players, plan, journal, **options)


def test_every_episode_is_accounted_for_and_none_is_played_twice(path):
    plan = Plan(["single_crash"], "test", 8)
    unlucky = [ToolSession(Episode.open("single_crash", "test", index)).opening for index in (2, 5)]

    def answer(body, number):
        return refused(500) if body["messages"][1]["content"] in unlucky else RESOLVES

    with talking(answer) as (url, talk):

        def policy():
            return EndpointPolicy(url, "toy", workers=2, timeout=0.6)

        with open_journal(path, SETTINGS) as journal:
            each = rollout_each(policy(), plan)
            for result in islice(each, 3):  # then the process dies
                journal.add(result)
            each.close()
        done = played([player(policy())], plan, path)
        asked = len(talk.requests)
        again = played([player(policy())], plan, path)
        # What has a score is not played again, and what ended in an error is.
        openings = [body["messages"][1]["content"] for body in talk.requests[asked:]]
        assert set(openings) == set(unlucky)
    pd.testing.assert_frame_equal(
        done.frame.drop(columns="seconds"), again.frame.drop(columns="seconds")
    )
    assert sorted(done.frame["index"]) == list(range(8)) and done.unplayed == 0
    lines = read_trajectories(path)[1]
    ended = [line["row"]["index"] for line in lines if not line["row"]["error"]]
    assert sorted(ended) == [0, 1, 3, 4, 6, 7]
    failed = done.frame[done.frame["closed_by"] == "error"]
    assert sorted(failed["index"]) == [2, 5] and failed["score"].isna().all()
    table = score_table(done.frame)
    assert list(table["errors"]) == [2]  # counted beside the mean, and left out of it
    assert table["score"][0].startswith(f"{done.frame['score'].dropna().mean():.3f} [")
    assert "toy: 2 of 8 episodes have no score" in "\n".join(report(done.frame, plan))
    assert detection_table(done.frame)["roots found"][0].endswith(" of 6")


def test_who_fails_without_end_is_asked_no_more(path):
    plan = Plan(list(TASKS), "test", 50)
    with talking(lambda *_: refused(403)) as (url, _):
        done = played([behind_endpoint(url, "toy", concurrency=4)], plan, path)
        assert MAX_CONSECUTIVE_ERRORS <= len(done.frame) < MAX_CONSECUTIVE_ERRORS + 4
        assert done.unplayed == 150 - len(done.frame) and "errors in a row" in done.reason
        with pytest.raises(ConnectionError, match="errors in a row"):
            rollout(EndpointPolicy(url, "toy"), ["single_crash"], "test", 50)
    with talking(lambda *_: RESOLVES) as (url, talk):  # the key was corrected
        done = played([behind_endpoint(url, "toy")], plan, path)
        assert len(talk.requests) == 150 and not done.frame["error"].any()
    # What was played again counts once, here and to whoever reads the file.
    assert len(rows_in(path)) == 150


def test_what_cannot_be_played_is_told():
    plan = Plan(["single_crash"], "test", 2)
    # The rows of the one would stand for the other, and be listed twice.
    with pytest.raises(ValueError, match="trace, trace have one name"):
        evaluate([scripted("trace"), scripted("trace")], plan)

    class OutOfMemoryError(RuntimeError):
        pass

    class Small(ConstantPolicy):
        def play_each(self, episodes, batch=50, attempt=0):
            raise OutOfMemoryError(f"{batch} at once")

    with pytest.raises(ValueError, match=r"12 incidents of .* at once.*--concurrency"):
        evaluate([player(Small([]))], plan, batch=12)


def test_a_file_is_whole_lines_each_on_disk_before_the_next_episode(path, monkeypatch):
    plan, columns = Plan(["single_crash"], "test", 5), {"columns": "seconds"}
    # After a power cut, what was not synchronised is gone.
    synchronised = []
    monkeypatch.setattr("os.fsync", lambda number: synchronised.append(path.read_bytes()))
    whole = played([scripted("loudest")], plan, path)
    assert [text.count(b"\n") for text in synchronised] == [2, 3, 4, 5, 6]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][: len(lines[4]) // 2])
    assert len(rows_in(path)) == 3
    done = played([scripted("loudest")], plan, path)
    pd.testing.assert_frame_equal(done.frame.drop(**columns), whole.frame.drop(**columns))
    assert len(read_trajectories(path)[1]) == 5
    # Nothing of the truth is in it, but as text of the world, which names every service.
    episodes = read_trajectories(path)[1]
    assert {key for line in episodes for key in line} == {"row", "opening", "steps", "messages"}
    of_rows = {key for line in episodes for key in line["row"]}
    assert not {"root", "remedy", "team", "fault", "real"} & of_rows
    of_steps = {key for line in episodes for step in line["steps"] for key in step}
    assert of_steps == {"action", "value", "confidence", "observation"}
    # Two processes would interleave their lines, and play every episode twice.
    with open_journal(path, SETTINGS), pytest.raises(ValueError, match="another process"):
        rows_in(path)
    for broken in ("{broken", "[]", "7", "{}", '{"row": {}}', '{"row": {"policy": []}}'):
        path.write_bytes(lines[0] + broken.encode() + b"\n" + lines[1])
        with pytest.raises(ValueError, match="line 2 is wrong"):
            rows_in(path)


def test_a_file_is_gone_on_with_only_by_the_same_settings(path):
    played([scripted("loudest")], Plan(["single_crash"], "test", 2), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"another split \('test', not 'train'\), tools"):
        rows_in(path, {"split": "train", "tools": "text"})
    head = json.loads(before.splitlines()[0])
    head["settings"]["benchmark"] = "1.0"
    path.write_bytes(json.dumps(head).encode() + b"\n" + before.split(b"\n", 1)[1])
    with pytest.raises(ValueError, match=r"another benchmark \('1.0'"):
        rows_in(path)
    head["settings"] = []
    none = ['{"policy": "trace"}\n', "[]\n", "notes of mine", "no\n", "\0", json.dumps(head) + "\n"]
    for other in none:
        path.write_text(other)
        with pytest.raises(ValueError, match="no file of `--trajectories`"):
            rows_in(path)
        assert path.read_text() == other


def test_what_others_wrote_reaches_no_terminal_as_it_is(path):
    """Controls of a terminal are text here: they would colour, erase and retitle."""
    evil = "\x1b]0;mine\x07\x1b[2J"
    with talking(lambda *_: refused(413, f"no {evil}")) as (url, _):
        plan = Plan(["single_crash"], "test", 2)
        done = evaluate([behind_endpoint(url, f"toy{evil}")], plan)
    assert "\x1b" not in "".join(done.frame["error"])
    _, _, *errors = report(done.frame.assign(error=f"no {evil}"), plan, known=False)
    assert len(errors) == 2 and all(line.isprintable() for line in errors)
    played([scripted("trace")], plan, path)
    head, *lines = map(json.loads, path.read_text().splitlines())
    lines[0]["row"]["policy"] = lines[1]["row"]["task"] = evil
    lines[1]["steps"] = []
    path.write_text("".join(json.dumps(part) + "\n" for part in (head, *lines)))
    result = run_command("verify", path)
    assert "\x1b" not in result.output and "\\x1b" in result.output


def test_a_plan_is_of_incidents_that_there_are():
    assert make_plan(["all"], "test") == Plan(list(TASKS), "test", EPISODES)
    assert make_plan(["real"], "petshop") == Plan(["real"], "petshop", 26)
    assert make_plan(["real"], "petshop", 3, first=23).indices == range(23, 26)
    for asked, message in (
        ((["real"], "test"), "choose one of petshop"),
        ((["real"], "petshop", 4, 23), "incidents 0 to 25, and 4 from 23 on were asked for"),
        ((["real"], "petshop", None, 26), "<= 25, got 26"),
        ((["real", "single_crash"], "petshop"), "leave out other tasks"),
        ((["real"], "petshop", None, 0, 1, DEFAULT_TOPOLOGY), "and the topology"),
        ((["all"], "petshop"), "unknown split 'petshop'"),
        ((["nonsense"], "test"), "unknown task 'nonsense'"),
    ):
        with pytest.raises(ValueError, match=message):
            make_plan(*asked)


def test_a_suite_says_what_it_will_cost_and_gives_one_mean(path):
    result = run_command("evaluate", "--suite", "lite", "--model", "base", "--trajectories", path)
    assert result.exit_code == 0, result.output
    cost, said, *_ = result.stdout.splitlines()
    assert cost.startswith("lite: 30 episodes; a model reads about 228,000 tokens and writes 8,1")
    assert "as long as 8 answers one after the other (50 at once)" in cost
    assert said.startswith("test, 10 incidents of each task, which are the suite lite")
    rows = [json.loads(line)["row"] for line in path.read_text().splitlines()[1:]]
    assert sorted((row["task"], row["index"]) for row in rows) == sorted(suite_places("lite"))
    mean = sum(row["score"] for row in rows) / 30
    assert f"base: mean over the tasks {mean:.3f} [" in result.stdout
    # The whole set is played from there on.
    assert make_plan(["all"], "test").keys[0] in suite_plan("lite").keys
    refusal("evaluate", "--policy", "trace", "--suite", "lite", "--first", "1")


def test_the_cost_that_is_said_is_that_of_the_language_model_that_was_played():
    frame = pd.read_parquet(RESULTS / "smollm2" / "episodes.parquet")
    own = frame[frame["policy"] == "expert's lessons, constrained"]
    needed = own[["calls", "prompt_tokens", "completion_tokens"]].mean()
    constants = [evaluation.ANSWERS, evaluation.READ, evaluation.WRITTEN]
    assert (needed / constants).between(0.6, 1.6).all()


def test_real_incidents_are_evaluated_and_verified(path):
    """By the root cause alone; the top three are counted from what was blamed, in order."""
    asked = ("--task", "real", "--split", "petshop")
    done = run_command("evaluate", *asked, "--policy", "unexplained", "--trajectories", path)
    assert done.exit_code == 0 and "scored: root cause alone" in done.stdout, done.output
    rows = [line["row"] for line in read_trajectories(path)[1]]
    cases = load_source("petshop").cases
    right = [row["blamed"].split()[0] == cases[row["index"]].truth.root for row in rows]
    assert [row["score"] for row in rows] == [*map(float, right)] and len(rows) == 26
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["unexplained"]]
    assert f"{sum(right) / 26:.3f} [" in line and "1.000 [" in line
    confirmed = run_command("verify", path)
    assert confirmed.exit_code == 0 and "26 MATCH" in confirmed.stdout
    assert "leave out --audit" in refusal("evaluate", *asked, "--audit")
    assert "choose one of random_ranking" in refusal("evaluate", *asked, "--policy", "nobody")


@pytest.mark.parametrize("policy", ["belief", "constant"])
def test_a_policy_that_does_not_fit_the_incidents_is_named(policy):
    # The task was called unknown.
    asked = ("evaluate", "--task", "production", "--policy", policy, "--episodes", 2)
    assert f"{policy} plays simulated incidents alone, which production" in refusal(*asked)


def test_the_table_of_attempts_leaves_errors_out():
    # Incident 0: solved, solved, not; 1: never; 2: solved, and two errors.
    outcomes = {0: [True, True, False], 1: [False] * 3, 2: [True, None, None]}
    rows = [
        {"policy": "p", "task": "t", "split": "test", "index": index, "attempt": n, "solved": end}
        for index, ends in outcomes.items()
        for n, end in enumerate(ends)
    ]
    table = attempts_table(pd.DataFrame(rows), 3).set_index("k")
    assert list(table.index) == [1, 2, 3] and list(table["incidents"]) == [3, 2, 2]
    assert table.loc[1, "pass@k"].startswith("0.556") and table.loc[1, "pass^k"].startswith("0.556")
    assert table.loc[2, "pass@k"].startswith("0.500") and table.loc[2, "pass^k"].startswith("0.167")
    assert table.loc[3, "pass@k"].startswith("0.500") and table.loc[3, "pass^k"].startswith("0.000")


def test_a_report_is_of_every_policy_task_and_split(tmp_path, monkeypatch):
    names = ("random", "loudest", "trace", "belief")
    monkeypatch.setattr(benchmark, "POLICIES", {name: POLICIES[name] for name in names})
    monkeypatch.setattr(benchmark, "SPLITS", {"train": "", "test": ""})
    monkeypatch.setattr(benchmark, "AUDITED", ("loudest",))
    benchmark.make_report(tmp_path, incidents=3, processes=1)
    frame = pd.read_parquet(tmp_path / "episodes.parquet")
    assert frame.groupby(["policy", "task", "split"]).size().to_list() == [3] * 4 * 3 * 2
    again = benchmark.run_benchmark(names, ("train", "test"), 3, processes=1)
    pd.testing.assert_frame_equal(again, frame)
    parts = benchmark.run_benchmark(["trace"], ["test"], 3, processes=1, part=2)
    trace = frame[(frame["policy"] == "trace") & (frame["split"] == "test")]
    assert list(parts["score"]) == list(trace["score"])
    assert set(pd.read_parquet(tmp_path / "audit.parquet")["policy"]) == {"loudest"}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_published_episodes_are_what_is_played_today(policy):
    # Each plays its incidents in order from one stream, so the first few suffice.
    frame = pd.read_parquet(RESULTS / "benchmark" / "episodes.parquet")
    held = frame[(frame.policy == policy) & (frame["split"] == "test") & (frame["index"] < 5)]
    for task, rows in held.groupby("task"):
        again = rollout(make_policy(policy), [task], "test", 5)
        assert list(again["score"]) == pytest.approx(list(rows["score"])), "run `make benchmark`"
