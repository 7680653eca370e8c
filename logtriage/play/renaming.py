"""The same cluster under other names: what an agent reads that knows services by names of its own.

`names` maps each real name to the agent's, one to one. In the text of a log line only the names of
those whom its service calls, or who call it, are replaced: others may be ordinary words.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ..world.call_graph import CallGraph
from .episode import BaseEpisode
from .observation import Observation

Graph = TypeVar("Graph", bound=CallGraph)
# From an episode to the names that an agent has for its services.
Names = Callable[[BaseEpisode], Mapping[str, str]]

NAMED = ("service", "caller", "callee")  # fields of an observation's rows that hold a name


def renamed_graph(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The same call graph under other names."""
    services = []
    for one in graph.services:
        calls, publishes = (tuple(names[to] for to in some) for some in (one.calls, one.publishes))
        services.append(replace(one, name=names[one.name], calls=calls, publishes=publishes))
    return type(graph)(tuple(services))


def renamed_observation(
    observation: Observation, graph: CallGraph, names: Mapping[str, str]
) -> Observation:
    """What is shown of a cluster with this call graph (of real names), under other names."""
    shown = observation._asdict()
    for field in ("alerts", "metrics", "measures", "calls", "counts"):
        if shown[field] is not None:
            shown[field] = [_renamed_row(row, names) for row in shown[field]]
    if observation.lines is not None:
        shown["lines"] = [_renamed_line(line, graph, names) for line in observation.lines]
    for field in ("notice", "error"):
        shown[field] = _replaced(shown[field], names, names)
    return Observation(**shown)


def _renamed_row(row: Any, names: Mapping[str, str]) -> Any:
    held = {field: name for field, name in row._asdict().items() if field in NAMED}
    return row._replace(**{field: names.get(name, name) for field, name in held.items()})


def _renamed_line(line: str, graph: CallGraph, names: Mapping[str, str]) -> str:
    """A line `LEVEL service text`; one of another form may name anybody."""
    level, _, rest = line.partition(" ")
    name, _, text = rest.partition(" ")
    if name not in names:
        return _replaced(line, names, names)
    near = {*graph.service(name).downstream, *graph.callers[name], name}
    return f"{level} {names[name]} {_replaced(text, near, names)}"


def _replaced(text: str, some: Iterable[str], names: Mapping[str, str]) -> str:
    """The text with these names replaced wherever one stands as a whole word."""
    # The longest first: one may be the beginning of another.
    either = "|".join(map(re.escape, sorted(some, key=len, reverse=True)))
    whole = rf"(?<![\w-])(?:{either})(?![\w-])"
    return re.sub(whole, lambda found: names[found[0]], text) if text else text
