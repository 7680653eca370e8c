"""What `make demo` does not play: published episodes of scripts, which are what they would play."""

import demo
import pandas as pd

from logtriage.bench.registry import make_policy, scripted
from logtriage.bench.rollouts import Plan, rollout
from logtriage.train import experiment
from logtriage.world.tasks import TASKS


def test_published_episodes_of_scripts_are_theirs(tmp_path):
    demo.take_published(tmp_path)
    frame = pd.read_parquet(tmp_path / demo.EVALUATION)
    assert set(frame["policy"]) == set(experiment.REFERENCES)
    for name in experiment.REFERENCES:
        # Found by its key, so nothing of it is played again.
        found = experiment._planned(frame, scripted(name).key, Plan(list(TASKS), "test", 200, 0))
        assert found is not None
        first = found[(found["task"] == "single_crash") & (found["index"] < 3)]
        again = rollout(make_policy(name), ["single_crash"], "test", 3, progress=False)
        assert list(first["score"]) == list(again["score"])
