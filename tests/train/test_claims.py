"""What the README claims of the embedded agent, from nothing: a quarter of an hour on two cores."""

import pytest

from logtriage.train.base_model import build_base
from logtriage.train.experiment import evaluate_run, summarise_run
from logtriage.train.grpo import train
from logtriage.train.settings import make_config

pytestmark = pytest.mark.slow


def test_the_embedded_agent_learns_to_trace(tmp_path):
    base = build_base(tmp_path / "base")
    train(make_config("novice", model=str(base)), tmp_path / "seed-0")
    evaluation = evaluate_run(tmp_path / "seed-0", episodes=200)
    rows = {row["task"]: row for row in summarise_run(tmp_path / "seed-0", evaluation)}
    for row in rows.values():
        assert row["gain"].low > 0.0, row["task"]
    gain = rows["cascading_failure"]["gain"]
    assert gain.mean >= 0.30 and gain.low > 0.15
    # No gain by looking away: quiet faults are found, and false alarms dismissed.
    quiet = rows["silent_degradation"]
    assert quiet["faults_detected"]["trained"] >= 0.75
    assert quiet["false_alarms_dismissed"]["trained"] >= 0.8
    assert quiet["share_of_belief"].mean >= 0.75
