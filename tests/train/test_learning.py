"""That training learns, and that it stays the same training: on a toy, in seconds.

The toy has imitated a few novices for a moment: it writes calls, and most of them are malformed. It
is not constrained: to write calls that exist is what it learns.
"""

import hashlib
import json

import pytest
import torch
from conftest import lines
from safetensors.torch import load_file

from logtriage.train.base_model import build_base
from logtriage.train.grpo import train
from logtriage.train.settings import make_config

TOY = {"drills": 16, "novices": 640, "hidden": 48}
SETTINGS = {
    "incidents": 4,
    "warmup": 1,
    "learning_rate": 4e-3,
    "shares": {"single_crash": 1.0},
    "varied": False,
    "constrained": False,
    "completion_tokens": 640,
    "turn_tokens": 40,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 15 steps of 32 episodes, with a checkpoint after the third."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the digests are of one
    folder = tmp_path_factory.mktemp("toy")
    base = build_base(folder / "base", **TOY, layers=1)
    config = make_config("novice", model=str(base), steps=15, save_every=3, **SETTINGS)
    train(config, folder / "seed-0", progress=False)
    torch.set_num_threads(threads)
    return folder / "seed-0"


def test_training_learns(run):
    # Advantages of the wrong sign, stale episodes, or updates that are lost would keep the base's
    # reward, or lower it. The reward of a step, a mean of 32 episodes, scatters by 0.04.
    metrics = lines(run / "metrics.jsonl")
    malformed, rewards = ([row[name] for row in metrics] for name in ("malformed", "reward"))
    assert sum(malformed[:3]) / 3 > 1.5 and sum(malformed[-3:]) / 3 < 0.75
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.05


def test_training_stays_the_same(run):
    # Whoever changes these changes every published run: episodes to the last digit, and weights
    # but for what another processor rounds away.
    episodes = [row for row in lines(run / "episodes.jsonl") if row["step"] <= 3]
    digest = hashlib.sha256(json.dumps(episodes).encode()).hexdigest()
    weights = load_file(run / "checkpoint-3" / "model.safetensors")
    norm = sum(float(one.double().abs().sum()) for one in weights.values())
    assert digest == "e8cd92efd5dfd8876a1c0f72e7728622cd9a1699a6c4e57eec47c89d931e6a0a"
    assert norm == pytest.approx(17039.130667998063, rel=1e-6)
