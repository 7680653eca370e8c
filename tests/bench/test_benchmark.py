"""The benchmark in small: its tables say what they are called, and what is published is so."""

import json
from pathlib import Path

import pandas as pd
import pytest

from logtriage.bench import benchmark
from logtriage.bench.registry import POLICIES, make_policy
from logtriage.bench.rollouts import rollout
from logtriage.world.tasks import BENCHMARK_VERSION

PUBLISHED = Path(__file__).parents[2] / "results" / "benchmark" / "episodes.parquet"


def test_a_report_is_of_every_policy_task_and_split(tmp_path, monkeypatch):
    names = ("random", "loudest", "trace", "belief")
    monkeypatch.setattr(benchmark, "POLICIES", {name: POLICIES[name] for name in names})
    monkeypatch.setattr(benchmark, "SPLITS", {"train": "", "test": ""})
    monkeypatch.setattr(benchmark, "AUDITED", ("loudest",))
    benchmark.make_report(tmp_path, incidents=3, processes=1)
    frame = pd.read_parquet(tmp_path / "episodes.parquet")
    assert frame.groupby(["policy", "task", "split"]).size().to_list() == [3] * 4 * 3 * 2
    assert set(frame["benchmark"]) == {BENCHMARK_VERSION}
    again = benchmark.run_benchmark(names, ("train", "test"), 3, processes=1)
    pd.testing.assert_frame_equal(again, frame)
    parts = benchmark.run_benchmark(["trace"], ["test"], 3, processes=1, part=2)
    trace = frame[(frame["policy"] == "trace") & (frame["split"] == "test")]
    assert list(parts["score"]) == list(trace["score"])
    assert set(pd.read_parquet(tmp_path / "audit.parquet")["policy"]) == {"loudest"}
    for path in tmp_path.glob("*.json"):
        table = json.loads(path.read_text())
        assert (table["benchmark"], table["incidents"]) == (BENCHMARK_VERSION, 3)
    scores = benchmark.read_table(tmp_path, "scores")
    belief = scores[(scores.policy == "belief") & (scores.split == "test")].iloc[0]
    assert belief["share_of_ceiling"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "constant"])  # slow
def test_the_published_episodes_are_what_is_played_today(policy):
    # Each plays its incidents in order from one stream, so the first few suffice.
    frame = pd.read_parquet(PUBLISHED)
    held = frame[(frame.policy == policy) & (frame["split"] == "test") & (frame["index"] < 5)]
    for task, rows in held.groupby("task"):
        again = rollout(make_policy(policy), [task], "test", 5)
        assert list(again["score"]) == pytest.approx(list(rows["score"])), "run `make benchmark`"
