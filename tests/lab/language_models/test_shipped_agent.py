"""The agent in the package is the one whose results are published."""

import json
from pathlib import Path

import pytest

from logtriage.play.episode import Episode, final_score
from triagelab.bench.registry import named

RESULTS = Path(__file__).parents[3] / "results"
ENTRY = json.loads((RESULTS / "leaderboard" / "novice-grpo.json").read_text())


def test_its_weights_are_those_of_the_results():
    (settings,) = ENTRY["settings"]["policies"].values()
    assert named("agent").settings == settings
    run = json.loads((RESULTS / "novice" / "seed-1" / "config.json").read_text())
    assert named("base").settings["weights"] == run["settings"]["weights"]


@pytest.mark.parametrize("task", ["single_crash", "cascading_failure", "silent_degradation"])
def test_it_plays_what_is_published(task):
    published = [row for row in ENTRY["episodes"] if row[0] == task][:4]
    episodes = [Episode.open(task, "test", row[1]) for row in published]
    named("agent").make(0).play(episodes)
    for row, episode in zip(published, episodes, strict=True):
        done = ", ".join(
            f"{step.action.type} {step.action.value}".strip() for step in episode.history
        )
        assert done == row[-1]
        assert final_score(episode).total == pytest.approx(row[3], abs=1e-9)
