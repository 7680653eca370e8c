"""The data of `production`: how messy clusters are, and what faults do.

A pair is a range of domain randomisation: each cluster draws from it, uniformly unless a comment
says otherwise. Comments also give the statistics of real cases (docs/real.md) that a range follows,
in the order PetShop, Train Ticket, Online Boutique. If they give none, the sources do not tell it.
"""

from typing import NamedTuple

import numpy as np

Range = tuple[float, float]

# -- the call graph
SERVICES = (10, 45)  # log-uniform; 43, 28 and 10
LAYERS = (3, 6)  # services on the longest path: 6, 6 and 3
ENTRIES = 0.6  # chance, each time, that users reach no further service; 5 at most
# Chance that a service has more than one caller: .16, .48 and .44; at most 6 callers.
SHARED = (0.05, 0.65)
FEWER_CALLERS = (0.35, 0.7)  # chance, each time, that such a service has no further caller
PROXIES = (0.0, 0.4)  # share of services that only pass requests on: PetShop's clients, buckets
UNUSED = (-0.1, 0.25)  # share of services that nobody calls these days; below 0 means none

# -- the usual
OWN_TIME = (5.0, 1.2)  # ms that a service itself takes: median, and sigma of its logarithm
REQUESTS = (2.0, 1.5)  # requests a second at an entry: median and sigma; .01 to 300
ERRORS = 0.15  # share of services that usually have some failing requests
USUAL_ERRORS = (0.003, 1.8)  # share of their requests: median and sigma
P95_BAND = (0.45, 0.7)  # half width of a p95's band, relative to the usual: .34, 1.02 and .67

# -- today
LOAD = (0.02, 0.35)  # how far all requests wander together
DRIFT = (0.02, 0.3)  # how far a service's day is from its usual: first samples are .1 to .3 off
CORRELATED = (0.0, 0.7)  # correlation of a sample with the one before
SHIFTS = (0.0, 0.12)  # chance that a metric is at another level: 10, 5 and 1 bystanders
SPIKES = (0.0, 0.06)  # chance that one sample of a metric is far off
FAILING = (0.0, 0.06)  # chance that a bystander fails on its own
# Sigmas of logarithms, as median and sigma: the callee's and the network's part of a wait (.43 and
# .03; .28 and .37), the p95 of a service's calls relative to its own, memory, its machine's cpu.
SERVED_NOISE = (0.15, 1.0)
NETWORK_NOISE = (0.3, 0.5)
CALLS_P95 = (1.5, 0.7)
MEMORY = (0.01, 0.9)
NODE_CPU = (0.09, 0.7)
FAR_CALLS = (0.0, 0.3)  # chance that a wait is at another level: up to .2
UNTIMED = (0.0, 0.3)  # share of calls whose waits nobody knows: .16 and 0
BUSY = (0.02, 0.5)  # how far requests of one service wander
MISSING = (0.0, 0.06)  # share of samples that are lost, besides those without a request
DARK = (0.0, 0.12)  # share of services for which only requests are measured
DEPLOYS = 0.1  # chance that an innocent service was deployed within the hour

# -- what errors do
PASSED_ON = (0.3, 1.0)  # share of its failed calls for which a caller's request fails
SWALLOWED = 0.35  # share of calls whose failure the caller hides

# Effects of faults at the root; all else follows from them. Each group has its own strength.
GROUPS = ("time", "requests", "resources", "lines")
GROUP_OF = {
    "slow": 0,  # longer by so many times the root's usual latency
    "added": 0,  # longer by so many ms
    "faster": 0,  # shorter by this share of the root's own time
    "delay": 0,  # ms that each call to the root waits longer: 2,000 and more, and 250 to 750
    "neighbours": 0,  # slows other services on its machine by so many times their own time
    "fails": 1,  # share of requests that fails at the root
    "drops": 1,  # share that the root ends without calling its callees
    "load": 1,  # added requests, in multiples of the usual
    "cpu": 2,  # added use, in multiples of the root's usual
    "memory": 2,  # likewise
    "tells": 3,  # new error lines of the root a minute
    "fewer": 3,  # share of the root's usual lines that are missing
}


class Failure(NamedTuple):
    """A kind of fault, with its remedy and its team, which are scored separately."""

    name: str
    weight: float  # how often it occurs, relative to the others
    remedy: str
    team: str
    hidden: tuple[float, float, float, float]  # chance for each of `GROUPS` to show nothing
    deployed: float  # chance that the root was deployed within the hour
    effects: dict[str, Range]  # of `GROUP_OF`, each log-uniform in its range


