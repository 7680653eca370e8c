"""The score of an episode: five named parts, costs, and the gate. All weights are here.

| part | weight | full when |
|---|---|---|
| severity | 0.20 | the first severity given is the true one |
| root_cause | 0.35 | the first service blamed is the root |
| remediation | 0.25 | the first remediation is the right remedy at the root |
| escalation | 0.10 | the first team paged is the right one |
| speed | 0.10 | closed by `resolve`, the fault gone; falls linearly from fewest to most steps |

At a false alarm, every part but severity requires `ignore`, with nothing blamed, fixed or paged.
The gate sets the total to 0 when a real fault is dismissed by `ignore`, and when the right root
cause is named but the wrong team is paged, or nobody at a P1 or P2. Costs are subtracted for
answering a question again, for a remediation that does not help, and for paging at a false alarm.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ..world.exact import total
from ..world.incidents import Incident
from ..world.tasks import PAR_STEPS
from .actions import Action

WEIGHTS = {
    "severity": 0.20,
    "root_cause": 0.35,
    "remediation": 0.25,
    "escalation": 0.10,
    "speed": 0.10,
}
REPEAT_COST = 0.05  # per further answer to a question already answered
FRUITLESS_COST = 0.10  # per wrong remediation, which touches production in vain
FALSE_PAGE_COST = 0.10  # per page at a false alarm
PARTS = tuple(WEIGHTS)


@dataclass
class Record:
    """What the agent did, in order, as far as scoring needs it. `repeats` counts the answers to a
    question beyond the first; `closed_by` is resolve, ignore or timeout; `confidence` was stated
    with the first service blamed or with `ignore`, and is not scored.
    """

    severity: str | None = None
    root_causes: list[str] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    remediations: list[tuple[str, str]] = field(default_factory=list)
    repeats: int = 0
    steps: int = 0
    closed_by: str | None = None
    confidence: float | None = None

    def note(self, action: Action) -> str:
        """Record an action, and return the notice that the agent is shown."""
        kind, args = action.type, action.args
        if kind == "classify_severity":
            self.repeats += self.severity is not None
            self.severity = self.severity or args[0]
            return f"severity noted: {args[0]}"
        if kind == "identify_root_cause":
            self.repeats += bool(self.root_causes)
            if not self.root_causes:
                self.confidence = action.confidence
            self.root_causes.append(args[0])
            return f"root cause noted: {args[0]}"
        if kind == "escalate":
            self.repeats += bool(self.teams)
            self.teams.append(args[0])
            return f"paged {args[0]}"
        if kind == "remediate":
            self.repeats += bool(self.remediations)
            self.remediations.append((args[0], args[1]))
            return f"did {args[0]} on {args[1]}"
        if kind == "ignore":
            self.confidence = action.confidence
        return f"closed by {kind}"

    @property
    def root_cause(self) -> str | None:
        return self.root_causes[0] if self.root_causes else None

    @property
    def team(self) -> str | None:
        return self.teams[0] if self.teams else None


class Score(NamedTuple):
    """The score of an episode: five parts in [0, 1] before weighting, the cost that is subtracted,
    the gate (1 if passed, else 0), the total, and whether the incident was solved (1, else 0): the
    root cause is right, the fault is gone or the false alarm dismissed, and the gate is passed.
    """

    severity: float
    root_cause: float
    remediation: float
    escalation: float
    speed: float
    cost: float
    gate: float
    total: float
    solved: float


def score(record: Record, incident: Incident) -> Score:
    """The score of a closed episode: a pure function of what was done and what was true."""
    parts = (*_right_answers(record, incident), _speed(record, incident))
    cost, gate = _cost(record, incident), _gate(record, incident)
    earned = total(weight * part for weight, part in zip(WEIGHTS.values(), parts, strict=True))
    # Rounded, or a full score would be 0.9999999999999999.
    worth = min(1.0, max(0.0, round(earned - cost, 9)))
    named = parts[1] == 1.0  # a false alarm is named by dismissing it
    solved = float(named and gate == 1.0 and _fault_gone(record, incident))
    return Score(*parts, cost, gate, gate * worth, solved)


def _fault_gone(record: Record, incident: Incident) -> bool:
    """Whether the right remedy was applied at the root, first or later; true at a false alarm."""
    return incident.injection is None or (incident.remedy, incident.root) in record.remediations


def _right_answers(record: Record, incident: Incident) -> tuple[float, float, float, float]:
    """Severity, root cause, remediation and escalation: 1 where the first answer is right."""
    severity = float(record.severity == incident.severity)
    if incident.injection is None:
        # To give no answer is right for each question, but only if the alarm is dismissed: an agent
        # that lets the time run out has judged nothing.
        dismissed = record.closed_by == "ignore"
        answers = (record.root_causes, record.remediations, record.teams)
        blamed, fixed, paged = (float(dismissed and not given) for given in answers)
        return severity, blamed, fixed, paged
    return (
        severity,
        float(record.root_cause == incident.root),
        float(record.remediations[:1] == [(incident.remedy, incident.root)]),
        float(record.team == incident.team),
    )


def _speed(record: Record, incident: Incident) -> float:
    """1 at the fewest steps, 0 at the last; 0 unless resolved when healed, or ignored rightly."""
    real = incident.injection is not None
    closed = record.closed_by == ("resolve" if real else "ignore")
    if not closed or not _fault_gone(record, incident):
        return 0.0
    fewest, most = PAR_STEPS[real], incident.task.max_steps
    return 1.0 - min(1.0, max(0, record.steps - fewest) / (most - fewest))


def _cost(record: Record, incident: Incident) -> float:
    """What is subtracted for repeated answers, wrong remedies, and pages at a false alarm."""
    right = (incident.remedy, incident.root)
    fruitless = sum(remediation != right for remediation in record.remediations)
    cost = REPEAT_COST * record.repeats + FRUITLESS_COST * fruitless
    return cost + FALSE_PAGE_COST * len(record.teams) if incident.injection is None else cost


def _gate(record: Record, incident: Incident) -> float:
    """0 for the outcomes that nothing else can make up for, else 1."""
    if incident.injection is None:
        return 1.0
    if record.closed_by == "ignore":
        return 0.0
    # When users suffer, paging nobody is also wrong; otherwise never paging would be safest.
    must_page = incident.severity in ("P1", "P2")
    wrong_team = record.team != incident.team and (record.team is not None or must_page)
    return float(not (record.root_cause == incident.root and wrong_team))
