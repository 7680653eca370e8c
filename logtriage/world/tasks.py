"""What may go wrong: the settings of a task, the three tasks, and the splits.

`dataclasses.replace(TASKS["single_crash"], noise=0.5)` is a custom task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .topology import Topology

SPLITS = {
    "train": "the training distribution",
    "test": "unseen incidents of the same kinds",
    "unseen_faults": "(service, fault) pairs that never occur in train",
    "unseen_wording": "log templates that never occur in train",
    "unseen_topology": "random call graphs of 5 to 30 services with other names",
}
SEVERITIES = ("P1", "P2", "P3")
MAX_INDEX = 2**53 - 1  # the largest integer that every JSON reader keeps
# Stamped into every result; raised by any change to an incident, an observation or a score.
BENCHMARK_VERSION = "2.0"

# Fewest steps to a full score, by number of faults: severity, cause, fix, page, end. A false alarm
# is classified and ignored.
PAR_STEPS = {0: 2, 1: 5}
MOST_TICKS = 200  # for any duration in a task: an incident is simulated from onset to last step
MOST_WEIGHT = 100.0  # for a kind of line; the others weigh about 1, so more would change nothing


@dataclass(frozen=True)
class Task:
    """The settings of a task; `ValueError` for a value out of its range. Ranges include both ends;
    draws are uniform, except for `intensity`.
    """

    name: str  # also of its random streams: two tasks of one name get the same draws
    max_steps: int  # length of an episode
    # Chance that a line of the opening is noise, and the weight of noise among a service's lines.
    noise: float
    lead: tuple[int, int]  # ticks between the onset of the fault and the arrival of the agent
    intensity: tuple[float, float]  # of the fault, 0 to 1; mild faults are more common
    ramp: tuple[int, int]  # ticks until that intensity is reached
    # Ticks after arrival during which the root prints nothing by itself; uniform over the values. A
    # root that is quiet at first never gets a row in the metrics table.
    quiet: tuple[int, ...]
    gaps: float = 0.3  # chance that a row of the metrics table is missing
    proof: float = 1.0  # weight of a line that proves the fault, among those the root prints
    hint: float = 0.6  # weight of a line that only narrows the remedy
    false_alarms: float = 0.0  # share of incidents without any fault
    # Share of faults that must become an outage (P1), while the rest must not; None: no such rule.
    outage: float | None = None
    below_edge: bool = False  # whether a service that calls the root must be degraded on arrival

    def __post_init__(self) -> None:
        for field, holds, rule in self._rules():
            if not holds:
                raise ValueError(f"{field} must be {rule}; got {vars(self)[field]!r:.60}")

    def _rules(self) -> Iterator[tuple[str, bool, str]]:
        """Yield each field, whether its value is valid, and the rule for it."""
        # The streams of an incident are named task/split/index/..., so a slash could mix them up.
        yield "name", self.name != "" and "/" not in self.name, "not empty and without '/'"
        least = PAR_STEPS[1] + 1  # the speed score needs a step between the fewest and the last
        enough = least <= self.max_steps <= MOST_TICKS
        yield "max_steps", enough, f"from {least} to {MOST_TICKS}"
        for field in ("noise", "gaps", "false_alarms"):
            yield field, 0 <= vars(self)[field] < 1, "at least 0 and below 1"
        for field in ("lead", "ramp"):
            low, high = vars(self)[field]
            rule = f"(lowest, highest), both from 1 to {MOST_TICKS}"
            yield field, 1 <= low <= high <= MOST_TICKS, rule
        mildest, hardest = self.intensity
        rule = "(lowest, highest), both from 0 to 1, the highest above 0"
        yield "intensity", 0 <= mildest <= hardest <= 1 and hardest > 0, rule
        silences = len(self.quiet) > 0 and 0 <= min(self.quiet) <= max(self.quiet) <= MOST_TICKS
        yield "quiet", silences, f"at least one number of ticks from 0 to {MOST_TICKS}"
        for field in ("proof", "hint"):
            yield field, 0 <= vars(self)[field] <= MOST_WEIGHT, f"from 0 to {MOST_WEIGHT:g}"
        yield "outage", self.outage is None or 0 <= self.outage <= 1, "from 0 to 1, or None"


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="single_crash",
            max_steps=8,
            noise=0.2,
            lead=(2, 4),
            intensity=(0.25, 1.0),
            ramp=(1, 1),
            quiet=(0,),
            gaps=0.2,
            hint=0.5,
        ),
        Task(
            name="cascading_failure",
            max_steps=12,
            noise=0.3,
            lead=(5, 7),
            intensity=(0.06, 1.0),
            ramp=(1, 2),
            quiet=(0, 0, 3, 4, 5),
            outage=0.7,
            below_edge=True,
        ),
        Task(
            name="silent_degradation",
            max_steps=15,
            noise=0.6,
            lead=(4, 8),
            intensity=(0.03, 0.8),
            ramp=(10, 16),
            quiet=(0, 2, 4),
            proof=0.4,
            false_alarms=0.2,
            outage=0.0,
        ),
    )
}


def check_task(task: str | Task) -> Task:
    """Return the task of that name, or a custom `Task` itself; `ValueError` for an unknown name."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, str) or task not in TASKS:
        raise ValueError(f"unknown task {task!r:.60}; choose one of {', '.join(TASKS)}")
    return TASKS[task]


def check_tasks(names: Sequence[str]) -> list[str]:
    """Return the names without repeats, with `all` expanded; `ValueError` for an unknown name."""
    for name in names:
        if name not in (*TASKS, "all"):
            raise ValueError(f"unknown task {name!r}; choose one of {', '.join(TASKS)}, or all")
    return list(TASKS) if "all" in names else list(dict.fromkeys(names))


def splits_on(topology: Topology | None) -> list[str]:
    """Return the splits that can be played on a custom call graph; all of them for None."""
    return [split for split in SPLITS if topology is None or split != "unseen_topology"]


def check_split(split: str, topology: Topology | None = None) -> None:
    """Raise `ValueError` for an unknown split, or one that cannot be played on a custom graph."""
    known = splits_on(topology)
    if split not in known:
        way_out = f"choose one of {', '.join(known)}"
        if split == "unseen_topology":
            own = "split unseen_topology draws its own call graphs"
            raise ValueError(f"{own}; {way_out}, or leave out the topology")
        raise ValueError(f"unknown split {split!r:.60}; {way_out}")


def check_index(index: int, last: int = MAX_INDEX) -> None:
    """Raise `ValueError` unless it is an integer from 0 to `last`."""
    whole = isinstance(index, int) and not isinstance(index, bool)
    if not whole or not 0 <= index <= last:
        raise ValueError(f"index must be an integer >= 0 and <= {last}, got {index!r:.60}")
