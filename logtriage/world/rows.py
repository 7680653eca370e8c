"""The rows that an agent is shown: alerts, the metrics table, and what real clusters tell besides.

A simulated incident has alerts and metrics, all of whose values are known. Observed ones may lack
any of them, and have further rows: measures, calls, and counts of lines. Numbers of those are None
where they are not known.
"""

from __future__ import annotations

from typing import NamedTuple

BAND = 3.29  # sigmas between the 5th and the 95th percentile of a normal distribution
UNKNOWN = "-"  # in the text of a row: nobody measured it


class Alert(NamedTuple):
    """A threshold crossed now: `errors` in per cent, or `p95` or `latency` (a mean) in ms; of a
    simulated one to one significant digit.
    """

    service: str
    metric: str
    value: str

    @property
    def text(self) -> str:
        unit = "%" if self.metric == "errors" else "ms"
        return f"{self.service} {self.metric} {self.value}{unit}"


class Metric(NamedTuple):
    """A row of the metrics table: error share in per cent, p95 and its usual value in ms. Empty
    where it is not known.
    """

    service: str
    errors: str
    latency: str
    usual: str

    @property
    def text(self) -> str:
        errors = f"{self.errors}%" if self.errors else UNKNOWN
        latency = f"{self.latency}ms" if self.latency else UNKNOWN
        return f"{self.service} {errors} {latency} {self.usual or UNKNOWN}"

    @property
    def slowdown(self) -> float | None:
        """The latency in times the usual; None where either is not known, or the usual is 0."""
        if not self.latency or not self.usual or float(self.usual) == 0.0:
            return None
        return float(self.latency) / float(self.usual)


class Measure(NamedTuple):
    """A further metric of a service, over time.

    Attributes:
        service: whose; `users` for what they feel.
        name, unit: what is measured, as in `cpu`, `%`.
        values: in order of time, the last the most recent.
        usual: the median without an incident.
        low, high: between which nine of ten values lie then.
        deviation: 1.4826 times the median distance from `usual` then, which is the sigma of a
            normal distribution; programs read it, texts do not show it.
    """

    service: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    usual: float | None = None
    low: float | None = None
    high: float | None = None
    deviation: float | None = None

    @property
    def text(self) -> str:
        values = " ".join(map(number, self.values))
        band = f" ({number(self.low)}-{number(self.high)})" if self.low is not None else ""
        return f"{self.service} {self.name} {values}{self.unit} usual {number(self.usual)}{band}"


class CallTime(NamedTuple):
    """How long a call takes, in ms, and how often it is made, a minute.

    `wait` is what the caller measures, `served` what the callee does: the wire takes the rest.
    """

    caller: str
    callee: str
    wait: float | None
    usual_wait: float | None
    served: float | None = None
    usual_served: float | None = None
    rate: float | None = None
    usual_rate: float | None = None

    @property
    def text(self) -> str:
        told = f"{self.caller} > {self.callee} waits {number(self.wait)}ms"
        told += f" usual {number(self.usual_wait)}"
        if self.served is not None:
            told += f", served in {number(self.served)}ms usual {number(self.usual_served)}"
        if self.rate is not None:
            told += f", {number(self.rate)}/min usual {number(self.usual_rate)}"
        return told


class LineCount(NamedTuple):
    """Log lines of a service a minute, and how many of them are errors and warnings."""

    service: str
    lines: float
    usual_lines: float | None
    errors: float
    usual_errors: float | None
    warnings: float = 0.0
    usual_warnings: float | None = None

    @property
    def text(self) -> str:
        return (
            f"{self.service} {number(self.lines)} lines/min usual {number(self.usual_lines)}, "
            f"errors {number(self.errors)} usual {number(self.usual_errors)}, "
            f"warnings {number(self.warnings)} usual {number(self.usual_warnings)}"
        )


def number(value: float | None) -> str:
    """A quantity as printed: three significant digits, no exponent."""
    if value is None:
        return UNKNOWN
    short = float(f"{value:.3g}")
    return f"{short:.0f}" if short == int(short) else repr(short) if abs(short) >= 1e-4 else "0"


def cell(value: float | None) -> str:
    """A quantity as a cell of the metrics table: empty where it is not known."""
    return "" if value is None else number(value)


def spread(measure: Measure, least: float) -> float:
    """The sigma of a measure without an incident: by its median deviation or by the band in which
    nine of ten values lie, whichever is wider.

    Args:
        least: share of its usual that it is at least, for what never moved.
    """
    wide = measure.deviation or 0.0
    if measure.low is not None and measure.high is not None:
        wide = max(wide, (measure.high - measure.low) / BAND)
    return max(wide, least * abs(measure.usual or 0.0), 1e-9)
