"""The agent in the package is the one whose results are published."""

import json
from pathlib import Path

import pandas as pd
import pytest

from logtriage.play.episode import Episode, final_score
from triagelab.bench.registry import named

RUN = Path(__file__).parents[3] / "results" / "novice" / "seed-1"


@pytest.mark.parametrize("name, policy", [("agent", "trained"), ("base", "base")])
def test_its_weights_are_those_of_the_results(name, policy):
    weights = json.loads((RUN / "transcripts.json").read_text())["weights"]
    assert named(name).settings["weights"] == weights[policy]


@pytest.mark.parametrize("task", ["single_crash", "cascading_failure", "silent_degradation"])
def test_it_plays_what_is_published(task):
    frame = pd.read_parquet(RUN / "evaluation.parquet")
    frame = frame[(frame["policy"] == "trained") & (frame["task"] == task) & (frame["index"] < 4)]
    episodes = [Episode.open(task, "test", index) for index in frame["index"]]
    named("agent").make(0).play(episodes)
    for row, episode in zip(frame.itertuples(), episodes, strict=True):
        record = episode.record
        assert (record.steps, record.closed_by) == (row.steps, row.closed_by)
        assert " ".join(dict.fromkeys(record.root_causes)) == row.blamed
        assert final_score(episode).total == pytest.approx(row.score, abs=1e-9)
