"""The faults of `production`: what each does to the root itself. All else is consequence.

A pair is the range of an effect, which is log-uniform in it; None is no effect.
"""

from typing import NamedTuple

import numpy as np

from .dials import Range

GROUPS = ("time", "requests", "resources", "lines")  # each has a strength of its own


class Failure(NamedTuple):
    """A kind of fault, with the remedy and the team that are scored apart."""

    name: str
    weight: float  # how often, beside the others
    remedy: str
    team: str
    hidden: tuple[float, float, float, float]  # chance that a group of `GROUPS` shows nothing
    slow: Range | None = None  # time: longer by so many times the root's usual latency
    added: Range | None = None  # time: longer by so many ms
    faster: Range | None = None  # time: shorter by this share of the root's own time
    delay: Range | None = None  # time: ms that each call to the root and from it waits longer
    neighbours: Range | None = None  # time: services on its machine, times their own time
    fails: Range | None = None  # requests: share that fails at the root
    drops: Range | None = None  # requests: share that the root ends without calling on
    load: Range | None = None  # requests: so many times the usual beyond the usual
    cpu: Range | None = None  # resources: times the root's usual beyond the usual
    memory: Range | None = None  # resources: likewise
    tells: Range | None = None  # lines: new error lines of the root a minute
    fewer: Range | None = None  # lines: share of the root's usual lines that do not come
    deployed: float = 0.0  # chance that the root was deployed within the hour


GROUP_OF = {
    **dict.fromkeys(("slow", "added", "faster", "delay", "neighbours"), 0),
    **dict.fromkeys(("fails", "drops", "load"), 1),
    **dict.fromkeys(("cpu", "memory"), 2),
    **dict.fromkeys(("tells", "fewer"), 3),
}
FAILURES = (
    Failure("network_delay", 3, "restart", "sre", (0, 0, 0, 0), delay=(20, 400)),
    Failure(
        "network_loss", 1, "restart", "sre", (0, 0.4, 0, 0), delay=(10, 200), fails=(0.01, 0.2)
    ),
    Failure(
        "cpu_contention",
        3,
        "restart",
        "sre",
        (0.1, 0, 0, 0),
        slow=(0.2, 8),
        neighbours=(0.02, 0.5),
        cpu=(1.5, 60),
    ),
    Failure("cpu_consumed", 1, "scale", "sre", (0, 0, 0, 0), slow=(0.2, 1), cpu=(2.5, 60)),
    Failure(
        "memory_leak",
        1,
        "restart",
        "backend",
        (0.2, 0, 0, 0.5),
        slow=(0.1, 2),
        cpu=(0.1, 1),
        memory=(0.08, 2),
        tells=(1, 30),
    ),
    Failure(
        "exception",
        3,
        "rollback",
        "backend",
        (0.4, 0, 0, 0.3),
        faster=(0.05, 0.8),
        fails=(0.03, 1),
        drops=(0.03, 1),
        tells=(2, 100),
        fewer=(0.2, 0.8),
        deployed=0.3,
    ),
    Failure(
        "wrong_result",
        2,
        "rollback",
        "backend",
        (0.5, 0, 0, 0.3),
        faster=(0.1, 0.8),
        drops=(0.4, 1),
        fewer=(0.3, 0.9),
        deployed=0.5,
    ),
    Failure("added_delay", 3, "rollback", "backend", (0, 0, 0, 0), added=(40, 4000), deployed=0.2),
    Failure("slow_query", 1.5, "kill-query", "dba", (0, 0, 0, 0), slow=(0.3, 12), cpu=(0.1, 3)),
    Failure(
        "faulty_code",
        3,
        "rollback",
        "backend",
        (0, 0, 0, 0.6),
        fails=(0.02, 1),
        drops=(0.02, 1),
        tells=(2, 100),
        deployed=0.2,
    ),
    Failure(
        "overload",
        1.5,
        "scale",
        "sre",
        (0, 0, 0, 0.7),
        slow=(0.2, 8),
        load=(0.8, 12),
        cpu=(0.5, 6),
        tells=(1, 30),
    ),
    Failure(
        "noisy_neighbour",
        1,
        "scale",
        "sre",
        (0, 0, 0, 0),
        slow=(0.2, 3),
        neighbours=(0.2, 2),
        cpu=(10, 60),
    ),
    Failure(
        "misconfiguration",
        1.5,
        "rollback",
        "backend",
        (0.5, 0, 0, 0.3),
        slow=(0.2, 4),
        fails=(0.03, 1),
        drops=(0.03, 1),
        tells=(2, 100),
        deployed=0.6,
    ),
)
NO_FAULT = len(FAILURES)  # the number of "nothing is wrong"
NO_FAULT_SHARE = 0.06
CHANCES = np.array([one.weight for one in FAILURES])
CHANCES = np.append(CHANCES / CHANCES.sum() * (1.0 - NO_FAULT_SHARE), NO_FAULT_SHARE)
HIDDEN = np.array([one.hidden for one in FAILURES] + [(1.0,) * len(GROUPS)], np.float32)
DEPLOYED = np.array([one.deployed for one in FAILURES] + [0.0], np.float32)
NETWORK = tuple(at for at, one in enumerate(FAILURES) if one.delay)  # need a caller


def _logs(effect: str) -> tuple[np.ndarray, np.ndarray]:
    """Log of an effect's lowest size, and how far its highest is above, by kind of fault."""
    ranges = [getattr(one, effect) for one in FAILURES] + [None]  # nothing is wrong
    lowest = [np.log(one[0]) if one else -np.inf for one in ranges]
    widths = [np.log(one[1] / one[0]) if one else 0.0 for one in ranges]
    return np.array(lowest, np.float32), np.array(widths, np.float32)


_LOGS = {effect: _logs(effect) for effect in GROUP_OF}


def sizes(kind: np.ndarray, strength: np.ndarray) -> dict[str, np.ndarray]:
    """Effect to its size, 0 where the fault has none of it or its group shows nothing.

    Args:
        kind: numbers in `FAILURES`, or `NO_FAULT`, of any shape.
        strength: [..., group], each in [0, 1]; nan for a group that shows nothing.
    """
    found = {}
    for effect, (lowest, width) in _LOGS.items():
        size = np.exp(lowest[kind] + width[kind] * strength[..., GROUP_OF[effect]])
        found[effect] = np.nan_to_num(size, nan=0.0)
    return found
