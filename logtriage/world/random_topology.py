"""Random call graphs of 5 to 30 services, under names that the default never uses."""

from __future__ import annotations

from random import Random

from .topology import MOST_SERVICES, SMALLEST_RANDOM, Service, Topology

_EDGE_NAMES = ("edge-proxy", "web-gateway", "mobile-gateway")
_APPS = "cart catalog search billing profile shipping inventory pricing review login coupon ledger"
_APPS += " quote refund media geo tax audit"


def random_topology(
    random: Random, smallest: int = SMALLEST_RANDOM, largest: int = MOST_SERVICES
) -> Topology:
    """Draw a connected layered call graph of `smallest` to `largest` services under names the
    default never uses.

    One edge; apps call one or two later services; stateful services (databases, queues) are leaves.
    """
    if not SMALLEST_RANDOM <= smallest <= largest <= MOST_SERVICES:
        raise ValueError(
            f"a random topology has {SMALLEST_RANDOM} to {MOST_SERVICES} services, "
            f"got {smallest} to {largest}; choose a range within"
        )
    size = smallest + int(random.random() * (largest - smallest + 1))
    apps = max(2, (size - 1) // 2)
    stems = _APPS.split()
    random.shuffle(stems)
    app_names = [f"{stem}-svc" for stem in stems[:apps]]
    leaf_stems = _APPS.split()
    random.shuffle(leaf_stems)
    leaves = [
        (f"{stem}-store", "database") if random.random() < 0.75 else (f"{stem}-events", "queue")
        for stem in leaf_stems[: size - 1 - apps]
    ]
    calls: dict[str, list[str]] = {name: [] for name in app_names}
    front = max(2, apps // 3)  # the apps that the edge itself routes to
    for i in range(front, apps):
        calls[app_names[int(random.random() * i)]].append(app_names[i])
    publishes: dict[str, list[str]] = {name: [] for name in app_names}
    for name, kind in leaves:
        owner = app_names[int(random.random() * apps)]
        (calls if kind == "database" else publishes)[owner].append(name)
    logins, cached = app_names[int(random.random() * front)], app_names[int(random.random() * apps)]
    edge = Service(
        _EDGE_NAMES[int(random.random() * len(_EDGE_NAMES))], "edge", calls=tuple(app_names[:front])
    )
    middle = tuple(
        Service(
            name,
            "app",
            tuple(calls[name]),
            tuple(publishes[name]),
            name == logins,
            name in (logins, cached),
        )
        for name in app_names
    )
    return Topology((edge, *middle, *(Service(name, kind) for name, kind in leaves)))
