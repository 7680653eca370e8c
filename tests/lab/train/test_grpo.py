"""GRPO end to end with a model that learns nothing: the machinery, the files, and resuming."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pandas as pd
import pytest
import torch
from helpers import free_port, refusal
from lab_helpers import lines
from safetensors.torch import load_file, save_file
from test_command_line import run as run_command

from logtriage.adapters import remote
from logtriage.adapters.remote import Server
from logtriage.play.episode import Episode
from logtriage.play.tools import MALFORMED_COST
from triagelab.bench.run_evaluation import evaluate_checkpoints, evaluate_run
from triagelab.bench.runs import Gpu, last_checkpoint, locked, settings_of
from triagelab.language_models.loading import weights_digest
from triagelab.train import grpo
from triagelab.train.base_model import build_base
from triagelab.train.grpo import check_route, on_this_machine, train
from triagelab.train.loop import KeptTrainer
from triagelab.train.publication import write_model
from triagelab.train.settings import make_config

SHORT = {"steps": 3, "incidents": 2, "group": 2, "micro_batches": 2, "save_every": 1}


def tiny(model, **changes):
    """Not varied, as a server's incidents are not."""
    return make_config("novice", model=str(model), **{"varied": False, **SHORT, **changes})


@pytest.fixture(scope="module")
def tiny_base(tmp_path_factory):
    """One that has learned little more than to call, so that some calls are malformed."""
    folder = tmp_path_factory.mktemp("tiny") / "base"
    return build_base(folder, drills=16, novices=256, hidden=32, layers=1)


