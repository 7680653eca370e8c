"""What a notebook on a borrowed GPU needs around training; nothing here has a GPU."""

import json
import sys
import types

import pandas as pd
import pytest

from logtriage.world.tasks import TASKS
from triagelab.bench.runs import Gpu
from triagelab.train import colab
from triagelab.train.colab import FINISH, Budget, choose_preset, command, run_folder

A_T4 = Gpu("Tesla T4", 16.1, bf16=False)


def test_a_notebook_knows_its_preset_its_folder_and_what_is_stale(tmp_path, monkeypatch):
    for gpu, preset in ((A_T4, "smollm2"), (None, "novice")):
        monkeypatch.setattr(colab, "find_gpu", lambda gpu=gpu: gpu)
        assert choose_preset("auto") == preset and choose_preset("auto", "expert") == "expert"
        assert choose_preset("cpu") == "novice" and choose_preset("t4") == "smollm2"
    with pytest.raises(ValueError, match="unknown profile 'tpu'; choose one of auto, cpu, t4"):
        choose_preset("tpu", "expert")
    # Without Drive, as where nobody consents in time, training must not stop at a question.
    monkeypatch.setattr(colab, "DRIVE", tmp_path / "MyDrive")
    assert run_folder("expert", 2).parts == ("..", "runs", "expert", "seed-2")
    (tmp_path / "MyDrive").mkdir()
    assert run_folder("expert", 2) == tmp_path / "MyDrive/logtriage/expert/seed-2"
    assert run_folder("expert", 2, str(tmp_path / "x")) == tmp_path / "x" / "seed-2"
    # what was loaded before the cell that installs
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(__version__="0.1"))
    (said,) = colab.stale_imports()
    assert said.startswith("pyarrow 0.1 is loaded") and "Restart session" in said


def test_a_command_says_what_it_does_and_how_it_ends(capfd):
    command("evaluate", "--help", first=2, env_url="", model=None, task=["all", "all"])
    said = capfd.readouterr().out
    assert "-m logtriage evaluate --help --first 2 --task all --task all\n" in said
    assert "Usage:" in said
    with pytest.raises(RuntimeError, match="logtriage evaluate failed with exit status 2"):
        command("evaluate", policies="trace")
    assert "No such option: --policies" in capfd.readouterr().out


@pytest.fixture
def run(tmp_path):
    """After two steps of 100 s, and 20 s for each of 4, 6 and 5 incidents of the tasks."""
    (tmp_path / "config.json").write_text(json.dumps({"settings": {"model": "base", "steps": 40}}))
    steps = [{"step": step, "seconds": 100.0 * step} for step in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in steps))
    rows = [
        {"task": task, "index": index, "policy": "base", "split": "test", "seconds": 20.0}
        for task, count in zip(TASKS, (4, 6, 5), strict=True)
        for index in range(count)
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "evaluation.parquet")
    return tmp_path


def test_the_play_after_training_has_its_time_reserved(run, monkeypatch):
    clock = [100.0]  # in hours
    monkeypatch.setattr(colab.time, "perf_counter", lambda: 3600 * clock[0])
    hours = Budget(1.0)
    assert hours.for_evaluation() < hours.left() / 4 == pytest.approx((1.0 - FINISH) / 4)
    # Four incidents of each task, 240 s, are played again, a quarter longer, once it is loaded.
    assert hours.for_training(run) == pytest.approx(1.0 - FINISH - 300 / 3600 - 0.05, abs=1e-3)
    assert "at 100 s a step 29 of 40 steps fit, and 4 incidents of each task" in hours.plan(run)
    clock[0] += 0.9
    assert hours.for_training(run) == 0.0 and " 2 of 40 steps fit" in hours.plan(run)
    clock[0] += 0.5
    assert hours.left() == hours.for_evaluation() == 0.0
    assert " 40 of 40 steps fit" in Budget(3.0).plan(run)
    frame = pd.read_parquet(run / "evaluation.parquet")
    assert colab.outcome(run, frame) == "After 2 of 40 steps, on 4 to 6 incidents of each task."
    frame[frame["task"] != "single_crash"].to_parquet(run / "evaluation.parquet")
    with pytest.raises(ValueError, match="did not suffice for a batch of each task"):
        Budget(2.5).plan(run)
    for none in (0.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="budget_hours must be above 0, got"):
            Budget(none)
