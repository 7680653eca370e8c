"""What goes wrong: `sample_incident(task, split, index)` draws an incident of a task (see `tasks`).

An incident is a pure function of these three coordinates and of a custom call graph, if any. Its
random streams are named after the coordinates, so neighbouring indices or splits share nothing.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Self, TypeAlias, TypeVar

from .call_graph import Service
from .cluster import Injection, State, is_degraded, severity_of, untreated_states, user_impact
from .faults import Fault, faults_at
from .tasks import Task, check_index, check_split, check_task
from .topology import DEFAULT_TOPOLOGY, Topology, random_topology

Item = TypeVar("Item")
# What happens: the fields `injection` to `untreated` of an `Incident`.
Course: TypeAlias = tuple[Injection | None, str, int, int, list[State]]

INTENSITY_DRAWS = 8  # tries with one fault at one service before another pair is drawn
# Draws of a fault and a service before a task counts as impossible; 30,000 incidents needed 18.
MOST_DRAWS = 300
HELD_OUT_PAIRS = 5  # one (service, fault) pair in five never occurs in train


@dataclass(frozen=True)
class Incident:
    """One incident."""

    task: Task
    split: str
    index: int
    topology: Topology
    injection: Injection | None  # None for a false alarm
    severity: str  # if nobody does anything
    arrival: int  # the tick at which the agent is called
    quiet_until: int  # the tick from which the root prints by itself
    untreated: list[State] = field(repr=False, compare=False)
    varied_wording: bool = False  # whether the logs use templates that no split has

    @property
    def task_name(self) -> str:
        return self.task.name

    @property
    def root(self) -> str | None:
        """The service at fault; None for a false alarm."""
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

    def renamed(self, topology: Topology) -> Self:
        """Return the same incident on `topology`, an equal call graph with other names."""
        course = (self.injection, self.severity, self.arrival, self.quiet_until, self.untreated)
        return type(self)(self.task, self.split, self.index, topology, *course, self.varied_wording)

    def stream(self, name: str) -> Random:
        """Return a fresh random stream of this incident, named `name`."""
        return Random(f"{self.task.name}/{self.split}/{self.index}/{name}")


def is_held_out(service: Service, fault: Fault) -> bool:
    """Whether the pair is kept out of train, by a checksum of its name."""
    return zlib.crc32(f"{service.name}/{fault.name}".encode()) % HELD_OUT_PAIRS == 0


@lru_cache(maxsize=64)  # every incident on a call graph needs the same pairs
def candidate_pairs(
    topology: Topology, below_edge: bool, split: str
) -> dict[int, tuple[Fault, ...]]:
    """Map each possible root position to the faults that the split allows. Treat as read-only."""
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
    """Return the incident at these coordinates: the same, to the last bit, anywhere and any time.

    A `task` is a name in `TASKS`, or a custom `Task`; splits are those of `SPLITS`, and an index
    counts from 0. With `varied_wording`, in train alone, the logs are in words that no split uses.
    `ValueError` for a bad argument, or a task that has no incident on the (custom) call graph.
    """
    settings = check_task(task)
    check_split(split, topology)
    check_index(index)
    if varied_wording and split != "train":
        raise ValueError(f"varied wording is for training alone; choose split train, not {split}")
    random = Random(f"{settings.name}/{split}/{index}/incident")
    if topology is None:
        topology = random_topology(random) if split == "unseen_topology" else DEFAULT_TOPOLOGY
    pairs = candidate_pairs(topology, settings.below_edge, split)
    if not pairs:
        waited = " that others wait for (below_edge=True)" if settings.below_edge else ""
        raise ValueError(
            f"task {settings.name} needs a service{waited} with a fault that split {split} allows, "
            "and this call graph has none; add services and calls, or choose another task or split"
        )

    # Every draw from `random` shifts those after it, so the order of draws defines the incident.
    if random.random() < settings.false_alarms:
        arrival = _draw(random, settings.lead)
        states = untreated_states(topology, None, arrival + settings.max_steps)
        course: Course = (None, "P3", arrival, arrival, states)
    else:
        course = _real_fault(random, settings, split, topology, pairs)
    return Incident(settings, split, index, topology, *course, varied_wording)


def _real_fault(
    random: Random, task: Task, split: str, topology: Topology, pairs: dict[int, tuple[Fault, ...]]
) -> Course:
    """Draw a service, a fault, and up to `INTENSITY_DRAWS` intensities of it, until one fits."""
    outage = None if task.outage is None else random.random() < task.outage
    positions = list(pairs)
    for _ in range(MOST_DRAWS):
        position = _pick(random, positions)
        fault = _pick(random, pairs[position])
        low, high = task.intensity
        for _ in range(INTENSITY_DRAWS):
            arrival = _draw(random, task.lead)
            quiet = _pick(random, task.quiet)
            skewed = random.random()  # squared below: mild faults are more common than total ones
            intensity = low + skewed * skewed * (high - low)
            ramp = _draw(random, task.ramp)
            injection = Injection(fault, position, intensity, onset=1, ramp=ramp)
            states = untreated_states(topology, injection, arrival + task.max_steps)
            severity = severity_of(*user_impact(topology, states))
            no_outage = outage and severity in ("P2", "P3")
            no_echo = task.below_edge and not any(
                is_degraded(topology, states[arrival], i)
                for i, callees in enumerate(topology.network.callees)
                if any(j == position for j, _ in callees)
            )
            # Effects grow with intensity, so the next try can be aimed.
            if outage is False and severity == "P1":
                high = intensity
            elif no_outage or no_echo:
                low = intensity
            elif severity:
                return injection, severity, arrival, arrival + quiet, states
    raise ValueError(
        f"task {task.name} found no incident of split {split} in {MOST_DRAWS} draws, with outage="
        f"{task.outage}, below_edge={task.below_edge}, intensity={task.intensity}, lead="
        f"{task.lead}, ramp={task.ramp}; change one of these"
    )


def _pick(random: Random, items: Sequence[Item]) -> Item:
    return items[int(random.random() * len(items))]


def _draw(random: Random, bounds: tuple[int, int]) -> int:
    """Draw a whole number uniformly from the range, both ends included."""
    return bounds[0] + int(random.random() * (bounds[1] - bounds[0] + 1))
