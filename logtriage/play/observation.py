"""What the agent is shown after a step, its text (short: tokens are costly), the system prompt.

Some rows only observed incidents have; a value that nobody measured is None, or `-` in text.
"""

from typing import NamedTuple

from ..world.call_graph import CallGraph
from ..world.telemetry import UNKNOWN, Alert, Metric

SYSTEM_PROMPT = """You are the on-call engineer of a microservice cluster. An incident was reported.
Find the service where the trouble began, not the one that shouts loudest: callers suffer from \
what they call.
1. request_more_logs of a service shows its own recent lines; of all, a little of everything.
2. classify_severity: P1 if over 5% of user requests fail, P2 if fewer fail or users are slowed, \
P3 if no user is touched.
3. identify_root_cause, then remediate that service, then escalate to the team in charge.
Restart crashes and leaks; rollback bad releases and configuration; scale overload; flush-cache \
cache trouble; kill-query.
Teams: sre owns edge and queue and all overload, backend owns apps, dba owns databases; security \
owns every attack.
4. resolve when done. If nothing is wrong, classify P3 and ignore. First answers count. Naming the \
cause but
paging the wrong team, or nobody for a P1 or P2, is worth nothing; nor is ignoring a real fault. A \
remedy that does not help costs.
You may make several calls at once."""

TABLE_HEADER = "service errors p95 usual"
CLOSED = "Incident closed."
BAND = 3.29  # sigmas between the 5th and the 95th percentile of a normal distribution
LEAST_SPREAD = 0.01  # spread of a measure that never moved, as a share of its baseline


def three_digits(value: float) -> int | float:
    """Round a quantity of an observed incident to three significant digits; 0 if below 0.0001."""
    short = float(f"{value:.3g}")
    return int(short) if short == int(short) else short if abs(short) >= 1e-4 else 0


def number(value: float | None) -> str:
    """Return a quantity of an observed incident as text."""
    return UNKNOWN if value is None else str(three_digits(value))


def observed_metric(
    service: str, errors: float | None, latency: float | None, usual: float | None
) -> Metric:
    """A row of the metrics table of an observed incident."""
    cells = (errors, latency, usual)
    return Metric(service, *(None if cell is None else three_digits(cell) for cell in cells))


class Measure(NamedTuple):
    """A further metric of a service, over time; its text leaves out the deviation."""

    service: str  # or `users`, for what users feel
    name: str
    unit: str
    values: tuple[float | None, ...]  # oldest first
    usual: float | None = None  # the median without an incident
    low: float | None = None  # without an incident, nine of ten values are between `low` and `high`
    high: float | None = None
    deviation: float | None = None  # 1.4826 x the median distance from `usual`: about a sigma

    @property
    def text(self) -> str:
        values = " ".join(map(number, self.values))
        band = f" ({number(self.low)}-{number(self.high)})" if self.low is not None else ""
        return f"{self.service} {self.name} {values}{self.unit} usual {number(self.usual)}{band}"

    @property
    def sigma(self) -> float:
        """The spread without an incident, from deviation or band, and always above 0."""
        wide = self.deviation or 0.0
        if self.low is not None and self.high is not None:
            wide = max(wide, (self.high - self.low) / BAND)
        return max(wide, LEAST_SPREAD * abs(self.usual or 0.0), 1e-9)


class CallTime(NamedTuple):
    """How long a call takes, in ms; the wait minus the time it is served is network latency."""

    caller: str
    callee: str
    wait: float | None  # as the caller measures it
    usual_wait: float | None
    served: float | None = None  # as the callee measures it
    usual_served: float | None = None
    rate: float | None = None  # calls per minute
    usual_rate: float | None = None

    @property
    def text(self) -> str:
        usual = number(self.usual_wait)
        text = f"{self.caller} > {self.callee} waits {number(self.wait)}ms usual {usual}"
        if self.served is not None:
            text += f", served in {number(self.served)}ms usual {number(self.usual_served)}"
        if self.rate is not None:
            text += f", {number(self.rate)}/min usual {number(self.usual_rate)}"
        return text


class LineCount(NamedTuple):
    """Log lines of a service per minute, and how many of them are errors and warnings."""

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


class Observation(NamedTuple):
    """What the agent is shown after a step; parts that the step does not show are None.

    `notice` repeats what was done without judging it. `error` explains an invalid action.
    Simulated incidents have no `measures`, `calls` and `counts`.
    """

    step: int = 0
    max_steps: int = 0
    notice: str = ""
    error: str = ""
    alerts: list[Alert] | None = None
    metrics: list[Metric] | None = None
    lines: list[str] | None = None
    done: bool = False
    measures: list[Measure] | None = None
    calls: list[CallTime] | None = None
    counts: list[LineCount] | None = None


def call_graph_line(topology: CallGraph) -> str:
    """Who calls whom, in one line."""
    return f"calls: {topology.call_graph_text}"


def render(observation: Observation, topology: CallGraph | None = None) -> str:
    """Render an observation as the agent reads it; the opening also shows the call graph."""
    parts = [f"step {observation.step} of {observation.max_steps}"]
    if topology is not None:
        parts.append(call_graph_line(topology))
    if observation.error:
        parts.append(f"error: {observation.error}")
    if observation.notice:
        parts.append(observation.notice)
    if observation.alerts is not None:
        alerts = "; ".join([alert.text for alert in observation.alerts])
        parts.append(f"alerts: {alerts or 'none'}")
        if observation.metrics is not None:
            parts.append(TABLE_HEADER)
    rows = (observation.metrics, observation.measures, observation.calls, observation.counts)
    parts += [row.text for some in rows for row in some or ()]
    parts += observation.lines or ()
    if observation.done:
        parts.append(CLOSED)
    return "\n".join(parts)
