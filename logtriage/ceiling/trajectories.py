"""The simulator for many faults at once: the cluster's states under every hypothesis.

The same equations as `world.cluster.next_state`, on arrays. Shapes: `R` runs (a fault, at a
service, of an intensity, with a ramp), `T` ticks, `S` services.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..world import cluster
from ..world.cluster import DEGRADED_ERRORS, DEGRADED_SATURATION, DEGRADED_SLOWDOWN
from ..world.faults import Fault
from ..world.topology import TIMEOUT_MS, Topology


def simulate(
    topology: Topology,
    faults: Sequence[Fault],
    positions: np.ndarray,
    intensities: np.ndarray,
    ramps: np.ndarray,
    ticks: int,
) -> dict[str, np.ndarray]:
    """`cluster.untreated_states` for many injections with onset 1 at once, each argument but the
    first and the last of shape (R,): the fields of `cluster.State`, each (R, ticks + 1, S).
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
    slow = states["latency"] > DEGRADED_SLOWDOWN * np.array(topology.network.rest_latency)
    busy = (states["cpu"] > DEGRADED_SATURATION) | (states["pool"] > DEGRADED_SATURATION)
    return (states["errors"] > DEGRADED_ERRORS) | slow | busy
