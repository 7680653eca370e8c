"""How bad it is: the severity that users feel, and whether a service is in evident trouble."""

from __future__ import annotations

from .cluster import State
from .topology import Topology

# Severity boundaries: customer-facing errors, and slowdown of the edge against rest. Peaks between
# the two numbers of a pair are too near to call, and the incident is drawn again.
OUTAGE_ERRORS = (0.042, 0.06)
NOTICED_ERRORS = (0.002, 0.006)
NOTICED_SLOWDOWN = (1.12, 1.3)

# A service is in trouble from this share of failed requests, from this many times its latency at
# rest, or when its processor or its pool is nearly full.
TROUBLE_ERRORS = 0.02
TROUBLE_SLOWDOWN = 2.0
TROUBLE_SATURATION = 0.9


def user_impact(topology: Topology, states: list[State]) -> tuple[float, float]:
    """Peak error fraction and peak slowdown (ratio to rest) over `states`, the worse edge's."""
    rest, edges = topology.network.rest_latency, topology.edges
    return (
        max([state.errors[i] for i in edges for state in states]),
        max([max([state.latency[i] for state in states]) / rest[i] for i in edges]),
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


def in_trouble(topology: Topology, state: State, position: int) -> bool:
    """Whether a service fails too many requests, is too slow, or is near saturation."""
    return (
        state.errors[position] > TROUBLE_ERRORS
        or state.latency[position] > TROUBLE_SLOWDOWN * topology.network.rest_latency[position]
        or state.cpu[position] > TROUBLE_SATURATION
        or state.pool[position] > TROUBLE_SATURATION
    )
