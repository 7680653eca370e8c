"""That training learns, and that it stays the same training: on a toy, in seconds, and slowly on
the embedded model.

The toy has imitated a few novices for a moment: it writes calls, and most of them are malformed. It
is not constrained: to write calls that exist is what it learns.
"""

import hashlib
import json

import pytest
from lab_helpers import lines

from triagelab.bench.run_evaluation import evaluate_run, summarise_run
from triagelab.train.base_model import build_base
from triagelab.train.grpo import train
from triagelab.train.settings import make_config

SETTINGS = {"incidents": 4, "warmup": 1, "learning_rate": 4e-3, "shares": {"single_crash": 1.0}}
SETTINGS |= {"varied": False, "constrained": False, "completion_tokens": 640, "turn_tokens": 40}


def test_training_learns(tmp_path):
    base = build_base(tmp_path / "base", drills=16, novices=640, hidden=48, layers=1)
    config = make_config("novice", model=str(base), steps=10, **SETTINGS)
    train(config, tmp_path / "seed-0", progress=False)
    # Advantages of the wrong sign, stale episodes, or updates that are lost would keep the base's
    # reward, or lower it. The reward of a step, a mean of 32 episodes, scatters by 0.04.
    metrics = lines(tmp_path / "seed-0" / "metrics.jsonl")
    malformed, rewards = ([row[name] for row in metrics] for name in ("malformed", "reward"))
    assert sum(malformed[:3]) / 3 > 1.5 and sum(malformed[-3:]) / 3 < 0.75
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.05


def test_training_stays_the_same(tmp_path):
    # Whoever changes these changes every published run. An untrained model's first step depends on
    # nothing that another processor rounds otherwise: an optimizer's step would already.
    base = build_base(tmp_path / "base", drills=0, novices=0, hidden=48, layers=1)
    # In several parts, which are regrouped by length: a gradient is the sum over all.
    settings = {**SETTINGS, "constrained": True, "varied": True, "micro_batches": 4}
    config = make_config("novice", model=str(base), steps=15, **settings)
    train(config, tmp_path / "seed-0", progress=False, until=1)
    episodes = lines(tmp_path / "seed-0" / "episodes.jsonl")
    digest = hashlib.sha256(json.dumps(episodes).encode()).hexdigest()
    (metrics,) = lines(tmp_path / "seed-0" / "metrics.jsonl")
    assert digest == "f6cac46265408a20bae3e16e3166c6af37a25377864f18bf2a9e9d848af83515"
    assert metrics["grad_norm"] == pytest.approx(0.00067708641, rel=1e-3)


@pytest.mark.slow
def test_the_embedded_agent_learns_from_reward(tmp_path):
    # What the README claims, on a seed that is not published: ten minutes.
    train(make_config("novice", model="base"), tmp_path / "seed-0")
    evaluation = evaluate_run(tmp_path / "seed-0", episodes=200)
    rows = {row["task"]: row for row in summarise_run(tmp_path / "seed-0", evaluation)}
    assert all(row["gain"].mean > 0.0 for row in rows.values())
    quiet = rows["silent_degradation"]
    assert quiet["gain"].low > 0.0
    # No gain by looking away: quiet faults are still found, and false alarms dismissed.
    assert quiet["faults_detected"]["trained"] >= 0.7
    assert quiet["false_alarms_dismissed"]["trained"] >= 0.8
    assert quiet["share_of_belief"].mean >= 0.7
