"""Rules that rank services by suspicion; `production_policies.RankingPolicy` plays by one.

`largest_z_score` ranks as BARO does (Pham et al. 2024), `traversal` as "The PetShop dataset" (Hardt
et al. 2024); both are implemented from the descriptions, not from the code.

`unexplained` is this project's own: it suspects a service for what its callees do not explain. It
knows no kinds of fault, and reads several signals:

| signal | residual of a service |
|---|---|
| waiting, in ms x requests | its latency above baseline, less that of its callees |
| network latency, in ms x requests | its callers' wait above baseline, less its own latency |
| failures, in requests | its failures above baseline, less those of its callees |
| each further metric | its robust z-score |
| error lines | their number above baseline, in standard deviations of a count |

Waiting and failures add up along calls and are weighted by requests; the alerts decide which of
them are used. Each signal points at services by their share of the squared residuals, and a noisy
OR combines the signals. Developed on one half of the real cases; see `bench.recorded_results`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import log, sqrt
from random import Random
from statistics import median

import networkx as nx

from logtriage.world.call_graph import CallGraph

from .evidence import LATENCIES, RATE, SUCCESSES, Evidence, z_score

Scores = dict[str, float]  # by service
CallScores = dict[tuple[str, str], float]  # by (caller, callee)
Rule = Callable[[Evidence], list[str]]  # all services of the graph, the most suspect first

ANOMALOUS = 5.0  # robust z-score, as in PetShop's notebook
MOST_PATHS = 10_000  # large graphs have too many paths to follow them all
# In `unexplained`, a residual of this size (a z-score, or a multiple of a call's baseline wait) is
# as likely noise as not. All signals share this value, so that none is tuned.
NOISE = 5.0
LEAST_WAIT = 1.0  # ms added to a call's baseline wait: clocks count in milliseconds
ALMOST = 1e-9  # keeps logarithms and divisions finite


def ranked(graph: CallGraph, scores: Mapping[str, float]) -> list[str]:
    """Sort the services by score, highest first; equal ones stay in the order of the graph."""
    return sorted(graph.names, key=lambda name: -scores.get(name, 0.0))


def first_then(first: Iterable[str], evidence: Evidence, names: Sequence[str] = ()) -> list[str]:
    """List these services, then the others by anomaly in the named measures (all if none are)."""
    anomaly = {name: evidence.anomaly(name, *names) for name in evidence.graph.names}
    return list(dict.fromkeys([*first, *ranked(evidence.graph, anomaly)]))


def random_ranking(seed: int = 0) -> Rule:
    """Return a rule that draws random rankings from one stream."""
    random = Random(f"policy/ranking/{seed}")
    return lambda evidence: random.sample(evidence.graph.names, len(evidence.graph.names))


def starts(evidence: Evidence) -> list[str]:
    """Where a search starts: at the alerted services, or if there are none, where users enter."""
    alerted = list(dict.fromkeys(alert.service for alert in evidence.alerts))
    return alerted or [evidence.graph.names[at] for at in evidence.graph.entry_services]


def traversal(evidence: Evidence) -> list[str]:
    """Rank anomalous services without such callees by the most anomalous path from an alert."""
    graph = evidence.graph
    measure = {"errors": SUCCESSES, "latency": LATENCIES[:1]}.get(
        evidence.alerts[0].metric if evidence.alerts else "", LATENCIES[1:]
    )
    scores = {name: evidence.anomaly(name, *measure) for name in graph.names}
    anomalous = {name for name, score in scores.items() if score > ANOMALOUS}
    calls = nx.DiGraph(
        (service.name, callee) for service in graph.services for callee in service.downstream
    )
    calls.add_nodes_from(graph.names)
    paths = calls.subgraph(anomalous | set(starts(evidence)))
    best: dict[str, float] = {}
    for name in anomalous:
        if not anomalous.isdisjoint(graph.service(name).downstream):
            continue
        for start in starts(evidence):
            ways = [[name]] if start == name else nx.all_simple_paths(paths, start, name)
            for way in islice(ways, MOST_PATHS):
                best[name] = max(best.get(name, 0.0), sum(map(scores.__getitem__, way)))
    return first_then([name for name in ranked(graph, best) if name in best], evidence, measure)


def extra_wait(evidence: Evidence) -> list[str]:
    """Rank by the longest time that a caller waits beyond the service's own, above baseline."""
    longest: dict[str, float] = {}
    for call in evidence.calls:
        if call.wait is None or call.served is None or call.usual_wait is None:
            continue
        longer = call.wait - call.served - (call.usual_wait - (call.usual_served or 0.0))
        longest[call.callee] = max(longest.get(call.callee, longer), longer)
    known = sorted(longest, key=lambda name: -longest[name])
    return list(dict.fromkeys([*known, *evidence.graph.names]))  # some calls are not measured


# -- unexplained ---------------------------------------------------------------------------------


def unexplained(evidence: Evidence) -> list[str]:
    """Rank by minus the logarithm of the chance that no signal is right."""
    suspicion: defaultdict[str, float] = defaultdict(float)
    for vote in votes(evidence).values():
        for service, share in vote.items():
            suspicion[service] -= log(max(ALMOST, 1.0 - share))
    return ranked(evidence.graph, suspicion)