ALWAYS = (0, 0, 0, 0)  # every group shows
FAILURES = (
    Failure("network_delay", 3, "restart", "sre", ALWAYS, 0, {"delay": (200, 4000)}),
    Failure(
        "network_loss", 1, "restart", "sre", (0, 0.4, 0, 0), 0,
        {"delay": (100, 1000), "fails": (0.01, 0.2)},
    ),
    Failure(
        "cpu_contention", 3, "restart", "sre", (0.1, 0, 0, 0), 0,
        {"slow": (0.2, 40), "neighbours": (0.02, 0.5), "cpu": (1.5, 60), "memory": (0.01, 0.4)},
    ),
    Failure(
        "cpu_consumed", 1, "scale", "sre", ALWAYS, 0,
        {"slow": (0.2, 20), "cpu": (2.5, 60), "memory": (0.01, 0.2)},
    ),
    Failure(
        "memory_leak", 1, "restart", "backend", (0.1, 0, 0, 0.2), 0,
        {"slow": (0.1, 2), "cpu": (0.1, 1), "memory": (0.3, 3), "tells": (1, 30)},
    ),
    Failure(
        "exception", 3, "rollback", "backend", (0.3, 0, 0, 0.2), 0.3,
        {"faster": (0.05, 0.8), "fails": (0.03, 1), "drops": (0.03, 1), "tells": (2, 100),
         "fewer": (0.2, 0.8)},
    ),
    Failure(
        "wrong_result", 2, "rollback", "backend", (0.1, 0, 0, 0.1), 0.5,
        {"faster": (0.1, 0.8), "drops": (0.4, 1), "fewer": (0.5, 0.95)},
    ),
    Failure("added_delay", 3, "rollback", "backend", ALWAYS, 0.2, {"added": (40, 4000)}),
    Failure(
        "slow_query", 1.5, "kill-query", "dba", ALWAYS, 0, {"slow": (0.3, 12), "cpu": (0.1, 3)},
    ),
    Failure(
        "faulty_code", 3, "rollback", "backend", (0.3, 0, 0, 0.3), 0.2,
        {"slow": (0.03, 0.6), "fails": (0.02, 1), "drops": (0.02, 1), "tells": (2, 100)},
    ),
    Failure(
        "overload", 1.5, "scale", "sre", (0, 0, 0, 0.7), 0,
        {"slow": (0.2, 8), "load": (0.8, 12), "cpu": (0.5, 6), "tells": (1, 30)},
    ),
    Failure(
        "noisy_neighbour", 1, "scale", "sre", ALWAYS, 0,
        {"slow": (0.2, 3), "neighbours": (0.2, 2), "cpu": (10, 60)},
    ),
    Failure(
        "misconfiguration", 1.5, "rollback", "backend", (0.4, 0, 0, 0.2), 0.6,
        {"slow": (0.2, 4), "fails": (0.03, 1), "drops": (0.03, 1), "tells": (2, 100)},
    ),
)  # fmt: skip
NO_FAULT = len(FAILURES)  # the number of "nothing is wrong"
NO_FAULT_SHARE = 0.06
CHANCES = np.array([fault.weight for fault in FAILURES])
CHANCES = np.append(CHANCES / CHANCES.sum() * (1.0 - NO_FAULT_SHARE), NO_FAULT_SHARE)
HIDDEN = np.array([fault.hidden for fault in FAILURES] + [(1.0,) * len(GROUPS)], np.float32)
DEPLOYED = np.array([fault.deployed for fault in FAILURES] + [0.0], np.float32)
NETWORK = tuple(
    at for at, fault in enumerate(FAILURES) if "delay" in fault.effects
)  # need a caller


def _logs(effect: str) -> tuple[np.ndarray, np.ndarray]:
    """Log of an effect's lowest size, and how far that of its highest is above, by kind."""
    ranges = [fault.effects.get(effect) for fault in FAILURES] + [None]  # nothing is wrong
    lowest = [np.log(ends[0]) if ends else -np.inf for ends in ranges]
    widths = [np.log(ends[1] / ends[0]) if ends else 0.0 for ends in ranges]
    return np.array(lowest, np.float32), np.array(widths, np.float32)


_LOGS = {effect: _logs(effect) for effect in GROUP_OF}


def sizes(kind: np.ndarray, strength: np.ndarray) -> dict[str, np.ndarray]:
    """Return the size of each effect, 0 if the fault lacks it or its group shows nothing.

    Args:
        kind: numbers in `FAILURES`, or `NO_FAULT`, of any shape.
        strength: [..., group], each in [0, 1]; nan for a group that shows nothing.
    """
    effects = {}
    for effect, (lowest, width) in _LOGS.items():
        size = np.exp(lowest[kind] + width[kind] * strength[..., GROUP_OF[effect]])
        effects[effect] = np.nan_to_num(size, nan=0.0)
    return effects
