"""The score of an episode: five named parts, costs, and the gate. All weights stand here.

| part | weight | full when |
|---|---|---|
| severity | 0.20 | the first severity given is the true one |
| root_cause | 0.35 | the first service blamed is the root |
| remediation | 0.25 | the first remediation is the right remedy at the root |
| escalation | 0.10 | the first team paged is the right one |
| speed | 0.10 | the fault is gone; falls linearly from the fewest steps possible to the last step |

A false alarm earns every part but severity only by `ignore`, with nothing blamed, fixed or paged.
The gate sets the total to 0 when the right root cause is named and the wrong team paged, or, at a
P1 or P2, nobody; and when a P1 is ignored. Costs are subtracted: answering a question again, a
remediation that does not help, paging at a false alarm.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from openenv.core.rubrics import Rubric

from ..world.incidents import Incident
from ..world.tasks import PAR_STEPS

WEIGHTS = {
    "severity": 0.20,
    "root_cause": 0.35,
    "remediation": 0.25,
    "escalation": 0.10,
    "speed": 0.10,
}
REPEAT_COST = 0.05  # per further answer to a question already answered
# per remediation that is not the right one at the root: production was touched for nothing
FRUITLESS_COST = 0.10
FALSE_PAGE_COST = 0.10  # per page at a false alarm


@dataclass
class Record:
    """What the agent did, as far as the score looks, in order; `repeats` counts answers beyond the
    first (per fault).
    """

    severity: str | None = None
    root_causes: list[str] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    remediations: list[tuple[str, str]] = field(default_factory=list)
    repeats: int = 0
    steps: int = 0
    fault_active: bool = True
    closed_by: str | None = None  # resolve, ignore, or timeout
    confidence: float | None = (
        None  # stated with the service blamed, or with `ignore`; never scored
    )

    @property
    def root_cause(self) -> str | None:
        """The first service blamed."""
        return self.root_causes[0] if self.root_causes else None

    @property
    def team(self) -> str | None:
        """The first team paged."""
        return self.teams[0] if self.teams else None


class Score(NamedTuple):
    """Parts in [0, 1] before weighting, the summed cost, whether the gate let the score pass (1 or
    0), the total.
    """

    severity: float
    root_cause: float
    remediation: float
    escalation: float
    speed: float
    cost: float
    gate: float
    total: float


def rightly_ignored(record: Record, incident: Incident) -> bool:
    """Whether this was a false alarm and the agent said so."""
    return incident.injection is None and record.closed_by == "ignore"


class Severity(Rubric):
    """1 when the first severity given is the true one."""

    def forward(self, action: Record, observation: Incident) -> float:
        return float(action.severity == observation.severity)


class RootCause(Rubric):
    """1 when the first service blamed is the root; at a false alarm, when none is blamed and it is
    ignored.
    """

    def forward(self, action: Record, observation: Incident) -> float:
        if observation.injection is None:
            return float(rightly_ignored(action, observation) and action.root_cause is None)
        return float(action.root_cause == observation.root)


class Remediation(Rubric):
    """1 when the first remediation is the right one at the root; at a false alarm, when there is
    none.
    """

    def forward(self, action: Record, observation: Incident) -> float:
        if observation.injection is None:
            return float(rightly_ignored(action, observation) and not action.remediations)
        return float(action.remediations[:1] == [(observation.remedy, observation.root)])


class Escalation(Rubric):
    """1 when the first team paged is the right one; at a false alarm, when nobody is paged."""

    def forward(self, action: Record, observation: Incident) -> float:
        if observation.injection is None:
            return float(rightly_ignored(action, observation) and not action.teams)
        return float(action.team == observation.team)


class Speed(Rubric):
    """1 at the fewest steps possible, 0 at the last step; only when the fault is gone or was
    rightly ignored.
    """

    def forward(self, action: Record, observation: Incident) -> float:
        if observation.injection is None:
            if not rightly_ignored(action, observation):
                return 0.0
        elif action.fault_active or action.closed_by != "resolve":
            return 0.0
        par = PAR_STEPS[len(observation.injections)]
        return 1.0 - min(1.0, max(0, action.steps - par) / (observation.task.max_steps - par))


class Gate(Rubric):
    """0 for the outcomes that no other merit makes good, else 1."""

    def forward(self, action: Record, observation: Incident) -> float:
        if observation.injection is None:
            return 1.0
        if action.closed_by == "ignore" and observation.severity == "P1":
            return 0.0
        must_page = observation.severity in ("P1", "P2")
        wrong_team = action.team != observation.team and (action.team is not None or must_page)
        return float(not (action.root_cause == observation.root and wrong_team))


class Cost(Rubric):
    """The sum of the costs, as a number to subtract."""

    def forward(self, action: Record, observation: Incident) -> float:
        fruitless = sum(
            done != (observation.remedy, observation.root) for done in action.remediations
        )
        cost = REPEAT_COST * action.repeats + FRUITLESS_COST * fruitless
        return cost + FALSE_PAGE_COST * len(action.teams) if observation.injection is None else cost


def by_fault(incident: Incident) -> list[Incident]:
    """The incident as if each of its faults were the only one; empty for a false alarm."""
    return [replace(incident, injections=(injection,)) for injection in incident.injections]


def aspects(record: Record, incident: Incident) -> list[tuple[Record, Incident]]:
    """The episode as it concerns each fault: all of it for one, and for two, without what was right
    for the other.
    """
    if len(incident.injections) < 2:
        return [(record, incident)]
    faults = by_fault(incident)
    found, count = [], len(faults)

    def about(given: list, right: object, other: object) -> list:
        """Answers that are not the other fault's; the right one first when it is among the first
        `count`, else left out.
        """
        rest = [answer for answer in given if answer not in (right, other)]
        return [right, *rest] if right in given[:count] else rest

    for fault in faults:
        other = next(one for one in faults if one is not fault)
        part = replace(
            record,
            root_causes=about(record.root_causes[:count], fault.root, other.root),
            teams=about(record.teams[:count], fault.team, other.team),
            remediations=about(
                record.remediations, (fault.remedy, fault.root), (other.remedy, other.root)
            ),
        )
        found.append((part, fault))
    return found


class TriageRubric(Rubric):
    """The whole score, for two faults the mean over both.

    Call it with a closed episode's `Record` and its `Incident`; `score` keeps the parts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.severity, self.root_cause, self.remediation = Severity(), RootCause(), Remediation()
        self.escalation, self.speed = Escalation(), Speed()
        self.cost, self.gate = Cost(), Gate()
        self.score: Score | None = None

    def forward(self, action: Record, observation: Incident) -> float:
        speed, scores = self.speed(action, observation), []
        for record, fault in aspects(action, observation):
            parts = [
                speed if name == "speed" else getattr(self, name)(record, fault) for name in WEIGHTS
            ]
            cost, gate = self.cost(record, fault), self.gate(record, fault)
            earned = sum(
                weight * part for weight, part in zip(WEIGHTS.values(), parts, strict=True)
            )
            scores.append(
                Score(*parts, cost, gate, gate * min(1.0, max(0.0, round(earned - cost, 9))))
            )
        self.score = (
            scores[0]
            if len(scores) == 1
            else Score(*[sum(part) / 2 for part in zip(*scores, strict=True)])
        )
        return self.score.total

    def reset(self) -> None:
        self.score = None
