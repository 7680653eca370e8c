"""The benchmark in small: it resumes, repeats itself to the byte, and its tables say what they are
called.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from logtriage.bench import benchmark
from logtriage.bench.audit import AUDITED
from logtriage.bench.dials import DIALS, dialled, sweep
from logtriage.bench.exploits import RulePolicy, RuleStep, describe
from logtriage.bench.registry import POLICIES, make_policy
from logtriage.bench.rollouts import rollout
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import FunctionPolicy, mean_score
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.wording import read_line

ROOT = Path(__file__).parents[2]
INCIDENTS = 3  # a policy, task and split; `belief` needs seconds for each on some


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    benchmark.make_report(folder / "parts", folder / "results", incidents=INCIDENTS, climbs=1)
    return folder


def test_every_policy_plays_every_task_and_split(report):
    frame = pd.read_parquet(report / "results" / "episodes.parquet")
    assert len(frame) == len(POLICIES) * len(TASKS) * len(SPLITS) * INCIDENTS
    assert len(POLICIES) == 7
    assert set(frame["benchmark"]) == {BENCHMARK_VERSION}
    oracle = frame[frame.policy == "oracle"]
    assert (oracle["score"] == 1.0).all() and (
        oracle["root"].isna() == (oracle["hops"] == -1)
    ).all()


def test_the_same_command_writes_the_same_bytes_and_plays_nothing_twice(report, monkeypatch):
    before = {path.name: path.read_bytes() for path in (report / "results").iterdir()}
    monkeypatch.setattr(benchmark, "make_policy", None)  # playing again would be an error
    monkeypatch.setattr(
        benchmark,
        "exploit_table",
        lambda *a, **k: benchmark.read_table(report / "results", "exploits"),
    )
    benchmark.make_report(
        report / "parts", report / "results", incidents=INCIDENTS, processes=1, climbs=1
    )
    after = {path.name: path.read_bytes() for path in (report / "results").iterdir()}
    assert after == before and len(after) == 4 + 6 + 7


def test_the_audit_is_of_the_incidents_that_were_played(report):
    frame = pd.read_parquet(report / "results" / "episodes.parquet")
    audited = pd.read_parquet(report / "results" / "audit.parquet")
    keys = ["policy", "task", "split", "index"]
    assert len(audited) == len(AUDITED) * len(TASKS) * 2  # two fifths, and two at least
    same = audited.merge(frame, on=keys, suffixes=("", "_played"))
    of_chance = same["policy"].isin(["random", "novice"])  # their draws depend on what came before
    assert len(same) == len(audited) and set(audited["split"]) == {"test"}
    same = same[~of_chance]
    assert list(same["score"]) == pytest.approx(list(same["score_played"]))


def test_an_interrupted_benchmark_goes_on(report):
    parts = report / "parts"
    whole = benchmark.run_benchmark(parts, INCIDENTS, 1, progress=False)
    lost = parts / benchmark.source_digest() / f"trace-single_crash-test-0-{INCIDENTS}.jsonl"
    lost.unlink()
    pd.testing.assert_frame_equal(
        benchmark.run_benchmark(parts, INCIDENTS, 1, progress=False), whole
    )
    assert lost.exists()


def test_episodes_of_other_code_are_not_taken_for_these(report, monkeypatch):
    parts = report / "parts"
    assert [folder.name for folder in parts.iterdir()] == [benchmark.source_digest()]
    monkeypatch.setattr(benchmark, "source_digest", lambda: "other")
    monkeypatch.setattr(benchmark, "POLICIES", {"oracle": POLICIES["oracle"]})
    benchmark.run_benchmark(parts, 2, 1, progress=False)
    assert len(list((parts / "other").iterdir())) == len(TASKS) * len(SPLITS)


def test_tables_carry_the_version_and_can_be_read_back(report):
    for path in (report / "results").glob("*.json"):
        assert json.loads(path.read_text())["benchmark"] == BENCHMARK_VERSION
    scores = benchmark.read_table(report / "results", "scores")
    belief = scores[(scores.policy == "belief") & (scores.split == "test")].iloc[0]
    assert belief["share_of_ceiling"] == [1.0, 1.0, 1.0]
    with pytest.raises(FileNotFoundError, match="make benchmark"):
        benchmark.read_table(report, "scores")


def test_hops_are_counted_down_the_calls():
    for index in range(40):
        incident = sample_incident("cascading_failure", "train", index)
        episode, depth = Episode(incident), incident.topology.depth
        distance = benchmark.hops(incident, episode)
        near = [alert.service for alert in episode.opening.alerts] or [incident.topology.names[0]]
        assert (distance == 0) == (incident.root in near)
        assert distance <= depth[incident.root]
    assert benchmark.hops(*(lambda i: (i, Episode(i)))(next_false_alarm())) == -1


def next_false_alarm():
    incidents = (sample_incident("silent_degradation", "train", index) for index in range(99))
    return next(incident for incident in incidents if incident.injection is None)


def test_confusion_rows_are_shares():
    frame = pd.DataFrame(
        {"root": ["user-db", "user-db", None], "blamed": ["user-db", "api-gateway", None]}
    )
    table = benchmark.confusion(frame, DEFAULT_TOPOLOGY.names)
    assert table.loc["user-db", ["user-db", "api-gateway"]].tolist() == [0.5, 0.5]
    assert table.loc["nothing wrong", "nobody"] == 1.0 and table.shape == (8, 8)


def test_turning_a_dial_makes_it_harder():
    easy_and_hard = {
        dial: (DIALS[dial][0], DIALS[dial][-1]) for dial in DIALS if dial != "services"
    }
    frame = sweep(
        "cascading_failure", ("loudest", "trace"), easy_and_hard, incidents=200, processes=1
    )
    means = frame.groupby(["dial", "value"])["score"].mean()
    for dial, (easy, hard) in easy_and_hard.items():
        assert means[dial, easy] > means[dial, hard], dial


def test_a_dial_turns_one_thing():
    usual = sample_incident("cascading_failure", "test", 3)
    assert sample_incident(TASKS["cascading_failure"], "test", 3) == usual
    noisy = sample_incident(dialled("cascading_failure", "noise", 0.7), "test", 3)
    assert (noisy.injection, noisy.arrival, noisy.severity) == (
        usual.injection,
        usual.arrival,
        usual.severity,
    )
    decoys = sample_incident(dialled("cascading_failure", "decoys", 3), "test", 3)
    assert decoys.injection == usual.injection and len(decoys.decoys) == 3
    assert decoys.injection.position not in {position for position, _ in decoys.decoys}
    assert (
        len(
            sample_incident(
                dialled("cascading_failure", "services", 12), "test", 3
            ).topology.services
        )
        == 12
    )


def test_decoys_hint_and_the_innocent_do_not():
    incident = sample_incident(dialled("single_crash", "decoys", 2), "train", 0)
    episode = Episode(incident)
    loud = {position for position, _ in incident.decoys} | {incident.injection.position}
    for position in range(7):
        assert (episode.telemetry.line_weights(position)[1] > 0.0) == (position in loud)
    for position, remedy in incident.decoys:
        read = [read_line(line)[1] for line in episode.telemetry.lines(position, 60)]
        # It hints at a remedy of its own, and proves nothing: no fault is at work there.
        assert {reading.subject for reading in read if reading.kind == "hint"} == {remedy}
        assert not [reading for reading in read if reading.kind == "proof"]


@pytest.mark.parametrize(
    "task, dial, value, told",
    [
        ("nope", "noise", 0.1, "unknown task 'nope'"),
        ("single_crash", "colour", 1, "unknown dial 'colour'; choose one of noise"),
        ("single_crash", "noise", 1.5, "noise must be at least 0 and below 1; got 1.5"),
        ("single_crash", "services", 99, "services must be 0, or a whole number from 5 to 30"),
        ("single_crash", "decoys", 7, "decoys must be a whole number from 0 to 6, fewer than"),
        ("single_crash", "lag", 9, "lag must be a whole number from 1 to 2"),
    ],
)
def test_bad_dials_are_answered(task, dial, value, told):
    with pytest.raises(ValueError, match=told):
        dialled(task, dial, value)


def test_what_the_adversary_found_is_below_loudest_and_can_be_played_again():
    rows = benchmark.read_table(ROOT / "results" / "benchmark", "exploits")
    best = rows.groupby("task")[["test", "loudest"]].max()
    assert best["test"].mean() < best["loudest"].mean() and best["test"].max() < 0.45
    for row in rows.itertuples():
        rule = [RuleStep(*step) for step in row.steps]
        assert describe(rule) == row.rule
        assert mean_score(RulePolicy(rule), row.task, "test", range(500)) == pytest.approx(
            row.test, abs=1e-6
        )


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in ("random", "novice")])
def test_the_published_episodes_are_what_is_played_today(policy):
    frame = pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")
    held = frame[
        (frame.policy == policy)
        & frame["split"].isin(["test", "unseen_wording"])
        & (frame["index"] < 5)
    ]
    for (task, split), rows in held.groupby(["task", "split"]):
        again = rollout(make_policy(policy), [task], split, 5, progress=False)
        assert list(again["score"]) == pytest.approx(list(rows["score"])), (task, split)


def test_a_function_is_a_policy():
    def first_alert(topology, observations):
        blamed = observations[0].alerts[0].service if observations[0].alerts else topology.names[0]
        return [
            Action("identify_root_cause", (blamed,)),
            Action("escalate", ("sre",)),
            Action("resolve"),
        ][len(observations) - 1]

    rows = rollout(
        FunctionPolicy(first_alert, "first alert"), ["single_crash"], "train", 10, progress=False
    )
    assert (
        (rows["steps"] == 3).all()
        and set(rows["policy"]) == {"first alert"}
        and np.ptp(rows["score"]) > 0.0
    )
