"""The hours of a session with a GPU that is only borrowed, and what fits them.

    budget = Budget(2.5)
    ...  # two steps of training, then the play before it, for `budget.for_evaluation()` hours
    print(budget.plan(run))  # what fits the hours that are left

A session counts its own hours: a run that is continued in another one has a new budget there.
"""

import math
import time
from pathlib import Path

import pandas as pd

from ..bench.runs import last_step, record_of
from .experiment import incidents_played, incidents_told

# Judgements, all on the side of ending early.
EVALUATED = 0.2  # share of the hours left that the play before training may take
AGAIN, LOADING = 1.25, 0.05  # times as long as that is the play after it; hours to load for it
FINISH = 0.1  # hours for figures, card and a first log to triage


class Budget:
    """The hours of a session, from when this is made. All that takes long gets a part of them, and
    stops by itself: no step and no batch is begun that would not end in time.
    """

    def __init__(self, hours: float) -> None:
        if not 0 < hours < math.inf:
            raise ValueError(f"budget_hours must be above 0, got {hours}; a free session has 2.5")
        self.hours, self._began = hours, time.perf_counter()

    def left(self) -> float:
        """Hours until figures and card have to be made."""
        gone = (time.perf_counter() - self._began) / 3600
        return round(max(0.0, self.hours - gone - FINISH), 3)

    def for_evaluation(self) -> float:
        """Hours for the play before training."""
        return round(EVALUATED * self.left(), 3)

    def for_training(self, run: Path) -> float:
        """Hours for training: what the same play after it leaves."""
        frame = pd.read_parquet(run / "evaluation.parquet")
        base = frame[(frame["policy"] == "base") & (frame["split"] == "test")]
        played = base[base["index"] < incidents_played(run)]["seconds"].sum() / 3600
        return round(max(0.0, self.left() - AGAIN * played - LOADING), 3)

    def plan(self, run: Path) -> str:
        """A sentence: how many steps and incidents fit, by what was measured."""
        last, steps = last_step(run), record_of(run)["settings"]["steps"]
        seconds, hours = last["seconds"] / last["step"], self.for_training(run)
        fit = min(steps, last["step"] + int(3600 * hours / seconds))
        return (
            f"Of {self.hours:g} hours {self.left() + FINISH:.2f} are left: at {seconds:.0f} s a"
            f" step {fit} of {steps} steps fit, and {incidents_played(run)} incidents of each task"
            " before and after them."
        )


def outcome(run: Path, evaluation: pd.DataFrame) -> str:
    """A sentence: how many steps and incidents a run's results are of."""
    last, steps = last_step(run)["step"], record_of(run)["settings"]["steps"]
    return f"After {last} of {steps} steps, on {incidents_told(evaluation)} incidents of each task."
