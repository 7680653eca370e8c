"""Rules that rank services by suspicion: small functions of what was seen, one file.

| rule | whom it suspects first |
|---|---|
| `random_ranking` | anybody |
| `commonest` | whoever was the root most often in the other incidents |
| `loudest_ratio` | the metric farthest from its usual, in times the usual |
| `loudest_sigmas` | the same in robust sigmas, as BARO ranks |
| `error_lines` | who logs most errors |
| `worst_callee` | the end of the way from the alert down the worst anomalous callee |
| `deepest` | the anomalous service farthest from the users |
| `traversal` | anomalous, no callee is, most anomalous way to the alert: PetShop's idea |
| `extra_wait` | whose callers wait longest beyond what it takes |
| `random_walk` | where a walk that likes anomalous services ends: MicroRCA's idea |
| `unexplained` | who owes what its callees do not explain: ours, `unexplained.suspicion` |

The ideas: Pham et al. 2024, "BARO"; Hardt et al. 2024, "The PetShop dataset"; Wu et al. 2020,
"MicroRCA". Implemented here from what they describe, not from their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import log1p
from random import Random

import networkx as nx

from ..ceiling.grounding import ANOMALOUS, LATENCIES, SUCCESSES, Evidence, farthest
from ..world.call_graph import CallGraph
from .unexplained import suspicion

# All services of the graph, the most suspect first.
Rule = Callable[[Evidence], list[str]]

TRAVERSAL_ANOMALOUS = 5.0  # sigmas, as in PetShop's notebook
MOST_PATHS = 10_000  # of which the most anomalous counts; large graphs have too many for more
RESTART = 0.15  # of the random walk, and its share of steps back to a caller
BACK = 0.1


def ranked(graph: CallGraph, suspicions: Mapping[str, float]) -> list[str]:
    """The services by suspicion; the earlier in the graph among equals."""
    return sorted(graph.names, key=lambda name: -suspicions.get(name, 0.0))


def first_then(first: Iterable[str], evidence: Evidence, names: Sequence[str] = ()) -> list[str]:
    """These services, then the others by surprise in these measures (any, without names)."""
    order = {name: evidence.surprise(name, *names) for name in evidence.graph.names}
    return list(dict.fromkeys([*first, *ranked(evidence.graph, order)]))


def random_ranking(seed: int = 0) -> Rule:
    """A rule that draws; one stream for all incidents that it is asked about."""
    random = Random(f"policy/ranking/{seed}")
    return lambda evidence: random.sample(evidence.graph.names, len(evidence.graph.names))


def commonest(roots: Sequence[str]) -> Rule:
    """A rule that has read nothing but the roots of other incidents."""
    return lambda evidence: ranked(
        evidence.graph, {name: roots.count(name) for name in evidence.graph.names}
    )


def loudest_ratio(evidence: Evidence) -> list[str]:
    """By the largest change of any measure, in times its usual."""
    found = {}
    for service in evidence.graph.names:
        changes = [
            abs(value - one.usual) / abs(one.usual)
            for one in evidence.measured(service)
            if one.usual and (value := farthest(one)) is not None
        ]
        found[service] = max(changes, default=0.0)
    return ranked(evidence.graph, found)


def loudest_sigmas(evidence: Evidence) -> list[str]:
    """By the largest change of any measure, in robust sigmas."""
    return first_then((), evidence)


def error_lines(evidence: Evidence) -> list[str]:
    """By error lines a minute."""
    return ranked(evidence.graph, {row.service: row.errors for row in evidence.counts})


def alerted_measures(evidence: Evidence) -> tuple[str, ...]:
    """Names of the measures that tell what the first alert told of; of latencies without any."""
    first = evidence.alerts[0].metric if evidence.alerts else "latency"
    return SUCCESSES if first == "errors" else LATENCIES


def targets(evidence: Evidence) -> list[str]:
    """Whom to explain: the alerted services, or without alerts those where users enter."""
    alerted = list(dict.fromkeys(alert.service for alert in evidence.alerts))
    return alerted or [evidence.graph.names[at] for at in evidence.graph.edges]


def worst_callee(evidence: Evidence) -> list[str]:
    """From the alerted service nearest the users down the worst callee, as long as there is an
    anomalous one: the way backwards.
    """
    graph, names = evidence.graph, alerted_measures(evidence)
    surprise = {name: evidence.surprise(name, *names) for name in graph.names}
    at = min(targets(evidence), key=lambda name: (graph.depth[name], -surprise[name]))
    way = [at]
    while True:
        below = [
            one
            for one in graph.service(at).downstream
            if one not in way and surprise[one] > ANOMALOUS
        ]
        if not below:
            return first_then(way[::-1], evidence, names)
        at = max(below, key=lambda name: surprise[name])
        way.append(at)


def deepest(evidence: Evidence) -> list[str]:
    """Anomalous services by depth."""
    graph, names = evidence.graph, (*LATENCIES, *SUCCESSES)
    anomalous = [name for name in graph.names if evidence.surprise(name, *names) > ANOMALOUS]
    anomalous.sort(key=lambda name: (-graph.depth[name], -evidence.surprise(name, *names)))
    return first_then(anomalous, evidence, names)


def traversal(evidence: Evidence) -> list[str]:
    """Anomalous services none of whose callees is, by the sum of anomalies along the worst
    anomalous way from an alerted service; anomalous in the measure that the alert tells of alone.
    """
    graph, starts = evidence.graph, targets(evidence)
    measure = {"errors": SUCCESSES, "latency": LATENCIES[:1]}.get(
        evidence.alerts[0].metric if evidence.alerts else "", LATENCIES[1:]
    )
    scores = {name: evidence.surprise(name, *measure) for name in graph.names}
    anomalous = {name for name, score in scores.items() if score > TRAVERSAL_ANOMALOUS}
    ways = call_network(graph).subgraph(anomalous | set(starts))
    found: dict[str, float] = {}
    for name in anomalous:
        if anomalous.isdisjoint(graph.service(name).downstream):
            for start in starts:
                paths = [[name]] if start == name else nx.all_simple_paths(ways, start, name)
                for path in islice(paths, MOST_PATHS):
                    found[name] = max(found.get(name, 0.0), sum(scores[one] for one in path))
    return first_then([one for one in ranked(graph, found) if one in found], evidence, measure)


def call_network(graph: CallGraph) -> nx.DiGraph:
    """A call graph as networkx has it."""
    network = nx.DiGraph()
    network.add_nodes_from(graph.names)
    network.add_edges_from(
        (one.name, callee) for one in graph.services for callee in one.downstream
    )
    return network


def extra_wait(evidence: Evidence) -> list[str]:
    """By the longest time that a caller waits beyond what the service takes, against the usual;
    who answers no call with a known wait comes last.
    """
    found: dict[str, float] = {}
    for call in evidence.calls:
        if call.wait is None or call.served is None or call.usual_wait is None:
            continue
        longer = call.wait - call.served - (call.usual_wait - (call.usual_served or 0.0))
        found[call.callee] = max(found.get(call.callee, longer), longer)
    known = sorted(found, key=lambda name: -found[name])
    return list(dict.fromkeys([*known, *evidence.graph.names]))


def random_walk(evidence: Evidence) -> list[str]:
    """By how often a walk with restart is at a service: it goes down to callees by their
    anomaly, rarely up, and stays where its callees are less anomalous.
    """
    graph, network = evidence.graph, nx.DiGraph()
    anomaly = {name: log1p(evidence.surprise(name)) for name in graph.names}
    trace = 1e-3  # no way is closed, else there is no walk
    network.add_nodes_from(graph.names)
    for service in graph.services:
        name, below = service.name, service.downstream
        for callee in below:
            network.add_edge(name, callee, weight=anomaly[callee] + trace)
            network.add_edge(callee, name, weight=BACK * anomaly[name] + trace)
        stays = anomaly[name] - max((anomaly[callee] for callee in below), default=0.0)
        network.add_edge(name, name, weight=max(0.0, stays) + trace)
    restarts = {name: value + trace for name, value in anomaly.items()}
    return ranked(graph, nx.pagerank(network, 1.0 - RESTART, restarts, weight="weight"))


def unexplained(evidence: Evidence) -> list[str]:
    """By what its callees do not explain."""
    return ranked(evidence.graph, suspicion(evidence))


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        loudest_ratio,
        loudest_sigmas,
        error_lines,
        worst_callee,
        deepest,
        traversal,
        extra_wait,
        random_walk,
        unexplained,
    )
}