@pytest.fixture(scope="module")
def run(tiny_base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "seed-0"
    train(tiny(tiny_base), folder, progress=False)
    return folder


@pytest.fixture(scope="module", params=["constrained", "free", "trl"])
def either(request, run, tiny_base, tmp_path_factory):
    """A run by each loop, by ours with and without a grammar."""
    if request.param == "constrained":
        return run
    folder = tmp_path_factory.mktemp(request.param) / "seed-0"
    changes = {"loop": "trl", "credit": "episode"} if request.param == "trl" else {}
    train(tiny(tiny_base, constrained=False, **changes), folder, progress=False)
    return folder


def test_a_run_leaves_what_it_says(either, tiny_base):
    metrics, episodes, completions = (
        lines(either / f"{name}.jsonl") for name in ("metrics", "episodes", "completions")
    )
    assert [row["step"] for row in metrics] == [1, 2, 3]
    logged = {"reward", "seconds", "frac_reward_zero_std", "environment_seconds", "entropy"}
    assert logged | {"part/root_cause"} <= set(metrics[0])
    assert len(episodes) == 3 * 2 * 2
    assert {"step", "task", "index", "score", "root_cause"} <= set(episodes[0])
    first = completions[0]["messages"][0]
    assert first["role"] == "user" and "calls: " in first["content"]
    record = json.loads((either / "config.json").read_text())
    assert record["settings"]["steps"] == 3 and record["versions"]["trl"] == "1.14.2"
    assert not Path(record["settings"]["model"]).is_absolute()  # so that both can move
    assert Path(settings_of(either)["model"]) == tiny_base.resolve()
    assert (either / "model" / "model.safetensors").exists()


def test_the_reward_is_the_score_less_what_malformed_calls_cost(either):
    # TRL adds up what `get_reward` and the recorder return: the sum must be the reward, once,
    # whether malformed calls reach the environment, or TRL answers them without asking it.
    scores = pd.DataFrame(lines(either / "episodes.jsonl")).groupby("step")["score"].mean()
    metrics = lines(either / "metrics.jsonl")
    constrained = settings_of(either)["constrained"]
    assert any(row["malformed"] for row in metrics) is not constrained
    for row in metrics:
        expected = scores[row["step"]] - MALFORMED_COST * row["malformed"]
        assert row["reward"] == pytest.approx(expected, abs=1e-6)


def test_a_finished_run_is_left_alone_and_another_one_is_refused(run, tiny_base, tmp_path):
    # Also one that has moved with its base, and without its checkpoints.
    base, moved = tmp_path / "base", tmp_path / "seed-0"
    shutil.copytree(tiny_base, base)
    shutil.copytree(run, moved, ignore=shutil.ignore_patterns("checkpoint-*"))
    record = json.loads((moved / "config.json").read_text())
    record["settings"]["model"] = os.path.relpath(base, moved)
    record["settings"]["warm_up"] = 0  # a setting that is gone
    (moved / "config.json").write_text(json.dumps(record))
    assert train(tiny(base), moved, progress=False) == moved / "model"
    assert (moved / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match="learning_rate differ"):
        train(tiny(base, learning_rate=1.0), moved, progress=False)
    # The old run's end would be compared with the new base's beginning.
    weights = load_file(base / "model.safetensors")
    save_file({name: weight * 1.01 for name, weight in weights.items()}, base / "model.safetensors")
    with pytest.raises(ValueError, match=r"other settings \(weights differ\)"):
        train(tiny(base), moved, progress=False)


def test_training_on_a_server_is_the_same(run, tiny_base, tmp_path, url):
    there = tmp_path / "there"
    with Server(url) as server:
        train(tiny(tiny_base), there, progress=False, open_episode=server.open)
    for name in ("episodes.jsonl", "completions.jsonl", "model/model.safetensors"):
        assert (there / name).read_bytes() == (run / name).read_bytes()


class Lost(Episode):
    def act(self, *action):
        raise ConnectionError("gone")

    refuse = abandon = act


@contextmanager
def outage(url):
    """A server that vanishes after four episodes were opened."""
    kinds = chain([Episode] * 4, repeat(Lost))
    yield SimpleNamespace(open=lambda *incident: next(kinds).open(*incident))


def test_a_server_that_is_not_there_or_vanishes_is_one_sentence_and_no_bad_score(
    tiny_base, tmp_path, monkeypatch
):
    nowhere, folder = f"http://127.0.0.1:{free_port()}", tmp_path / "run"
    assert nowhere in refusal("train", folder, "--model", tiny_base, "--env-url", nowhere)
    assert not folder.exists()
    # TRL answers whatever a tool raises by a text for the model: scoring such an episode would be a
    # result of nothing. It was a traceback of 400 lines that ended in a TypeError.
    monkeypatch.setattr(remote, "Server", outage)
    sizes = ("--preset", "novice", "--task", "single_crash", "--episodes", 12)
    where = ("--set", "varied=false", "--env-url", "ws://it")
    result = run_command("train", folder, "--model", tiny_base, *sizes, *where)
    assert result.exit_code == 2 and "Traceback" not in result.output
    assert result.stderr.splitlines()[-1] == "error: gone"  # on a line of its own
    assert not (folder / "episodes.jsonl").exists() and not (folder / "model").exists()


def test_a_run_is_evaluated_after_training_and_at_every_checkpoint(run):
    # On other splits, and in parts: test_experiment.
    frame = evaluate_run(run, 2, references=("loudest",))
    assert frame.groupby("policy").size().to_dict() == {"base": 6, "loudest": 6, "trained": 6}
    curve = evaluate_checkpoints(run, episodes=2)
    assert sorted(set(curve["step"])) == [1, 2, 3] and len(curve) == 3 * 6


def test_a_run_stops_where_it_is_told_and_goes_on(run, tiny_base, tmp_path):
    folder = tmp_path / "run"
    assert train(tiny(tiny_base), folder, progress=False, until=2) == folder
    assert not (folder / "model").exists() and len(lines(folder / "metrics.jsonl")) == 2
    assert train(tiny(tiny_base), folder, progress=False, until=1) == folder
    assert len(lines(folder / "metrics.jsonl")) == 2  # it is beyond that already
    # Somebody else went on, and was killed while the third checkpoint and a line were written.
    shutil.copytree(folder / "checkpoint-2", folder / "checkpoint-3")
    (folder / "checkpoint-3" / "trainer_state.json").unlink()
    for name in ("metrics", "episodes", "completions"):
        with (folder / f"{name}.jsonl").open("a") as file:
            file.write('{"step": 3}\n{"step": 3, "rew')
    train(tiny(tiny_base), folder, progress=False)
    assert [row["step"] for row in lines(folder / "metrics.jsonl")] == [1, 2, 3]
    for name in ("episodes.jsonl", "completions.jsonl", "model/model.safetensors"):
        assert (folder / name).read_bytes() == (run / name).read_bytes()


def test_a_run_ends_by_its_hours_and_goes_on_with_new_ones(run, tiny_base, tmp_path):
    folder = tmp_path / "run"
    model = train(tiny(tiny_base), folder, progress=False, hours=1e-9)
    assert model == folder / "model" and len(lines(folder / "metrics.jsonl")) == 1
    assert weights_digest(model) == weights_digest(folder / "checkpoint-1")
    evaluate_run(folder, 2, references=("loudest",))
    card = (write_model(folder, "a/b") / "README.md").read_text()
    assert "1 of 3 steps of 2 incidents x 2" in card
    # A session that was killed leaves lines beyond the checkpoint, of which the model is.
    shutil.rmtree(model)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "seconds": 9.0}\n')
    # For not one more step there is no time, and nothing is lost.
    assert train(tiny(tiny_base), folder, progress=False, hours=1e-9) == model
    assert len(lines(folder / "metrics.jsonl")) == 1
    train(tiny(tiny_base), folder, progress=False)
    assert weights_digest(model) == weights_digest(run / "model")
    assert train(tiny(tiny_base), folder, progress=False, hours=1e-9) == model


