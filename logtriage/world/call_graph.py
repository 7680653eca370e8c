"""Who calls whom: the call graph of a cluster, simulated or observed.

`topology.Topology` is one that the simulator can run, and has more rules. Of one that was observed
(real telemetry, somebody's log) calls may go in circles, and a service may be of unknown kind.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from .exact import total

KINDS = ("edge", "app", "database", "queue")
UNKNOWN_KIND = "unknown"  # of observed services alone
TEAMS = ("sre", "backend", "dba", "security")
OWNERS = {"edge": "sre", "app": "backend", "database": "dba", "queue": "sre"}

MOST_OBSERVED = 200  # services of an observed cluster; a prompt of more would not be read
RESERVED_NAME = "all"  # what `request_more_logs` takes for every service


@dataclass(frozen=True)
class Service:
    """One service; for an answer to its `calls` it waits, for what it `publishes` it does not."""

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
        """Everything it sends work to: its calls, then what it publishes to."""
        return self.calls + self.publishes


def leads(calls: Mapping[str, Sequence[str]], start: str, goal: str) -> bool:
    """Whether calls lead from a service to another, over any number of hops, none included."""
    seen, reached = {start}, [start]
    for name in reached:  # it grows meanwhile: breadth first
        if name == goal:
            return True
        fresh = [one for one in calls[name] if one not in seen]
        seen.update(fresh)
        reached += fresh
    return False


@dataclass(frozen=True)
class CallGraph:
    """Services and their calls, as they were observed; `ValueError` for what is no such graph."""

    services: tuple[Service, ...]

    MOST: ClassVar[int] = MOST_OBSERVED
    KINDS: ClassVar[tuple[str, ...]] = (*KINDS, UNKNOWN_KIND)
    # What stands between names where a graph is written as text may not stand in them.
    NAME: ClassVar[re.Pattern[str]] = re.compile(r"[^\s;>]{1,120}")
    NAME_RULE: ClassVar[str] = "1 to 120 printable characters without spaces, ';' or '>'"

    def __post_init__(self) -> None:
        if not 1 <= len(self.services) <= self.MOST:
            raise ValueError(
                f"a call graph has 1 to {self.MOST} services, got {len(self.services)}; "
                "keep those that users wait for"
            )
        for name in self.names:  # first of all: a wrong name here is a dangling call there
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
        """By position."""
        return tuple(service.name for service in self.services)

    @cached_property
    def position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """Positions of the services where users enter; with no known edge, that nobody calls."""
        known = tuple(i for i, service in enumerate(self.services) if service.kind == "edge")
        return known or tuple(i for i, name in enumerate(self.names) if not self.callers[name])

    @cached_property
    def depth(self) -> dict[str, int]:
        """Hops from the nearest edge, over calls and publishes; 0 for what no edge leads to."""
        depth = {self.names[i]: 0 for i in self.edges}
        frontier = list(depth)
        for name in frontier:  # it grows meanwhile: breadth first
            for callee in self.service(name).downstream:
                if callee not in depth:
                    depth[callee] = depth[name] + 1
                    frontier.append(callee)
        return {name: depth.get(name, 0) for name in self.names}

    @cached_property
    def callers(self) -> dict[str, tuple[str, ...]]:
        """Name to everything that calls it or publishes to it."""
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
        """Name to (x, y) of a drawing: x in (0, 1), siblings near their callers; y minus depth."""
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
        """The service of that name; `ValueError` with the valid names otherwise."""
        if name not in self.position:
            raise ValueError(f"unknown service {name!r}; choose one of {', '.join(self.names)}")
        return self.services[self.position[name]]
