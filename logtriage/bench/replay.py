"""Trajectories played again: whether the scores that a file tells are those of what was done.

An incident is a pure function of its coordinates, and a score one of incident and actions. So every
line of a file of `evaluate --trajectories` can be confirmed without the agent that wrote it:

| verdict | what it says |
|---|---|
| MATCH | the same actions on that incident bring the same text and, to the bit, the same score |
| DRIFT | it was played with another version of the benchmark, of which nothing is known here |
| FORGED | something differs: an action, a text, a message's call, a part of the score, an index |
| UNSCORED | it ended in an error, as the file says, and has no score; what was done is as it says |

A conversation is played, too: what the agent wrote must bring these steps and these answers. What
it wrote beside its calls cannot be confirmed, nor can tokens and seconds.

What this proves is the arithmetic. Who chose the actions, it cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..play.actions import Action
from ..play.conversation import protocol_of
from ..play.episode import BaseEpisode, Episode, OpenEpisode, final_score
from ..play.prompts import render
from ..play.scoring import PARTS
from ..play.tools import ToolSession
from ..world.tasks import BENCHMARK_VERSION
from .episode_file import read_journal
from .line_file import Line, read_line
from .rollouts import ERROR, Key, blamed, episode_row, solved

MATCH, DRIFT, FORGED, UNSCORED = VERDICTS = ("MATCH", "DRIFT", "FORGED", "UNSCORED")
# Columns of a row that follow from the actions, and those of them that an error has as well.
CONFIRMED = (
    "score",
    *PARTS,
    "cost",
    "gate",
    "steps",
    "closed_by",
    "confidence",
    "solved",
    "blamed",
)
OF_ERRORS = ("steps", "confidence", "blamed")


class Replayed(NamedTuple):
    """A line that was played again.

    Attributes:
        line: as it stands in the file.
        verdict: one of `VERDICTS`.
        reason: what differs; empty for a match.
        episode: as it was played here; None where it could not be.
    """

    line: Any
    verdict: str
    reason: str
    episode: BaseEpisode | None


class _Differs(Exception):
    """What a file tells is not what happens here; the message says which and how."""


def replay(path: Path, open_episode: OpenEpisode = Episode.open) -> Iterator[Replayed]:
    """Play every episode of a file again.

    Of an episode that ended in an error and was played again later, only the later one counts; two
    with a score are one too many.

    Raises:
        ValueError: as `read_journal`.
    """
    head, lines, _ = read_journal(path)
    talkers = _talkers(head.get("settings", {}))
    seen: set[tuple[str, Key]] = set()
    for line, key in _counting(lines):
        replayed = replay_line(line, open_episode, key is not None and key[0] in talkers)
        if key in seen and replayed.verdict != FORGED:
            replayed = replayed._replace(verdict=FORGED, reason="this episode is in the file twice")
        if key is not None:
            seen.add(key)
        yield replayed


def _talkers(settings: dict[str, Any]) -> set[str]:
    """The policies that talk, as a file's settings name them."""
    models, endpoint = settings.get("models"), settings.get("endpoint")
    named = [*(models if isinstance(models, dict) else ())]
    named += endpoint[1:] if isinstance(endpoint, list) else []
    return {name for name in named if isinstance(name, str)}


def _counting(lines: Sequence[Any]) -> Iterator[tuple[Any, tuple[str, Key] | None]]:
    """The lines that count, with whose they are; None for one that cannot be read."""
    keys: list[tuple[str, Key] | None] = []
    for line in lines:
        try:
            row = read_line(line).row
            keys.append((row.policy, (row.task, row.index, row.attempt)))
        except ValueError:
            keys.append(None)
    last = {key: at for at, key in enumerate(keys)}
    for at, (line, key) in enumerate(zip(lines, keys, strict=True)):
        if key is None or last[key] == at or not line["row"]["error"]:
            yield line, key


