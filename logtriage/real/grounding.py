"""What the observations of an incident show of each service: what the ranking rules read.

Every metric is compared with its baseline, the median without an incident. Agents are not shown
when the incident began, and windows are cut around the alarm or the injection, so only the later
half of a window counts as recent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..play.observation import Observation
from ..world.call_graph import CallGraph
from ..world.telemetry import Alert
from .observed import CallTime, LineCount, Measure

# Names of measures: latencies (a mean before a percentile), and shares of successful requests.
LATENCIES = ("latency", "p95")
SUCCESSES = ("available", "success")
RATE = "requests"

LEAST_SPREAD = 0.01  # of the baseline: the spread of a measure that never moved


@dataclass(frozen=True)
class Evidence:
    """What was seen of an incident."""

    graph: CallGraph
    alerts: tuple[Alert, ...]  # the last that were shown
    measures: dict[str, dict[str, Measure]]  # by service, then by name; none of users
    calls: tuple[CallTime, ...]  # a row per (caller, callee)
    counts: tuple[LineCount, ...]  # a row per service

    def measured(self, service: str, *names: str) -> list[Measure]:
        """The measures of a service with these names, in that order; without names, all."""
        known = self.measures.get(service, {})
        return [known[name] for name in names or known if name in known]

    def anomaly(self, service: str, *names: str) -> float:
        """The largest absolute `z_score` of these measures (without names, of all), or 0."""
        return max((abs(z_score(one)) for one in self.measured(service, *names)), default=0.0)

    def rate(self, service: str) -> float:
        """Mean recent requests per sample; 1 where nobody counted."""
        known = [one for row in self.measured(service, RATE) for one in recent(row)]
        return sum(known) / len(known) if known else 1.0


def gather(graph: CallGraph, observations: Iterable[Observation]) -> Evidence:
    """The rows of these observations, the opening first; a later row replaces an earlier one."""
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
    return [one for one in measure.values[len(measure.values) // 2 :] if one is not None]


def z_score(measure: Measure) -> float:
    """Robust z-score of the recent value farthest from the baseline; 0 where either is unknown."""
    usual, values = measure.usual, recent(measure)
    if usual is None or not values:
        return 0.0
    return max((value - usual for value in values), key=abs) / measure.sigma(LEAST_SPREAD)
