"""The cluster as data: who calls whom, who owns what, and how the graph is compiled for the
simulator.

Nothing else in the package names a service. The default is a seven-service shop;
`random_topology` draws others, and `topology_file` reads one from YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

KINDS = ("edge", "app", "database", "queue")
TEAMS = ("sre", "backend", "dba", "security")
OWNERS = {"edge": "sre", "app": "backend", "database": "dba", "queue": "sre"}

# Judgements about the hardware, one place. Milliseconds at an idle service, and requests per second
# at the edge.
IDLE_LATENCY_MS = {"edge": 4.0, "app": 20.0, "database": 6.0, "queue": 3.0}
EDGE_TRAFFIC = 600.0
REST_UTILISATION = 0.5  # headroom of two, the usual capacity-planning rule
POOL_HEADROOM = 5.0  # a pool holds five times what Little's law asks for at rest
TIMEOUT_MS = 3000.0  # a request that takes longer has failed

MOST_SERVICES = 30  # more would not fit a prompt, nor a drawing that can be read
# Names stand in log lines, in `remedy:service`, in prompts and in links: one word that no program
# and no reader could take for something else.
NAME = re.compile("[a-z][a-z0-9-]{0,39}")
NAME_RULE = "a lower-case letter, then at most 39 lower-case letters, digits and hyphens"
SMALLEST_RANDOM = 5  # services of a random call graph: an edge, two apps, what they lean on
RESERVED_NAME = "all"  # what `request_more_logs` takes for every service


class TopologyError(ValueError):
    """A call graph that cannot be simulated. `at` is where: (), (service,) or (service, callee)."""

    def __init__(self, message: str, *at: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True)
class Service:
    """One service.

    `calls` are synchronous (the caller waits); `publishes` are not (the caller moves on).
    """

    name: str
    kind: str
    calls: tuple[str, ...] = ()
    publishes: tuple[str, ...] = ()
    handles_logins: bool = False
    session_cache: bool = False

    @property
    def owner(self) -> str:
        """The team that owns services of this kind."""
        return OWNERS[self.kind]

    @property
    def is_edge(self) -> bool:
        """Whether users enter here."""
        return self.kind == "edge"

    @property
    def downstream(self) -> tuple[str, ...]:
        """Names of everything it sends work to: its calls, then what it publishes to."""
        return self.calls + self.publishes


@dataclass(frozen=True)
class Network:
    """A topology compiled for the simulator: plain lists, indexed by service position.

    `callers[i]` and `callees[i]` hold `(position, share)`: the share of the caller's requests that
    goes there. `callees` is synchronous only. `routes[i]` says that requests go to *one* of the
    callees (a router) rather than to all of them. Rates are requests per second, latencies
    milliseconds, pools a number of connections.
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