def replay_line(
    line: Any, open_episode: OpenEpisode = Episode.open, talks: bool = False
) -> Replayed:
    """Play one line again.

    Args:
        line: as it stands in the file.
        open_episode: as in `rollouts.rollout`.
        talks: whether it must hold a conversation, as its policy is a language model.
    """
    try:
        read = read_line(line)
    except ValueError as error:
        return Replayed(line, FORGED, str(error), None)
    row = read.row
    if row.benchmark != BENCHMARK_VERSION:
        reason = f"played with benchmark {row.benchmark:.20}, this is {BENCHMARK_VERSION}"
        return Replayed(line, DRIFT, reason, None)
    try:
        episode = open_episode(row.task, row.split, row.index)
    except ValueError as error:
        return Replayed(line, FORGED, str(error), None)
    try:
        _play(read, episode)
        _compare(line["row"], episode)
        if line["messages"]:
            _talk(line, open_episode(row.task, row.split, row.index), episode)
        elif talks or row.prompt_tokens is not None:
            raise _Differs("a language model played, and its conversation was left out")
    except _Differs as difference:
        return Replayed(line, FORGED, str(difference), episode)
    finally:
        episode.leave()
    return Replayed(line, UNSCORED if row.closed_by == ERROR else MATCH, "", episode)


def _play(line: Line, episode: BaseEpisode) -> None:
    """Do what the line says was done, and look at what is shown; `_Differs` where it differs."""
    if render(episode.opening, episode.incident.topology) != line.opening:
        raise _Differs("the opening is that of another incident, or was changed")
    for number, step in enumerate(line.steps, start=1):
        if episode.done:
            raise _Differs(f"step {number} comes after the incident was closed")
        if step.action:
            observation = episode.act(Action.parse(step.action, step.value, step.confidence))
        else:
            observation = episode.refuse(step.value)
        if render(observation) != step.observation:
            raise _Differs(f"step {number}, {step.action or 'no action'}: another answer came")


def _talk(line: dict[str, Any], episode: BaseEpisode, played: BaseEpisode) -> None:
    """Say again what the agent said, on an episode of its own: `_Differs` unless the same answers
    come, and the steps are those that were `played`. A conversation that was changed is no
    less forged than a score.
    """
    messages = line["messages"]
    protocol = protocol_of(messages, line["opening"])
    if protocol is None:
        raise _Differs("the messages begin as no conversation about this incident does")
    session = ToolSession(episode)
    at, over = len(protocol.opening(line["opening"])), False
    while at < len(messages):
        if over or messages[at]["role"] != "assistant":
            raise _Differs(f"message {at + 1} comes where the agent's turn is, or after the end")
        told = protocol.answers(session, messages[at])
        if messages[at + 1 : at + 1 + len(told)] != told:
            raise _Differs(f"message {at + 1} brings other answers than stand below it")
        over = not told or episode.done
        at += 1 + len(told)
    if _done(episode) != _done(played):
        raise _Differs("the messages call for other steps than were done")


def _done(episode: BaseEpisode) -> list[tuple[str, ...]]:
    """What was done, confidences left out: a conversation holds none."""
    return [
        (step.action.type, *step.action.args) if step.action else ("", step.observation.error)
        for step in episode.history
    ]


def _compare(row: dict[str, Any], episode: BaseEpisode) -> None:
    """Raise `_Differs` unless the row tells what came of the episode here."""
    failed = row["closed_by"] == ERROR
    if failed != bool(row["error"]):
        raise _Differs("an episode has an error if that is what ended it, and else none")
    if not failed and not episode.done and row["closed_by"] == "timeout":
        episode.abandon()  # the agent walked away
    if not failed and not episode.done:
        raise _Differs(f"the incident is still open, told is that {row['closed_by']:.30} closed it")
    own = episode_row(episode, row["policy"], 0.0, failed)
    own["solved"] = None if failed else solved(final_score(episode))
    own["blamed"] = blamed(episode)
    if failed:  # it has no score, nor any part of one
        own |= {name: None for name in CONFIRMED if name not in (*OF_ERRORS, "closed_by")}
    for name in CONFIRMED:
        if name not in row:
            raise _Differs(f"the row has no {name}")
        told = row[name]
        if told != own[name] or isinstance(told, bool) != isinstance(own[name], bool):
            raise _Differs(f"{name} is {own[name]!r}, told is {told!r:.30}")
