"""What others did on an incident that a visitor of the page has closed: scripts, and records."""

from collections.abc import Sequence
from typing import NamedTuple

from ..catalogue import open_incident
from ..play.actions import Action
from ..play.episode import BaseEpisode, final_score
from ..play.scoring import Record
from ..policies.scripted import LoudestPolicy, TracePolicy
from ..recorded import recorded_actions
from ..world.topology import Topology

YOU = "you"


class Row(NamedTuple):
    """What somebody did on an incident, and the score for it."""

    name: str
    score: float
    answer: str
    did: tuple[str, ...]  # the actions as the page's address holds them


def ranking(
    task: str, split: str, index: int, topology: Topology | None, did: Sequence[str]
) -> list[Row]:
    """Rank others, and the visitor, whose actions are `did`, unless another did the same."""
    done: dict[str, list[str]] = {}
    for script in (LoudestPolicy, TracePolicy):
        (played,) = script().play([open_incident(task, split, index, topology)])
        done[script.name] = [action.text for action, _ in played.episode.history if action]
    done |= recorded_actions(task, split, index) if topology is None else {}
    if [*did] not in done.values():
        done = {YOU: [*did], **done}
    rows = [
        _row(name, open_incident(task, split, index, topology), did) for name, did in done.items()
    ]
    return sorted(rows, key=lambda row: -row.score)


def _row(name: str, episode: BaseEpisode, did: Sequence[str]) -> Row:
    """Take the actions `did`, which close the episode, and return the row."""
    for action in did:
        episode.act(Action.from_text(action))
    return Row(name, final_score(episode).total, describe(episode.record), tuple(did))


def describe(record: Record) -> str:
    """The answers that count, in one line: `blames user-db, restart, pages dba, 7 steps`."""
    answers = []
    if record.closed_by == "ignore":
        answers.append("dismisses it")
    if record.root_cause:
        answers.append(f"blames {record.root_cause}")
    if record.remediations:
        remedy, service = record.remediations[0]
        answers.append(remedy if service == record.root_cause else f"{remedy} {service}")
    if record.team:
        answers.append(f"pages {record.team}")
    steps = "1 step" if record.steps == 1 else f"{record.steps} steps"
    return ", ".join([*(answers or ["no answer"]), steps])
