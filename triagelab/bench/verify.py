"""Confirm files of trajectories (see `bench.journal`) by playing them again.

An incident is a pure function of its coordinates, and a score of the incident and the actions, so
every line can be confirmed without the agent that wrote it. A conversation must make the same calls
and get the same answers. docs/evaluating.md has the verdicts, and what cannot be confirmed.
"""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from logtriage.catalogue import SUITES, suite_places
from logtriage.play.actions import Action
from logtriage.play.conversation import protocol_of
from logtriage.play.episode import BaseEpisode, Episode, OpenEpisode
from logtriage.play.observation import render
from logtriage.play.tools import ToolSession
from logtriage.policies.policy import Played
from logtriage.world.tasks import BENCHMARK_VERSION

from ..language_models.path_names import incident_names
from .journal import key_of, read_trajectories
from .rollouts import OF_THE_SCORE, Key, result_row

MATCH, DRIFT, MISMATCH, UNSCORED, MISSING = ("MATCH", "DRIFT", "MISMATCH", "UNSCORED", "MISSING")
# Columns of a row that follow from the actions.
CONFIRMED = (*OF_THE_SCORE, "steps", "closed_by", "confidence", "solved", "blamed")
MOST_PLANNED = 1_000_000  # in a larger plan, missing episodes are not looked for


class Checked(NamedTuple):
    """A line that was played again, or an episode that is missing from the file."""

    where: tuple[str, Key]  # the policy, and which of its episodes
    verdict: str  # one of the five above
    reason: str = ""  # what differs
    row: dict[str, Any] | None = None  # as it stands in the file; None if it is missing


class _DiffersError(Exception):
    """The file says something that playing it does not confirm; the message says what."""


def verify(path: Path, open_episode: OpenEpisode = Episode.open) -> list[Checked]:
    """Play every episode of a file again. If an episode has several lines, the last one counts. An
    earlier line must have ended in an error, else it is `MISMATCH`.
    """
    settings, lines, _ = read_trajectories(path)
    checks: list[Checked] = []
    seen: set[tuple[str, Key]] = set()
    for line in reversed(lines):
        check = verify_line(line, open_episode, settings)
        if check.where in seen:
            if line["row"]["error"]:
                continue
            check = check._replace(verdict=MISMATCH, reason="this episode is in the file twice")
        seen.add(check.where)
        checks.append(check)
    missing = (Checked(where, MISSING, "no line holds it") for where in _missing(seen))
    return [*reversed(checks), *missing]


def _missing(seen: set[tuple[str, Key]]) -> list[tuple[str, Key]]:
    """The episodes that are missing from the plan that the file implies: every policy plays the
    same plan, a suite or one range of indices for every task.
    """
    if not seen:
        return []
    policies, keys = zip(*seen, strict=True)
    tasks, indices, attempts = (sorted(set(values)) for values in zip(*keys, strict=True))
    first, end, most = indices[0], indices[-1] + 1, attempts[-1] + 1
    if len({*policies}) * len(tasks) * (end - first) * most > MOST_PLANNED:
        return []  # too many: an index or attempt may be any number
    played = {(task, index) for task, index, _ in keys}
    plans = [{*product(tasks, range(first, end))}, *({*suite_places(name)} for name in SUITES)]
    places = min((plan for plan in plans if played <= plan), key=len)  # a suite has gaps
    episodes = [(*place, attempt) for place in sorted(places) for attempt in range(most)]
    planned = product(sorted({*policies}), episodes)
    return [where for where in planned if where not in seen]


def verify_line(
    line: dict[str, Any], open_episode: OpenEpisode, settings: dict[str, Any]
) -> Checked:
    """Play one line again; the header's `settings` say which policies need conversations."""
    row, where = line["row"], key_of(line["row"])
    if row["benchmark"] != BENCHMARK_VERSION:
        reason = f"played with benchmark {row['benchmark']:.20}, this is {BENCHMARK_VERSION}"
        return Checked(where, DRIFT, reason, row)
    coordinates = row["task"], row["split"], row["index"]
    try:
        episode = open_episode(*coordinates)
    except ValueError as error:
        return Checked(where, MISMATCH, str(error), row)
    try:
        converses = _check_header(row, settings)
        _play(line, episode)
        _compare(row, episode)
        if line["messages"]:
            _converse(line, open_episode(*coordinates), episode)
        elif converses or row["prompt_tokens"] is not None:
            raise _DiffersError("a language model played, and its conversation was left out")
    except _DiffersError as difference:
        return Checked(where, MISMATCH, str(difference), row)
    finally:
        episode.leave()
    return Checked(where, UNSCORED if row["error"] else MATCH, "", row)


def _check_header(row: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Check a row against the header; return whether its policy is a language model."""
    for name in ("split", "benchmark"):
        if settings.get(name, row[name]) != row[name]:
            raise _DiffersError(f"the header says {name} {settings[name]!r:.30}, the row another")
    policies = settings.get("policies")
    if not isinstance(policies, dict):
        return False
    if row["policy"] not in policies:
        raise _DiffersError(f"the header names no policy {row['policy']!r:.60}")
    own = policies[row["policy"]]
    return isinstance(own, dict) and "weights" in own


def _play(line: dict[str, Any], episode: BaseEpisode) -> None:
    """Take the line's actions in the episode; check that it shows the same."""
    if render(episode.opening, episode.incident.topology) != line["opening"]:
        raise _DiffersError("the opening is that of another incident, or was changed")
    for number, step in enumerate(line["steps"], start=1):
        if episode.done:
            raise _DiffersError(f"step {number} comes after the incident was closed")
        if step["action"]:
            answer = episode.act(Action.parse(step["action"], step["value"], step["confidence"]))
        else:
            answer = episode.refuse(step["value"])
        if render(answer) != step["observation"]:
            raise _DiffersError(f"step {number} brings another answer")


def _compare(row: dict[str, Any], episode: BaseEpisode) -> None:
    """Check that the row agrees with the episode."""
    if not row["error"]:
        episode.abandon()  # if it is still open, the agent walked away
    own = result_row(Played(episode, 0.0, row["error"]), row["policy"])
    for name in CONFIRMED:
        if row.get(name, ...) != own[name]:
            raise _DiffersError(f"{name} is {own[name]!r}, the row says {row.get(name)!r:.30}")


def _converse(line: dict[str, Any], episode: BaseEpisode, played: BaseEpisode) -> None:
    """Repeat what the agent said in a second episode. Check that it gets the same answers, and that
    its steps are those of the `played` episode.
    """
    # Services go by their real names, or by those that the embedded agent uses.
    for names in (None, incident_names):
        session = ToolSession(episode, names)
        protocol = protocol_of(line["messages"], session.opening)
        if protocol is not None:
            break
    else:
        raise _DiffersError("the messages begin as no conversation about this incident does")
    left, over = line["messages"][len(protocol.opening(session.opening)) :], False
    while left:
        if over or left[0].get("role") != "assistant":
            raise _DiffersError("a message comes where the agent's turn is, or after the end")
        try:
            answers = protocol.answers(session, left[0])
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise _DiffersError(f"a message could not be read: {error!r:.60}") from None
        if left[1 : 1 + len(answers)] != answers:
            raise _DiffersError("a message brings other answers than stand below it")
        over = not answers or episode.done
        left = left[1 + len(answers) :]
    said, done = (
        # without confidences: a conversation holds none
        [
            (action.type, *action.args) if action else observation.error
            for action, observation in side.history
        ]
        for side in (episode, played)
    )
    if said != done:
        raise _DiffersError("the messages call for other steps than were done")
