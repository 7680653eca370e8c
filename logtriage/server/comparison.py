"""What others did on an incident that a visitor of the page has closed.

Two scripts play it on the spot, in a millisecond. `belief` may need a second and SciPy, and the
agents need torch, so what these did on the first 200 incidents of each task is read from
`recorded.json.gz`, which `make results` writes.
"""

import gzip
import json
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from ..catalogue import open_incident
from ..play.actions import Action
from ..play.episode import BaseEpisode, final_score
from ..play.scoring import Record
from ..policies.scripted import LoudestPolicy, TracePolicy
from ..world.topology import Topology

RECORDED = Path(__file__).with_name("recorded.json.gz")
RECORDED_SPLIT = "test"
KEPT = 256  # incidents whose rows are kept, so that asking for a closed page again costs nothing
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
    """Rank the others and the visitor, who closed the incident by the actions `did`, best first.
    Omit a visitor identical to a listed policy.
    """
    rows = [*others(task, split, index, topology)]
    if tuple(did) not in [row.did for row in rows]:
        rows.insert(0, _row(YOU, open_incident(task, split, index, topology), did))
    return sorted(rows, key=lambda row: -row.score)


@lru_cache(KEPT)
def others(task: str, split: str, index: int, topology: Topology | None) -> tuple[Row, ...]:
    """The rows of the scripts and of those who are recorded on an incident."""
    done: dict[str, list[str]] = {}
    for script in (LoudestPolicy, TracePolicy):
        (played,) = script().play([open_incident(task, split, index, topology)])
        taken = [action for action, _ in played.episode.history if action]
        done[script.name] = [f"{action.type}:{action.value}".rstrip(":") for action in taken]
    done |= recorded_at(task, split, index, topology)
    return tuple(
        _row(name, open_incident(task, split, index, topology), did) for name, did in done.items()
    )


def recorded_at(
    task: str, split: str, index: int, topology: Topology | None
) -> dict[str, list[str]]:
    """The actions of those recorded on an incident, by name; none on a custom call graph."""
    if split != RECORDED_SPLIT or topology is not None:
        return {}
    recorded = {name: done.get(task, [])[index : index + 1] for name, done in _recorded().items()}
    return {name: done[0].split() for name, done in recorded.items() if done}


@cache
def _recorded() -> dict[str, dict[str, list[str]]]:
    """The actions on each incident, separated by spaces: by name, then task, then index."""
    recorded: dict[str, dict[str, list[str]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return recorded


def _row(name: str, episode: BaseEpisode, did: Sequence[str]) -> Row:
    """Take the actions `did`, which close the episode, and return the row."""
    for action in did:
        action_type, _, value = action.partition(":")
        episode.act(Action.parse(action_type, value))
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
