"""Training on Unsloth's rewritten GRPOTrainer is training on TRL's: same episodes, same losses.

Unsloth generates a trainer out of TRL's source when it is imported, with settings, tool masks and a
loss of its own: what holds for the one need not for the other. Here both train the same small base
on a CPU; `unsloth_on_cpu` says what that leaves out. Slow, and needs a package index.
"""

import json
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from lab_helpers import lines
from safetensors.torch import load_file

from triagelab.bench.runs import last_checkpoint
from triagelab.train.base_model import build_base
from triagelab.train.grpo import train
from triagelab.train.settings import make_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
# What Unsloth and its zoo import, and the running environment does not have. What else they ask
# for (xformers, torchvision, sentencepiece ...) training gets along without.
IMPORTED = ("cut_cross_entropy", "torchao", "triton", "tyro", "msgspec", "einops", "diffusers")
# Small, and yet with groups that are unequal in reward and length: else every loss would be 0.
# In several micro-batches, since Unsloth has a way of its own to add them up.
SMALL = {
    "load_in_4bit": False,
    "steps": 2,
    "incidents": 2,
    "group": 4,
    "completion_tokens": 640,
    "turn_tokens": 60,
    "learning_rate": 1e-3,
    "warmup": 0,
    "save_every": 1,
    "keep_checkpoints": 0,  # the preset keeps the newest alone, and a test goes back to the first
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A base that calls tools, some of them well: the tiny one never gets to a second turn."""
    folder = tmp_path_factory.mktemp("base") / "base"
    toy = {"drills": 64, "novices": 1200, "hidden": 64, "layers": 2}
    return build_base(folder, **toy)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment that has Unsloth, and for all else sees the running one.

    Nothing is installed by what Unsloth asks for: that would bring another torch.
    """
    folder = tmp_path_factory.mktemp("unsloth")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    inner = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    (Path(inner) / "running.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    gpu = ROOT / "requirements-gpu.txt"
    subprocess.run([*install, "--requirement", gpu, *IMPORTED], check=True)
    return python


def train_with_unsloth(python, base, folder):
    """A run on Unsloth's trainer, in a process of its own, whose words are shown when it fails."""
    script = Path(__file__).with_name("unsloth_on_cpu.py")
    run = subprocess.run(
        [python, script, base, folder, json.dumps(SMALL)],
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.fixture(scope="module")
def runs(python, base, tmp_path_factory):
    """(run on TRL's trainer, run on Unsloth's)."""
    folder = tmp_path_factory.mktemp("runs")
    plain = make_config("recommended", model=str(base), **{**SMALL, "loader": "transformers"})
    train(plain, folder / "trl", progress=False)
    return folder / "trl", train_with_unsloth(python, base, folder / "unsloth")


def test_the_episodes_are_the_same(runs):
    trl, unsloth = runs
    for name in ("episodes.jsonl", "completions.jsonl"):
        assert (trl / name).read_bytes() == (unsloth / name).read_bytes()
    # Both with answers of tools in between, which is where the two could part.
    assert max(row["steps"] for row in lines(trl / "episodes.jsonl")) > 2


def test_losses_and_gradients_are_the_same(runs):
    trl, unsloth = (lines(run / "metrics.jsonl") for run in runs)
    assert [row["step"] for row in trl] == [row["step"] for row in unsloth] == [1, 2]
    for name in ("loss", "grad_norm"):
        assert [row[name] for row in unsloth] == pytest.approx(
            [row[name] for row in trl], rel=1e-3
        ), name
        assert all(abs(row[name]) > 1e-6 for row in trl), name  # or this would compare nothing


def test_a_run_that_was_interrupted_ends_in_the_same_weights(runs, python, base):
    # A GPU that is borrowed is taken back sooner or later.
    whole = runs[1]
    again = whole.parent / "resumed"  # beside it: a run names its base relative to itself
    gone = shutil.ignore_patterns("model", "checkpoint-2")
    shutil.copytree(whole, again, ignore=gone)
    assert last_checkpoint(again).name == "checkpoint-1"
    train_with_unsloth(python, base, again)
    assert [row["step"] for row in lines(again / "metrics.jsonl")] == [1, 2]
    assert (again / "episodes.jsonl").read_bytes() == (whole / "episodes.jsonl").read_bytes()
    before, after = (
        load_file(run / "model" / "adapter_model.safetensors") for run in (whole, again)
    )
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
