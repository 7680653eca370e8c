"""Services under other names, for an agent that has learned no names of services.

Such an agent reads and calls each service by its path from where users enter: `edge`, its callees
`app-a1` and `app-a2`, theirs `app-a2-b1` or `db-a2-b2`. The letter is the level, so each part of a
name belongs to one level. The numbers are shuffled for each incident and say nothing else. A
service with several callers is named by the shortest path to it, or by the first of equally short
ones.

The world's text stays as it is: `tools.ToolSession` translates what the agent reads and calls. In a
log line, only the names of the service that printed it, its callees and its callers are replaced,
because other names may be ordinary words there.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from string import ascii_lowercase
from typing import Any, TypeVar

from ..world.call_graph import UNKNOWN_KIND, CallGraph
from ..world.exact import shuffled
from .episode import BaseEpisode, incident_id
from .observation import Observation

Graph = TypeVar("Graph", bound=CallGraph)
# Maps an episode to the agent's name for each of its services, one to one.
Names = Callable[[BaseEpisode], Mapping[str, str]]

KIND_WORDS = {
    "edge": "edge",
    "app": "app",
    "database": "db",
    "queue": "queue",
    UNKNOWN_KIND: "service",
}
# Which form of path names a model has learned, in its configuration.
NAMING = "letter per level"
NAMED = ("service", "caller", "callee")  # fields of an observation's rows that hold service names


def path_names(graph: CallGraph, seed: str) -> dict[str, str]:
    """Map the real name of every service to its path name; `seed` shuffles the siblings' numbers.

    Nothing depends on the real names. A service that users cannot reach is numbered like an entry
    service.
    """
    random, paths, roots = Random(f"path names/{seed}"), dict[str, tuple[int, ...]](), 0
    entries = [graph.names[position] for position in graph.entry_services]
    for start in (*entries, *graph.names):
        if start in paths:
            continue
        roots += 1
        paths[start] = (roots,)
        reached = [start]
        for name in reached:  # grows during the loop: breadth-first search
            callees = graph.service(name).downstream
            numbers = shuffled(random, range(1, len(callees) + 1))
            for callee, number in zip(callees, numbers, strict=True):
                if callee not in paths:
                    paths[callee] = (*paths[name], number)
                    reached.append(callee)
    common = int(roots == 1)  # a number that all names share says nothing
    return {
        name: "-".join([KIND_WORDS[graph.service(name).kind], *_steps(path[common:])])
        for name, path in paths.items()
    }


def _steps(path: tuple[int, ...]) -> list[str]:
    """Write each number of a path behind the letter of its level; after 26 levels `a` follows."""
    return [f"{ascii_lowercase[level % 26]}{number}" for level, number in enumerate(path)]


def incident_names(episode: BaseEpisode) -> dict[str, str]:
    """The path names of an episode's incident, shuffled by its coordinates."""
    return path_names(episode.incident.topology, incident_id(episode))


def names_for(config: dict[str, Any]) -> Names | None:
    """How a model with this configuration names services; None if it uses their real names.
    `ValueError` if it has learned another form of path names.
    """
    naming = config.get("path_names")
    if naming not in (None, NAMING):
        raise ValueError(
            f"this model has learned another form of path names ({naming!r}, not {NAMING!r}), and "
            "would not find its way; train it again"
        )
    return incident_names if naming else None


def renamed_graph(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return the same call graph under other names."""
    services = []
    for service in graph.services:
        calls = tuple(names[callee] for callee in service.calls)
        publishes = tuple(names[callee] for callee in service.publishes)
        own = names[service.name]
        services.append(replace(service, name=own, calls=calls, publishes=publishes))
    return type(graph)(tuple(services))


def renamed_observation(
    observation: Observation, graph: CallGraph, names: Mapping[str, str]
) -> Observation:
    """Return an observation of this call graph, which has real names, under other names."""
    fields = observation._asdict()
    for field in ("alerts", "metrics", "measures", "calls", "counts"):
        if fields[field] is not None:
            fields[field] = [_renamed_row(row, names) for row in fields[field]]
    if observation.lines is not None:
        fields["lines"] = [_renamed_line(line, graph, names) for line in observation.lines]
    for field in ("notice", "error"):
        fields[field] = _replaced(fields[field], names, names)
    return Observation(**fields)


def _renamed_row(row: Any, names: Mapping[str, str]) -> Any:
    held = {field: name for field, name in row._asdict().items() if field in NAMED}
    return row._replace(**{field: names.get(name, name) for field, name in held.items()})


def _renamed_line(line: str, graph: CallGraph, names: Mapping[str, str]) -> str:
    """Rename in a line `LEVEL service text`; in any other line, every name is replaced."""
    level, _, rest = line.partition(" ")
    name, _, text = rest.partition(" ")
    if name not in names:
        return _replaced(line, names, names)
    near = {*graph.service(name).downstream, *graph.callers[name], name}
    return f"{level} {names[name]} {_replaced(text, near, names)}"


def whole_names(some: Iterable[str]) -> str:
    """A regular expression that matches these names wherever one is a whole word."""
    # Longest first, because one name may begin with another.
    either = "|".join(map(re.escape, sorted(some, key=len, reverse=True)))
    return rf"(?<![\w-])(?:{either})(?![\w-])"


def _replaced(text: str, some: Iterable[str], names: Mapping[str, str]) -> str:
    """Replace these names in a text wherever one is a whole word."""
    return re.sub(whole_names(some), lambda match: names[match[0]], text) if text else text
