"""A real incident as an episode, and its recordings as the rows and lines that an agent is shown.

| question | answer |
|---|---|
| the opening | alerts, what users feel, the table of errors and p95, counts of error lines |
| logs of a service | its row, its further metrics, its calls, its lines and their counts |
| logs of all | alerts, the table, all further metrics, calls and counts |

Only the root cause is scored: 1 if the first service blamed is the root. The sources name no
severity, team or remedy, and the gate is always passed.
"""

from typing import ClassVar, Self

from logtriage.play.actions import ALL_SERVICES
from logtriage.play.episode import Answer, IncidentView, RecordedEpisode, final_score
from logtriage.play.observation import Measure, Observation, observed_metric, three_digits
from logtriage.play.scoring import Score
from logtriage.world.call_graph import UNKNOWN_KIND, CallGraph, Service
from logtriage.world.telemetry import Alert, Metric

from .cases import SOURCES, Case, load_case, load_source

REAL = "real"  # the name of the task
MAX_STEPS = 20
TOP = 3  # services that may be blamed in order; the first counts for the score
SCORED = "root cause alone: no severity, team, remedy or gate"


class RealEpisode(RecordedEpisode):
    """A case being played; everything except `case` may be known while it is played."""

    task_name = REAL
    splits: ClassVar[tuple[str, ...]] = SOURCES
    find_case = staticmethod(load_case)
    notice = "a real incident: the root cause alone counts; who is blamed next is your second guess"

    def __init__(self, split: str, index: int, case: Case) -> None:
        self.case = case
        opening = Observation(
            max_steps=MAX_STEPS,
            notice=self.notice,
            alerts=alerts(case),
            metrics=metrics(case),
            measures=[*case.users] or None,
            counts=[row for row in case.line_counts if row.errors or row.usual_errors] or None,
        )
        super().__init__(IncidentView(self.task_name, split, index, call_graph(case)), opening)

    @classmethod
    def open(cls, split: str, index: int) -> Self:
        """Open the case with that number, from 0; `ValueError` if there is none."""
        return cls(split, index, cls.find_case(split, index))

    @classmethod
    def last_index(cls, split: str) -> int:
        return len(load_source(split).cases) - 1

    def answers(self) -> list[Answer]:
        guesses = ", ".join(self.guesses[:TOP])
        in_time = float(blames_root(self.record.root_causes, self.case))
        root = self.case.truth.root
        return [self._root_answer(), Answer(f"in {TOP} guesses", guesses, root, in_time)]

    @property
    def cause(self) -> str:
        return self.case.truth.fault.replace("_", " ")

    @property
    def guesses(self) -> list[str]:
        """The different services that were blamed, in order."""
        return list(dict.fromkeys(self.record.root_causes))

    def _root_answer(self) -> Answer:
        """The one answer that is scored."""
        root, right = self.case.truth.root, final_score(self).root_cause
        return Answer("root cause", self.record.root_cause, root, right, 1.0)

    def _ask(self, service: str) -> Observation:
        """What the recordings have of a service, or of all."""
        case, every = self.case, service == ALL_SERVICES
        of = {name: every or name == service for name in case.services}
        answer = Observation(
            alerts=alerts(case) if every else None,
            metrics=[row for row in metrics(case) if of[row.service]],
            measures=[row for row in case.measures if of[row.service]],
            calls=[row for row in case.call_times if of[row.caller] or of[row.callee]] or None,
            counts=[row for row in case.line_counts if of[row.service]] or None,
            lines=None if every else log_lines(case, service),
        )
        if every or answer.measures or answer.calls or answer.counts or answer.lines:
            return answer
        return answer._replace(notice=f"nothing is on record of {service}")

    def _judge(self) -> Score:
        """1 for the right root, else 0; no other part is asked for."""
        right = float(blames_root(self.record.root_causes, self.case, 1))
        return Score(0.0, right, 0.0, 0.0, 0.0, 0.0, 1.0, right, right)


def blames_root(blamed: list[str], case: Case, count: int = TOP) -> bool:
    """Whether the root is among the first `count` different services that were blamed."""
    return case.truth.root in list(dict.fromkeys(blamed))[:count]


def call_graph(case: Case) -> CallGraph:
    """Who calls whom, as the source has it."""
    called: dict[str, list[str]] = {name: [] for name in case.services}
    for caller, callee in case.calls:
        called[caller].append(callee)
    services = (Service(name, UNKNOWN_KIND, tuple(called[name])) for name in called)
    return CallGraph(tuple(services))


def alerts(case: Case) -> list[Alert]:
    """The alerts of a case, with the figures that are shown."""
    return [alert._replace(value=three_digits(alert.value)) for alert in case.alerts]


def metrics(case: Case) -> list[Metric]:
    """The metrics table: one row per service whose errors or p95 are known."""
    known = {(row.service, row.name): row for row in case.measures}
    unknown = Measure("", "", "", ())
    rows = []
    for service in case.services:
        p95, available = (known.get((service, name), unknown) for name in ("p95", "available"))
        latency, success = (worst(measure, case.window.zero) for measure in (p95, available))
        if latency is not None or success is not None:
            errors = None if success is None else 100.0 - success
            rows.append(observed_metric(service, errors, latency, p95.usual))
    return rows


def worst(measure: Measure, zero: int) -> float | None:
    """The value since `zero` farthest from the baseline (the last, without a baseline), if any."""
    usual, values = measure.usual, [value for value in measure.values[zero:] if value is not None]
    if usual is None:
        return values[-1] if values else None
    return max(values, key=lambda value: abs(value - usual), default=None)


def log_lines(case: Case, service: str) -> list[str] | None:
    """The lines of a service as `LEVEL service time text`; None if the case has no logs."""
    if not case.logs:
        return None
    lines = (line.split(None, 2) for line in case.logs.get(service, ()))
    return [f"{level} {service} {time} {text}" for time, level, text in lines]
