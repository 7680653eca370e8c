"""A tracker is told what `metrics.jsonl` holds, on this machine; a run is the same without one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_command_line import refusal

from logtriage.train import tracking
from logtriage.train.grpo import train
from logtriage.train.presets import make_config
from logtriage.train.tracking import TRACKERS, check_tracker, run_name, tracked, tracker_arguments

ROOT = Path(__file__).parents[2]
# Runs a module in a process that writes down each address it reaches for, and reaches none but its
# own machine's.
WATCHED = """
import runpy, sys

def watch(event, arguments):
    host = arguments[0] if event == "socket.getaddrinfo" else None
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        print("REACHED", host, flush=True)
        raise OSError(f"no way to {host}")

sys.addaudithook(watch)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def watched(home, *arguments):
    """The output of a module with these arguments, in a home where nobody is logged in to a Hub."""
    environment = {**os.environ, "HOME": str(home), "HF_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment |= {"TRACKIO_DIR": str(home / "trackio"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", *tracking.ELSEWHERE):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *map(str, arguments)],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rewards(run):
    """The run's own record: step to reward."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row["reward"] for row in rows}


def tiny(model, **changes):
    sizes = {"steps": 2, "incidents": 2, "group": 2, "micro_batches": 1, "save_every": 1}
    return make_config("novice", model=str(model), **{**sizes, **changes})


def test_the_watch_sees_what_leaves(tmp_path):
    (tmp_path / "caller.py").write_text(
        "import socket\ntry:\n    socket.create_connection(('example.com', 80))\n"
        "except OSError:\n    pass\n"
    )
    assert "REACHED example.com" in watched(tmp_path, "caller")


@pytest.mark.slow  # five processes
def test_trackio_is_told_every_step_once_and_nobody_else(tiny_base, tmp_path):
    pytest.importorskip("trackio", reason="pip install trackio")
    run = tmp_path / "run"
    # 2 steps of 3 incidents x 8, in two parts: a run that goes on is one run there, too
    command = ("train", run, "--preset", "novice", "--model", tiny_base, "--episodes", 16)
    command += ("--steps", 2, "--track", "trackio")
    said = watched(tmp_path, "logtriage", *command, "--until", 1)
    said += watched(tmp_path, "logtriage", *command)
    assert "REACHED" not in said
    name = run_name(make_config("novice", model=str(tiny_base), steps=2, incidents=3), run)
    assert name.startswith("base-part-2x3x8-lr0.0004-seed0-")
    where = ("--project", "logtriage", "--json")
    listed = json.loads(watched(tmp_path, "trackio.cli", "list", "runs", *where))
    assert listed["runs"] == [name]
    told = {}
    for metric in ("train/global_step", "train/reward"):
        query = ("get", "metric", *where, "--run", name, "--metric", metric)
        values = json.loads(watched(tmp_path, "trackio.cli", *query))["values"]
        told[metric] = {row["step"]: row["value"] for row in values}
    steps = told["train/global_step"]
    found = [(steps[at], reward) for at, reward in told["train/reward"].items()]
    assert found == list(rewards(run).items()) and len(found) == 2


def test_tensorboard_is_told_every_step_once(tiny_base, tmp_path):
    pytest.importorskip("tensorboard", reason="pip install tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, config = tmp_path / "run", tiny(tiny_base)
    train(config, run, progress=False, track="tensorboard", until=1)
    train(config, run, progress=False, track="tensorboard")
    (folder,) = (run / "tensorboard").iterdir()
    assert folder.name == run_name(config, run)
    events = EventAccumulator(str(folder))
    events.Reload()
    found = {event.step: event.value for event in events.Scalars("train/reward")}
    assert found == pytest.approx(rewards(run), abs=1e-6) and len(found) == 2


def test_a_run_is_the_same_with_a_tracker_or_without(tmp_path):
    config = tiny("somewhere/base", seed=3)
    assert tracker_arguments(config, tmp_path, "") == {"report_to": []}
    asked = tracker_arguments(config, tmp_path, "trackio")
    assert asked["report_to"] == ["trackio"] and asked["project"] == "logtriage"
    assert asked["trackio_space_id"] is None
    # Trackio goes on with a run of the same name, so another folder must be another run
    assert asked["run_name"].startswith("base-part-2x2x2-lr0.0004-seed3-")
    assert run_name(config, tmp_path / "other") != run_name(config, tmp_path)
    assert run_name(config, tmp_path / "other" / "..") == run_name(config, tmp_path)


def test_what_the_trainer_is_told_reaches_it(tmp_path):
    pytest.importorskip("trackio", reason="pip install trackio")
    from logtriage.train.trainer import grpo_arguments

    config = tiny("x")
    arguments = grpo_arguments(config, tmp_path, "trackio")
    assert (arguments.report_to, arguments.project) == (["trackio"], "logtriage")
    assert arguments.run_name == run_name(config, tmp_path)
    assert grpo_arguments(config, tmp_path).report_to == []


def test_variables_last_as_long_as_the_training_and_the_users_own_stay(tmp_path, monkeypatch):
    config = tiny("x")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "mine")
    before = dict(os.environ)
    with pytest.raises(KeyError), tracked(config, tmp_path, "wandb"):
        assert os.environ["WANDB_PROJECT"] == "logtriage"
        raise KeyError
    for track in ("", "tensorboard"):
        with tracked(config, tmp_path, track):
            assert dict(os.environ) == before
    assert dict(os.environ) == before


def test_trackio_opens_no_dashboard_in_a_notebook(tmp_path, monkeypatch):
    # The Trainer's own call would, for a project that is not open yet; on Colab by a public address
    calls = []
    fake = SimpleNamespace(init=lambda *names, **how: calls.append((names, how)))
    monkeypatch.setitem(sys.modules, "trackio", fake)
    config = tiny("x")
    with tracked(config, tmp_path, "trackio"):
        ((names, how),) = calls
    assert names == ("logtriage", run_name(config, tmp_path))
    assert how["embed"] is False and how["resume"] == "allow"
    with tracked(config, tmp_path, ""):
        assert len(calls) == 1


def test_a_tracker_that_cannot_be_used_is_told_before_the_model_is_loaded(tmp_path, monkeypatch):
    command = ("train", tmp_path / "run", "--preset", "novice", "--model", tmp_path / "nowhere")
    told = refusal(*command, "--track", "mlflow")
    assert "unknown tracker 'mlflow'; choose one of trackio, tensorboard, wandb" in told
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    for track in TRACKERS:
        assert f"{track} is not installed; run `pip install {track}`" in refusal(
            *command, "--track", track
        )
    assert not (tmp_path / "run").exists()


def test_a_folder_named_like_a_tracker_is_none(tmp_path, monkeypatch):
    # wandb leaves its logs in `wandb/` where it ran, which can be imported as an empty package
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ValueError, match="pip install wandb"):
        check_tracker("wandb")


@pytest.mark.parametrize("variable", tracking.ELSEWHERE)
def test_trackio_keeps_to_this_machine(variable, monkeypatch):
    monkeypatch.setattr(tracking, "find_spec", lambda name: SimpleNamespace(origin=name))
    monkeypatch.setenv(variable, "you/runs")
    with pytest.raises(ValueError, match=f"{variable} is set, .* unset it"):
        check_tracker("trackio")
    check_tracker("tensorboard")
    monkeypatch.delenv(variable)
    check_tracker("trackio")