def votes(evidence: Evidence) -> dict[str, Scores]:
    """How strongly each signal points at each service, from 0 to 1."""
    signals = own_metrics(evidence)
    kinds = {alert.metric for alert in evidence.alerts}
    if kinds != {"errors"}:  # something is slow, or nobody knows what is wrong
        network, relative = network_waits(evidence)
        signals["waiting"] = waiting(evidence, network)
        signals["network latency"] = network_latency(network, relative)
    if "errors" in kinds:
        failed, _ = deviations(evidence, SUCCESSES, -0.01)
        signals["failures"] = shares(residuals(evidence, failed, {}))
    return signals


def shares(residuals: Scores, noise: float = 0.0) -> Scores:
    """Each service's share of the sum of all squared residuals and `noise` squared."""
    total = noise**2 + sum(residual**2 for residual in residuals.values())
    return {name: residual**2 / total if total else 0.0 for name, residual in residuals.items()}


def discounted(share: Scores, size: Scores) -> Scores:
    """Reduce the shares whose residual, in `size`, is not large compared with `NOISE`."""
    return {
        name: part * size[name] ** 2 / (size[name] ** 2 + NOISE**2) for name, part in share.items()
    }


def waiting(evidence: Evidence, network: CallScores) -> Scores:
    """Which services are slower than their callees explain."""
    slower, spread = deviations(evidence, LATENCIES, 1.0)
    rest = residuals(evidence, slower, network)
    size = {name: residual / max(spread[name], ALMOST) for name, residual in rest.items()}
    return discounted(shares(rest), size)


def network_latency(network: CallScores, relative: CallScores) -> Scores:
    """Which services are waited for longer than they take; small medians of callers count less."""
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for (caller, callee), added in network.items():
        total[callee] += added
        times[callee].append(relative[caller, callee])
    return discounted(shares(total), {name: median(values) for name, values in times.items()})


def own_metrics(evidence: Evidence) -> dict[str, Scores]:
    """The vote of each metric that does not add up along calls, and that of error lines."""
    additive = {*LATENCIES, *SUCCESSES, RATE, "p95 of its calls"}
    off: dict[str, Scores] = {}
    for service, known in evidence.measures.items():
        for name, measure in known.items():
            if name not in additive:
                off.setdefault(name, {})[service] = abs(z_score(measure))
    if evidence.counts:
        off["error lines"] = {
            row.service: max(0.0, row.errors - (row.usual_errors or 0.0))
            / sqrt(max(1.0, row.usual_errors or 0.0))
            for row in evidence.counts
        }
    return {name: shares(scores, NOISE) for name, scores in off.items()}


def deviations(evidence: Evidence, names: tuple[str, ...], sign: float) -> tuple[Scores, Scores]:
    """For each service, the recent `sign` x (value - baseline) x requests of largest size, and the
    spread there, from the first of these measures that has a baseline.
    """
    largest, spread = {}, {}
    for service in evidence.graph.names:
        known = [row for row in evidence.measured(service, *names) if row.usual is not None]
        if not known:
            continue
        measure, half = known[0], len(known[0].values) // 2
        rates = evidence.measured(service, RATE)
        counted = rates[0].values if rates else (1.0,) * len(measure.values)
        off = [
            (sign * (value - (measure.usual or 0.0)) * rate, measure.sigma * rate)
            for value, rate in zip(measure.values[half:], counted[half:], strict=True)
            if value is not None and rate is not None
        ]
        at_most = max(off, key=lambda pair: abs(pair[0]), default=(0.0, 0.0))
        largest[service], spread[service] = at_most
    return largest, spread


def residuals(evidence: Evidence, totals: Scores, network: CallScores) -> Scores:
    """The part of each service's total that its callees and the network to them do not explain."""
    rest = {}
    for service, total in totals.items():
        explained = sum(
            max(0.0, totals.get(callee, 0.0)) + network.get((service, callee), 0.0)
            for callee in evidence.graph.service(service).downstream
        )
        rest[service] = max(0.0, total - explained)
    return rest


def network_waits(evidence: Evidence) -> tuple[CallScores, CallScores]:
    """What the network added to each call, in ms x requests and relative to the baseline wait."""
    network, relative = {}, {}
    for call in evidence.calls:
        wait, usual_wait = call.wait, call.usual_wait
        served, usual_served = call.served, call.usual_served
        if wait is None or usual_wait is None or served is None or usual_served is None:
            continue
        added = max(0.0, wait - served - max(0.0, usual_wait - usual_served))
        # Calls are counted per minute, requests in measures per second.
        rate = evidence.rate(call.callee) if call.rate is None else call.rate / 60.0
        network[call.caller, call.callee] = added * rate
        relative[call.caller, call.callee] = added / (LEAST_WAIT + usual_wait)
    return network, relative


RULES: dict[str, Rule] = {
    "largest_z_score": lambda seen: first_then((), seen),  # the metric farthest from its baseline
    "traversal": traversal,
    "extra_wait": extra_wait,
    "unexplained": unexplained,
}
