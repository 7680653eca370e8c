"""The hours of a session: what is left of them, and what fits that."""

import json

import pandas as pd
import pytest

from logtriage.train import budget
from logtriage.train.budget import FINISH, Budget, outcome
from logtriage.world.tasks import TASKS


@pytest.fixture
def clock(monkeypatch):
    """Hours on a made-up clock, in a list."""
    hours = [100.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: 3600 * hours[0])
    return hours


@pytest.fixture
def run(tmp_path):
    """After two steps of 100 s, and 20 s for each of 4, 6 and 5 incidents of the tasks."""
    (tmp_path / "config.json").write_text(json.dumps({"settings": {"steps": 40}}))
    steps = [{"step": step, "seconds": 100.0 * step} for step in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in steps))
    rows = [
        {"task": task, "index": index, "policy": "base", "split": "test", "seconds": 20.0}
        for task, count in zip(TASKS, (4, 6, 5), strict=True)
        for index in range(count)
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "evaluation.parquet")
    return tmp_path


def test_what_is_left_shrinks_to_nothing(clock):
    hours = Budget(2.0)
    assert hours.left() == pytest.approx(2.0 - FINISH)
    assert hours.for_evaluation() < hours.left() / 4
    clock[0] += 1.5
    assert hours.left() == pytest.approx(0.5 - FINISH)
    clock[0] += 1.5
    assert hours.left() == hours.for_evaluation() == 0.0


@pytest.mark.parametrize("hours", [0.0, -1.0, float("inf"), float("nan")])
def test_hours_that_are_none_are_refused(hours):
    with pytest.raises(ValueError, match="budget_hours must be above 0, got"):
        Budget(hours)


def test_the_play_after_training_has_its_time_reserved(clock, run):
    hours = Budget(1.0)
    # Four incidents of each task, 240 s, are played again, a quarter longer, once it is loaded.
    assert hours.for_training(run) == pytest.approx(1.0 - FINISH - 300 / 3600 - 0.05, abs=1e-3)
    assert "at 100 s a step 29 of 40 steps fit, and 4 incidents of each task" in hours.plan(run)
    clock[0] += 0.9
    assert hours.for_training(run) == 0.0 and " 2 of 40 steps fit" in hours.plan(run)
    assert " 40 of 40 steps fit" in Budget(3.0).plan(run)
    said = outcome(run, pd.read_parquet(run / "evaluation.parquet"))
    assert said == "After 2 of 40 steps, on 4 to 6 incidents of each task."


def test_hours_for_less_than_a_batch_are_called_so(run):
    frame = pd.read_parquet(run / "evaluation.parquet")
    frame[frame["task"] != "single_crash"].to_parquet(run / "evaluation.parquet")
    with pytest.raises(ValueError, match="did not suffice for a batch of each task"):
        Budget(2.5).plan(run)
