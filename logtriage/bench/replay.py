"""Replay a file of trajectories: are its scores those of the actions in it?

An incident is a pure function of its coordinates, and a score one of incident and actions. So every
line of `evaluate --trajectories` can be confirmed without the agent that wrote it:

| verdict | meaning |
|---|---|
| MATCH | the same actions on that incident bring the same text and, to the bit, the same score |
| DRIFT | it was played with another version of the benchmark, of which nothing is known here |
| FORGED | something differs: an action, a text, a message's call, a part of the score, the header |
| UNSCORED | it ended in an error, as the file says, and has no score; its actions are as it says |
| MISSING | other episodes show that it was planned, and it is not in the file |

A conversation is replayed too: what the agent wrote must make these calls and bring these answers.
Words beside the calls, tokens and seconds cannot be confirmed. Replay proves the arithmetic; it
cannot prove who chose the actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ..play.actions import Action
from ..play.episode import BaseEpisode, Episode, OpenEpisode
from ..play.observation import render
from ..play.tools import ToolSession
from ..policies.llm.text_protocol import protocol_of
from ..world.tasks import BENCHMARK_VERSION
from .episode_log import Line, key_of, parse_line, read_trajectories
from .rollouts import ERROR, OF_THE_SCORE, Key, Row, result_row

MATCH, DRIFT, FORGED, UNSCORED, MISSING = ("MATCH", "DRIFT", "FORGED", "UNSCORED", "MISSING")
# Columns of a row that follow from the actions.
CONFIRMED = (*OF_THE_SCORE, "steps", "closed_by", "confidence", "solved", "blamed")
MOST_PLANNED = 1_000_000  # episodes among which missing ones are looked for


class Replayed(NamedTuple):
    """A line that was replayed, or an episode that no line holds.

    Attributes:
        where: policy and `Key`; None where the line does not even say that.
        verdict: one of the five above.
        reason: what differs.
        row: as it stands in the file; None where it cannot be read, or is missing.
        episode: as it was played here; None where it could not be.
    """

    where: tuple[str, Key] | None
    verdict: str
    reason: str = ""
    row: dict[str, Any] | None = None
    episode: BaseEpisode | None = None


class _DiffersError(Exception):
    """The file says something that does not happen here; the message says what."""


def replay(path: Path, open_episode: OpenEpisode = Episode.open) -> Iterator[Replayed]:
    """Play every episode of a file again.

    Of an episode that ended in an error and was played again later, only the later one counts; two
    with a score are one too many.

    Raises:
        ValueError: as `read_trajectories`.
    """
    settings, lines, _ = read_trajectories(path)
    wheres = [_where(line) for line in lines]
    last = {where: number for number, where in enumerate(wheres)}
    seen: set[tuple[str, Key]] = set()
    for number, (line, where) in enumerate(zip(lines, wheres, strict=True)):
        if where is not None and last[where] != number and line["row"]["error"]:
            continue
        replayed = replay_line(line, open_episode, settings)
        if where in seen and replayed.verdict != FORGED:
            replayed = replayed._replace(verdict=FORGED, reason="this episode is in the file twice")
        if where is not None:
            seen.add(where)
        yield replayed
    yield from (Replayed(where, MISSING, "no line holds it") for where in _missing(seen))


def _where(line: Any) -> tuple[str, Key] | None:
    """Which episode a line is; None for one that cannot be read."""
    try:
        parse_line(line)
    except ValueError:
        return None
    return key_of(line["row"])


def _missing(seen: set[tuple[str, Key]]) -> list[tuple[str, Key]]:
    """Episodes between those that are there: every policy plays the same plan, and it has the same
    indices for every task.
    """
    if not seen:
        return []
    policies = {policy for policy, _ in seen}
    tasks, indices, attempts = (set(found) for found in zip(*(key for _, key in seen), strict=True))
    span, most = range(min(indices), max(indices) + 1), max(attempts) + 1
    if len(policies) * len(tasks) * len(span) * most > MOST_PLANNED:
        return []  # an index or an attempt may be any number
    planned = product(sorted(policies), product(sorted(tasks), span, range(most)))
    return [where for where in planned if where not in seen]


def replay_line(
    line: Any, open_episode: OpenEpisode = Episode.open, settings: dict[str, Any] | None = None
) -> Replayed:
    """Play one line again.

    Args:
        line: as it stands in the file.
        open_episode: as in `rollouts.rollout_each`.
        settings: of the file's header; they say whose conversations must be there.
    """
    try:
        read = parse_line(line)
    except ValueError as error:
        return Replayed(None, FORGED, str(error))
    row, where = line["row"], key_of(line["row"])
    if read.row.benchmark != BENCHMARK_VERSION:
        reason = f"played with benchmark {read.row.benchmark:.20}, this is {BENCHMARK_VERSION}"
        return Replayed(where, DRIFT, reason, row)
    try:
        episode = open_episode(read.row.task, read.row.split, read.row.index)
    except ValueError as error:
        return Replayed(where, FORGED, str(error), row)
    try:
        converses = _check_header(read.row, settings or {})
        _play(read, episode)
        _compare(row, episode)
        if line["messages"]:
            _converse(line, open_episode(read.row.task, read.row.split, read.row.index), episode)
        elif converses or read.row.prompt_tokens is not None:
            raise _DiffersError("a language model played, and its conversation was left out")
    except _DiffersError as difference:
        return Replayed(where, FORGED, str(difference), row, episode)
    finally:
        episode.leave()
    return Replayed(where, UNSCORED if row["closed_by"] == ERROR else MATCH, "", row, episode)


def _check_header(row: Row, settings: dict[str, Any]) -> bool:
    """Whether the row's policy is a language model; `_DiffersError` where the header contradicts
    the row.
    """
    for name, own in (("split", row.split), ("benchmark", row.benchmark)):
        if settings.get(name, own) != own:
            raise _DiffersError(
                f"the header says {name} {settings[name]!r:.30}, the row {own!r:.30}"
            )
    policies = settings.get("policies")
    if not isinstance(policies, dict):
        return False
    if row.policy not in policies:
        raise _DiffersError(f"the header names no policy {row.policy!r:.60}")
    own = policies[row.policy]
    return isinstance(own, dict) and "weights" in own


def _play(line: Line, episode: BaseEpisode) -> None:
    """Do what the line says was done; `_DiffersError` where something else is shown."""
    if render(episode.opening, episode.incident.topology) != line.opening:
        raise _DiffersError("the opening is that of another incident, or was changed")
    for number, step in enumerate(line.steps, start=1):
        if episode.done:
            raise _DiffersError(f"step {number} comes after the incident was closed")
        if step.action:
            observation = episode.act(Action.parse(step.action, step.value, step.confidence))
        else:
            observation = episode.refuse(step.value)
        if render(observation) != step.observation:
            raise _DiffersError(f"step {number}, {step.action or 'no action'}: another answer came")


def _converse(line: dict[str, Any], episode: BaseEpisode, played: BaseEpisode) -> None:
    """Say again what the agent said, in a second episode: `_DiffersError` unless the same answers
    come, and the steps are those of the one that was `played`.
    """
    messages = line["messages"]
    protocol = protocol_of(messages, line["opening"])
    if protocol is None:
        raise _DiffersError("the messages begin as no conversation about this incident does")
    session = ToolSession(episode)
    at, over = len(protocol.opening(line["opening"])), False
    while at < len(messages):
        if over or messages[at]["role"] != "assistant":
            raise _DiffersError(
                f"message {at + 1} comes where the agent's turn is, or after the end"
            )
        answers = protocol.answers(session, messages[at])
        if messages[at + 1 : at + 1 + len(answers)] != answers:
            raise _DiffersError(f"message {at + 1} brings other answers than stand below it")
        over = not answers or episode.done
        at += 1 + len(answers)
    if _done(episode) != _done(played):
        raise _DiffersError("the messages call for other steps than were done")


def _done(episode: BaseEpisode) -> list[tuple[str, ...]]:
    """What was done, without confidences: a conversation holds none."""
    return [
        (action.type, *action.args) if action else ("", observation.error)
        for action, observation in episode.history
    ]


def _compare(row: dict[str, Any], episode: BaseEpisode) -> None:
    """Raise `_DiffersError` unless the row says what came of the episode here."""
    failed = row["closed_by"] == ERROR
    if failed != bool(row["error"]):
        raise _DiffersError("an episode has an error if that is what ended it, and else none")
    if not failed and not episode.done and row["closed_by"] == "timeout":
        episode.abandon()  # the agent walked away
    if not failed and not episode.done:
        raise _DiffersError(
            f"the incident is still open, and the row says that {row['closed_by']:.30} closed it"
        )
    own = result_row(episode, row["policy"], error=row["error"])
    for name in CONFIRMED:
        if row[name] != own[name] or isinstance(row[name], bool) != isinstance(own[name], bool):
            raise _DiffersError(f"{name} is {own[name]!r}, the row says {row[name]!r:.30}")