@dataclass(frozen=True)
class Topology:
    """A validated call graph, callers before callees (see `callers_first`).

    Raises:
        TopologyError: when the graph cannot be simulated; a `ValueError` that names the service and
            the way out.
    """

    services: tuple[Service, ...]

    def __post_init__(self) -> None:
        check_size(len(self.services))
        names = [service.name for service in self.services]
        for name in names:  # first of all: a wrong name here is a dangling call there
            if names.count(name) > 1:
                raise TopologyError(f"service {name} stands twice; rename one", name)
        placed: set[str] = set()
        for service in self.services:
            self._check_service(service, names)
            placed.add(service.name)
            for callee in service.downstream:
                if callee in placed:
                    raise TopologyError(
                        f"{service.name} calls {callee}, which does not stand after it; "
                        "list callers first",
                        service.name,
                        callee,
                    )
        if not any(service.is_edge for service in self.services):
            raise TopologyError("no service of kind edge, where users enter; add one")
        called = {callee for service in self.services for callee in service.downstream}
        for service in self.services:
            if not service.is_edge and service.name not in called:
                raise TopologyError(
                    f"nothing calls {service.name}; connect it, or make it an edge", service.name
                )
        # From below: the first that is too slow is where to mend it, not the edge above.
        for name, latency in zip(names[::-1], self.network.rest_latency[::-1], strict=True):
            if latency >= TIMEOUT_MS:
                raise TopologyError(
                    f"{name} waits so long for those below it that it passes the timeout of "
                    f"{TIMEOUT_MS:.0f} ms even at rest; take calls out, or make them publishes",
                    name,
                )

    @staticmethod
    def _check_service(service: Service, names: list[str]) -> None:
        """What holds for a service whatever its place in the graph."""
        name, kind = service.name, service.kind
        if not isinstance(name, str) or not NAME.fullmatch(name) or name == RESERVED_NAME:
            raise TopologyError(
                f"bad service name {name!r:.60}; a name is {NAME_RULE}, and not {RESERVED_NAME!r}",
                name,
            )
        if kind not in KINDS:
            raise TopologyError(
                f"unknown kind {kind!r:.60} of {name}; choose one of {', '.join(KINDS)}", name
            )
        if (service.handles_logins or service.session_cache) and kind != "app":
            raise TopologyError(
                f"{name} is of kind {kind}, and only an app has handles_logins or session_cache; "
                "leave them out",
                name,
            )
        for callee in service.downstream:
            if callee not in names:
                raise TopologyError(
                    f"{name} calls unknown service {callee!r:.60}; services are {', '.join(names)}",
                    name,
                    callee,
                )
            if service.downstream.count(callee) > 1:
                raise TopologyError(
                    f"{name} names {callee} twice; once is enough, as a call or as a publish",
                    name,
                    callee,
                )

    def __hash__(self) -> int:
        # Equal graphs have equal names, and a graph is looked up at every incident: keep it quick.
        return hash(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Service names, in position order."""
        return tuple(service.name for service in self.services)

    @cached_property
    def position(self) -> dict[str, int]:
        """Name to position."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """Positions of the services where users enter."""
        return tuple(i for i, service in enumerate(self.services) if service.is_edge)

    @cached_property
    def depth(self) -> dict[str, int]:
        """Hops from the nearest edge, over calls and publishes."""
        depth = {service.name: 0 for service in self.services if service.is_edge}
        for service in self.services:
            for callee in service.downstream:
                depth[callee] = min(depth.get(callee, len(self.services)), depth[service.name] + 1)
        return depth

    @cached_property
    def callers(self) -> dict[str, tuple[str, ...]]:
        """Name to the names of everything that calls it or publishes to it."""
        return {
            name: tuple(s.name for s in self.services if name in s.downstream)
            for name in self.names
        }

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """Position to the positions of everything it calls or publishes to."""
        return tuple(tuple(self.position[name] for name in s.downstream) for s in self.services)

    @cached_property
    def call_graph_text(self) -> str:
        """One clause a caller, `a > b c; b > d`: how a prompt shows the graph."""
        return "; ".join(
            f"{s.name} > {' '.join(s.downstream)}" for s in self.services if s.downstream
        )

    @cached_property
    def layout(self) -> dict[str, tuple[float, float]]:
        """Name to (x, y) for a drawing: depth downwards, siblings side by side over (0, 1) and near
        their callers.
        """
        rows: dict[int, list[str]] = {}
        for name in self.names:
            rows.setdefault(self.depth[name], []).append(name)
        at: dict[str, tuple[float, float]] = {}
        for depth, names in sorted(rows.items()):
            callers = {
                name: [at[caller][0] for caller in self.callers[name] if caller in at]
                for name in names
            }
            names.sort(
                key=lambda name: sum(callers[name]) / len(callers[name]) if callers[name] else 0.0
            )
            for i, name in enumerate(names):
                at[name] = ((i + 0.5) / len(names), -float(depth))
        return at

    def service(self, name: str) -> Service:
        """The service of that name; `ValueError` with the valid names otherwise."""
        try:
            return self.services[self.position[name]]
        except KeyError:
            raise ValueError(
                f"unknown service {name!r}; choose one of {', '.join(self.names)}"
            ) from None

    @cached_property
    def network(self) -> Network:
        """The compiled form, sized so that every service rests at `REST_UTILISATION`."""
        size, position = len(self.services), self.position
        callers: list[list[tuple[int, float]]] = [[] for _ in range(size)]
        callees: list[list[tuple[int, float]]] = [[] for _ in range(size)]
        routes = [service.is_edge for service in self.services]
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
            load[i] += sum(load[caller] * share for caller, share in callers[i])
        idle = [IDLE_LATENCY_MS[service.kind] for service in self.services]
        for i in reversed(range(size)):
            latency[i] = idle[i] / (1.0 - REST_UTILISATION) + sum(
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
    def _reach(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """See `reach`; filled lazily, one entry a set of roots."""
        return {}

    def reach(self, *roots: int) -> tuple[int, ...]:
        """Positions whose state faults at `roots` can change: everything else stays exactly at
        rest.

        Trouble climbs synchronous calls as latency and errors. Extra or retried load descends all
        calls, and may make trouble there, which climbs again: the closure of both.
        """
        if roots not in self._reach:
            network = self.network
            above = [
                [i for i, _ in network.callers[k] if any(j == k for j, _ in network.callees[i])]
                for k in range(len(self.names))
            ]
            troubled, frontier = set(roots), list(roots)
            while frontier:
                at = frontier.pop()
                # A service with callers is retried, and a root may carry extra load: both push load
                # down.
                down = list(self.below[at]) if at in roots or network.callers[at] else []
                for neighbour in above[at] + down:
                    if neighbour not in troubled:
                        troubled.add(neighbour)
                        frontier.append(neighbour)
            self._reach[roots] = tuple(sorted(troubled))
        return self._reach[roots]


def check_size(services: int) -> None:
    """Raise `TopologyError` unless a call graph may have so many services."""
    if not 1 <= services <= MOST_SERVICES:
        raise TopologyError(
            f"a call graph has 1 to {MOST_SERVICES} services, got {services}; "
            "keep those that users wait for"
        )


def callers_first(services: Iterable[Service]) -> tuple[Service, ...]:
    """The services so that each stands after its callers, and otherwise in the order given.

    Raises:
        TopologyError: for services that call each other in a circle, naming the circle.
    """
    waiting, placed = list(services), []
    while waiting:
        called = {callee for service in waiting for callee in service.downstream}
        free = next((i for i, service in enumerate(waiting) if service.name not in called), None)
        if free is None:
            circle = _circle(waiting)
            raise TopologyError(
                f"services call each other in a circle: {' > '.join(circle)}; "
                "leave out one of these calls",
                *circle[:2],
            )
        placed.append(waiting.pop(free))
    return tuple(placed)


def _circle(services: list[Service]) -> list[str]:
    """Names along a circle of calls, the first again at the end; each service has a caller."""
    path = [services[0].name]
    while path[-1] not in path[:-1]:  # from callee to caller, until one comes again
        path.append(next(one.name for one in services if path[-1] in one.downstream))
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
