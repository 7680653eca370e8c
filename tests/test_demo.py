"""What `make demo` does not play: published episodes, which are what would be played."""

from dataclasses import asdict

import demo
import pandas as pd

from logtriage.world.tasks import TASKS
from triagelab.bench.registry import in_memory, scripted
from triagelab.bench.run_evaluation import turn_tokens_of
from triagelab.bench.score_tables import REFERENCES, split_table
from triagelab.train.settings import make_config


def test_published_episodes_are_those_that_would_be_played(tmp_path):
    demo.take_published(tmp_path)
    frame = pd.read_parquet(tmp_path / demo.EVALUATION)
    assert set(frame["policy"]) == {*REFERENCES, "base"}
    for name in REFERENCES:
        # Found by its key, so nothing of it is played again.
        kept = frame[frame["key"] == scripted(name).key]
        assert len(kept) == 200 * len(TASKS)

    # Those of the base are of the one in the package: `test_loading` compares its weights.
    turn = turn_tokens_of(asdict(make_config("novice")))
    player = in_memory("base", turn_tokens=turn, constrained=True)
    for name, count in ((demo.EVALUATION, 200), (demo.SPLITS, 300)):
        frame = pd.read_parquet(tmp_path / name)
        assert (frame["key"] == player.key).sum() == count * len(TASKS)
        own = frame[(frame["policy"] == "base") & (frame["index"] < 50)]
        pd.concat([frame, own.assign(policy="trained")]).to_parquet(tmp_path / name)

    # The table of splits is of the incidents that both have played.
    counts = demo.played(tmp_path).groupby(["policy", "split"]).size()
    assert counts["base"].to_dict() == counts["trained"].to_dict()
    split_table([demo.played(tmp_path)])
