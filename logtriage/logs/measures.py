"""Metrics beside a log, from a CSV file with the columns `time`, `service`, `metric` and `value`:

    time,service,metric,value
    2026-11-22T03:00:00Z,cart,cpu_pct,12.5
    2026-11-22T03:01:00Z,cart,cpu_pct,97

A time is written in any way that a log writes one, or in seconds since 1970; a value is a number,
and a row without one is a gap. Columns may stand in any order, and others are left alone.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TextIO

from ..real.observed import Measure, observed_metric
from ..world.telemetry import Alert, Metric
from .lines import defused, visible
from .names import service_name
from .structured import Times
from .window import Window

COLUMNS = ("time", "service", "metric", "value")
MOST_ROWS = 1_000_000
MOST_METRICS = 5_000
MOST_FIELD = 200  # characters of a field
FAR = 5.0  # robust sigmas from the usual, from which a metric is unusual
FLOOR = 0.05  # share of the usual that a sigma is at least: flat series have none
UNITS = {"_pct": "%", "_ms": "ms", "_s": "s"}  # by how the name of a metric ends
# Metrics that stand in the table of errors and p95, and what makes an alert of them; as in the
# simulator.
ERRORS = ("errors_pct", "error_pct")
LATENCIES = ("p95_ms", "latency_p95_ms", "server_p95_ms", "latency_ms")
ALERT_ERRORS, ALERT_SLOWDOWN = 5.0, 3.0


# (service, metric) to (second, value).
Metrics = dict[tuple[str, str], list[tuple[int, float]]]


def read_measures(path: Path) -> Metrics:
    """The values of a file: (service, metric) to (second, value).

    Raises:
        ValueError: naming the file, the line, the rule and the way out.
        OSError: for a file that cannot be read.
    """
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        return _read(str(path), stream)


def _read(name: str, stream: TextIO) -> Metrics:
    rows = _rows(name, stream)
    header = [field.strip().lower() for field in next(rows, (0, []))[1]]
    lacking = [column for column in COLUMNS if column not in header]
    if lacking:
        raise ValueError(
            f"{name}, line 1: no column {', '.join(lacking)}; "
            f"the first line names the columns, among them {','.join(COLUMNS)}"
        )
    places = [header.index(column) for column in COLUMNS]
    metrics: Metrics = {}
    times = Times()
    for line, row in rows:
        if not row:
            continue
        if len(row) <= max(places):
            raise ValueError(
                f"{name}, line {line}: {len(row)} fields, the header has {len(header)}; "
                "give each row all of them"
            )
        time, service, metric, value = (row[place].strip()[:MOST_FIELD] for place in places)
        second = times.at(time)
        if second < 0:
            raise ValueError(
                f"{name}, line {line}: {visible(time, 40)!r} is no time; "
                "write it as 2026-11-22T03:00:00Z or in seconds since 1970"
            )
        try:
            number = float(value) if value else math.nan
        except ValueError:
            raise ValueError(
                f"{name}, line {line}: {visible(value, 40)!r} is no number; "
                "leave a missing value empty"
            ) from None
        if math.isfinite(number):
            key = (service_name(service.encode()), defused(visible(metric, 40)))
            if key not in metrics and len(metrics) >= MOST_METRICS:
                raise ValueError(
                    f"{name}, line {line}: more than {MOST_METRICS} metrics; keep those in question"
                )
            metrics.setdefault(key, []).append((second, number))
    return metrics


def _rows(name: str, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
    """The rows with their lines, counted from 1; bounded in number and in length."""
    reader = csv.reader(iter(lambda: stream.readline(1 << 16), ""))
    for count in range(MOST_ROWS + 1):
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{name}, line {reader.line_num}: {error}; write plain CSV") from None
        if row is None:
            return
        if count == MOST_ROWS:
            raise ValueError(f"{name}: more than {MOST_ROWS} rows; keep the hours in question")
        yield reader.line_num, row


def compare(metrics: Metrics, window: Window) -> list[Measure]:
    """Each metric that has values both in the window and in the stretch that tells what is usual,
    the most unusual first: its median in the window against quantiles of that stretch.
    """
    found = []
    for (service, metric), values in metrics.items():
        now = [value for at, value in values if window.start <= at < window.end]
        usual = sorted(value for at, value in values if window.usual[0] <= at < window.usual[1])
        if now and len(usual) >= 3:
            found.append(_measure(service, metric, median(now), usual))
    return sorted(found, key=lambda one: (-abs(sigmas(one)), one.service, one.name))


def _measure(service: str, metric: str, now: float, usual: Sequence[float]) -> Measure:
    middle, tail = median(usual), int(0.05 * (len(usual) - 1))
    unit = next((unit for end, unit in UNITS.items() if metric.endswith(end)), "")
    away = 1.4826 * median(abs(value - middle) for value in usual)
    return Measure(service, metric, unit, (now,), middle, usual[tail], usual[-1 - tail], away)


def sigmas(measure: Measure) -> float:
    """How far a compared metric is from the usual, in robust sigmas."""
    (now,), usual = measure.values, measure.usual
    return 0.0 if now is None or usual is None else (now - usual) / measure.sigma(FLOOR)


def is_unusual(measure: Measure) -> bool:
    """Whether a compared metric is far from the usual."""
    return abs(sigmas(measure)) >= FAR


def table(measures: Sequence[Measure]) -> list[Metric]:
    """Those of them that are errors and latencies, as the metrics table."""
    errors = {one.service: one.values[0] for one in measures if one.name in ERRORS}
    latencies: dict[str, Measure] = {}
    for name in reversed(LATENCIES):
        latencies.update({one.service: one for one in measures if one.name == name})
    rows = []
    for service in sorted({*errors, *latencies}):
        failed, slow = errors.get(service), latencies.get(service)
        latency, usual = (slow.values[0], slow.usual) if slow else (None, None)
        rows.append(observed_metric(service, failed, latency, usual))
    return rows


def alerts(rows: Sequence[Metric]) -> list[Alert]:
    """The thresholds that rows of the table cross, as the simulator's."""
    found = []
    for row in rows:
        if row.errors is not None and row.errors > ALERT_ERRORS:
            found.append(Alert(row.service, "errors", row.errors))
        elif row.latency is not None and (row.slowdown or 0.0) > ALERT_SLOWDOWN:
            found.append(Alert(row.service, "p95", row.latency))
    return found
