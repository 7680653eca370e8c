"""A case's recordings as the rows and lines that an agent is shown."""

from __future__ import annotations

from ..play.observation import CallTime, LineCount, Measure, observed_metric, three_digits
from ..world.telemetry import Alert, Metric
from .cases import Case, LineRates, Series

USERS = "users"  # whose measures are shown as a service's

# What the sources call a metric, to the name and the unit that are shown.
MEASURES = {
    "latency_ms": ("latency", "ms"),
    "latency_p95_ms": ("p95", "ms"),
    "availability_pct": ("available", "%"),
    "success_pct": ("success", "%"),
    "requests": ("requests", ""),
    "requests_per_s": ("requests", "/s"),
    "cpu_pct": ("cpu", "%"),
    "memory_pct": ("memory", "%"),
    "node_cpu_pct": ("node cpu", "%"),
    "server_p95_ms": ("p95", "ms"),
    "client_p95_ms": ("p95 of its calls", "ms"),
}
LATENCIES = ("latency_p95_ms", "server_p95_ms")  # which of them stands in the metrics table
ALERTS = {"latency_ms": "latency", "server_p95_ms": "p95", "errors_pct": "errors"}
AVAILABILITY = "availability_pct"


def current(series: Series, zero: int) -> float | None:
    """The value since `zero` that is farthest from the usual; of an unknown usual the last. None
    when nothing was measured since.
    """
    values = [value for value in series.values[zero:] if value is not None]
    usual = series.usual
    if not values or usual is None:
        return values[-1] if values else None
    return max(values, key=lambda value: abs(value - usual))


def alerts(case: Case) -> list[Alert]:
    """The alerts of a case; availability is told as errors."""
    return [
        Alert(one.service, "errors", three_digits(100.0 - one.value))
        if one.metric == AVAILABILITY
        else Alert(one.service, ALERTS[one.metric], three_digits(one.value))
        for one in case.alerts
    ]


def metrics(case: Case) -> list[Metric]:
    """The metrics table: a row a service of which errors or p95 are known."""
    rows = []
    for service in case.services:
        known = case.metrics.get(service, {})
        name = next((name for name in LATENCIES if name in known), "")
        latency = current(known[name], case.window.zero) if name else None
        usual = known[name].usual if name else None
        served = current(known[AVAILABILITY], case.window.zero) if AVAILABILITY in known else None
        errors = None if served is None else 100.0 - served
        if errors is not None or latency is not None:
            rows.append(observed_metric(service, errors, latency, usual))
    return rows


def measures(case: Case) -> list[Measure]:
    """Every metric of every service, over the whole window."""
    return [
        _measure(service, name, series)
        for service in case.services
        for name, series in case.metrics.get(service, {}).items()
    ]


def users(case: Case) -> list[Measure]:
    """What users feel, over the whole window; empty where nobody measured it."""
    return [_measure(USERS, name, series) for name, series in case.users.items()]


def _measure(service: str, name: str, series: Series) -> Measure:
    low, high = series.range or (None, None)
    return Measure(
        service, *MEASURES[name], tuple(series.values), series.usual, low, high, series.mad
    )


def call_times(case: Case) -> list[CallTime]:
    """What was measured of calls; empty where nothing was.

    Train Ticket's spans give the time at the callee and what the caller waits beyond it; the wait
    is their sum, though each is a 90th percentile of its own.
    """
    if case.edges is None:
        return []
    rows = [dict(zip(case.edges.columns, row, strict=True)) for row in case.edges.rows]
    return [_call_time(row) for row in rows]


def _call_time(row: dict[str, str | float | None]) -> CallTime:
    def value(name: str) -> float | None:
        found = row.get(name)
        return found if isinstance(found, float) else None

    names = (str(row["caller"]), str(row["callee"]))
    if "client_p50_ms" in row:
        waits = (value("client_p50_ms"), value("usual_client_p50_ms"))
        return CallTime(*names, *waits, value("server_p50_ms"), value("usual_server_p50_ms"))
    served, usual_served = value("callee_p90_ms"), value("usual_callee_p90_ms")
    return CallTime(
        *names,
        _sum(served, value("beyond_p90_ms")),
        _sum(usual_served, value("usual_beyond_p90_ms")),
        served,
        usual_served,
        value("calls_per_min"),
        value("usual_calls_per_min"),
    )


def line_counts(case: Case) -> list[LineCount]:
    """Log lines of each service a minute; empty where the source has no logs."""
    return [_line_count(service, rates) for service, rates in case.log_counts.items()]


def _line_count(service: str, rates: LineRates) -> LineCount:
    return LineCount(
        service,
        rates.lines_per_min,
        rates.usual,
        rates.errors_per_min,
        rates.usual_errors,
        rates.warns_per_min,
        rates.usual_warns,
    )


def log_lines(case: Case, service: str) -> list[str] | None:
    """The lines of a service as `LEVEL service time text`; None where the source has no logs."""
    if not case.logs:
        return None
    lines = []
    for line in case.logs.get(service, ()):
        time, level, text = [*line.split(None, 2), "", ""][:3]
        lines.append(f"{level} {service} {time} {text}")
    return lines


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
