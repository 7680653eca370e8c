"""What the README claims of the embedded agent, from nothing: ten minutes on two cores."""

import pytest

from logtriage.training.experiment import evaluate_run
from logtriage.training.grpo import train
from logtriage.training.mini import build_base
from logtriage.training.presets import make_config
from logtriage.training.summaries import summarise_run

pytestmark = pytest.mark.slow


def test_the_embedded_agent_learns_to_trace(tmp_path):
    base = build_base(tmp_path / "base")
    train(make_config("mini", model=str(base)), tmp_path / "seed-0")
    evaluation = evaluate_run(tmp_path / "seed-0", episodes=200)
    rows = {row["task"]: row for row in summarise_run(tmp_path / "seed-0", evaluation)}
    gain = rows["cascading_failure"]["gain"]
    assert gain.mean >= 0.30 and gain.low > 0.15
    assert rows["silent_degradation"]["gain"].low > 0.0
    # On single crash no gain is claimed, and so none is asked for: only that nothing is lost.
    assert rows["single_crash"]["gain"].high > 0.0
