"""What goes wrong: `sample_incident(task, split, index)`, an incident of a task (see `tasks`).

An incident is a pure function of its three coordinates, and of a custom call graph. Random streams
are named after them, so neighbouring indices share nothing and no split meets another's incidents.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import NamedTuple

from .call_graph import Service
from .cluster import Injection, State, is_degraded, severity_of, untreated_states, user_impact
from .faults import Fault, faults_at
from .tasks import Task, check_index, check_split, check_task
from .topology import DEFAULT_TOPOLOGY, Topology, random_topology

INTENSITY_DRAWS = 8  # tries at one fault in one place before another is drawn
# Draws of a fault and its place before a task is held to be impossible: 30,000 incidents of the
# four tasks in all splits needed 18 at most. Reached within a fraction of a second.
MOST_DRAWS = 300
HELD_OUT_PAIRS = 5  # one (service, fault) pair in five never occurs in train
# Setting of a task that no draw met to what can be done.
FIXES = {
    "below_edge": "raise intensity or lead, lower ramp, or set below_edge to False",
    "intensity": "widen the range of intensity, so that severities are clear of their boundaries",
    "outage": "change intensity, or set outage to None",
}


@dataclass(frozen=True)
class Incident:
    """One incident, frozen.

    `injections` are the faults, none for a false alarm; `severity` is that of the untreated world.

    `arrival` is the tick at which the agent is called; `quiet_until` the tick from which the root
    speaks by itself; `varied_wording` whether the logs use the templates that no split has (see
    `wording`).
    """

    task: Task
    split: str
    index: int
    topology: Topology
    injections: tuple[Injection, ...]
    severity: str
    arrival: int
    quiet_until: int
    untreated: list[State] = field(repr=False, compare=False)
    varied_wording: bool = False

    @property
    def task_name(self) -> str:
        """Name of the task."""
        return self.task.name

    @property
    def injection(self) -> Injection | None:
        """The fault, or the first of two; None for a false alarm."""
        return self.injections[0] if self.injections else None

    @property
    def root(self) -> str | None:
        """Name of the service at fault (of two faults, where the first is); None
        for a false alarm.
        """
        return None if self.injection is None else self.topology.names[self.injection.position]

    @property
    def remedy(self) -> str | None:
        """The one remedy that ends the fault."""
        return None if self.injection is None else self.injection.fault.remedy

    @property
    def team(self) -> str | None:
        """The one team to page."""
        if self.injection is None:
            return None
        return self.injection.fault.owner_at(self.topology.services[self.injection.position])

    def stream(self, name: str) -> Random:
        """A fresh random stream of this incident under `name`."""
        return Random(f"{self.task.name}/{self.split}/{self.index}/{name}")


def is_held_out(service: Service, fault: Fault) -> bool:
    """Whether the pair is kept out of train (by a checksum of its name, stable across processes and
    versions).
    """
    return zlib.crc32(f"{service.name}/{fault.name}".encode()) % HELD_OUT_PAIRS == 0


@lru_cache(maxsize=64)  # a call graph is asked for the same pairs at every incident
def candidate_pairs(
    topology: Topology, below_edge: bool, split: str
) -> dict[int, tuple[Fault, ...]]:
    """Root position to the faults that the split allows there, positions without any left out.

    `below_edge`: see `Task`. Treat as read-only.
    """
    pairs: dict[int, tuple[Fault, ...]] = {}
    for position, service in enumerate(topology.services):
        if below_edge and not any(service.name in caller.calls for caller in topology.services):
            continue  # nobody waits for it, so no other service degrades
        allowed = tuple(
            fault
            for fault in faults_at(service)
            if split == "unseen_topology"
            or is_held_out(service, fault) == (split == "unseen_faults")
        )
        if allowed:
            pairs[position] = allowed
    return pairs


def sample_incident(
    task: str | Task,
    split: str,
    index: int,
    topology: Topology | None = None,
    varied_wording: bool = False,
) -> Incident:
    """The incident at these coordinates: the same, to the last bit, whenever and wherever it is
    asked for.

    Args:
        task: a name of `ALL_TASKS`, or a custom `Task`; its random streams are those of its name.
        split, index: see `SPLITS`; index counts from 0.
        topology: a custom call graph in place of the default; which of its (service, fault) pairs
            are held out follows the same rule.
        varied_wording: whether to log in other words than the split's; only what is printed
            changes, and only in train, so that nothing is measured on it.

    Raises:
        ValueError: for an unknown task or split, an index out of range, a topology in a split that
            draws its own, or varied wording in another split than train; and when the task has no
            incident on the call graph, or none was found in `MOST_DRAWS` draws.
    """
    settings = check_task(task)
    check_split(split, topology)
    check_index(index)
    if varied_wording and split != "train":
        raise ValueError(f"varied wording is for training alone; choose split train, not {split}")
    random = Random(f"{settings.name}/{split}/{index}/incident")
    if topology is None:
        topology = random_topology(random) if split == "unseen_topology" else DEFAULT_TOPOLOGY
    pairs = _playable_pairs(settings, split, topology)

    # Every number drawn from `random` decides the ones after it: the order is the incident.
    if random.random() < settings.false_alarms:
        course = _false_alarm(random, settings, topology)
    else:
        course = _real_fault(random, settings, split, topology, pairs)
    assert course.severity is not None  # such a try is drawn again
    return Incident(
        settings,
        split,
        index,
        topology,
        course.injections,
        course.severity,
        course.arrival,
        course.quiet_until,
        course.states,
        varied_wording,
    )


class _Course(NamedTuple):
    """One try at an incident: when, how hard, and what becomes of it when nobody does anything."""

    arrival: int
    quiet_until: int
    injections: tuple[Injection, ...]
    states: list[State]
    severity: str | None  # None: too near a boundary to call


def _playable_pairs(task: Task, split: str, topology: Topology) -> dict[int, tuple[Fault, ...]]:
    """`candidate_pairs`, enough of them for the task's faults."""
    pairs = candidate_pairs(topology, task.below_edge, split)
    if len(pairs) >= task.faults:
        return pairs
    needed = "a service" if task.faults == 1 else f"{task.faults} services"
    where, ways = "", ["add services"]
    if task.below_edge:
        where = " that others wait for (below_edge=True),"
        ways = ["let services call more of the others", "choose a task without below_edge"]
    if split != "unseen_topology":
        ways.append("choose another split")
    raise ValueError(
        f"task {task.name} needs {needed}{where} with a fault that split {split} allows there, "
        f"and this call graph has {len(pairs)}; {', or '.join(ways)}"
    )


