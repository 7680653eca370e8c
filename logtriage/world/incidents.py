"""What goes wrong: the three tasks, the five splits, and `sample_incident(task, split, index)`.

An incident is a pure function of its three coordinates. Chance comes from streams named after them,
so neighbouring indices share nothing and no split can meet another's incidents.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

from .cluster import Injection, State, untreated_states
from .faults import Fault, faults_at
from .topology import DEFAULT_TOPOLOGY, Service, Topology, random_topology

SPLITS = {
    "train": "the training distribution",
    "test": "unseen incidents of the same kinds",
    "unseen_faults": "(service, fault) pairs that never occur in train",
    "unseen_wording": "log templates that never occur in train",
    "unseen_topology": "random call graphs of 5 to 30 services with other names",
}
SEVERITIES = ("P1", "P2", "P3")
MAX_INDEX = 2**53 - 1  # the largest integer that every JSON reader keeps
BENCHMARK_VERSION = "1.0"  # stamped into every result; whatever changes an incident, an observation or a score raises it

# Severity boundaries: customer-facing errors, and slowdown of the edge against rest. Peaks between
# the two numbers of a pair are too near to call, and the incident is drawn again.
OUTAGE_ERRORS = (0.042, 0.06)
NOTICED_ERRORS = (0.002, 0.006)
NOTICED_SLOWDOWN = (1.12, 1.3)
INTENSITY_DRAWS = 8  # tries at one fault in one place before another is drawn
# A service is in evident trouble beyond any of these: share of requests failed, latency against
# rest, utilisation of capacity or connection pool.
TROUBLE_ERRORS = 0.02
TROUBLE_SLOWDOWN = 2.0
TROUBLE_BUSY = 0.9
HELD_OUT_PAIRS = 5  # one (service, fault) pair in five never occurs in train


@dataclass(frozen=True)
class Task:
    """The settings of a task; a range is drawn from uniformly, both ends included.

    Attributes:
        max_steps: length of an episode.
        noise: chance that a line of the stream is noise, and the weight of noise among the lines a
            service prints.
        lead: ticks between the onset of the fault and the arrival of the agent.
        intensity: of the fault, 0 to 1.
        ramp: ticks until that intensity is reached.
        quiet: ticks after arrival during which the root says nothing by itself, and its row is
            missing from the table; uniform over the values.
        gaps: chance that a row of the metrics table is missing.
        proof: weight of a line that proves the fault, in the root's own detail; `hint`, of one that
            only narrows it.
        false_alarms: share of incidents without any fault.
        outage: share of faults that must become an outage (P1), while the rest must not; None for
            as it comes.
        below_edge: whether the root must be called by a service that shouts.
        lag: ticks until a service feels what its neighbours do.
        decoys: innocent services that print hints of some remedy when they are asked.
        services: size of a random call graph; 0 for the split's own.
        faults: at work at once, at different services; 1 or 2.

    Raises:
        ValueError: for a value out of its range; `dataclasses.replace(TASKS[name], noise=0.5)`
            makes a task of one's own.
    """

    name: str
    max_steps: int
    noise: float
    lead: tuple[int, int]
    intensity: tuple[float, float]
    ramp: tuple[int, int]
    quiet: tuple[int, ...]
    gaps: float
    proof: float
    hint: float
    false_alarms: float = 0.0
    outage: float | None = None
    below_edge: bool = False
    lag: int = 1
    decoys: int = 0
    services: int = 0
    faults: int = 1

    def __post_init__(self) -> None:
        for name in ("noise", "gaps", "false_alarms"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(
                    f"{name} must be at least 0 and below 1, got {getattr(self, name)}"
                )
        if not 1 <= self.lag <= self.lead[0] or not self.quiet or min(self.quiet) < 0:
            raise ValueError(
                f"lag must be 1 to {self.lead[0]} (lead) and quiet >= 0, got {self.lag} and {self.quiet}"
            )
        if self.faults not in (1, 2):
            raise ValueError(f"faults must be 1 or 2, got {self.faults}")
        if (self.services and not 5 <= self.services <= 30) or not 0 <= self.decoys < (
            self.services or 7
        ):
            raise ValueError(
                f"services must be 0 or 5 to 30, and decoys fewer than services, got {self.services} and {self.decoys}"
            )


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "single_crash",
            8,
            0.2,
            lead=(2, 4),
            intensity=(0.25, 1.0),
            ramp=(1, 1),
            quiet=(0,),
            gaps=0.2,
            proof=1.0,
            hint=0.5,
        ),
        Task(
            "cascading_failure",
            12,
            0.3,
            lead=(5, 7),
            intensity=(0.06, 1.0),
            ramp=(1, 2),
            quiet=(0, 0, 3, 4, 5),
            gaps=0.3,
            proof=1.0,
            hint=0.6,
            outage=0.7,
            below_edge=True,
        ),
        Task(
            "silent_degradation",
            15,
            0.6,
            lead=(4, 8),
            intensity=(0.03, 0.8),
            ramp=(10, 16),
            quiet=(0, 2, 4),
            gaps=0.3,
            proof=0.4,
            hint=0.6,
            false_alarms=0.25,
            outage=0.0,
        ),
    )
}

# Optional: not part of `all`, nor of the benchmark.
DOUBLE_FAULT = replace(TASKS["cascading_failure"], name="double_fault", max_steps=16, faults=2)
ALL_TASKS = {**TASKS, DOUBLE_FAULT.name: DOUBLE_FAULT}


@dataclass(frozen=True)
class Incident:
    """One incident, frozen. `injections` are the faults, none for a false alarm; `severity` is that
    of the untreated world.

    `arrival` is the tick at which the agent is called; `quiet_until` the tick from which the root
    speaks by itself; `decoys` are positions of innocent services and the remedies they hint at.
    """

    task: Task
    split: str
    index: int
    topology: Topology
    injections: tuple[Injection, ...]
    severity: str
    arrival: int
    quiet_until: int
    decoys: tuple[tuple[int, str], ...]
    untreated: list[State] = field(repr=False, compare=False)

    @property
    def injection(self) -> Injection | None:
        """The fault, or the first of two; None for a false alarm."""
        return self.injections[0] if self.injections else None

    @property
    def root(self) -> str | None:
        """Name of the service where the trouble began (for two faults, where the first is); None
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

    @property
    def held_out_wording(self) -> bool:
        """Whether the logs use only templates that never occur in train."""
        return self.split == "unseen_wording"

    def stream(self, name: str) -> Random:
        """A fresh random stream of this incident under `name`."""
        return Random(f"{self.task.name}/{self.split}/{self.index}/{name}")


