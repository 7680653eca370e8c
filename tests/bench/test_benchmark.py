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
from logtriage.bench.registry import POLICIES, make_policy
from logtriage.bench.rollouts import rollout
from logtriage.play.episode import Episode
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS

ROOT = Path(__file__).parents[2]
INCIDENTS = 3  # a policy, task and split; `belief` needs seconds for each on some


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    benchmark.make_report(folder / "parts", folder / "results", incidents=INCIDENTS)
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
    benchmark.make_report(report / "parts", report / "results", INCIDENTS, processes=1)
    after = {path.name: path.read_bytes() for path in (report / "results").iterdir()}
    assert after == before and len(after) == 3 + 5 + 5


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


def test_the_power_of_a_comparison_is_that_of_a_simulation():
    frame = pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")
    table = benchmark.power_table(frame).set_index(["task", "gain"])
    row = table.loc[("silent_degradation", 0.1)]
    test = frame[(frame["split"] == "test") & (frame["task"] == "silent_degradation")]
    deviation = test[test["policy"] == "loudest"]["score"].std(ddof=1)
    random = np.random.default_rng(0)
    sides = random.normal(0.0, deviation, (2, 2000, int(row["unpaired"])))
    gained = sides[1].mean(axis=1) + 0.1 - sides[0].mean(axis=1)
    limit = 1.96 * deviation * np.sqrt(2.0 / row["unpaired"])
    assert (np.abs(gained) > limit).mean() == pytest.approx(0.8, abs=0.03)
    assert 0.05 < row["power_of_ten"] < 0.2


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
