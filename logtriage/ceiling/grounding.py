"""What observations tell of each service, gathered for rules that rank: rows only, never a case.

Every metric is compared with what is usual. What happened lately is the later half of a window:
agents are not told when the trouble began, and windows are cut around the alarm or the injection,
a sample or two before their middle. Where an incident has no measures, as simulated ones, the
metrics table stands in, with no spread and a rate of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..play.observation import CallTime, LineCount, Measure, Observation
from ..world.call_graph import CallGraph
from ..world.telemetry import Alert, Metric

# Names of measures, as rows have them: how long a service takes (a mean before a percentile), and
# how many of its requests succeed.
LATENCIES = ("latency", "p95")
SUCCESSES = ("available", "success")
RATE = "requests"

LEAST_SPREAD = 0.01  # of the usual: what never moved may move by so much without surprise
ANOMALOUS = 3.0  # sigmas


@dataclass(frozen=True)
class Evidence:
    """What was seen of an incident.

    Attributes:
        graph: who calls whom.
        alerts: those of the opening, or the last that were shown.
        measures: service to name to measure; what users feel is left out.
        calls: a row a (caller, callee); counts: a row a service. Empty where nobody counted.
    """

    graph: CallGraph
    alerts: tuple[Alert, ...]
    measures: dict[str, dict[str, Measure]]
    calls: tuple[CallTime, ...]
    counts: tuple[LineCount, ...]

    def measured(self, service: str, *names: str) -> list[Measure]:
        """The measures of a service that have one of these names, in the order of the names; all
        of them without.
        """
        known = self.measures.get(service, {})
        return [known[name] for name in names or known if name in known]

    def surprise(self, service: str, *names: str) -> float:
        """The most sigmas by which one of these measures of a service (any, without names) lies off
        its usual; 0 where none is known.
        """
        return max((abs(sigmas(one)) for one in self.measured(service, *names)), default=0.0)

    def rate(self, service: str) -> float:
        """Its requests in a sample, the mean lately; 1 where nobody counted."""
        known = [one for row in self.measured(service, RATE) for one in lately(row)]
        return sum(known) / len(known) if known else 1.0


def gather(graph: CallGraph, observations: Sequence[Observation]) -> Evidence:
    """The rows of these observations, the opening first; what is shown again replaces the old."""
    alerts: tuple[Alert, ...] = ()
    measures: dict[str, dict[str, Measure]] = {}
    calls: dict[tuple[str, str], CallTime] = {}
    counts: dict[str, LineCount] = {}
    table: dict[str, Metric] = {}
    for seen in observations:
        alerts = tuple(seen.alerts) if seen.alerts is not None else alerts
        table.update({row.service: row for row in seen.metrics or ()})
        for row in seen.measures or ():
            if row.service in graph.position:
                measures.setdefault(row.service, {})[row.name] = row
        calls.update({(row.caller, row.callee): row for row in seen.calls or ()})
        counts.update({row.service: row for row in seen.counts or ()})
    if not measures:
        measures = {name: as_measures(row) for name, row in table.items()}
    return Evidence(graph, alerts, measures, tuple(calls.values()), tuple(counts.values()))


def as_measures(row: Metric) -> dict[str, Measure]:
    """A row of the metrics table as measures of one sample."""
    found = {}
    if row.latency is not None and row.usual is not None:
        found["p95"] = Measure(row.service, "p95", "ms", (row.latency,), row.usual)
    if row.errors is not None:
        share = (100.0 - row.errors,)
        found["available"] = Measure(row.service, "available", "%", share, 100.0)
    return found


def lately(measure: Measure) -> list[float]:
    """The values of the later half of the window that are known."""
    return [one for one in measure.values[len(measure.values) // 2 :] if one is not None]


def farthest(measure: Measure) -> float | None:
    """The value that lately lay farthest from the usual; None where either is not known."""
    usual, values = measure.usual, lately(measure)
    if usual is None or not values:
        return None
    return max(values, key=lambda value: abs(value - usual))


def sigmas(measure: Measure) -> float:
    """How far it lately lay off its usual, in its `spread`; above is positive, 0 is not known."""
    value = farthest(measure)
    return 0.0 if value is None else (value - (measure.usual or 0.0)) / measure.sigma(LEAST_SPREAD)
