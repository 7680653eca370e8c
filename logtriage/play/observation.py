"""What the agent is shown after a step, its text (short: tokens are costly), the system prompt."""

from typing import Any, NamedTuple

from ..world.call_graph import CallGraph
from ..world.telemetry import Alert, Metric

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


class Observation(NamedTuple):
    """What the agent is shown after a step; parts that the step does not show are None.

    `notice` repeats what was done without judging it. `error` explains an invalid action.
    `measures`, `calls` and `counts` are rows of `play.observed`; simulated incidents have none.
    """

    step: int = 0
    max_steps: int = 0
    notice: str = ""
    error: str = ""
    alerts: list[Alert] | None = None
    metrics: list[Metric] | None = None
    lines: list[str] | None = None
    done: bool = False
    measures: list[Any] | None = None
    calls: list[Any] | None = None
    counts: list[Any] | None = None


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
