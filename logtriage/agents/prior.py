"""Every hypothesis about an incident, and how likely it is before anything is seen.

A hypothesis says which fault struck which service, how hard (a grid), how fast it rises, since
when, and for how long the root keeps quiet; one more says that nothing is wrong. `Prior` enumerates
them as `incidents.sample_incident` draws them, with their states simulated all at once. Shapes: `H`
hypotheses, `S` services, `Q` quiet times, `T` ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..world import cluster
from ..world.faults import Fault
from ..world.incidents import (
    INTENSITY_DRAWS,
    NOTICED_ERRORS,
    NOTICED_SLOWDOWN,
    OUTAGE_ERRORS,
    candidate_pairs,
)
from ..world.tasks import Task
from ..world.topology import Topology

GRID = 32  # intensities of a (service, fault) pair; fewer when there are many pairs
MOST_RUNS = 4000  # trajectories simulated for one topology
MOST_RAMPS = 3
FEW_DRAWS = 20
PRIOR_DRAWS = (
    60_000  # draws of the generator's rejection by which the prior is weighed, shared by the pairs
)


def simulate(
    topology: Topology,
    faults: Sequence[Fault],
    positions: np.ndarray,
    intensities: np.ndarray,
    ramps: np.ndarray,
    ticks: int,
    lag: int = 1,
) -> dict[str, np.ndarray]:
    """`cluster.untreated_states` for many injections with onset 1 at once: the fields of `State`,
    (H, T, S).
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
        name: np.array([getattr(f, name) for f in faults])
        for name in ("capacity", "latency", "errors", "load", "pool", "cache")
    }
    shape = (len(positions), size)
    load, latency = (
        np.broadcast_to(x, shape).astype(float) for x in (network.rest_load, network.rest_latency)
    )
    errors = np.zeros(shape)
    idle, external = np.array(network.idle_latency), np.array(network.external)
    pool, cpu = (
        np.broadcast_to(x, shape).astype(float) for x in (network.rest_pool, network.rest_cpu)
    )
    history = [(load, latency, errors, pool, cpu)]
    for tick in range(1, ticks + 1):
        strength = intensities * np.minimum(1.0, tick / ramps)
        perceived_load, perceived_latency, perceived_errors = history[max(0, tick - lag)][:3]
        demand = external + (perceived_load @ share) * (1.0 + cluster.RETRIES * errors)
        demand[rows, positions] += (
            effect["load"] * strength * np.array(network.rest_load)[positions]
        )
        capacity = np.broadcast_to(network.capacity, shape).copy()
        capacity[rows, positions] *= (1 - effect["capacity"] * strength) / (
            1 + cluster.CACHE_COST * effect["cache"] * strength
        )
        busy = demand / capacity
        response = idle / (1.0 - np.minimum(busy, cluster.QUEUE_LIMIT)) + perceived_latency @ wait.T
        response[rows, positions] += effect["latency"] * strength * idle[positions]
        succeeds = np.ones(shape)
        for caller, callees in enumerate(network.callees):
            if network.routes[caller]:
                succeeds[:, caller] -= perceived_errors @ wait[caller]
            else:
                for callee, _ in callees:
                    succeeds[:, caller] *= 1.0 - perceived_errors[:, callee]
        succeeds[rows, positions] *= 1.0 - effect["errors"] * strength
        succeeds *= np.minimum(1.0, cluster.TIMEOUT_MS / response)
        response = np.minimum(response, cluster.TIMEOUT_MS)
        used = demand * response / 1000.0 / network.pool_size
        used[rows, positions] += effect["pool"] * strength
        succeeds /= np.maximum(1.0, used) * np.maximum(1.0, busy)
        load, errors = demand, 1.0 - succeeds
        history.append((load, response, errors, used, busy))
    names = ("load", "latency", "errors", "pool", "cpu")
    return {name: np.stack([state[i] for state in history], 1) for i, name in enumerate(names)}


