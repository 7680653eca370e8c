"""Which incidents are played: those of a run in their order, with or without its false alarms, and
those that are played again because there is more to learn from them.

An incident of which a group gets all or nothing teaches nothing: advantages are differences. Half
of each step's incidents are replaced by those of earlier steps whose scores lay furthest apart when
they were last played (after Foster and Foerster 2025, "Learning to reason at the frontier of
learnability"). A step plays no more than without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import pvariance
from typing import Any

from ..play.prompts import SYSTEM_PROMPT
from ..world.incidents import sample_incident
from ..world.tasks import check_task
from .drills import open_varied
from .settings import TrainingConfig


def incident_rows(config: TrainingConfig) -> list[dict[str, Any]]:
    """The run's dataset: a row an incident, in the order of training; every incident is in one of
    them only.

    Raises:
        ValueError: where there are too few without false alarms, and these are to be left out.
    """
    random = Random(f"training/{config.seed}")
    tasks, weights = list(config.shares), list(config.shares.values())
    # TRL appends what `TriageTools.reset` returns, the opening, to the last message.
    prompt = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": ""}]
    count = config.steps * config.incidents
    first = config.seed * count
    if config.deal == "in_turn":
        dealt = [tasks[i % len(tasks)] for i in range(count)]
    else:
        dealt = [random.choices(tasks, weights)[0] for _ in range(count)]
    indices = list(range(first, first + count))
    if not config.false_alarms:
        indices = with_faults(dealt, indices, config.varied)
    return [
        {"prompt": prompt, "task": task, "split": "train", "index": index}
        for task, index in zip(dealt, indices, strict=True)
    ]


def with_replays(rows: list[dict[str, Any]], group: int, played: Path) -> list[dict[str, Any]]:
    """The rows of a step, of which the last half are replaced by incidents to be played again, or
    as many as there are.

    Args:
        rows: of `incident_rows`, each `group` times in a row.
        group: episodes of an incident.
        played: the run's `episodes.jsonl`, up to the step before; it may be missing.
    """
    incidents = rows[::group]
    again = most_learnable(played, len(incidents) // 2)
    kept = incidents[: len(incidents) - len(again)]
    # Only these columns say which incident it is.
    replays = [{**rows[0], "task": task, "index": index} for task, index in again]
    return [row for row in (*kept, *replays) for _ in range(group)]


def most_learnable(played: Path, count: int) -> list[tuple[str, int]]:
    """The incidents, at most `count`, whose scores lay furthest apart when they were last played,
    as (task, index); none whose scores were all equal.
    """
    last: dict[tuple[str, int], tuple[int, list[float]]] = {}
    for line in played.read_text().splitlines() if played.exists() else ():
        row = json.loads(line)
        incident, step = (row["task"], row["index"]), row["step"]
        if incident not in last or last[incident][0] != step:
            last[incident] = step, []
        last[incident][1].append(row["score"])
    spread = {incident: pvariance(scores) for incident, (_, scores) in last.items()}
    # Of equals, those first played first.
    best = sorted(spread, key=lambda incident: -spread[incident])[:count]
    return [incident for incident in best if spread[incident] > 0.0]


def with_faults(dealt: Sequence[str], indices: Sequence[int], varied: bool) -> list[int]:
    """The indices, but for false alarms: in the place of each, one at which the same task has a
    fault. It is of these indices, too, where another task is dealt.

    Raises:
        ValueError: when too many are dealt to one task for that.
    """

    def has_fault(task: str, index: int) -> bool:
        if varied:
            return open_varied(task, "train", index).incident.injection is not None
        return sample_incident(task, "train", index).injection is not None

    played = set(zip(dealt, indices, strict=True))

    def spare_of(task: str) -> Iterator[int]:
        return (i for i in indices if (task, i) not in played and has_fault(task, i))

    spare = {task: spare_of(task) for task in dict.fromkeys(dealt)}
    found = []
    for task, index in zip(dealt, indices, strict=True):
        if check_task(task).false_alarms and not has_fault(task, index):
            index = next(spare[task], -1)
            if index < 0:
                raise ValueError(
                    f"{dealt.count(task)} of {len(indices)} incidents are to be {task} without "
                    "false alarms, of which there are not so many; lower its share, or set "
                    "false_alarms to True"
                )
        found.append(index)
    return found
