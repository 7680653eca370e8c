"""Episodes on disk as they end, a line of JSON each: what is written here is never played again.

The first line says what makes the rows comparable. Whoever goes on must ask for the same; a last
line that a killed process left half-written is dropped. A line holds all that was done and seen, so
the file is what `replay` confirms, too:

| field | holds |
|---|---|
| row | a value for each column of `rollouts.COLUMNS` and `EXTRAS`, and of the audit if asked for |
| opening | what the agent read first |
| steps | action, value, confidence, and the text that it brought; of what was no action, why |
| messages | the conversation, where there was one |

Of the incident's truth there is nothing in it but what the score tells at the end.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ..play.prompts import render
from ..world.tasks import BENCHMARK_VERSION
from .line_file import read_line
from .rollouts import Key, Result

FORMAT = 1  # of these files
KIND = "trajectories"
BEGINS = json.dumps({"logtriage": KIND, "format": FORMAT})[:-1].encode()


def as_line(result: Result) -> dict[str, Any]:
    """A result as a line holds it; what is not a number is None."""
    episode, topology = result.episode, result.episode.incident.topology
    row = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in result.row.items()
    }
    steps = [
        {
            "action": step.action.type if step.action else "",
            "value": step.action.value if step.action else step.observation.error,
            "confidence": step.action.confidence if step.action else None,
            "observation": render(step.observation),
        }
        for step in episode.history
    ]
    opening = render(episode.opening, topology)
    messages = list(result.played.messages)
    return {"row": row, "opening": opening, "steps": steps, "messages": messages}


def key_of(row: dict[str, Any]) -> tuple[str, Key]:
    """The policy, and which of its episodes a row is."""
    return row["policy"], (row["task"], row["index"], row["attempt"])


def read_journal(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """What a file holds: its first line, the others, and how many bytes are whole lines.

    Of an episode that is in there twice, since it was played again after an error, the last counts.

    Raises:
        ValueError: for a file of something else, and for a line that cannot be read, but for the
            last.
    """
    whole, lines = 0, []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break  # of a process that was killed
            whole += len(line)
            try:
                lines.append(json.loads(line))
            except (ValueError, RecursionError):
                raise ValueError(
                    f"{path}, line {number}, is no JSON; mend it, or take the line out"
                ) from None
    if not lines:
        with path.open("rb") as file:
            _check_begun(path, file.read(len(BEGINS)))
        return {}, [], 0
    head = lines[0]
    if not (isinstance(head, dict) and head.get("logtriage") == KIND):
        raise _alien(path)
    if head.get("format") != FORMAT:
        raise ValueError(f"{path} is of format {head.get('format')!r:.20}, known is {FORMAT}")
    if not isinstance(head.get("settings"), dict):
        raise ValueError(f"{path}, line 1, tells no settings; it was changed, name another file")
    return head, lines[1:], whole


def _check_begun(path: Path, bytes_read: bytes) -> None:
    """Raise `ValueError` unless a file without a whole line is one of ours that was just begun:
    whatever else it is, it is somebody's.
    """
    if bytes_read != BEGINS[: len(bytes_read)]:
        raise _alien(path)


def _alien(path: Path) -> ValueError:
    return ValueError(f"{path} is no file of `evaluate --trajectories`; name another")


class Journal:
    """Episodes that were played, and the file in which those to come are written.

    Args:
        path: of the file; its folder is made.
        settings: what makes rows comparable; the version of the benchmark is added.
        resume: whether to go on with what is there.
        again: whether episodes that ended in an error are played again.

    Attributes:
        path: of the file.
        rows: of the episodes that are in there, by policy and `Key`.
        spent: tokens that all lines tell of, those of errors that were played again included.

    Raises:
        ValueError: when there are episodes and nobody resumes, when they were played with other
            settings, when a line is none, and as `read_journal`.
    """

    def __init__(
        self, path: Path, settings: dict[str, Any], resume: bool = False, again: bool = False
    ) -> None:
        self.path = path
        self.rows: dict[tuple[str, Key], dict[str, Any]] = {}
        self.spent = 0
        settings = {"benchmark": BENCHMARK_VERSION, **settings}
        path.parent.mkdir(parents=True, exist_ok=True)
        head, lines, whole = read_journal(path) if path.exists() else ({}, [], 0)
        if lines and not resume:
            raise ValueError(
                f"{path} holds {len(lines)} episodes; go on with them by --resume, or name another "
                "file by --trajectories"
            )
        if lines:
            _check_alike(path, head["settings"], settings)
            for number, line in enumerate(lines, start=2):
                try:
                    read_line(line)
                except ValueError as error:
                    raise ValueError(
                        f"{path}, line {number}, is {error}; mend it, or take the line out"
                    ) from None
                self._keep(line["row"])
            with path.open("r+b") as file:
                file.truncate(whole)
        else:
            head = {"logtriage": KIND, "format": FORMAT, "settings": settings}
            path.write_text(json.dumps(head) + "\n")
        if again:
            self.rows = {key: row for key, row in self.rows.items() if not row["error"]}

    def add(self, result: Result) -> dict[str, Any]:
        """Write an episode, and return its row as it is in there."""
        line = as_line(result)
        row: dict[str, Any] = line["row"]
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._keep(row)
        return row

    def _keep(self, row: dict[str, Any]) -> None:
        self.rows[key_of(row)] = row
        self.spent += (row["prompt_tokens"] or 0) + (row["completion_tokens"] or 0)

    def played(self, policy: str) -> set[Key]:
        """Which episodes of a policy are in there."""
        return {key for name, key in self.rows if name == policy}


def _check_alike(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise `ValueError` for settings that differ; it names them."""
    names = sorted({*before, *now})
    differ = [
        f"{name} ({before.get(name)!r:.60}, not {now.get(name)!r:.60})"
        for name in names
        if before.get(name) != now.get(name)
    ]
    if differ:
        raise ValueError(
            f"{path} was played with another {', '.join(differ)}; ask for the same, or name "
            "another file by --trajectories"
        )
