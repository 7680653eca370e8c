"""Where episodes are kept as they end, so that an evaluation that was interrupted goes on.

A `Journal` holds the rows that have a score, and writes further ones. There are two kinds:

- A file of trajectories (`open_journal`): JSON lines. The first is the header, with the settings
  that make the rows comparable. Every other line is an episode with all that was done and seen, and
  no more of the truth than the score shows; see `bench.verify`. Each line is on disk (fsync) before
  the next episode counts; a half-written last line is dropped.
- A Parquet file of rows (`open_table`), in which a run has its evaluations, without what was seen.

Either is locked against other processes.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
from pydantic import BaseModel, Field, ValidationError

from logtriage.play.episode import BaseEpisode
from logtriage.play.observation import render
from logtriage.policies.policy import Played
from logtriage.world.tasks import BENCHMARK_VERSION

from .registry import POLICIES, Player
from .rollouts import Key, Plan, Result, frame_of, result_row
from .runs import differing, locked, step_of, write_text

Rows: TypeAlias = dict[tuple[str, Key], dict[str, Any]]  # by policy and key
Place: TypeAlias = tuple[str, int]  # a task, and an index in a split
# Takes a closed incident and the seconds that it took.
Finish: TypeAlias = Callable[[BaseEpisode, float], None]

MOST_STEPS = 1_000  # in a line; no incident is as long


@dataclass
class Journal:
    """The rows that have a score, and what keeps a further episode."""

    rows: Rows
    add: Callable[[Result], None]


def key_of(row: dict[str, Any]) -> tuple[str, Key]:
    """The policy of a row, and the key of its episode."""
    return row["policy"], (row["task"], row["index"], row["attempt"])


# -- trajectories ----------------------------------------------------------------------------------


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
                advice = "fix it, or take the line out" if number > 1 else "name another"
                raise ValueError(
                    f"{path} is no file of `--trajectories`; line {number} is wrong: "
                    f"{_reason(error)}; {advice}"
                ) from None
    if not lines:
        raise ValueError(f"{path} is no file of `--trajectories`; name another")
    return lines[0]["settings"], lines[1:], whole


def _reason(error: Exception) -> str:
    """What is wrong with a line: the first error, with the field that it is in."""
    if not isinstance(error, ValidationError):
        return "no JSON"
    first = error.errors(include_url=False, include_input=False)[0]
    return ": ".join([*map(str, first["loc"]), first["msg"]])


@contextmanager
def open_journal(path: Path, settings: dict[str, Any]) -> Iterator[Journal]:
    """Open a file of trajectories, to read its rows and to add episodes. Settings include
    the benchmark's version. `ValueError` if another process writes the file, or settings differ.
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

            def add(result: Result) -> None:
                file.write(json.dumps(as_line(result)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

            yield Journal(rows, add)


@contextmanager
def open_mcp_journal(path: Path, split: str) -> Iterator[tuple[set[Place], Finish]]:
    """Open a file of trajectories for the command `mcp`: the incidents that are in it, and a
    function that adds a closed one.
    """
    with open_journal(path, {"split": split, "policies": {"mcp": {}}}) as journal:

        def finish(episode: BaseEpisode, seconds: float) -> None:
            journal.add(Result(result_row(Played(episode, seconds), "mcp"), episode, ()))

        yield {(task, index) for _, (task, index, _) in journal.rows}, finish


# -- the table of a run ----------------------------------------------------------------------------


@contextmanager
def open_table(path: Path, players: Sequence[Player], plan: Plan, every: int) -> Iterator[Journal]:
    """Open a Parquet file with the rows of these players that belong to the plan; it is written
    after every `every` further episodes, and at the end. Other rows stay in the file, unless
    another model of the same name made them. A script that has not played the whole plan starts
    again: its random numbers are one stream. `ValueError` if another process writes the file.
    """
    of_name, rows, others = {player.name: player for player in players}, Rows(), pd.DataFrame()
    with locked(path):
        if path.exists():
            frame = pd.read_parquet(path)
            keys = frame["policy"].map({name: player.key for name, player in of_name.items()})
            planned = (frame["split"] == plan.split) & frame["index"].isin(plan.indices)
            planned &= frame["key"] == keys
            rows = {key_of(row): row for row in frame[planned].to_dict("records")}
            others = frame[~planned & (keys.isna() | (frame["key"] == keys))]
        for name in POLICIES.keys() & of_name.keys():
            if any((name, key) not in rows for key in plan.keys):
                rows = {place: row for place, row in rows.items() if place[0] != name}
        before = len(rows)

        def write() -> None:
            played = {name: [rows[place] for place in rows if place[0] == name] for name in of_name}
            frames = [*(frame_of(part, plan.names) for part in played.values()), others]
            partial = path.with_name(path.name + ".partial")
            pd.concat([frame for frame in frames if len(frame)]).to_parquet(partial, index=False)
            partial.replace(path)

        def add(result: Result) -> None:
            row, player = result.row, of_name[result.row["policy"]]
            # of what was trained; empty for a script
            weights = player.settings.get("adapter") or player.settings.get("weights", "")
            row.update(weights=weights, key=player.key)
            if player.name.startswith("checkpoint-"):
                row["step"] = step_of(player.name)
            rows[key_of(row)] = row
            if len(rows) % every == 0:
                write()

        yield Journal(rows, add)
        if len(rows) > before:
            write()
