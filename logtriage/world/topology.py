"""Call graphs that can be simulated, and how they are compiled for the simulator.

No other module names a service. The default is a seven-service shop;
`random_topology` draws call graphs of 5 to 30 services, and `topology_file` reads one from YAML.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from .call_graph import KINDS, CallGraph, Service
from .exact import shuffled, total

# Assumptions about the hardware, all in one place: milliseconds at an idle service, and requests
# per second at the edge.
IDLE_LATENCY_MS = {"edge": 4.0, "app": 20.0, "database": 6.0, "queue": 3.0}
EDGE_TRAFFIC = 600.0
REST_UTILISATION = 0.5  # headroom of two, the usual capacity-planning rule
POOL_HEADROOM = 5.0  # a pool holds five times what Little's law asks for at rest
TIMEOUT_MS = 3000.0  # a request that takes longer has failed

MOST_SERVICES = 30  # more would not fit in a prompt or a readable drawing
SMALLEST_RANDOM = 5  # services of a random call graph: an edge, two apps, two stateful services


@dataclass(frozen=True)
class Network:
    """A topology compiled for the simulator: plain lists, indexed by service position.

    `callers[i]` and `callees[i]` hold `(position, share)`, where share is the part of the caller's
    requests that makes this call; `callees` has synchronous calls only. `routes[i]` is true if each
    request goes to *one* callee. Rates are per second, latencies in ms, pools in connections.
    """

    callers: list[list[tuple[int, float]]]
    callees: list[list[tuple[int, float]]]
    routes: list[bool]
    external: list[float]
    idle_latency: list[float]
    capacity: list[float]
    pool_size: list[float]
    rest_load: list[float]
    rest_latency: list[float]
    rest_pool: list[float]
    rest_cpu: list[float]


class Topology(CallGraph):
    """A call graph that can be simulated, callers before callees (see `callers_first`)."""

    MOST = MOST_SERVICES
    KINDS = KINDS
    # Names appear in log lines, in `remedy:service`, in prompts and in links, so each is one word
    # that no program and no reader can take for something else.
    NAME = re.compile("[a-z][a-z0-9-]{0,39}")
    NAME_RULE = "a lower-case letter, then at most 39 lower-case letters, digits and hyphens"

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, service in enumerate(self.services):
            name, kind = service.name, service.kind
            if (service.handles_logins or service.session_cache) and kind != "app":
                rule = "only an app has handles_logins or session_cache"
                raise ValueError(f"{name} is of kind {kind}, and {rule}; leave them out")
            for callee in service.downstream:
                if self.position[callee] <= i:
                    wrong = f"{name} calls {callee}, which does not stand after it"
                    raise ValueError(f"{wrong}; list callers first")
        if not any(service.kind == "edge" for service in self.services):
            raise ValueError("no service of kind edge, where users enter; add one")
        for name, callers in self.callers.items():
            if not callers and self.service(name).kind != "edge":
                raise ValueError(f"nothing calls {name}; connect it, or make it an edge")
        # From below: the first that is too slow is where to fix it, not the edge above.
        for name, latency in zip(self.names[::-1], self.network.rest_latency[::-1], strict=True):
            if latency >= TIMEOUT_MS:
                waits = f"{name} waits so long for those below it that it passes the timeout"
                rule = f"of {TIMEOUT_MS:.0f} ms even at rest"
                raise ValueError(f"{waits} {rule}; take calls out, or make them publishes")

    @cached_property
    def network(self) -> Network:
        """The compiled form, sized so that every service rests at `REST_UTILISATION`."""
        size, position = len(self.services), self.position
        callers: list[list[tuple[int, float]]] = [[] for _ in range(size)]
        callees: list[list[tuple[int, float]]] = [[] for _ in range(size)]
        routes = [service.kind == "edge" for service in self.services]
        for i, service in enumerate(self.services):
            share = 1.0 / len(service.calls) if routes[i] and service.calls else 1.0
            for callee in service.calls:
                callees[i].append((position[callee], share))
                callers[position[callee]].append((i, share))
            for callee in service.publishes:
                callers[position[callee]].append((i, 1.0))
        external = [EDGE_TRAFFIC if routes[i] else 0.0 for i in range(size)]
        load, latency = list(external), [0.0] * size
        for i in range(size):
            load[i] += total(load[caller] * share for caller, share in callers[i])
        idle = [IDLE_LATENCY_MS[service.kind] for service in self.services]
        for i in reversed(range(size)):
            latency[i] = idle[i] / (1.0 - REST_UTILISATION) + total(
                share * latency[j] for j, share in callees[i]
            )
        pools = [POOL_HEADROOM * load[i] * latency[i] / 1000.0 for i in range(size)]
        capacity = [rate / REST_UTILISATION for rate in load]
        used = [load[i] * latency[i] / 1000.0 / pools[i] for i in range(size)]
        busy = [load[i] / capacity[i] for i in range(size)]
        return Network(
            callers, callees, routes, external, idle, capacity, pools, load, latency, used, busy
        )

    @cached_property
    def _reach(self) -> dict[int, tuple[int, ...]]:
        """See `reach`; filled lazily."""
        return {}

    def reach(self, root: int) -> tuple[int, ...]:
        """Positions whose state a fault at `root` can change; all others stay exactly at rest.

        Latency and errors travel up synchronous calls. Extra or retried load travels down all calls
        and may degrade services there, which travels up again. This is the closure of both.
        """
        if root not in self._reach:
            reached, frontier = {root}, [root]
            while frontier:
                at = frontier.pop()
                name = self.names[at]
                near = {i for i, caller in enumerate(self.services) if name in caller.calls}
                if at == root or self.callers[name]:
                    near |= {*self.below[at]}  # extra load of the root, retries by callers
                frontier += near - reached
                reached |= near
            self._reach[root] = tuple(sorted(reached))
        return self._reach[root]


def simulated(graph: CallGraph) -> Topology:
    """Return the same graph; `ValueError` if it was observed and cannot be simulated."""
    if not isinstance(graph, Topology):
        raise ValueError(
            "this call graph was observed and cannot be simulated, so what reasons with the "
            "simulator cannot be asked about it; choose another policy"
        )
    return graph


def callers_first(services: Iterable[Service]) -> tuple[Service, ...]:
    """Sort the services so that callers come first, else as given; `ValueError` for a cycle."""
    waiting, placed = list(services), []
    while waiting:
        called = {callee for service in waiting for callee in service.downstream}
        free = next((i for i, service in enumerate(waiting) if service.name not in called), None)
        if free is None:
            raise ValueError(
                f"services call each other in a cycle: {' > '.join(_cycle(waiting))}; "
                "leave out one of these calls"
            )
        placed.append(waiting.pop(free))
    return tuple(placed)


def _cycle(services: list[Service]) -> list[str]:
    """Find a cycle of calls, its first name repeated at the end; each service has a caller."""
    path = [services[0].name]
    while path[-1] not in path[:-1]:  # from callee to caller, until a name repeats
        path.append(next(caller.name for caller in services if path[-1] in caller.downstream))
    return path[path.index(path[-1]) :][::-1]


DEFAULT_TOPOLOGY = Topology(
    (
        Service(
            "api-gateway", "edge", calls=("auth-service", "payment-service", "notification-service")
        ),
        Service("auth-service", "app", calls=("user-db",), handles_logins=True, session_cache=True),
        Service("payment-service", "app", calls=("payment-db",)),
        Service("notification-service", "app", publishes=("email-queue",)),
        Service("user-db", "database"),
        Service("payment-db", "database"),
        Service("email-queue", "queue"),
    )
)


# Names in random call graphs: an edge's name, or a stem and a suffix by kind, as in `cart-svc`.
RANDOM_EDGES = ("edge-proxy", "web-gateway", "mobile-gateway")
RANDOM_STEMS = (
    *("cart", "catalog", "search", "billing", "profile", "shipping", "inventory", "pricing"),
    *("review", "login", "coupon", "ledger", "quote", "refund", "media", "geo", "tax", "audit"),
)
SUFFIXES = {"app": "svc", "database": "store", "queue": "events"}


def random_topology(
    random: Random, smallest: int = SMALLEST_RANDOM, largest: int = MOST_SERVICES
) -> Topology:
    """Draw a connected layered call graph of `smallest` to `largest` services, with names that the
    default never uses.

    One edge calls the first apps; any other service has one earlier app as its caller, and stateful
    services (databases, queues) are leaves. Fewer than `SMALLEST_RANDOM` leave too little room.
    """
    size = smallest + int(random.random() * (largest - smallest + 1))
    apps = max(2, (size - 1) // 2)
    stems = shuffled(random, RANDOM_STEMS)
    app_names = [f"{stem}-{SUFFIXES['app']}" for stem in stems[:apps]]
    leaf_stems = shuffled(random, RANDOM_STEMS)
    leaves: dict[str, str] = {}
    for stem in leaf_stems[: size - 1 - apps]:
        kind = "database" if random.random() < 0.75 else "queue"
        leaves[f"{stem}-{SUFFIXES[kind]}"] = kind
    calls: dict[str, list[str]] = {name: [] for name in app_names}
    front = max(2, apps // 3)  # the apps that the edge itself routes to
    for i in range(front, apps):
        calls[app_names[int(random.random() * i)]].append(app_names[i])
    publishes: dict[str, list[str]] = {name: [] for name in app_names}
    for name, kind in leaves.items():
        owner = app_names[int(random.random() * apps)]
        (calls if kind == "database" else publishes)[owner].append(name)
    logins, cached = app_names[int(random.random() * front)], app_names[int(random.random() * apps)]
    edge_name = RANDOM_EDGES[int(random.random() * len(RANDOM_EDGES))]
    edge = Service(edge_name, "edge", calls=tuple(app_names[:front]))
    middle = []
    for name in app_names:
        down = tuple(calls[name]), tuple(publishes[name])
        middle.append(Service(name, "app", *down, name == logins, name in (logins, cached)))
    return Topology((edge, *middle, *(Service(name, kind) for name, kind in leaves.items())))
