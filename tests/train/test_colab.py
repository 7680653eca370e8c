"""What a notebook on a borrowed GPU needs around training; nothing here has a GPU."""

import json
import sys
import types

import pandas as pd
import pytest
import torch

from logtriage.bench.runs import Gpu
from logtriage.train import colab
from logtriage.train.colab import (
    FINISH,
    Budget,
    Decoding,
    choose_base,
    choose_gpu,
    choose_preset,
    command,
    measure_decoding,
    outcome,
    problems,
    run_folder,
)
from logtriage.train.settings import make_config
from logtriage.world.tasks import TASKS

A_T4 = Gpu("Tesla T4", 16.1, bf16=False)
FOUR, SIXTEEN = Decoding(True, 0.10, 9.0), Decoding(False, 0.06, 13.0)


@pytest.mark.parametrize(
    "gpu, preset, costs",
    [
        (A_T4, "recommended", "T4"),
        (Gpu("NVIDIA L4", 24.2, bf16=True), "l4", "L4"),
        (Gpu("NVIDIA GeForce RTX 5090", 34.0, bf16=True), "a100", "A100"),
        (Gpu("Quadro RTX 6000", 25.0, bf16=False), "recommended", "T4"),
        (None, "novice", "T4"),
    ],
)
def test_the_gpu_chooses_the_preset_unless_one_is_asked_for(gpu, preset, costs, monkeypatch):
    monkeypatch.setattr(colab, "find_gpu", lambda: gpu)
    assert choose_preset("auto") == preset and choose_gpu().name == costs
    assert choose_preset("cpu") == "novice" and choose_preset("t4") == "recommended"
    assert choose_preset("auto", "expert") == "expert"
    with pytest.raises(ValueError, match="unknown profile 'tpu'; choose one of auto"):
        choose_preset("tpu")


def test_a_module_that_was_loaded_before_the_install_is_reported(monkeypatch):
    stale = types.SimpleNamespace(__version__="0.1")
    monkeypatch.setitem(sys.modules, "pyarrow", stale)
    (said,) = problems()
    assert said.startswith("pyarrow 0.1 is loaded") and "Restart session" in said


def test_runs_are_kept_on_drive_where_it_is_mounted(tmp_path, monkeypatch):
    # Without it, as where nobody consents in time, training must not stop at a question.
    monkeypatch.setattr(colab, "DRIVE", tmp_path / "MyDrive")
    assert run_folder("l4", 2).parts == ("..", "runs", "l4", "seed-2")
    (tmp_path / "MyDrive").mkdir()
    assert run_folder("l4", 2) == tmp_path / "MyDrive/logtriage/l4/seed-2"
    assert run_folder("l4", 2, str(tmp_path / "x")) == tmp_path / "x" / "seed-2"


def test_a_command_says_what_it_does_and_how_it_ends(capfd):
    command("evaluate", "--help", first=2, env_url="", model=None, task=["all", "all"])
    said = capfd.readouterr().out
    assert "-m logtriage evaluate --help --first 2 --task all --task all\n" in said
    assert "Usage:" in said
    with pytest.raises(RuntimeError, match="logtriage evaluate failed with exit status 2"):
        command("evaluate", policies="trace")
    assert "No such option: --policies" in capfd.readouterr().out


@pytest.fixture
def clock(monkeypatch):
    """Hours on a made-up clock, in a list."""
    hours = [100.0]
    monkeypatch.setattr(colab.time, "perf_counter", lambda: 3600 * hours[0])
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


@pytest.mark.parametrize("hours", [0.0, float("inf"), float("nan")])
def test_hours_that_are_none_are_refused(hours):
    with pytest.raises(ValueError, match="budget_hours must be above 0, got"):
        Budget(hours)


def test_the_play_after_training_has_its_time_reserved(clock, run):
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
    assert outcome(run, frame) == "After 2 of 40 steps, on 4 to 6 incidents of each task."
    frame[frame["task"] != "single_crash"].to_parquet(run / "evaluation.parquet")
    with pytest.raises(ValueError, match="did not suffice for a batch of each task"):
        Budget(2.5).plan(run)


@pytest.fixture
def measured(monkeypatch):
    """What measuring a T4 comes to, by whether it is in 4 bit."""
    results = {True: FOUR, False: SIXTEEN}
    monkeypatch.setattr(colab, "find_gpu", lambda: A_T4)
    monkeypatch.setattr(colab, "apart", lambda _, config: results.pop(config.load_in_4bit))
    return results


def test_the_faster_one_is_taken_said_and_kept(measured, tmp_path, capsys):
    config = make_config("recommended")
    assert choose_base(tmp_path / "run", config) == SIXTEEN
    assert "100 ms a decode step" in capsys.readouterr().out
    # A later session must go on with it, and measures nothing.
    assert measured == {} and choose_base(tmp_path / "run", config) == SIXTEEN


@pytest.mark.parametrize(
    "preset, other, chosen, said",
    [
        # A peak without AdamW that leaves no room for it does not fit.
        ("recommended", Decoding(False, 0.06, 14.3), FOUR, "the faster that fits"),
        ("recommended", Decoding(False), FOUR, "the faster that fits"),
        # 4 bit is not tried where nobody asked for it
        ("t4_starter", Decoding(False), Decoding(False), "though it may need more than 14.6 GiB"),
        ("t4_qwen3", None, FOUR, "weights alone take 7.5 of 14.6 GiB, so it is not tried"),
    ],
)
def test_what_does_not_fit_is_not_taken(preset, other, chosen, said, measured, tmp_path, capsys):
    measured[False] = other
    assert choose_base(tmp_path, make_config(preset)) == chosen
    assert said in capsys.readouterr().out


def test_decoding_is_timed_and_memory_that_ends_is_a_result(tiny_base, tmp_path, monkeypatch):
    sizes = {"incidents": 1, "group": 2, "completion_tokens": 32}
    config = make_config("novice", model=str(tiny_base), **sizes)
    assert 0.0 < measure_decoding(config).seconds < 5.0

    def fail(config):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(colab, "load_to_train", fail)
    assert measure_decoding(config) == Decoding(False)
    monkeypatch.setattr(colab, "find_gpu", lambda: None)
    assert choose_base(tmp_path, config) is None