class Prior:
    """The hypotheses of a task and split on one topology, before anything is seen.

    Attributes:
        position, fault, intensity, ramp, severity: of each hypothesis, (H,); position is -1 for a
            false alarm, fault an index into `faults`, severity 0 to 2 for P1 to P3.
        run, arrival: which trajectory, and the agent's first tick in it, (H,).
        weight: prior probability, (H, Q), columns as `quiet`.
        errors, latency, trouble: states of the trajectories, (runs, T, S); `errors_gap` and
            `latency_gap` are half the distance to the neighbouring intensities.
        visible: how much of a proof shows, (runs, T).
    """

    def __init__(self, topology: Topology, task: Task, split: str) -> None:
        self.topology, self.task = topology, task
        pairs = [
            (at, fault)
            for at, faults in candidate_pairs(topology, task.below_edge, split).items()
            for fault in faults
        ]
        chance = self._pair_chances(pairs)
        ramps = np.unique(
            np.linspace(*task.ramp, min(MOST_RAMPS, task.ramp[1] - task.ramp[0] + 1)).round()
        )
        leads = np.arange(task.lead[0], task.lead[1] + 1)
        grid = max(6, min(GRID, MOST_RUNS // (len(pairs) * len(ramps))))
        low, high = task.intensity
        levels = low + ((np.arange(grid) + 0.5) / grid) ** 2 * (high - low)
        shape = (len(pairs), len(ramps), grid)
        pair, ramp, level = (axis.ravel() for axis in np.indices(shape))
        positions = np.array([at for at, _ in pairs])
        ticks = task.lead[1] + task.max_steps
        states = simulate(
            topology,
            [pairs[p][1] for p in pair],
            positions[pair],
            levels[level],
            ramps[ramp],
            ticks,
            task.lag,
        )
        severity, shouts = self._judge(states, positions[pair], leads)
        counts = self._draw(severity.reshape(*shape, -1), shouts.reshape(*shape, -1), chance)
        run, lead = np.nonzero(counts.reshape(len(pair), -1))
        false_alarms = task.false_alarms
        weight = (1.0 - false_alarms) * counts.reshape(len(pair), -1)[run, lead]
        self.faults: list[Fault] = list(dict.fromkeys(fault for _, fault in pairs))
        of_pair = np.array([self.faults.index(fault) for _, fault in pairs])
        # The last trajectory stays at rest: no fault.
        for name in ("errors", "latency"):
            x = states[name].reshape(*shape, ticks + 1, -1)
            gap = np.abs(np.gradient(x, axis=2)) / 2.0
            setattr(self, name, self._with_rest(states[name], topology))
            setattr(
                self,
                f"{name}_gap",
                self._with_rest(gap.reshape(states[name].shape), topology, rest=False),
            )
        self.trouble = self._with_rest(self._trouble(states), topology, rest=False)
        self.visible = np.minimum(1.0, np.arange(ticks + 1) / np.append(ramps[ramp], 1.0)[:, None])
        alarm = false_alarms > 0
        self.run = np.append(run, [len(pair)] * alarm).astype(int)
        self.arrival = np.append(leads[lead], [task.lead[0]] * alarm).astype(int)
        self.position = np.append(positions[pair[run]], [-1] * alarm).astype(int)
        self.fault = np.append(of_pair[pair[run]], [0] * alarm).astype(int)
        self.intensity = np.append(levels[level[run]], [0.0] * alarm)
        self.ramp = np.append(ramps[ramp[run]], [1.0] * alarm).astype(int)
        self.severity = np.append(
            np.where(severity < 0, 1, severity)[run, lead], [2] * alarm
        ).astype(int)
        self.quiet, times = np.unique(task.quiet, return_counts=True)
        self.weight = np.append(weight, [false_alarms] * alarm)[:, None] * (times / times.sum())

    def _pair_chances(self, pairs: list[tuple[int, Fault]]) -> np.ndarray:
        """Chance that the generator tries each pair: services uniformly, then their faults
        uniformly.
        """
        positions = [at for at, _ in pairs]
        return np.array([1.0 / len(set(positions)) / positions.count(at) for at in positions])

    def _with_rest(self, values: np.ndarray, topology: Topology, rest: bool = True) -> np.ndarray:
        at_rest = np.zeros((1, *values.shape[1:]), values.dtype)
        if rest and values.max() > 1.0:  # latencies; everything else rests at zero
            at_rest += np.array(topology.network.rest_latency)
        return np.concatenate([values, at_rest])

    def _trouble(self, states: dict[str, np.ndarray]) -> np.ndarray:
        """`incidents.in_trouble` of every state."""
        slow = states["latency"] > 2.0 * np.array(self.topology.network.rest_latency)
        return (states["errors"] > 0.02) | slow | (states["cpu"] > 0.9) | (states["pool"] > 0.9)

    def _judge(
        self, states: dict[str, np.ndarray], positions: np.ndarray, leads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Severity (0 to 2, -1 too near a boundary) and whether a caller of the root shouts, (runs,
        leads).
        """
        edges = list(self.topology.edges)
        rest, until = np.array(self.topology.network.rest_latency), leads + self.task.max_steps
        errors = np.maximum.accumulate(states["errors"][:, :, edges].max(2), 1)[:, until]
        slowdown = np.maximum.accumulate((states["latency"] / rest)[:, :, edges].max(2), 1)[
            :, until
        ]
        severity = np.where((errors > NOTICED_ERRORS[1]) | (slowdown > NOTICED_SLOWDOWN[1]), 1, 2)
        near = (severity == 2) & ((errors > NOTICED_ERRORS[0]) | (slowdown > NOTICED_SLOWDOWN[0]))
        severity[near | (errors > OUTAGE_ERRORS[0])] = -1
        severity[errors > OUTAGE_ERRORS[1]] = 0
        calls = np.zeros((len(rest), len(rest)), bool)
        for caller, callees in enumerate(self.topology.network.callees):
            for callee, _ in callees:
                calls[callee, caller] = True
        shouts = (self._trouble(states)[:, leads] & calls[positions][:, None, :]).any(2)
        return severity, shouts | (not self.task.below_edge)

    def _draw(self, severity: np.ndarray, shouts: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Probability of each (pair, ramp, level, lead): the generator's aimed rejection, played on
        the grid.
        """
        random, (pairs, ramps, grid, leads) = np.random.default_rng(0), severity.shape
        draws = max(100, PRIOR_DRAWS // pairs)
        outages = (
            [(None, 1.0)]
            if self.task.outage is None
            else [(True, self.task.outage), (False, 1.0 - self.task.outage)]
        )
        low, high = self.task.intensity
        total, pair = np.zeros(severity.shape), np.repeat(np.arange(pairs), draws)
        for outage, share in outages:
            if not share:
                continue
            counts, live = np.zeros(severity.shape), np.ones(len(pair), bool)
            bottom, top = np.full(len(pair), low), np.full(len(pair), high)
            for _ in range(INTENSITY_DRAWS):
                intensity = bottom + random.random(len(pair)) ** 2 * (top - bottom)
                cell = np.minimum(
                    grid - 1, np.sqrt((intensity - low) / max(high - low, 1e-9)) * grid
                ).astype(int)
                at = (
                    pair,
                    random.integers(ramps, size=len(pair)),
                    cell,
                    random.integers(leads, size=len(pair)),
                )
                known = severity[at] >= 0
                missed = (
                    known & ((severity[at] == 0) != outage)
                    if outage is not None
                    else np.zeros(len(pair), bool)
                )
                mute = ~missed & ~shouts[at]
                taken = live & known & ~missed & ~mute
                bottom = np.where((missed & bool(outage)) | mute, intensity, bottom)
                top = np.where(missed & (not outage), intensity, top)
                np.add.at(counts, tuple(index[taken] for index in at), 1.0)
                live &= ~taken
            # A pair that the draws hardly ever reached keeps a trace of weight, lest the truth be
            # thought impossible.
            rare = counts.sum((1, 2, 3)) < FEW_DRAWS
            possible = (severity >= 0) & shouts
            possible |= ~possible.any((1, 2, 3), keepdims=True)
            counts[rare] += possible[rare] / possible[rare].sum((1, 2, 3), keepdims=True)
            counts *= chance[:, None, None, None]
            total += share * counts / counts.sum()
        return total


@lru_cache(maxsize=8)  # a prior has 4 to 25 MB on 7 services, and 50 to 100 MB on 30
def cached_prior(topology: Topology, task: Task, split: str) -> Prior:
    """The prior, kept for the next incident on that call graph."""
    return Prior(topology, task, split)
