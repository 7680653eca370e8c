"""Services under other names, for an agent that has learned no names of services.

The world's text stays as it is: `tools.ToolSession` translates what the agent reads and calls. In a
log line, only the names of the service that printed it, its callees and its callers are replaced,
because other names may be ordinary words there.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ..world.call_graph import CallGraph
from .episode import BaseEpisode
from .observation import Observation

Graph = TypeVar("Graph", bound=CallGraph)
# Maps an episode to the agent's name for each of its services, one to one.
Names = Callable[[BaseEpisode], Mapping[str, str]]

NAMED = ("service", "caller", "callee")  # fields of an observation's rows that hold service names


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
