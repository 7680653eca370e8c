"""A real incident as an episode: what was recorded of it, shown as a simulated one is.

| question | answer |
|---|---|
| the opening | alerts, what users feel, the table of errors and p95, counts of error lines |
| logs of a service | its row, its further metrics, its calls, its lines and their counts |
| logs of all | the table, and all further metrics, calls and counts |

Scored is the root cause alone: 1 when the first service blamed is the root. Nobody knows the
severity, the team or the remedy, and no gate is closed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..play.actions import ALL_SERVICES
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..play.scoring import Score
from ..world.call_graph import UNKNOWN_KIND, CallGraph, Service
from .cases import Case, load_case
from .real_rows import alerts, call_times, line_counts, log_lines, measures, metrics, users

REAL = "real"  # the name of the task
MAX_STEPS = 20
TOP = 3  # services that may be blamed in order; the first counts, see `top`
SCORED = "root cause alone: no severity, team, remedy or gate is known of real incidents"
TOLD = "a real incident: the root cause alone counts; who is blamed next is your second guess"


@dataclass(frozen=True)
class RealIncident:
    """What may be known of a case while it is played. The rest is behind `case`.

    Attributes:
        split: the source.
        index: the number of the case there.
        topology: the call graph as it was observed; no kind of service is known.
    """

    split: str
    index: int
    case: Case = field(repr=False)
    topology: CallGraph = field(repr=False)
    task_name: str = field(default=REAL, init=False, repr=False)
    task: None = field(default=None, init=False, repr=False)


def real_incident(source: str, index: int) -> RealIncident:
    """A case of a source; `ValueError` for an unknown source or number."""
    case = load_case(source, index)
    return RealIncident(source, index, case, call_graph(case))


def call_graph(case: Case) -> CallGraph:
    """Who calls whom, as the source tells it."""
    called: dict[str, list[str]] = {name: [] for name in case.services}
    for caller, callee in case.calls:
        called[caller].append(callee)
    return CallGraph(
        tuple(Service(name, UNKNOWN_KIND, tuple(callees)) for name, callees in called.items())
    )


class RealEpisode(BaseEpisode):
    """A case being played.

    Args:
        incident: from `real_incident`.
    """

    incident: RealIncident

    def __init__(self, incident: RealIncident) -> None:
        case = incident.case
        counts = [one for one in line_counts(case) if one.errors or one.usual_errors]
        opening = Observation(
            max_steps=MAX_STEPS,
            notice=TOLD,
            alerts=alerts(case),
            metrics=metrics(case),
            measures=users(case) or None,
            counts=counts or None,
        )
        super().__init__(incident, opening)

    @classmethod
    def open(cls, source: str, index: int) -> RealEpisode:
        """The episode of a case; `ValueError` for an unknown source or number."""
        return cls(real_incident(source, index))

    def _ask(self, service: str) -> Observation:
        """See the table at the head of this file."""
        case = self.incident.case
        if service == ALL_SERVICES:
            return Observation(
                alerts=alerts(case),
                metrics=metrics(case),
                measures=measures(case),
                calls=call_times(case) or None,
                counts=line_counts(case) or None,
            )
        calls = [one for one in call_times(case) if service in (one.caller, one.callee)]
        counts = [one for one in line_counts(case) if one.service == service]
        found = Observation(
            metrics=[row for row in metrics(case) if row.service == service],
            measures=[row for row in measures(case) if row.service == service],
            calls=calls or None,
            counts=counts or None,
            lines=log_lines(case, service),
        )
        nothing = not (found.measures or calls or counts or found.lines)
        return found._replace(notice=f"nothing is on record of {service}" if nothing else "")

    def _judge(self) -> Score:
        """1 for the right root, else 0; no other part was asked."""
        right = float(top(self.record.root_causes, self.incident.case, 1))
        return Score(0.0, right, 0.0, 0.0, 0.0, 0.0, 1.0, right)


def top(blamed: list[str], case: Case, count: int = TOP) -> bool:
    """Whether the root is among the first `count` different services that were blamed."""
    return case.truth.root in list(dict.fromkeys(blamed))[:count]
