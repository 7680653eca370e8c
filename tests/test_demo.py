"""What `make demo` does not play: published episodes of scripts, which are what they would play."""

import demo
import pandas as pd

from logtriage.bench.registry import make_policy, scripted
from logtriage.bench.rollouts import rollout
from logtriage.bench.score_tables import REFERENCES
from logtriage.world.tasks import TASKS


def test_published_episodes_of_scripts_are_theirs(tmp_path):
    demo.take_published(tmp_path)
    frame = pd.read_parquet(tmp_path / demo.EVALUATION)
    assert set(frame["policy"]) == set(REFERENCES)
    for name in REFERENCES:
        # Found by its key, so nothing of it is played again.
        found = frame[frame["key"] == scripted(name).key]
        assert len(found) == 200 * len(TASKS)
        first = found[(found["task"] == "single_crash") & (found["index"] < 3)]
        again = rollout(make_policy(name), ["single_crash"], "test", 3)
        assert list(first["score"]) == list(again["score"])
