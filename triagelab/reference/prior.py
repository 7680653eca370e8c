"""Every hypothesis about an incident, and its probability before anything is seen.

A hypothesis says which fault was injected into which service, its intensity (on a grid), its ramp,
when it began, and for how long the root's output is suppressed; one more says that nothing is
wrong. `Prior` enumerates them as `incidents.sample_incident` draws them, and simulates all of them
at once on arrays, with the same equations as `world.cluster.next_state`. Shapes: `H` hypotheses,
`R` runs (of service, fault, ramp and intensity), `S` services, `Q` suppressed times, `T` ticks.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from logtriage.world import cluster
from logtriage.world.call_graph import CallGraph
from logtriage.world.cluster import NOTICED_ERRORS, NOTICED_SLOWDOWN, OUTAGE_ERRORS
from logtriage.world.faults import Fault
from logtriage.world.incidents import INTENSITY_DRAWS, candidate_pairs
from logtriage.world.tasks import SEVERITIES, Task
from logtriage.world.topology import DEFAULT_TOPOLOGY, TIMEOUT_MS, Topology, simulated

MOST_LEVELS = 32  # intensities per (service, fault) pair; fewer if there are many pairs ...
FEWEST_LEVELS = 6  # ... but never fewer than this
MOST_RUNS = 4000  # trajectories simulated for one topology
MOST_RAMPS = 3
PRIOR_DRAWS = 60_000  # rejection-sampling draws that weight the prior, shared by the pairs
FEWEST_DRAWS = 100  # but at least this many draws per pair
FEW_DRAWS = 20  # a pair drawn less often than this keeps a trace of weight
P1, P2, P3 = (SEVERITIES.index(name) for name in ("P1", "P2", "P3"))
UNCLEAR = -1  # too near a boundary to be any severity

Pairs = Sequence[tuple[int, Fault]]  # a service's position, and a fault that may occur there
States = dict[str, np.ndarray]  # as returned by `simulate`


class Grid(NamedTuple):
    """The runs to simulate: every (pair, ramp, level) of `shape`, as arrays flattened to (R,)."""

    shape: tuple[int, int, int]
    pair: np.ndarray
    position: np.ndarray
    ramp: np.ndarray
    intensity: np.ndarray


class Prior:
    """The hypotheses of a task and split on one topology, before anything is seen.

    Attributes:
        faults: the kinds of fault that occur.
        position, fault, intensity, ramp, severity: of each hypothesis, (H,); position is -1 for a
            false alarm, fault an index into `faults`, severity one into `SEVERITIES`.
        run, arrival: which trajectory, and the agent's first tick in it, (H,).
        quiet: the times for which a root's output may be suppressed, (Q,).
        weight: prior probability, (H, Q).
        errors, latency, degraded: states of the trajectories, (R + 1, T, S), the last of them at
            rest; `errors_gap` and `latency_gap` are half the distance to the neighbouring
            intensities.
        visible: how far proofs and hints show, from 0 to 1, (R + 1, T).
    """

    def __init__(self, topology: Topology, task: Task, split: str) -> None:
        self.topology, self.task = topology, task
        pairs = [
            (at, fault)
            for at, faults in candidate_pairs(topology, task.below_edge, split).items()
            for fault in faults
        ]
        grid = self._make_grid(pairs)
        leads = np.arange(task.lead[0], task.lead[1] + 1)
        faults, ticks = [pairs[at][1] for at in grid.pair], task.lead[1] + task.max_steps
        states = simulate(topology, faults, grid.position, grid.intensity, grid.ramp, ticks)
        degraded = is_degraded(topology, states)
        self._keep_trajectories(states, degraded, grid)
        severity = self._severities(states, leads)
        valid = self._valid(degraded, grid.position, leads)
        # The generator tries services uniformly, then their faults.
        at = [position for position, _ in pairs]
        chance = np.array([1.0 / len(set(at)) / at.count(position) for position in at])
        # How often it would draw each trajectory and arrival of the agent.
        cells = (*grid.shape, len(leads))
        chances = self._draw(severity.reshape(cells), valid.reshape(cells), chance)
        self._keep_hypotheses(pairs, grid, leads, severity, chances.reshape(severity.shape))

    def _make_grid(self, pairs: Pairs) -> Grid:
        """Combine every pair, ramp and intensity; low intensities are closer together."""
        first, last = self.task.ramp
        ramps = np.unique(np.linspace(first, last, min(MOST_RAMPS, last - first + 1)).round())
        levels = max(FEWEST_LEVELS, min(MOST_LEVELS, MOST_RUNS // (len(pairs) * len(ramps))))
        low, high = self.task.intensity
        # The generator squares a uniform draw: these are midpoints of equal shares of its draws.
        intensities = low + ((np.arange(levels) + 0.5) / levels) ** 2 * (high - low)
        shape = (len(pairs), len(ramps), levels)
        pair, ramp, level = (axis.ravel() for axis in np.indices(shape))
        positions = np.array([at for at, _ in pairs])
        return Grid(shape, pair, positions[pair], ramps[ramp], intensities[level])

    def _keep_trajectories(self, states: States, degraded: np.ndarray, grid: Grid) -> None:
        """Keep the states to compare observations with, and a last run at rest, without a fault."""
        ticks, services = degraded.shape[1:]
        rest = np.broadcast_to(self.topology.network.rest_latency, (1, ticks, services))
        zeros = np.zeros((1, ticks, services))

        def half_gap(values: np.ndarray) -> np.ndarray:
            by_level = values.reshape(*grid.shape, ticks, services)
            return np.abs(np.gradient(by_level, axis=2)).reshape(values.shape) / 2.0

        self.errors = np.concatenate([states["errors"], zeros])
        self.latency = np.concatenate([states["latency"], rest])
        self.errors_gap = np.concatenate([half_gap(states["errors"]), zeros])
        self.latency_gap = np.concatenate([half_gap(states["latency"]), zeros])
        self.degraded = np.concatenate([degraded, zeros.astype(bool)])
        self.visible = np.minimum(1.0, np.arange(ticks) / np.append(grid.ramp, 1.0)[:, None])

    def _keep_hypotheses(
        self, pairs: Pairs, grid: Grid, leads: np.ndarray, severity: np.ndarray, chances: np.ndarray
    ) -> None:
        """Keep one for each possible trajectory and arrival, and one for a false alarm, if any."""
        self.faults: list[Fault] = list(dict.fromkeys(fault for _, fault in pairs))
        fault_of_pair = np.array([self.faults.index(fault) for _, fault in pairs])
        run, lead = np.nonzero(chances)
        severity = np.where(severity == UNCLEAR, P2, severity)[run, lead]
        false_alarms = self.task.false_alarms

        def with_alarm(faults: np.ndarray, alarm: float, kind: type = int) -> np.ndarray:
            return (np.append(faults, alarm) if false_alarms else faults).astype(kind)

        self.run = with_alarm(run, len(grid.pair))  # the last run stays at rest
        self.arrival = with_alarm(leads[lead], self.task.lead[0])
        self.position = with_alarm(grid.position[run], -1)
        self.fault = with_alarm(fault_of_pair[grid.pair[run]], 0)
        self.intensity = with_alarm(grid.intensity[run], 0.0, float)
        self.ramp = with_alarm(grid.ramp[run], 1)
        self.severity = with_alarm(severity, P3)
        self.quiet, times = np.unique(self.task.quiet, return_counts=True)
        weight = with_alarm((1.0 - false_alarms) * chances[run, lead], false_alarms, float)
        self.weight = weight[:, None] * (times / times.sum())

    def _severities(self, states: States, leads: np.ndarray) -> np.ndarray:
        """The severity of each run and arrival, `UNCLEAR` near a boundary: (R, leads)."""
        edges = list(self.topology.entry_services)
        rest, until = np.array(self.topology.network.rest_latency), leads + self.task.max_steps
        errors = np.maximum.accumulate(states["errors"][:, :, edges].max(2), 1)[:, until]
        slowdowns = (states["latency"] / rest)[:, :, edges].max(2)
        slowdown = np.maximum.accumulate(slowdowns, 1)[:, until]
        severity = np.where((errors > NOTICED_ERRORS[1]) | (slowdown > NOTICED_SLOWDOWN[1]), P2, P3)
        near_p2 = (errors > NOTICED_ERRORS[0]) | (slowdown > NOTICED_SLOWDOWN[0])
        severity[((severity == P3) & near_p2) | (errors > OUTAGE_ERRORS[0])] = UNCLEAR
        severity[errors > OUTAGE_ERRORS[1]] = P1
        return severity

    def _valid(self, degraded: np.ndarray, positions: np.ndarray, leads: np.ndarray) -> np.ndarray:
        """Whether a caller of the root is degraded on arrival, if the task needs it: (R, leads)."""
        size = len(self.topology.services)
        calls = np.zeros((size, size), bool)  # (callee, caller)
        for caller, callees in enumerate(self.topology.network.callees):
            for callee, _ in callees:
                calls[callee, caller] = True
        reached = (degraded[:, leads] & calls[positions][:, None, :]).any(2)
        return reached | (not self.task.below_edge)

    def _draw(self, severity: np.ndarray, valid: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Probability of each (pair, ramp, level, lead), from the generator's rejection sampling on
        the grid. `severity` and `valid` have this shape; `chance` is that of trying each pair.
        """
        random, share = np.random.default_rng(0), self.task.outage
        wanted = [(None, 1.0)] if share is None else [(True, share), (False, 1.0 - share)]
        total = np.zeros(severity.shape)
        for outage, share_of_faults in wanted:
            if not share_of_faults:
                continue
            counts = self._count(severity, valid, outage, random)
            # A pair that is hardly ever drawn keeps a trace of weight, as it may be the truth.
            rare = counts.sum((1, 2, 3)) < FEW_DRAWS
            possible = (severity >= 0) & valid
            possible |= ~possible.any((1, 2, 3), keepdims=True)
            counts[rare] += possible[rare] / possible[rare].sum((1, 2, 3), keepdims=True)
            counts *= chance[:, None, None, None]
            total += share_of_faults * counts / counts.sum()
        return total

    def _count(
        self, severity: np.ndarray, valid: np.ndarray, outage: bool | None, random: Generator
    ) -> np.ndarray:
        """Count the draws that end in each cell if `outage` says what is wanted (None: either)."""
        pairs, ramps, levels, leads = severity.shape
        low, high = self.task.intensity
        pair = np.repeat(np.arange(pairs), max(FEWEST_DRAWS, PRIOR_DRAWS // pairs))
        counts, live = np.zeros(severity.shape), np.ones(len(pair), bool)
        bottom, top = np.full(len(pair), low), np.full(len(pair), high)
        for _ in range(INTENSITY_DRAWS):
            intensity = bottom + random.random(len(pair)) ** 2 * (top - bottom)
            # If the range is a single point, everything is in the first cell.
            cell = np.sqrt((intensity - low) / ((high - low) or 1.0)) * levels
            level = np.minimum(levels - 1, cell).astype(int)
            ramp = random.integers(ramps, size=len(pair))
            lead = random.integers(leads, size=len(pair))
            at = (pair, ramp, level, lead)
            clear = severity[at] != UNCLEAR
            missed = np.zeros(len(pair), bool)
            if outage is not None:
                missed = clear & ((severity[at] == P1) != outage)
            invalid = ~missed & ~valid[at]
            taken = live & clear & ~missed & ~invalid
            # The generator aims higher after a missing outage or a calm caller, and lower after an
            # outage that was not wanted.
            bottom = np.where((missed & bool(outage)) | invalid, intensity, bottom)
            top = np.where(missed & (not outage), intensity, top)
            np.add.at(counts, tuple(index[taken] for index in at), 1.0)
            live &= ~taken
        return counts


def simulate(
    topology: Topology,
    faults: Sequence[Fault],
    positions: np.ndarray,
    intensities: np.ndarray,
    ramps: np.ndarray,
    ticks: int,
) -> dict[str, np.ndarray]:
    """Compute `cluster.untreated_states` for many injections with onset 1 at once. The arguments
    between first and last are (R,). Returns the fields of `cluster.State`, each (R, ticks + 1, S).
    """
    network, size, rows = topology.network, len(topology.services), np.arange(len(positions))
    share, wait = np.zeros((size, size)), np.zeros((size, size))
    for callee, callers in enumerate(network.callers):
        for caller, part in callers:
            share[caller, callee] = part
    for caller, callees in enumerate(network.callees):
        for callee, part in callees:
            wait[caller, callee] = part
    effect = {
        name: np.array([getattr(fault, name) for fault in faults])
        for name in ("capacity", "latency", "errors", "load", "pool", "cache")
    }
    idle, external = np.array(network.idle_latency), np.array(network.external)

    rest = [np.tile(values, (len(positions), 1)) for values in cluster.rest_state(topology)]
    load, latency, errors, *_ = rest
    history = [tuple(rest)]
    for tick in range(1, ticks + 1):
        strength = intensities * np.minimum(1.0, tick / ramps)
        demand = external + (load @ share) * (1.0 + cluster.RETRIES * errors)
        demand[rows, positions] += effect["load"] * strength * rest[0][rows, positions]
        capacity = np.broadcast_to(network.capacity, demand.shape).copy()
        capacity[rows, positions] *= (1 - effect["capacity"] * strength) / (
            1 + cluster.CACHE_COST * effect["cache"] * strength
        )
        busy = demand / capacity
        response = idle / (1.0 - np.minimum(busy, cluster.QUEUE_LIMIT)) + latency @ wait.T
        response[rows, positions] += effect["latency"] * strength * idle[positions]
        succeeds = np.ones(demand.shape)
        for caller, callees in enumerate(network.callees):
            if network.routes[caller]:
                succeeds[:, caller] -= errors @ wait[caller]
            else:
                for callee, _ in callees:
                    succeeds[:, caller] *= 1.0 - errors[:, callee]
        succeeds[rows, positions] *= 1.0 - effect["errors"] * strength
        succeeds *= np.minimum(1.0, TIMEOUT_MS / response)
        response = np.minimum(response, TIMEOUT_MS)
        used = demand * response / 1000.0 / network.pool_size
        used[rows, positions] += effect["pool"] * strength
        succeeds /= np.maximum(1.0, used) * np.maximum(1.0, busy)
        load, latency, errors = demand, response, 1.0 - succeeds
        history.append((load, latency, errors, used, busy))
    return {
        name: np.stack([state[i] for state in history], 1)
        for i, name in enumerate(cluster.State._fields)
    }


def is_degraded(topology: Topology, states: dict[str, np.ndarray]) -> np.ndarray:
    """`cluster.is_degraded` of every state of `simulate`, (R, T, S)."""
    slow = states["latency"] > cluster.DEGRADED_SLOWDOWN * np.array(topology.network.rest_latency)
    busy = (states["cpu"] > cluster.DEGRADED_SATURATION) | (
        states["pool"] > cluster.DEGRADED_SATURATION
    )
    return (states["errors"] > cluster.DEGRADED_ERRORS) | slow | busy


# A prior takes 4 to 25 MB for 7 services, 50 to 100 MB for 30. The default graph has a cache of its
# own, so that random graphs played in between do not evict its priors.
of_default = lru_cache(maxsize=None)(partial(Prior, DEFAULT_TOPOLOGY))
of_recent = lru_cache(maxsize=8)(Prior)


def prior_of(graph: CallGraph, task: Task | None, split: str) -> Prior:
    """The prior of an incident, cached if others share its graph; `ValueError` for a real one."""
    topology = simulated(graph)
    assert task is not None  # a simulated incident has settings
    if topology == DEFAULT_TOPOLOGY:
        return of_default(task, split)
    return (Prior if split == "unseen_topology" else of_recent)(topology, task, split)
