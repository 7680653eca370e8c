"""Random call graphs of 5 to 30 services, under names that the default never uses.

The graphs of the split `unseen_topology` are named from `UNSEEN_NAMES`; training names its own from
`training.names`, which shares no word with those.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .call_graph import Service
from .exact import choose, shuffled
from .topology import MOST_SERVICES, SMALLEST_RANDOM, Topology


@dataclass(frozen=True)
class Vocabulary:
    """What the services of a random call graph are named from.

    `edges` are whole names; the others are a stem and, by kind of service, a suffix: `cart-svc`.
    """

    edges: tuple[str, ...]
    stems: tuple[str, ...]
    apps: tuple[str, ...]
    databases: tuple[str, ...]
    queues: tuple[str, ...]


_UNSEEN_STEMS = """
cart catalog search billing profile shipping inventory pricing review login coupon ledger quote
refund media geo tax audit
"""
UNSEEN_NAMES = Vocabulary(
    edges=("edge-proxy", "web-gateway", "mobile-gateway"),
    stems=tuple(_UNSEEN_STEMS.split()),
    apps=("svc",),
    databases=("store",),
    queues=("events",),
)


def random_topology(
    random: Random,
    smallest: int = SMALLEST_RANDOM,
    largest: int = MOST_SERVICES,
    names: Vocabulary = UNSEEN_NAMES,
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
    stems = shuffled(random, names.stems)
    app_names: list[str] = []
    for stem in stems[:apps]:
        app_names.append(_name(stem, names.apps, app_names, random))
    leaf_stems = shuffled(random, names.stems)
    leaves: dict[str, str] = {}
    for stem in leaf_stems[: size - 1 - apps]:
        kind = "database" if random.random() < 0.75 else "queue"
        suffixes = names.databases if kind == "database" else names.queues
        leaves[_name(stem, suffixes, app_names, random)] = kind
    calls: dict[str, list[str]] = {name: [] for name in app_names}
    front = max(2, apps // 3)  # the apps that the edge itself routes to
    for i in range(front, apps):
        calls[app_names[int(random.random() * i)]].append(app_names[i])
    publishes: dict[str, list[str]] = {name: [] for name in app_names}
    for name, kind in leaves.items():
        owner = app_names[int(random.random() * apps)]
        (calls if kind == "database" else publishes)[owner].append(name)
    logins, cached = app_names[int(random.random() * front)], app_names[int(random.random() * apps)]
    edges = [name for name in names.edges if name not in calls and name not in leaves]
    edge = Service(edges[int(random.random() * len(edges))], "edge", calls=tuple(app_names[:front]))
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
    return Topology((edge, *middle, *(Service(name, kind) for name, kind in leaves.items())))


def _name(stem: str, suffixes: tuple[str, ...], taken: list[str], random: Random) -> str:
    """A name of that stem that is not taken; a suffix is drawn only where there is a choice."""
    free = [suffix for suffix in suffixes if f"{stem}-{suffix}" not in taken]
    return f"{stem}-{free[0] if len(free) == 1 else choose(random, free)}"
