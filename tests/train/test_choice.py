"""Which incidents are left out, and which are played again."""

import json

import pytest

from logtriage.train.choice import incident_rows, most_learnable, with_replays
from logtriage.train.drills import open_varied
from logtriage.train.presets import make_config
from logtriage.world.incidents import sample_incident


@pytest.mark.parametrize("varied", [False, True])
def test_without_false_alarms_every_seed_keeps_to_its_own_incidents(varied):
    slices = []
    for seed in (0, 1, 2):
        changes = {"model": "x", "seed": seed, "steps": 10, "varied": varied}
        plain = incident_rows(make_config("mini", **changes))
        rows = incident_rows(make_config("mini", **changes, false_alarms=False))
        assert [row["task"] for row in rows] == [row["task"] for row in plain]
        replaced = 0
        for row, before in zip(rows, plain, strict=True):
            opened = open_varied(row["task"], "train", row["index"]).incident
            incident = opened if varied else sample_incident(row["task"], "train", row["index"])
            assert incident.root is not None
            replaced += row != before
        assert 0 < replaced < 30
        assert len({(row["task"], row["index"]) for row in rows}) == len(rows) == 80
        slices.append({row["index"] for row in rows})
        assert slices[-1] <= {row["index"] for row in plain}
    assert not (slices[0] & slices[1] or slices[1] & slices[2] or slices[0] & slices[2])


def test_a_run_of_one_task_has_too_few_without_false_alarms():
    config = make_config("mini", model="x", shares={"silent_degradation": 1.0}, false_alarms=False)
    with pytest.raises(ValueError, match="lower its share, or set false_alarms to True"):
        incident_rows(config)


def write(path, *groups):
    """Groups of (step, index, scores) as a run's episodes."""
    lines = [
        {"step": step, "task": "single_crash", "index": index, "score": score}
        for step, index, scores in groups
        for score in scores
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_incidents_whose_scores_lie_apart_are_played_again(tmp_path):
    path = tmp_path / "episodes.jsonl"
    rows = [
        {"prompt": [], "task": "single_crash", "split": "train", "index": index}
        for index in (10, 11, 12, 13)
        for _ in range(2)
    ]
    assert with_replays(rows, 2, path) == rows  # the first step has nothing to play again
    write(path, (1, 1, [0, 1]), (1, 2, [0.5, 0.5]), (1, 3, [0.2, 0.4]))
    assert [row["index"] for row in with_replays(rows, 2, path)] == [10, 10, 11, 11, 1, 1, 3, 3]
    # the last time counts, and who agrees teaches nothing
    write(path, (1, 1, [0, 1]), (1, 2, [0, 0.9]), (2, 1, [1, 1]))
    assert most_learnable(path, 2) == [("single_crash", 2)]
    assert [row["index"] for row in with_replays(rows, 2, path)] == [10, 10, 11, 11, 12, 12, 2, 2]
