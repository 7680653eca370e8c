"""Files of trajectories: episodes in JSON lines, written as they end, and confirmed by replay.

The first line is the header, with the settings that make the rows comparable. Every other line is
an episode with all that was done and seen, and no more of the truth than the score shows. Each line
is on disk (fsync) before the next episode counts; a half-written last line is dropped.

An incident is a pure function of its coordinates, and a score of the incident and the actions, so
every line can be confirmed without the agent that wrote it. A conversation must make the same calls
and get the same answers. docs/evaluating.md has the verdicts, and what cannot be confirmed.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field, ValidationError

from logtriage.play.actions import Action
from logtriage.play.conversation import protocol_of
from logtriage.play.episode import BaseEpisode, Episode, OpenEpisode
from logtriage.play.observation import render
from logtriage.play.renaming import incident_names
from logtriage.play.tools import ToolSession
from logtriage.policies.policy import Played
from logtriage.world.tasks import BENCHMARK_VERSION

from .rollouts import OF_THE_SCORE, Key, Result, result_row
from .runs import differing, locked, write_text

Place: TypeAlias = tuple[str, int]  # a task, and an index in a split
# Takes a closed incident and the seconds that it took.
Finish: TypeAlias = Callable[[BaseEpisode, float], None]

MOST_STEPS = 1_000  # in a line; no incident is as long
MATCH, DRIFT, FORGED, UNSCORED, MISSING = ("MATCH", "DRIFT", "FORGED", "UNSCORED", "MISSING")
# Columns of a row that follow from the actions.
CONFIRMED = (*OF_THE_SCORE, "steps", "closed_by", "confidence", "solved", "blamed")
MOST_PLANNED = 1_000_000  # in a larger plan, missing episodes are not looked for

# -- the file ------------------------------------------------------------------------------------


class Header(BaseModel):
    """The first line of a file."""

    logtriage: Literal["trajectories"]
    format: Literal[1]
    settings: dict[str, Any]


class RowLine(BaseModel, extra="allow", allow_inf_nan=False):
    """The columns of a row (`rollouts.COLUMNS`) used before it is compared; nothing is nested."""

    __pydantic_extra__: dict[str, str | int | float | bool | None] = Field(init=False)

    task: str
    split: str
    index: int
    policy: str
    benchmark: str
    attempt: int
    error: str
    prompt_tokens: int | None = Field(ge=0)
    completion_tokens: int | None = Field(ge=0)


class StepLine(BaseModel, extra="forbid"):
    """An action and the text that it brought. Without an action, `value` is the error."""

    action: str
    value: str
    confidence: float | None
    observation: str


class Line(BaseModel, extra="forbid"):
    """The form of an episode's line; `opening` is what the agent read first."""

    row: RowLine
    opening: str
    steps: list[StepLine] = Field(max_length=MOST_STEPS)
    messages: list[dict[str, Any]]


def first_fault(error: ValidationError) -> str:
    """The first error, with the field that it is in."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ": ".join([*map(str, first["loc"]), first["msg"]])


def as_line(result: Result) -> dict[str, Any]:
    """A result as the object of its line."""
    episode = result.episode
    return {
        # JSON has no nan.
        "row": {name: None if value != value else value for name, value in result.row.items()},
        "opening": render(episode.opening, episode.incident.topology),
        "steps": [
            {
                "action": action.type if action else "",
                "value": action.value if action else observation.error,
                "confidence": action.confidence if action else None,
                "observation": render(observation),
            }
            for action, observation in episode.history
        ],
        "messages": list(result.messages),
    }


def key_of(row: dict[str, Any]) -> tuple[str, Key]:
    """The policy of a row, and the key of its episode."""
    return row["policy"], (row["task"], row["index"], row["attempt"])


def read_trajectories(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Read a file: its settings, its lines, and how many bytes are whole lines. `ValueError` for a
    file of another kind or a line that is no `Line`; a half-written last line is skipped.
    """
    whole, lines = 0, []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break  # the process that wrote it was killed
            whole += len(line)
            try:
                lines.append(json.loads(line))
                (Line if number > 1 else Header).model_validate(lines[-1], strict=True)
            except (ValueError, RecursionError) as error:
                fault = first_fault(error) if isinstance(error, ValidationError) else "no JSON"
                raise ValueError(
                    f"{path} is no file of `--trajectories`; line {number} is wrong: "
                    f"{fault}; fix it, or take the line out"
                ) from None
    if not lines:
        raise ValueError(f"{path} is no file of `--trajectories`; name another")
    return lines[0]["settings"], lines[1:], whole


