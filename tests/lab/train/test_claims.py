"""What the README claims of the embedded agent, on a seed that is not published: ten minutes."""

import pytest

from triagelab.bench.run_evaluation import evaluate_run, summarise_run
from triagelab.train.grpo import train
from triagelab.train.settings import make_config

pytestmark = pytest.mark.slow


def test_the_embedded_agent_learns_from_reward(tmp_path):
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
