"""How real the incidents are: the same statistics of real cases and of simulated ones.

    frame = statistics_frame([production_case("test", index) for index in range(100)])

Each is a number that `Case` alone decides, so that real and simulated cases are read by one code.
"""

from collections.abc import Iterable
from math import nan

import networkx as nx
import numpy as np
import pandas as pd

from logtriage.bench.intervals import wilson
from logtriage.play.observation import Observation
from logtriage.real.cases import Case
from logtriage.real.observed import LATENCIES, SUCCESSES, Evidence, Measure, gather, recent
from logtriage.real.real_episode import alerts, call_graph, metrics
from logtriage.real.unexplained import network_waits

LOUD = 5.0  # robust sigmas, from which a bystander counts
FAILS = 1.0  # per cent of failed requests, from which an incident is one of errors
SLOW_NETWORK = 1.0  # usual waits, from which the network to the root counts as slow
YES_OR_NO = ("on_the_wire", "without_errors", "root_alerted", "root_tells")
STATISTICS = {
    "services": "services",
    "longest_path": "services on the longest path",
    "shared": "share of called services with more than one caller",
    "on_the_wire": "only the callers' waiting shows",
    "without_errors": "slow without errors",
    "kinds_of_metric": "different metrics of services",
    "users_slowed": "latency of users, times the usual",
    "users_failed": "failed requests of users, %",
    "bystanders": "bystanders over 5 sigma",
    "band": "half width of a p95's usual band, of its usual",
    "missing": "missing samples of latency",
    "root_alerted": "an alert on the root",
    "lines_per_minute": "log lines a minute",
    "naming_another": "error lines that name another service",
    "root_tells": "the root logs new errors",
}


def statistics_frame(cases: Iterable[Case]) -> pd.DataFrame:
    """One row per case that has a root, one column per statistic; nan where it tells nothing."""
    return pd.DataFrame([statistics(case) for case in cases if case.truth.root])


def statistics(case: Case) -> dict[str, float]:
    """`STATISTICS` of a case."""
    shown = Observation(
        max_steps=1,
        alerts=alerts(case),
        metrics=metrics(case),
        measures=case.measures,
        calls=case.call_times,
        counts=case.line_counts,
    )
    evidence = gather(call_graph(case), [shown])
    root, callers = case.truth.root, evidence.graph.callers
    called = [len(some) for some in callers.values() if some]
    longer = [ratio for (_, to), (_, ratio) in network_waits(evidence).items() if to == root]
    failed = _users_failed(case, evidence)
    told = {alert.metric for alert in evidence.alerts}
    above = nx.ancestors(nx.DiGraph(case.calls), root) if callers[root] else set()
    counted = [row for row in case.line_counts if row.service == root]
    p95 = [row for row in case.measures if row.name == "p95" and row.usual]
    latencies = [one for row in case.measures if row.name in LATENCIES for one in row.values]
    quiet = evidence.anomaly(root) < LOUD
    paths = nx.condensation(nx.DiGraph(case.calls))
    return {
        "services": len(case.services),
        "longest_path": len(nx.dag_longest_path(paths)),
        "shared": float(np.mean([count > 1 for count in called])) if called else 0.0,
        "on_the_wire": float(quiet and max(longer, default=0.0) > SLOW_NETWORK),
        "without_errors": float("errors" not in told and not failed > FAILS),
        "kinds_of_metric": len({row.name for row in case.measures}),
        "users_slowed": _users_slowed(case, evidence),
        "users_failed": failed,
        "bystanders": sum(
            evidence.anomaly(one) > LOUD for one in case.services if one not in above | {root}
        ),
        "band": float(np.median(widths)) if (widths := _widths(p95)) else nan,
        "missing": float(np.mean([one is None for one in latencies])) if latencies else nan,
        "root_alerted": float(root in {alert.service for alert in evidence.alerts}),
        "lines_per_minute": sum(row.lines for row in case.line_counts) or nan,
        "naming_another": _naming_another(case, {root, *callers[root]}),
        "root_tells": float(counted[0].errors > (counted[0].usual_errors or 0.0))
        if counted
        else nan,
    }


def _widths(p95: list[Measure]) -> list[float]:
    """Half the width of the usual band, of the usual."""
    return [
        (row.high - row.low) / 2.0 / row.usual
        for row in p95
        if row.usual and row.low is not None and row.high is not None
    ]


def _users(case: Case, evidence: Evidence) -> list[Measure]:
    """What users feel; where nobody measured it, what the services feel that they call."""
    if case.users:
        return case.users
    edges = [evidence.graph.names[at] for at in evidence.graph.edges]
    alerted = [alert.service for alert in evidence.alerts if alert.service in edges]
    return [row for name in alerted or edges for row in evidence.measured(name)]


def _users_slowed(case: Case, evidence: Evidence) -> float:
    for name in LATENCIES:
        found = [
            max(known, key=lambda value: abs(value - usual)) / usual
            for row in _users(case, evidence)
            if row.name == name and (usual := row.usual) and (known := recent(row))
        ]
        if found:
            return max(found)
    return nan


def _users_failed(case: Case, evidence: Evidence) -> float:
    found = [
        (row.usual or 0.0) - min(known)
        for row in _users(case, evidence)
        if row.name in SUCCESSES and (known := recent(row))
    ]
    return max(found, default=nan)


def _naming_another(case: Case, services: set[str]) -> float:
    found = [
        any(name in line for name in case.services if name != service)
        for service in services
        for line in case.logs.get(service, ())
        if line.split(None, 2)[1] in ("ERROR", "WARN", "WARNING")
    ]
    return float(np.mean(found)) if found else nan


def within_quartiles(real: pd.DataFrame, simulated: pd.DataFrame) -> pd.DataFrame:
    """One row per statistic: the real quartiles, each `source` counted alike, and whether the
    simulated median lies between them. Of a yes or no it is the simulated share, between the lowest
    and the highest end of Wilson's intervals of the sources.
    """
    rows = []
    for name in STATISTICS:
        known = real[["source", name]].dropna().reset_index(drop=True)
        by_source = known.groupby("source")[name]
        if name in YES_OR_NO:
            shares = [wilson(values.mean(), len(values)) for _, values in by_source]
            low, high = min(one.low for one in shares), max(one.high for one in shares)
            middle = simulated[name].mean()
        else:
            weight = 1.0 / by_source.transform("size")
            low, high = (_quantile(known[name], weight, share) for share in (0.25, 0.75))
            middle = simulated[name].median()
        rows.append((name, low, high, middle, low <= middle <= high))
    return pd.DataFrame(rows, columns=["statistic", "low", "high", "production", "within"])


def _quantile(values: pd.Series, weight: pd.Series, share: float) -> float:
    order = values.sort_values().index
    return float(values[order][weight[order].cumsum() >= share * weight.sum() - 1e-9].iloc[0])