def is_held_out(service: Service, fault: Fault) -> bool:
    """Whether the pair is kept out of train (by a checksum of its name, stable across processes and
    versions).
    """
    return zlib.crc32(f"{service.name}/{fault.name}".encode()) % HELD_OUT_PAIRS == 0


def check_coordinates(task: str, split: str, index: int) -> None:
    """Raise `ValueError` for an unknown task or split, or an index that is no integer from 0 to
    `MAX_INDEX`.
    """
    if not isinstance(task, str) or task not in ALL_TASKS:
        raise ValueError(f"unknown task {task!r:.60}; choose one of {', '.join(ALL_TASKS)}")
    if not isinstance(split, str) or split not in SPLITS:
        raise ValueError(f"unknown split {split!r:.60}; choose one of {', '.join(SPLITS)}")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= MAX_INDEX:
        raise ValueError(f"index must be an integer >= 0 and <= {MAX_INDEX}, got {index!r:.60}")


def candidate_pairs(topology: Topology, below_edge: bool, split: str) -> dict[int, list[Fault]]:
    """Root position to the faults that the split allows there, positions without any left out.
    `below_edge`: see `Task`.
    """
    pairs: dict[int, list[Fault]] = {}
    for position, service in enumerate(topology.services):
        if below_edge and not any(service.name in caller.calls for caller in topology.services):
            continue  # nobody waits for it, so nobody shouts
        allowed = [
            fault
            for fault in faults_at(service)
            if split == "unseen_topology"
            or is_held_out(service, fault) == (split == "unseen_faults")
        ]
        if allowed:
            pairs[position] = allowed
    return pairs


@cache
def _default_pairs(below_edge: bool, split: str) -> dict[int, list[Fault]]:
    return candidate_pairs(DEFAULT_TOPOLOGY, below_edge, split)


def user_impact(topology: Topology, states: list[State]) -> tuple[float, float]:
    """Peak error fraction and peak slowdown (ratio to rest) over `states`, the worse of the edges."""
    rest = topology.network.rest_latency
    edges = [i for i, service in enumerate(topology.services) if service.kind == "edge"]
    return (
        max(state.errors[i] for i in edges for state in states),
        max(state.latency[i] / rest[i] for i in edges for state in states),
    )


def severity_of(errors: float, slowdown: float) -> str | None:
    """P1, P2 or P3 for that user impact; None when it is too near a boundary to call."""
    if errors > OUTAGE_ERRORS[1]:
        return "P1"
    if errors > OUTAGE_ERRORS[0]:
        return None
    if errors > NOTICED_ERRORS[1] or slowdown > NOTICED_SLOWDOWN[1]:
        return "P2"
    if errors > NOTICED_ERRORS[0] or slowdown > NOTICED_SLOWDOWN[0]:
        return None
    return "P3"