def _false_alarm(random: Random, task: Task, topology: Topology) -> _Course:
    arrival = _draw(random, task.lead)
    states = untreated_states(topology, (), arrival + task.max_steps)
    return _Course(arrival, arrival, (), states, "P3")


def _real_fault(
    random: Random, task: Task, split: str, topology: Topology, pairs: dict[int, tuple[Fault, ...]]
) -> _Course:
    """Draw faults and their places, and up to `INTENSITY_DRAWS` times how hard they are, until a
    try meets the task.
    """
    outage = None if task.outage is None else random.random() < task.outage
    missed: Counter[str] = Counter()
    for _ in range(MOST_DRAWS):
        # Services uniformly, then their faults.
        positions, faults = list(pairs), dict[int, Fault]()
        while len(faults) < task.faults:
            position = positions[int(random.random() * len(positions))]
            faults[position] = pairs[position][int(random.random() * len(pairs[position]))]
        low, high = task.intensity
        for _ in range(INTENSITY_DRAWS):
            course = _draw_course(random, task, topology, faults, (low, high))
            miss = _what_is_missed(task, topology, course, outage)
            if not miss:
                return course
            missed[miss] += 1
            # Effects grow with intensity, so the next try can be aimed.
            tried = [injection.intensity for injection in course.injections]
            if miss == "below_edge" or (miss == "outage" and outage):
                low = min(tried)
            elif miss == "outage":
                high = max(tried)
    setting, times = missed.most_common(1)[0]
    raise ValueError(
        f"task {task.name} found no incident of split {split} in {MOST_DRAWS} draws: {setting}="
        f"{vars(task)[setting]} was missed in {times} of {missed.total()} tries, with intensity="
        f"{task.intensity}, lead={task.lead}, ramp={task.ramp}; {FIXES[setting]}"
    )


def _draw_course(
    random: Random,
    task: Task,
    topology: Topology,
    faults: dict[int, Fault],
    intensity: tuple[float, float],
) -> _Course:
    """Draw when and how hard these faults begin, and run the cluster."""
    arrival = _draw(random, task.lead)
    quiet = task.quiet[int(random.random() * len(task.quiet))]
    low, high = intensity
    injections = []
    for position, fault in faults.items():
        skewed = random.random()  # squared below: mild faults are more common than total ones
        strength = low + skewed * skewed * (high - low)
        ramp = _draw(random, task.ramp)
        injections.append(Injection(fault, position, strength, onset=1, ramp=ramp))
    states = untreated_states(topology, tuple(injections), arrival + task.max_steps)
    severity = severity_of(*user_impact(topology, states))
    return _Course(arrival, arrival + quiet, tuple(injections), states, severity)


def _what_is_missed(task: Task, topology: Topology, course: _Course, outage: bool | None) -> str:
    """The setting that the course does not meet: outage, below_edge, or intensity (its severity
    cannot be called); empty when it meets all.
    """
    severity = course.severity
    if outage is not None and severity is not None and (severity == "P1") != outage:
        return "outage"
    on_arrival = course.states[course.arrival]
    if task.below_edge and not all(
        _has_degraded_caller(topology, one.position, on_arrival) for one in course.injections
    ):
        return "below_edge"
    return "" if severity is not None else "intensity"


def _has_degraded_caller(topology: Topology, position: int, state: State) -> bool:
    """Whether somebody who waits for `position` is degraded."""
    return any(
        is_degraded(topology, state, i)
        for i, callees in enumerate(topology.network.callees)
        if any(j == position for j, _ in callees)
    )


def _draw(random: Random, bounds: tuple[int, int]) -> int:
    """A whole number, uniform over the range, both ends included."""
    return bounds[0] + int(random.random() * (bounds[1] - bounds[0] + 1))
