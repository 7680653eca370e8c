"""Difficulty as a dial: the settings of a task that a researcher sweeps, and how each policy's
score answers.

Incidents of the same index share their random streams along a dial, so curves differ by the dial
and less by luck; `services` draws another call graph for each value, and `lag` decides anew which
incidents shout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..world.tasks import TASKS, Task
from .registry import make_policy
from .rollouts import rollout

# Dial -> values, easy first. `quiet` is the evidence delay in ticks; `services` makes every call
# graph random.
DIALS: dict[str, tuple[Any, ...]] = {
    "noise": (0.0, 0.2, 0.4, 0.6, 0.8),
    "gaps": (0.0, 0.2, 0.4, 0.6, 0.8),
    "quiet": (0, 2, 4, 6, 8),
    "decoys": (0, 1, 2, 4, 6),
    "services": (5, 10, 15, 20, 30),
    "lag": (1, 2, 3, 4, 5),
}


def dialled(task: str, dial: str, value: Any) -> Task:
    """A preset task with one dial turned.

    Raises:
        ValueError: for an unknown task or dial, or a value out of range; the message names what is
            valid.
    """
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; choose one of {', '.join(TASKS)}")
    if dial not in DIALS:
        raise ValueError(f"unknown dial {dial!r}; choose one of {', '.join(DIALS)}")
    change: dict[str, Any] = {dial: (value,) if dial == "quiet" else value}
    return replace(TASKS[task], **change)


def sweep(
    task: str = "cascading_failure",
    policies: Sequence[str] = ("loudest", "trace", "belief"),
    dials: Mapping[str, Sequence[Any]] = DIALS,
    incidents: int = 200,
    split: str = "test",
    processes: int = 2,
) -> pd.DataFrame:
    """Rollouts of every policy at every value of every dial.

    Returns:
        Rollout rows with the columns `dial` and `value` in front.
    """
    from joblib import Parallel, delayed

    jobs = [
        (policy, dial, value)
        for policy in policies
        for dial, values in dials.items()
        for value in values
    ]
    jobs.sort(key=lambda job: job[0] != "belief")  # the slow one first

    def play(policy: str, dial: str, value: Any) -> pd.DataFrame:
        rows = rollout(
            make_policy(policy), [dialled(task, dial, value)], split, incidents, progress=False
        )
        rows.insert(0, "dial", dial)
        rows.insert(1, "value", value)
        return rows.drop(columns="seconds")

    return pd.concat(
        Parallel(n_jobs=processes)(delayed(play)(*job) for job in jobs), ignore_index=True
    )
