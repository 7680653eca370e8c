"""What the README claims of the embedded agent, on a seed that is not published: ten minutes."""

import pytest

from logtriage.train.experiment import evaluate_run, summarise_run
from logtriage.train.grpo import train
from logtriage.train.settings import make_config

pytestmark = pytest.mark.slow


def test_the_embedded_agent_learns_to_trace(tmp_path):
    train(make_config("novice", model="base"), tmp_path / "seed-0")
    evaluation = evaluate_run(tmp_path / "seed-0", episodes=200)
    rows = {row["task"]: row for row in summarise_run(tmp_path / "seed-0", evaluation)}
    for task in ("cascading_failure", "silent_degradation"):
        assert rows[task]["gain"].low > 0.0, task
    assert rows["single_crash"]["gain"].mean > 0.0
    # No gain by looking away: quiet faults are found, and false alarms dismissed.
    quiet = rows["silent_degradation"]
    assert quiet["faults_detected"]["trained"] > quiet["faults_detected"]["base"]
    assert quiet["false_alarms_dismissed"]["trained"] >= 0.8
    assert quiet["share_of_belief"].mean >= 0.65
