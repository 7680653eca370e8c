"""Rows that only observed incidents have: measures, call times and line counts; and their numbers.

Any value may be missing: what nobody measured is None, and `-` in a text.
"""

from __future__ import annotations

from typing import NamedTuple

from ..world.telemetry import UNKNOWN, Metric

BAND = 3.29  # sigmas between the 5th and the 95th percentile of a normal distribution


def three_digits(value: float) -> int | float:
    """A quantity of an observed incident: three significant digits, and 0 below 0.0001."""
    short = float(f"{value:.3g}")
    return int(short) if short == int(short) else short if abs(short) >= 1e-4 else 0


def number(value: float | None) -> str:
    """A quantity of an observed incident as text."""
    return UNKNOWN if value is None else str(three_digits(value))


def observed_metric(
    service: str, errors: float | None, latency: float | None, usual: float | None
) -> Metric:
    """A row of the metrics table of an observed incident."""
    cells = (errors, latency, usual)
    return Metric(service, *(None if cell is None else three_digits(cell) for cell in cells))


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

    def sigma(self, least: float) -> float:
        """The standard deviation without an incident: by the median deviation or by the band in
        which nine of ten values lie, whichever is wider; at least this share of `usual`, for what
        never moved.
        """
        wide = self.deviation or 0.0
        if self.low is not None and self.high is not None:
            wide = max(wide, (self.high - self.low) / BAND)
        return max(wide, least * abs(self.usual or 0.0), 1e-9)


class CallTime(NamedTuple):
    """How long a call takes, in ms, and how often it is made, a minute.

    `wait` is what the caller measures, `served` what the callee does; the difference is network
    latency.
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
        text = f"{self.caller} > {self.callee} waits {number(self.wait)}ms"
        text += f" usual {number(self.usual_wait)}"
        if self.served is not None:
            text += f", served in {number(self.served)}ms usual {number(self.usual_served)}"
        if self.rate is not None:
            text += f", {number(self.rate)}/min usual {number(self.usual_rate)}"
        return text


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
