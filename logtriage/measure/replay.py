"""Trajectories played again: whether the scores that a file tells are those of what was done.

An incident is a pure function of its coordinates, and a score one of incident and actions. So every
line of a file of `evaluate --trajectories` can be confirmed without the agent that wrote it:

| verdict | what it says |
|---|---|
| MATCH | the same actions on that incident bring the same text and, to the bit, the same score |
| DRIFT | it was played with another version of the benchmark, of which nothing is known here |
| FORGED | something differs: an action, a text, a part of the score, an index |
| UNSCORED | it ended in an error, as the file says, and has no score; what was done is as it says |

What this proves is the arithmetic. Who chose the actions, it cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from ..play.episode import Episode, OpenEpisode, final_score
from ..play.prompts import render
from ..play.recording import RecordedEpisode
from ..play.rewards import PARTS
from ..world.tasks import BENCHMARK_VERSION
from .journal import read_journal
from .rollouts import ERROR, Key, episode_row, solved

MATCH, DRIFT, FORGED, UNSCORED = VERDICTS = ("MATCH", "DRIFT", "FORGED", "UNSCORED")
# Columns of a row that follow from the actions.
CONFIRMED = ("score", *PARTS, "cost", "gate", "steps", "closed_by", "confidence")
MOST_STEPS = 1_000  # of a line that are looked at; no incident is as long


class _Row(BaseModel, extra="allow"):
    task: str
    split: str
    index: int
    policy: str
    attempt: int
    benchmark: str
    closed_by: str
    error: str = ""


class _Step(BaseModel, extra="forbid"):
    action: str
    value: str
    confidence: float | None
    observation: str


class _Line(BaseModel, extra="forbid"):
    """A line of a file, as far as its shape goes."""

    row: _Row
    opening: str
    steps: list[_Step] = Field(max_length=MOST_STEPS)
    messages: list[dict[str, Any]]


class Replayed(NamedTuple):
    """A line that was played again.

    Attributes:
        line: as it stands in the file.
        verdict: one of `VERDICTS`.
        reason: what differs; empty for a match.
        episode: as it was played here; None where it could not be.
    """

    line: dict[str, Any]
    verdict: str
    reason: str
    episode: RecordedEpisode | None


class _Differs(Exception):
    """What a file tells is not what happens here; the message says which and how."""


def replay(path: Path, open_episode: OpenEpisode = Episode.open) -> Iterator[Replayed]:
    """Play every episode of a file again.

    Of an episode that ended in an error and was played again later, only the later one counts; two
    with a score are one too many.

    Raises:
        ValueError: as `read_journal`.
    """
    _, lines, _ = read_journal(path)
    seen: set[tuple[str, Key]] = set()
    for line, key in _counting(lines):
        replayed = replay_line(line, open_episode)
        if key in seen and replayed.verdict != FORGED:
            replayed = replayed._replace(verdict=FORGED, reason="this episode is in the file twice")
        if key is not None:
            seen.add(key)
        yield replayed


def _counting(
    lines: Sequence[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], tuple[str, Key] | None]]:
    """The lines that count, with whose they are; None for one that cannot be read."""
    keys: list[tuple[str, Key] | None] = []
    for line in lines:
        try:
            row = _Line.model_validate(line, strict=True).row
            keys.append((row.policy, (row.task, row.index, row.attempt)))
        except ValidationError:
            keys.append(None)
    last = {key: at for at, key in enumerate(keys)}
    for at, (line, key) in enumerate(zip(lines, keys, strict=True)):
        if key is None or last[key] == at or not line["row"].get("error"):
            yield line, key


def replay_line(line: dict[str, Any], open_episode: OpenEpisode = Episode.open) -> Replayed:
    """Play one line again."""
    try:
        read = _Line.model_validate(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Replayed(line, FORGED, f"no trajectory: {where}: {first['msg']}", None)
    row = read.row
    if row.benchmark != BENCHMARK_VERSION:
        reason = f"played with benchmark {row.benchmark:.20}, this is {BENCHMARK_VERSION}"
        return Replayed(line, DRIFT, reason, None)
    try:
        episode = RecordedEpisode(open_episode(row.task, row.split, row.index))
    except ValueError as error:
        return Replayed(line, FORGED, str(error), None)
    try:
        _play(read, episode)
        _compare(line["row"], episode)
    except _Differs as difference:
        return Replayed(line, FORGED, str(difference), episode)
    finally:
        episode.leave()
    return Replayed(line, UNSCORED if row.closed_by == ERROR else MATCH, "", episode)


def _play(line: _Line, episode: RecordedEpisode) -> None:
    """Do what the line says was done, and look at what is shown; `_Differs` where it differs."""
    shown = [render(episode.opening, episode.incident.topology)]
    if shown[0] != line.opening:
        raise _Differs("the opening is that of another incident, or was changed")
    for number, step in enumerate(line.steps, start=1):
        if episode.done:
            raise _Differs(f"step {number} comes after the incident was closed")
        if step.action:
            observation = episode.act(step.action, step.value, step.confidence)
        else:
            observation = episode.refuse(step.value)
        shown.append(render(observation))
        if shown[-1] != step.observation:
            raise _Differs(f"step {number}, {step.action or 'no action'}: another answer came")
    _look_for(shown, line.messages)


def _look_for(shown: Sequence[str], messages: Sequence[dict[str, Any]]) -> None:
    """Raise `_Differs` unless all that was shown stands in the messages, in that order: a
    conversation that was changed is no less forged than a score.
    """
    if not messages:
        return
    told = "\n".join(
        str(message.get("content")) for message in messages if message.get("role") != "assistant"
    )
    at = 0
    for number, text in enumerate(shown):
        found = told.find(text, at)
        if found < 0:
            raise _Differs(f"the messages do not show what came after step {number}")
        at = found + len(text)


def _compare(row: dict[str, Any], episode: RecordedEpisode) -> None:
    """Raise `_Differs` unless the row tells what came of the episode here."""
    if row["closed_by"] == ERROR:
        scores = [name for name in ("score", *PARTS) if row.get(name) is not None]
        if scores or not row.get("error"):
            raise _Differs("an episode that ended in an error has an error and no score")
        if row.get("steps") != episode.record.steps:
            raise _Differs(f"steps are {episode.record.steps}, told is {row.get('steps')!r:.30}")
        return
    if not episode.done and row["closed_by"] == "timeout":
        episode.abandon()  # the agent walked away
    if not episode.done:
        raise _Differs(f"the incident is still open, told is that {row['closed_by']:.30} closed it")
    own = episode_row(episode, row["policy"], 0.0)
    own["solved"] = solved(final_score(episode))
    for name in (*CONFIRMED, "solved"):
        told = row.get(name)
        if told != own[name] or isinstance(told, bool) != isinstance(own[name], bool):
            raise _Differs(f"{name} is {own[name]!r}, told is {told!r:.30}")
