"""Who calls whom: the call graph of a cluster, simulated or observed.

The simulator can run a `topology.Topology`, which has more rules. An observed call graph (from real
telemetry or somebody's log) may contain cycles and services of unknown kind.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from .exact import total

KINDS = ("edge", "app", "database", "queue")
UNKNOWN_KIND = "unknown"  # only observed services have it
TEAMS = ("sre", "backend", "dba", "security")
OWNERS = {"edge": "sre", "app": "backend", "database": "dba", "queue": "sre"}

MOST_OBSERVED = 200  # services in an observed cluster; a prompt with more would not be read
RESERVED_NAME = "all"  # the value of `request_more_logs` that means every service


@dataclass(frozen=True)
class Service:
    """One service. It waits for the services it `calls`, but not for those it `publishes` to."""

    name: str
    kind: str
    calls: tuple[str, ...] = ()
    publishes: tuple[str, ...] = ()
    handles_logins: bool = False
    session_cache: bool = False

    @property
    def owner(self) -> str:
        """The team that owns services of this kind; empty for an unknown kind."""
        return OWNERS.get(self.kind, "")

    @property
    def downstream(self) -> tuple[str, ...]:
        """The services it sends work to: those it calls, then those it publishes to."""
        return self.calls + self.publishes


@dataclass(frozen=True)
class CallGraph:
    """Services and their calls, as observed; `ValueError` if they form no valid graph."""

    services: tuple[Service, ...]

    MOST: ClassVar[int] = MOST_OBSERVED
    KINDS: ClassVar[tuple[str, ...]] = (*KINDS, UNKNOWN_KIND)
    # A name may not contain the characters that separate names in `call_graph_text`.
    NAME: ClassVar[re.Pattern[str]] = re.compile(r"[^\s;>]{1,120}")
    NAME_RULE: ClassVar[str] = "1 to 120 printable characters without spaces, ';' or '>'"

    def __post_init__(self) -> None:
        if not 1 <= len(self.services) <= self.MOST:
            raise ValueError(
                f"a call graph has 1 to {self.MOST} services, got {len(self.services)}; "
                "keep those that users wait for"
            )
        for name in self.names:  # first, as a wrong name also leaves a dangling call
            if self.names.count(name) > 1:
                raise ValueError(f"service {name} stands twice; rename one")
            if not self.NAME.fullmatch(name) or name == RESERVED_NAME or not name.isprintable():
                rule = f"a name is {self.NAME_RULE}, and not {RESERVED_NAME!r}"
                raise ValueError(f"bad service name {name!r:.60}; {rule}")
        for service in self.services:
            name = service.name
            if service.kind not in self.KINDS:
                unknown = f"unknown kind {service.kind!r:.60} of {name}"
                raise ValueError(f"{unknown}; choose one of {', '.join(self.KINDS)}")
            for callee in service.downstream:
                if callee not in self.position:
                    unknown = f"{name} calls unknown service {callee!r:.60}"
                    raise ValueError(f"{unknown}; services are {', '.join(self.names)}")
                if service.downstream.count(callee) > 1:
                    twice = f"{name} names {callee} twice"
                    raise ValueError(f"{twice}; once is enough, as a call or as a publish")

    def __hash__(self) -> int:
        # Equal graphs have equal names, and a graph is looked up at every incident.
        return hash(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the services, by position."""
        return tuple(service.name for service in self.services)

    @cached_property
    def position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def entry_services(self) -> tuple[int, ...]:
        """Positions where users enter: edges, else services that nobody calls, else the first."""
        known = tuple(i for i, service in enumerate(self.services) if service.kind == "edge")
        uncalled = tuple(i for i, name in enumerate(self.names) if not self.callers[name])
        return known or uncalled or (0,)

    @cached_property
    def depth(self) -> dict[str, int]:
        """Name to hops from the nearest entry service; 0 if none leads there."""
        depth = {self.names[i]: 0 for i in self.entry_services}
        frontier = list(depth)
        for name in frontier:  # grows during the loop: breadth-first search
            for callee in self.service(name).downstream:
                if callee not in depth:
                    depth[callee] = depth[name] + 1
                    frontier.append(callee)
        return {name: depth.get(name, 0) for name in self.names}

    @cached_property
    def callers(self) -> dict[str, tuple[str, ...]]:
        """Name to the services that call it or publish to it."""
        return {
            name: tuple(s.name for s in self.services if name in s.downstream)
            for name in self.names
        }

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """Position to the positions of the services it calls or publishes to."""
        return tuple(tuple(self.position[name] for name in s.downstream) for s in self.services)

    @cached_property
    def call_graph_text(self) -> str:
        """The graph as prompts show it, with one clause per caller: `a > b c; b > d`."""
        return "; ".join(
            f"{s.name} > {' '.join(s.downstream)}" for s in self.services if s.downstream
        )

    @cached_property
    def layout(self) -> dict[str, tuple[float, float]]:
        """Name to (x, y) in a drawing: x in (0, 1), siblings near their callers; y is -depth."""
        rows: dict[int, list[str]] = {}
        for name in self.names:
            rows.setdefault(self.depth[name], []).append(name)
        at: dict[str, tuple[float, float]] = {}
        for depth, names in sorted(rows.items()):
            middles = {}
            for name in names:
                above = [at[caller][0] for caller in self.callers[name] if caller in at]
                middles[name] = total(above) / len(above) if above else 0.0
            for i, name in enumerate(sorted(names, key=middles.__getitem__)):
                at[name] = ((i + 0.5) / len(names), -float(depth))
        return at

    def service(self, name: str) -> Service:
        """Return the service of that name; `ValueError` with the valid names if there is none."""
        if name not in self.position:
            raise ValueError(f"unknown service {name!r}; choose one of {', '.join(self.names)}")
        return self.services[self.position[name]]
