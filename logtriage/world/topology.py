"""The cluster as data: who calls whom, who owns what, and how the graph is compiled for the
simulator.

Nothing else in the package names a service. The default is a seven-service shop; `random_topology`
draws call graphs of 5 to 30 services, and `load_topology` reads one from YAML:

    services:
      - {name: front, kind: edge, calls: [cart]}
      - {name: cart, kind: app, calls: [cart-db], session_cache: true}
      - {name: cart-db, kind: database}
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

KINDS = ("edge", "app", "database", "queue")
TEAMS = ("sre", "backend", "dba", "security")
OWNERS = {"edge": "sre", "app": "backend", "database": "dba", "queue": "sre"}

# Judgements about the hardware, one place. Milliseconds at an idle service, and requests per second
# at the edge.
IDLE_LATENCY_MS = {"edge": 4.0, "app": 20.0, "database": 6.0, "queue": 3.0}
EDGE_TRAFFIC = 600.0
REST_UTILISATION = 0.5  # headroom of two, the usual capacity-planning rule
POOL_HEADROOM = 5.0  # a pool holds five times what Little's law asks for at rest


@dataclass(frozen=True)
class Service:
    """One service. `calls` are synchronous (the caller waits); `publishes` are not (the caller
    moves on).
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
    """A validated call graph, callers before callees. Raises `ValueError` when the graph cannot be
    simulated.
    """

    services: tuple[Service, ...]

    def __post_init__(self) -> None:
        names = [service.name for service in self.services]
        if len(set(names)) != len(names):
            raise ValueError(f"service names must be unique, got {names}; rename the repeated one")
        if not any(service.kind == "edge" for service in self.services):
            raise ValueError(
                f"a topology needs a service of kind 'edge' where users enter, got only {names}"
            )
        seen: set[str] = set()
        for service in reversed(self.services):
            if service.kind not in KINDS:
                raise ValueError(
                    f"unknown kind {service.kind!r} of {service.name}; choose one of {', '.join(KINDS)}"
                )
            for callee in service.calls + service.publishes:
                if callee not in names:
                    raise ValueError(
                        f"{service.name} calls unknown service {callee!r}; services are {names}"
                    )
                if callee not in seen:
                    raise ValueError(
                        f"{service.name} calls {callee}, which stands before it; list callers first"
                    )
            seen.add(service.name)
        called = {
            callee for service in self.services for callee in service.calls + service.publishes
        }
        for service in self.services:
            if service.kind != "edge" and service.name not in called:
                raise ValueError(f"nothing calls {service.name}; connect it, or make it an edge")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Service names, in position order."""
        return tuple(service.name for service in self.services)

    @cached_property
    def position(self) -> dict[str, int]:
        """Name to position."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def depth(self) -> dict[str, int]:
        """Hops from the nearest edge, over calls and publishes."""
        depth = {service.name: 0 for service in self.services if service.kind == "edge"}
        for service in self.services:
            for callee in service.calls + service.publishes:
                depth[callee] = min(depth.get(callee, len(self.services)), depth[service.name] + 1)
        return depth

    @cached_property
    def callers(self) -> dict[str, tuple[str, ...]]:
        """Name to the names of everything that calls it or publishes to it."""
        return {
            name: tuple(s.name for s in self.services if name in s.calls + s.publishes)
            for name in self.names
        }

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """Position to the positions of everything it calls or publishes to."""
        return tuple(
            tuple(self.position[name] for name in s.calls + s.publishes) for s in self.services
        )

    @cached_property
    def call_graph_text(self) -> str:
        """One clause a caller, `a > b c; b > d`: how a prompt shows the graph."""
        return "; ".join(
            f"{s.name} > {' '.join(s.calls + s.publishes)}"
            for s in self.services
            if s.calls or s.publishes
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

_EDGE_NAMES = ("edge-proxy", "web-gateway", "mobile-gateway")
_APPS = "cart catalog search billing profile shipping inventory pricing review login coupon ledger quote refund media geo"
_APPS += " tax audit"


def random_topology(random: Random, smallest: int = 5, largest: int = 30) -> Topology:
    """Draw a connected layered call graph of `smallest` to `largest` services under names the
    default never uses.

    One edge; apps call one or two later services; stateful services (databases, queues) are leaves.
    """
    if not 5 <= smallest <= largest <= 30:
        raise ValueError(f"a random topology has 5 to 30 services, got {smallest} to {largest}")
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


def load_topology(path: str | Path) -> Topology:
    """Read a topology from YAML (format in the module docstring). `ValueError` names what is wrong
    in the file.
    """
    import yaml

    data = yaml.safe_load(Path(path).read_text())
    if not isinstance(data, dict) or not isinstance(data.get("services"), list):
        raise ValueError(
            f"{path}: expected a mapping with a list 'services', got {type(data).__name__}"
        )
    services = []
    for entry in data["services"]:
        unknown = set(entry) - set(Service.__dataclass_fields__)
        if unknown or "name" not in entry or "kind" not in entry:
            raise ValueError(
                f"{path}: service {entry} needs name and kind, and no {sorted(unknown) or 'other fields'}"
            )
        lists = {key: tuple(entry.get(key, ())) for key in ("calls", "publishes")}
        services.append(Service(**{**entry, **lists}))
    return Topology(tuple(services))
