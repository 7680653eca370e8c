"""Rules that rank services by suspicion, and the policy that plays by one.

`largest_z_score` ranks as BARO does (Pham et al. 2024), `traversal` as "The PetShop dataset" (Hardt
et al. 2024); implemented from their descriptions, not from their code.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from random import Random

import networkx as nx

from ..play.actions import ALL_SERVICES, Action
from ..play.episode import BaseEpisode
from ..policies.scripted import Policy
from ..world.call_graph import CallGraph
from .observed import LATENCIES, SUCCESSES, Evidence, gather
from .real_episode import TOP
from .unexplained import suspicion

Rule = Callable[[Evidence], list[str]]  # all services of the graph, the most suspect first

ASK_ALL = Action("request_more_logs", (ALL_SERVICES,))
ANOMALOUS = 3.0  # robust z-score
TRAVERSAL_ANOMALOUS = 5.0  # the same, as in PetShop's notebook
MOST_PATHS = 10_000  # large graphs have too many paths to follow them all


def ranked(graph: CallGraph, scores: Mapping[str, float]) -> list[str]:
    """The services by score, the highest first; among equals in the order of the graph."""
    return sorted(graph.names, key=lambda name: -scores.get(name, 0.0))


def first_then(first: Iterable[str], evidence: Evidence, names: Sequence[str] = ()) -> list[str]:
    """These services, then the others by anomaly in these measures (without names, in any)."""
    anomaly = {name: evidence.anomaly(name, *names) for name in evidence.graph.names}
    return list(dict.fromkeys([*first, *ranked(evidence.graph, anomaly)]))


def random_ranking(seed: int = 0) -> Rule:
    """A rule that draws rankings from one stream."""
    random = Random(f"policy/ranking/{seed}")
    return lambda evidence: random.sample(evidence.graph.names, len(evidence.graph.names))


def starts(evidence: Evidence) -> list[str]:
    """Where a search starts: the alerted services, or without alerts those where users enter."""
    alerted = list(dict.fromkeys(alert.service for alert in evidence.alerts))
    return alerted or [evidence.graph.names[at] for at in evidence.graph.edges]


def worst_callee(evidence: Evidence) -> list[str]:
    """Down from the alerted service nearest the users to the worst anomalous callees, and back."""
    graph = evidence.graph
    failing = any(alert.metric == "errors" for alert in evidence.alerts[:1])
    names = SUCCESSES if failing else LATENCIES
    anomaly = {name: evidence.anomaly(name, *names) for name in graph.names}
    worst: str | None = min(starts(evidence), key=lambda name: (graph.depth[name], -anomaly[name]))
    path: list[str] = []
    while worst:
        path.append(worst)
        below = [one for one in graph.service(worst).downstream if one not in path]
        anomalous = [one for one in below if anomaly[one] > ANOMALOUS]
        worst = max(anomalous, key=anomaly.__getitem__, default=None)
    return first_then(path[::-1], evidence, names)


def traversal(evidence: Evidence) -> list[str]:
    """Anomalous services without an anomalous callee, by the most anomalous path from an alert."""
    graph = evidence.graph
    measure = {"errors": SUCCESSES, "latency": LATENCIES[:1]}.get(
        evidence.alerts[0].metric if evidence.alerts else "", LATENCIES[1:]
    )
    scores = {name: evidence.anomaly(name, *measure) for name in graph.names}
    anomalous = {name for name, score in scores.items() if score > TRAVERSAL_ANOMALOUS}
    calls = nx.DiGraph((one.name, callee) for one in graph.services for callee in one.downstream)
    calls.add_nodes_from(graph.names)
    paths = calls.subgraph(anomalous | set(starts(evidence)))
    found: dict[str, float] = {}
    for name in anomalous:
        if not anomalous.isdisjoint(graph.service(name).downstream):
            continue
        for start in starts(evidence):
            ways = [[name]] if start == name else nx.all_simple_paths(paths, start, name)
            for way in islice(ways, MOST_PATHS):
                found[name] = max(found.get(name, 0.0), sum(scores[one] for one in way))
    return first_then([one for one in ranked(graph, found) if one in found], evidence, measure)


def extra_wait(evidence: Evidence) -> list[str]:
    """By the longest wait of a caller beyond the service's own time, above baseline."""
    found: dict[str, float] = {}
    for call in evidence.calls:
        if call.wait is None or call.served is None or call.usual_wait is None:
            continue
        longer = call.wait - call.served - (call.usual_wait - (call.usual_served or 0.0))
        found[call.callee] = max(found.get(call.callee, longer), longer)
    known = sorted(found, key=lambda name: -found[name])
    return list(dict.fromkeys([*known, *evidence.graph.names]))  # some calls are not measured


def error_lines(evidence: Evidence) -> list[str]:
    """By the number of error lines."""
    return ranked(evidence.graph, {one.service: one.errors for one in evidence.counts})


RULES: dict[str, Rule] = {
    "largest_z_score": lambda seen: first_then((), seen),  # the metric farthest from its baseline
    "error_lines": error_lines,
    "worst_callee": worst_callee,
    "traversal": traversal,
    "extra_wait": extra_wait,
    "unexplained": lambda seen: ranked(seen.graph, suspicion(seen)),
}


class RankingPolicy(Policy):
    """A rule as a policy: it asks about all services once, and blames the first three."""

    def __init__(self, rule: Rule, name: str) -> None:
        self.rule, self.name = rule, name

    def open(self, episode: BaseEpisode) -> None:
        self._episode = episode
        self._queue = [ASK_ALL]

    def act(self) -> Action:
        if not self._queue:
            seen = [self._episode.opening, *(step.observation for step in self._episode.history)]
            self._queue = self.answer(gather(self._episode.incident.topology, seen))
        return self._queue.pop(0)

    def answer(self, evidence: Evidence) -> list[Action]:
        """What it says after its question."""
        blamed = self.blamed(evidence, self.rule(evidence))
        return [*(Action("identify_root_cause", (one,)) for one in blamed), Action("resolve")]

    def blamed(self, evidence: Evidence, ranking: list[str]) -> list[str]:
        """Whom it blames, in order."""
        return ranking[:TOP]