@dataclass
class Journal:
    """The rows that have a score, by policy and `Key`, and the open file for further episodes."""

    rows: dict[tuple[str, Key], dict[str, Any]]
    file: BinaryIO

    def add(self, result: Result) -> None:
        """Write an episode; it is on disk when this returns."""
        self.file.write(json.dumps(as_line(result)).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def open_journal(path: Path, settings: dict[str, Any]) -> Iterator[Journal]:
    """Open a file of trajectories, to read its rows and to add episodes. The benchmark's version
    joins the settings. `ValueError` if another process writes the file, or its settings differ.
    """
    settings = {"benchmark": BENCHMARK_VERSION, **settings}
    with locked(path):
        if not path.exists() or not path.stat().st_size:
            header = Header(logtriage="trajectories", format=1, settings=settings)
            write_text(path, header.model_dump_json() + "\n")
        before, lines, whole = read_trajectories(path)
        differ = [
            f"{name} ({before.get(name)!r:.60}, not {settings.get(name)!r:.60})"
            for name in differing(before, settings)
        ]
        if differ:
            raise ValueError(
                f"{path} was played with another {', '.join(differ)}; ask for the same, or name "
                "another file by --trajectories"
            )
        os.truncate(path, whole)  # drops a half-written line
        rows = {key_of(line["row"]): line["row"] for line in lines if not line["row"]["error"]}
        with path.open("ab") as file:
            yield Journal(rows, file)


@contextmanager
def open_mcp_journal(path: Path, split: str) -> Iterator[tuple[set[Place], Finish]]:
    """Open a file of trajectories for the command `mcp`: the incidents that are in it, and a
    function that adds a closed one.
    """
    with open_journal(path, {"split": split, "policies": {"mcp": {}}}) as journal:

        def finish(episode: BaseEpisode, seconds: float) -> None:
            journal.add(Result(result_row(Played(episode, seconds), "mcp"), episode, ()))

        yield {(task, index) for _, (task, index, _) in journal.rows}, finish


# -- replay --------------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """A line that was replayed, or an episode that is missing from the file."""

    where: tuple[str, Key]  # the policy, and which of its episodes
    verdict: str  # one of the five above
    reason: str = ""  # what differs
    row: dict[str, Any] | None = None  # as it stands in the file; None if it is missing
    episode: BaseEpisode | None = None  # as it was replayed; None if it was not


class _DiffersError(Exception):
    """The file says something that the replay does not confirm; the message says what."""


def replay(path: Path, open_episode: OpenEpisode = Episode.open) -> list[Replayed]:
    """Play every episode of a file again. If an episode has several lines, the last one counts. An
    earlier line must have ended in an error, else it is `FORGED`.
    """
    settings, lines, _ = read_trajectories(path)
    found: list[Replayed] = []
    seen: set[tuple[str, Key]] = set()
    for line in reversed(lines):
        one = replay_line(line, open_episode, settings)
        if one.where in seen:
            if line["row"]["error"]:
                continue
            one = one._replace(verdict=FORGED, reason="this episode is in the file twice")
        seen.add(one.where)
        found.append(one)
    missing = (Replayed(where, MISSING, "no line holds it") for where in _missing(seen))
    return [*reversed(found), *missing]


def _missing(seen: set[tuple[str, Key]]) -> list[tuple[str, Key]]:
    """The episodes that are missing from the plan that the file implies: every policy plays the
    same plan, which has the same range of indices for every task.
    """
    if not seen:
        return []
    policies, keys = zip(*seen, strict=True)
    tasks, indices, attempts = (sorted(set(found)) for found in zip(*keys, strict=True))
    first, end, most = indices[0], indices[-1] + 1, attempts[-1] + 1
    if len({*policies}) * len(tasks) * (end - first) * most > MOST_PLANNED:
        return []  # too many: an index or attempt may be any number
    planned = product(sorted({*policies}), product(tasks, range(first, end), range(most)))
    return [where for where in planned if where not in seen]


def replay_line(
    line: dict[str, Any], open_episode: OpenEpisode, settings: dict[str, Any]
) -> Replayed:
    """Play one line again; the header's `settings` say which policies need conversations."""
    row, where = line["row"], key_of(line["row"])
    if row["benchmark"] != BENCHMARK_VERSION:
        reason = f"played with benchmark {row['benchmark']:.20}, this is {BENCHMARK_VERSION}"
        return Replayed(where, DRIFT, reason, row)
    coordinates = row["task"], row["split"], row["index"]
    try:
        episode = open_episode(*coordinates)
    except ValueError as error:
        return Replayed(where, FORGED, str(error), row)
    try:
        converses = _check_header(row, settings)
        _play(line, episode)
        _compare(row, episode)
        if line["messages"]:
            _converse(line, open_episode(*coordinates), episode)
        elif converses or row["prompt_tokens"] is not None:
            raise _DiffersError("a language model played, and its conversation was left out")
    except _DiffersError as difference:
        return Replayed(where, FORGED, str(difference), row, episode)
    finally:
        episode.leave()
    return Replayed(where, UNSCORED if row["error"] else MATCH, "", row, episode)


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
            shown = episode.act(Action.parse(step["action"], step["value"], step["confidence"]))
        else:
            shown = episode.refuse(step["value"])
        if render(shown) != step["observation"]:
            raise _DiffersError(f"step {number} brings another answer")


def _compare(row: dict[str, Any], episode: BaseEpisode) -> None:
    """Check that the row agrees with the replayed episode."""
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
        [(action.type, *action.args) if action else shown.error for action, shown in one.history]
        for one in (episode, played)
    )
    if said != done:
        raise _DiffersError("the messages call for other steps than were done")