def sample_incident(task: str | Task, split: str, index: int) -> Incident:
    """The incident at these coordinates: the same, to the last bit, whenever and wherever it is
    asked for.

    Args:
        task: a name of `TASKS`, or a `Task` of one's own; its random streams are those of its name.
        split, index: see `SPLITS`; index counts from 0.

    Raises:
        ValueError: for an unknown task or split, or an index out of range; the message names the
            valid ones.
    """
    check_coordinates("single_crash" if isinstance(task, Task) else task, split, index)
    settings = task if isinstance(task, Task) else ALL_TASKS[task]
    stream = f"{settings.name}/{split}/{index}"
    random = Random(f"{stream}/incident")
    if settings.services:
        topology = random_topology(random, settings.services, settings.services)
    else:
        topology = random_topology(random) if split == "unseen_topology" else DEFAULT_TOPOLOGY
    own = topology is not DEFAULT_TOPOLOGY
    pairs = (
        candidate_pairs(topology, settings.below_edge, split)
        if own
        else _default_pairs(settings.below_edge, split)
    )
    if random.random() < settings.false_alarms:
        arrival = _draw(random, settings.lead)
        states = untreated_states(topology, (), arrival + settings.max_steps)
        decoys = _draw_decoys(topology, settings, stream, ())
        return Incident(
            settings, split, index, topology, (), "P3", arrival, arrival, decoys, states
        )
    outage = None if settings.outage is None else random.random() < settings.outage
    while True:
        struck: dict[int, Fault] = {}
        while len(struck) < settings.faults:
            position = list(pairs)[int(random.random() * len(pairs))]
            struck[position] = pairs[position][int(random.random() * len(pairs[position]))]
        low, high = settings.intensity
        for _ in range(INTENSITY_DRAWS):
            arrival = _draw(random, settings.lead)
            quiet = settings.quiet[int(random.random() * len(settings.quiet))]
            injections, intensities = [], []
            for position, fault in struck.items():
                skewed = (
                    random.random()
                )  # squared below: mild faults are more common than total ones
                intensities.append(low + skewed * skewed * (high - low))
                injections.append(
                    Injection(
                        fault, position, intensities[-1], onset=1, ramp=_draw(random, settings.ramp)
                    )
                )
            states = untreated_states(
                topology, tuple(injections), arrival + settings.max_steps, settings.lag
            )
            severity = severity_of(*user_impact(topology, states))
            if outage is not None and severity is not None and (severity == "P1") != outage:
                # Effects grow with intensity, so the next try can be aimed.
                low, high = (min(intensities), high) if outage else (low, max(intensities))
            elif settings.below_edge and not all(
                _callers_shout(topology, at, states[arrival]) for at in struck
            ):
                low = min(intensities)
            elif severity is not None:
                decoys, until = (
                    _draw_decoys(topology, settings, stream, tuple(struck)),
                    arrival + quiet,
                )
                faults = tuple(injections)
                return Incident(
                    settings,
                    split,
                    index,
                    topology,
                    faults,
                    severity,
                    arrival,
                    until,
                    decoys,
                    states,
                )


def _draw(random: Random, bounds: tuple[int, int]) -> int:
    return bounds[0] + int(random.random() * (bounds[1] - bounds[0] + 1))


def _draw_decoys(
    topology: Topology, task: Task, stream: str, roots: tuple[int, ...]
) -> tuple[tuple[int, str], ...]:
    """Innocent services, each with a remedy that some fault there would need; from a stream of
    their own.
    """
    if not task.decoys:
        return ()
    random, positions = (
        Random(f"{stream}/decoys"),
        [i for i in range(len(topology.services)) if i not in roots],
    )
    random.shuffle(positions)
    drawn = []
    for position in positions[: task.decoys]:
        remedies = sorted({fault.remedy for fault in faults_at(topology.services[position])})
        drawn.append((position, remedies[int(random.random() * len(remedies))]))
    return tuple(drawn)


def _callers_shout(topology: Topology, position: int, state: State) -> bool:
    """Whether somebody who waits for `position` is in evident trouble."""
    return any(
        in_trouble(topology, state, i)
        for i, callees in enumerate(topology.network.callees)
        if any(j == position for j, _ in callees)
    )


def in_trouble(topology: Topology, state: State, position: int) -> bool:
    """Whether a service fails too many requests, is too slow, or is near saturation."""
    usual = topology.network.rest_latency[position]
    return (
        state.errors[position] > TROUBLE_ERRORS
        or state.latency[position] > TROUBLE_SLOWDOWN * usual
        or state.cpu[position] > TROUBLE_BUSY
        or state.pool[position] > TROUBLE_BUSY
    )
