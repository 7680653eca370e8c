"""Episodes in a file of JSON lines, written as they end, and never played twice.

The first line is the header: the settings that make the rows comparable. Every other line is an
episode, with all that was done and seen, so the file is also what `replay` confirms. Nothing of the
incident's truth is in it but what the score shows at the end.

A line is on disk (fsync) before the next episode counts, and a last line that a killed process left
half-written is dropped. A lock keeps a second process from writing the same file.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from ..play.observation import render
from ..world.tasks import BENCHMARK_VERSION
from .rollouts import Key, Result
from .runs import differing, locked, write_text

MOST_STEPS = 1_000  # of a line; no incident is as long


class Header(BaseModel):
    """The first line of a file."""

    logtriage: Literal["trajectories"]
    format: Literal[1]
    settings: dict[str, Any]


class RowLine(BaseModel, extra="allow", allow_inf_nan=False):
    """Of a row (`rollouts.COLUMNS`) what is used before it is compared; nothing in it is nested."""

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
    """An action and the text that it brought; without an action, `value` says why."""

    action: str
    value: str
    confidence: float | None
    observation: str


class Line(BaseModel, extra="forbid"):
    """A line of a file: only its shape; `replay` finds out whether what it says is so. The opening
    is what the agent read first.
    """

    row: RowLine
    opening: str
    steps: list[StepLine] = Field(max_length=MOST_STEPS)
    messages: list[dict[str, Any]]


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong, and in which field."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ": ".join([*map(str, first["loc"]), first["msg"]])


def as_line(result: Result) -> dict[str, Any]:
    """A result as a line holds it."""
    episode = result.episode
    steps = [
        {
            "action": action.type if action else "",
            "value": action.value if action else observation.error,
            "confidence": action.confidence if action else None,
            "observation": render(observation),
        }
        for action, observation in episode.history
    ]
    # JSON has no nan.
    row = {name: None if value != value else value for name, value in result.row.items()}
    return {
        "row": row,
        "opening": render(episode.opening, episode.incident.topology),
        "steps": steps,
        "messages": list(result.messages),
    }


def key_of(row: dict[str, Any]) -> tuple[str, Key]:
    """The policy, and which of its episodes a row is."""
    return row["policy"], (row["task"], row["index"], row["attempt"])


def read_trajectories(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """What a file holds: its settings, its lines, and how many bytes are whole lines; `ValueError`
    for a file of something else, and for a line that is no `Line`, except a half-written last one.
    """
    whole, lines = 0, []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break  # of a process that was killed
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


class Journal(NamedTuple):
    """Rows that have a score, by policy and `Key`, and the open file that takes those to come."""

    rows: dict[tuple[str, Key], dict[str, Any]]
    file: BinaryIO

    def add(self, result: Result) -> None:
        """Write an episode; it is on disk when this returns."""
        self.file.write(json.dumps(as_line(result)).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def open_journal(path: Path, settings: dict[str, Any]) -> Iterator[Journal]:
    """The episodes of a file, and those to come. `settings` are what makes rows comparable; the
    version of the benchmark is added.

    Raises:
        ValueError: when another process writes the file, when its episodes were played with other
            settings, when a line is none, and as `read_trajectories`.
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
        os.truncate(path, whole)  # after a whole line
        rows = {key_of(line["row"]): line["row"] for line in lines if not line["row"]["error"]}
        with path.open("ab") as file:
            yield Journal(rows, file)
