"""What an agent has seen of an incident, as the ranking rules read it: all its rows together.

Every metric is compared with its baseline, the median without an incident. Agents are not shown
when the incident began, so only the later half of a window counts as recent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logtriage.play.observation import CallTime, LineCount, Measure, Observation
from logtriage.world.call_graph import CallGraph
from logtriage.world.telemetry import Alert

# Names of measures: latencies (the mean, then a percentile), and shares of successful requests.
LATENCIES = ("latency", "p95")
SUCCESSES = ("available", "success")
RATE = "requests"


@dataclass(frozen=True)
class Evidence:
    """What was seen of an incident."""

    graph: CallGraph
    alerts: tuple[Alert, ...]  # those shown last
    measures: dict[str, dict[str, Measure]]  # by service, then by name; without those of users
    calls: tuple[CallTime, ...]  # a row per (caller, callee)
    counts: tuple[LineCount, ...]  # a row per service

    def measured(self, service: str, *names: str) -> list[Measure]:
        """The measures of a service with these names, in that order; all if no names are given."""
        known = self.measures.get(service, {})
        return [known[name] for name in names or known if name in known]

    def anomaly(self, service: str, *names: str) -> float:
        """The largest absolute `z_score` of these measures (of all if none are named), or 0."""
        return max((abs(z_score(row)) for row in self.measured(service, *names)), default=0.0)

    def rate(self, service: str) -> float:
        """Mean recent requests per sample; 1 if nobody counted them."""
        known = [rate for row in self.measured(service, RATE) for rate in recent(row)]
        return sum(known) / len(known) if known else 1.0


def gather(graph: CallGraph, observations: Iterable[Observation]) -> Evidence:
    """Collect the rows of observations, the opening first; later rows replace earlier ones."""
    alerts: tuple[Alert, ...] = ()
    measures: dict[str, dict[str, Measure]] = {}
    calls: dict[tuple[str, str], CallTime] = {}
    counts: dict[str, LineCount] = {}
    for seen in observations:
        alerts = alerts if seen.alerts is None else tuple(seen.alerts)
        for row in seen.measures or ():
            if row.service in graph.position:
                measures.setdefault(row.service, {})[row.name] = row
        calls.update({(row.caller, row.callee): row for row in seen.calls or ()})
        counts.update({row.service: row for row in seen.counts or ()})
    return Evidence(graph, alerts, measures, tuple(calls.values()), tuple(counts.values()))


def recent(measure: Measure) -> list[float]:
    """The known values of the later half of the window."""
    later = measure.values[len(measure.values) // 2 :]
    return [value for value in later if value is not None]


def z_score(measure: Measure) -> float:
    """Robust z-score of the recent value farthest from the baseline; 0 if either is unknown."""
    usual, values = measure.usual, recent(measure)
    if usual is None or not values:
        return 0.0
    return max((value - usual for value in values), key=abs) / measure.sigma
