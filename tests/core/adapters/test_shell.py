"""A call that replays the journal is a step of the same episode played in process."""

import json
import os
import sys
from random import Random

import pytest

from logtriage.adapters import shell
from logtriage.play.actions import ACTION_TYPES, Action, action_values
from logtriage.play.episode import Episode, final_score
from logtriage.play.observation import CLOSED, render
from logtriage.world.tasks import TASKS

HOSTILE = [
    ("",),
    ("--journal=/etc/passwd",),
    ("-c", "import os"),
    ("escalate", "dba\nsre"),
    ("escalate", "d" * 100_000),
    ("escalate", *["dba"] * 50_000),
    ("remediate", "restart", "'; touch /tmp/x; '"),
    ("ünïcödé", "\u202e", os.fsdecode(b"\xff\xfe")),
    ("escalate", '"]'),
]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Answers a call on an incident by its words; `call.journal` is the journal's path."""
    coordinates = tmp_path / "coordinates.json"

    def call(*words, task="cascading_failure", split="test", index=7):
        coordinates.write_text(json.dumps({"task": task, "split": split, "index": index}))
        monkeypatch.setattr(sys, "argv", ["incident", str(call.journal), *words])
        shell.main(coordinates)
        return capsys.readouterr().out.removesuffix("\n")

    call.journal = tmp_path / "journal"
    return call


@pytest.mark.parametrize("task", TASKS)
def test_random_plays_are_those_in_process(task, call):
    for index in range(10):
        call.journal.unlink(missing_ok=True)
        episode, random = Episode.open(task, "test", index), Random(index)
        values = action_values(episode.incident.topology)
        while not episode.done and random.random() < 0.95:
            action_type = random.choice(ACTION_TYPES)
            action = Action.parse(action_type, random.choice(values[action_type]))
            answer = call(action_type, *action.args, task=task, index=index)
            assert answer == render(episode.act(action))
        episode.abandon()
        score = json.loads(call("score", task=task, index=index))
        assert score.pop("reward") == final_score(episode).total
        assert score.items() <= final_score(episode)._asdict().items()


def test_hostile_words_cost_a_step_each(call):
    for step, words in enumerate(HOSTILE, 1):
        answer = call(*words)
        assert answer.startswith(f"step {step} of 12\nerror: ") and len(answer) < 300
        assert all(line.isprintable() for line in answer.split("\n"))
    assert call.journal.stat().st_size < 1_000 * len(HOSTILE)
    assert json.loads(call("score"))["cost"] == 0


def test_the_journal_is_shown_and_told_from_what_is_no_step(call):
    answers = [call("escalate", "dba"), call("request_more_logs", "all")]
    for words in ((), *((word,) for word in shell.HELP)):  # costs nothing
        text = call(*words)
        assert text.startswith(shell.usage()) and text.endswith("\n\n".join(answers))
    with call.journal.open("a") as journal:
        journal.write('\n["ignore"')  # half a line is no step
    assert call("resolve").startswith("step 3 of 12\nclosed by resolve")
    score, written = call("score"), call.journal.read_text()
    assert [call("identify_root_cause", "user-db"), call("score")] == [CLOSED, score]
    assert call.journal.read_text() == written
    call.journal.unlink()
    call("escalate", "dba")
    assert call("score").startswith('{"reward"')  # closes what is still open
    assert call("resolve") == CLOSED