def test_a_checkpoint_that_lacks_something_is_none(run, tmp_path):
    torn = tmp_path / "run"
    shutil.copytree(run, torn)
    assert last_checkpoint(torn).name == "checkpoint-3"
    whole = (torn / "checkpoint-3" / "optimizer.pt").read_bytes()
    (torn / "checkpoint-3" / "optimizer.pt").write_bytes(whole[: len(whole) // 2])
    assert last_checkpoint(torn).name == "checkpoint-2"
    weights = (torn / "checkpoint-2" / "model.safetensors").read_bytes()
    (torn / "checkpoint-2" / "model.safetensors").write_bytes(weights[:-4])
    assert last_checkpoint(torn).name == "checkpoint-1"
    (torn / "checkpoint-1" / "trainer_state.json").unlink()
    assert last_checkpoint(torn) is None


def test_what_a_gpu_cannot_train_is_refused(monkeypatch):
    card = make_config("model_card")
    config = replace(card, loader="transformers")
    monkeypatch.setattr(grpo, "find_gpu", lambda: Gpu("Tesla T4", 16.1, bf16=False))
    with pytest.raises(ValueError, match=r"a Tesla T4 has no bf16.*choose the loader 'unsloth'"):
        check_route(config)
    check_route(card)
    assert on_this_machine(card) == (card, "")
    monkeypatch.setattr(grpo, "find_gpu", lambda: Gpu("NVIDIA L4", 24.2, bf16=True))
    check_route(config)
    monkeypatch.setattr(grpo, "find_gpu", lambda: None)
    elsewhere, warning = on_this_machine(card)
    assert (elsewhere.loader, elsewhere.load_in_4bit) == ("transformers", False)
    assert "no NVIDIA GPU here" in warning


def test_a_run_whose_gradients_are_never_finite_ends_and_says_so(tiny_base, tmp_path, monkeypatch):
    loss = KeptTrainer._compute_loss
    monkeypatch.setattr(KeptTrainer, "_compute_loss", lambda *given: loss(*given) * float("nan"))
    with pytest.raises(ValueError, match="the gradients of step 1 are not finite"):
        train(tiny(tiny_base, steps=6, incidents=1, micro_batches=1), tmp_path, progress=False)
    assert not (tmp_path / "model").exists() and not list(tmp_path.glob("checkpoint-*"))


def test_memory_a_disk_or_a_folder_that_is_taken_is_called_that(tiny_base, tmp_path, monkeypatch):
    def fails_by(error, kind, said):
        monkeypatch.setattr(grpo, "load_to_train", Mock(side_effect=error))
        with pytest.raises(kind, match=said):
            train(tiny(tiny_base), tmp_path / "run", progress=False)

    full = torch.OutOfMemoryError("CUDA out of memory")
    fails_by(full, ValueError, r"memory .* lower completion_tokens \(1280\)")
    lost = RuntimeError("unexpected pos 64 vs 0")  # torch's, for a checkpoint that does not fit
    fails_by(lost, RuntimeError, "unexpected pos")
    monkeypatch.setattr(grpo, "FULL", sys.maxsize)
    fails_by(lost, ValueError, "is full; make room, and repeat the command")
    # Two processes would add their episodes to the same files, and the run would count as finished.
    with locked(tmp_path / "run"):
        fails_by(lost, ValueError, "another process is at work in")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("loop", ["kept", "trl"])
def test_production_is_trained_on_by_the_root_cause_alone(loop, tiny_base, tmp_path):
    made = {"credit": "episode", "constrained": False, "loop": loop, "completion_tokens": 200}
    config = tiny(tiny_base, shares={"production": 1.0}, **made, steps=1)
    train(config, tmp_path / "run", progress=False)
    episodes, (completion,) = (
        lines(tmp_path / "run" / f"{name}.jsonl") for name in ("episodes", "completions")
    )
    assert {row["task"] for row in episodes} == {"production"} and len(episodes) == 4
    assert {row["score"] for row in episodes} <= {0.0, 1.0}
    assert "the root cause alone counts" in completion["messages"][0]["content"]
    (metrics,) = lines(tmp_path / "run" / "metrics.jsonl")
    assert "score/production" in metrics
    said = refusal("evaluate", "--run", tmp_path / "run")
    assert "play it by `evaluate --task production" in said


def test_threads_that_wait_sleep_and_nothing_is_imported_before_unsloth():
    # torch reads the policy when it is imported; Unsloth, imported when training starts, must come
    # before transformers.
    words = "os.environ['OMP_WAIT_POLICY'], *sys.modules"
    code = f"import os, sys, triagelab.train.publication; print({words})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    policy, *modules = said.stdout.split()
    assert policy == "PASSIVE" and not {"torch", "transformers"} & {*modules}
