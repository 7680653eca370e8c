"""What a set of answers scores under each outcome of an incident: the score, on arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..play.actions import Action
from ..play.scoring import FALSE_PAGE_COST, FRUITLESS_COST, WEIGHTS
from ..world.call_graph import TEAMS, CallGraph
from ..world.tasks import PAR_STEPS, SEVERITIES, Task

NONE = -1  # no service, no team


class Outcomes(NamedTuple):
    """What decides the score, one entry per outcome, (N,)."""

    root: np.ndarray  # position; NONE for a false alarm
    remedy: np.ndarray  # by name; empty for a false alarm
    team: np.ndarray  # index into TEAMS; NONE for a false alarm
    severity: np.ndarray  # index into SEVERITIES
    chance: np.ndarray  # probability


class Answers(NamedTuple):
    """One complete way to close an episode; NONE where it gives no answer.

    `severity` is an index into `SEVERITIES`, `blame` and the fix's position are services, `team` an
    index into `TEAMS`; `ignore` closes by ignoring.
    """

    severity: int
    blame: int
    fix: tuple[int, str] | None  # position, remedy
    team: int
    ignore: bool = False


def answer_actions(
    answers: Answers, topology: CallGraph, confidence: float | None = None
) -> list[Action]:
    """The steps that give these answers."""
    actions = [Action("classify_severity", (SEVERITIES[answers.severity],))]
    if answers.ignore:
        return [*actions, Action("ignore", confidence=confidence)]
    if answers.blame != NONE:
        actions.append(Action("identify_root_cause", (topology.names[answers.blame],), confidence))
    if answers.fix is not None:
        actions.append(Action("remediate", (answers.fix[1], topology.names[answers.fix[0]])))
    if answers.team != NONE:
        actions.append(Action("escalate", (TEAMS[answers.team],)))
    return [*actions, Action("resolve")]


def score_table(options: list[Answers], outcomes: Outcomes, task: Task, asked: int) -> np.ndarray:
    """`scoring.score` of every option under every outcome after `asked` questions, (options, N)."""
    return np.stack([_scores(option, outcomes, task, asked) for option in options])


def _scores(option: Answers, outcomes: Outcomes, task: Task, asked: int) -> np.ndarray:
    """The scores of one option, (N,)."""
    fault = outcomes.root >= 0
    steps = asked + 2  # the severity, and closing the incident
    points = WEIGHTS["severity"] * (outcomes.severity == option.severity)
    if option.ignore:
        rest = WEIGHTS["root_cause"] + WEIGHTS["remediation"] + WEIGHTS["escalation"]
        return np.where(fault, 0.0, points + (rest + _speed(steps, 0, task)))
    steps += (option.blame >= 0) + (option.fix is not None) + (option.team >= 0)
    blamed = fault & (outcomes.root == option.blame)
    points = points + WEIGHTS["root_cause"] * blamed
    if option.fix is not None:
        position, remedy = option.fix
        right = (outcomes.root == position) & (outcomes.remedy == remedy)
        points = points + (WEIGHTS["remediation"] + _speed(steps, 1, task)) * right
        points = points - FRUITLESS_COST * ~right
    right_team = fault & (outcomes.team == option.team)
    points = points + WEIGHTS["escalation"] * right_team
    if option.team != NONE:
        points = points - FALSE_PAGE_COST * ~fault
        wrong_team = ~right_team
    else:
        wrong_team = outcomes.severity < SEVERITIES.index("P3")
    return np.where(blamed & wrong_team, 0.0, np.clip(points, 0.0, 1.0))


def _speed(steps: int, faults: int, task: Task) -> float:
    """What speed adds to the score of an episode of so many steps."""
    par = PAR_STEPS[faults]
    return WEIGHTS["speed"] * (1.0 - min(1.0, max(0, steps - par) / (task.max_steps - par)))
