"""Credit assignment: the advantage of each call of an episode.

With the credit `episode`, TRL's own, every token of an episode has one advantage: its reward, less
the mean reward of its group. That praises a wrong severity for a right root cause, and the other
way round. The score is a sum of parts, and apart from gate, speed and costs the answer to one
question does not change what another is worth. So with the credit `part` each answer gets its own:

| what the model writes | what it is credited with |
|---|---|
| the severity | its points |
| the service blamed | the points of root cause, remedy and speed, less costs |
| the remedy and its service | the points of remedy and speed, less costs |
| the team | its points, less what the gate took for a wrong one |
| all else: which call to make, which service to ask, repeated answers | the whole reward |

Costs of every kind are taken from the service and the remedy, since nearly all are those of a
fruitless remedy; what the gate took is the points before costs.

An advantage is that, less its mean over the episodes of the group which made the same call. Whether
to make a call at all is judged by the whole reward alone, or never to answer would look as good.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..play.episode import final_score
from ..play.scoring import WEIGHTS, Score
from ..play.tools import ToolSession

WHOLE = "whole"  # the key of what is credited with the whole reward
ANSWERS = ("classify_severity", "identify_root_cause", "remediate", "escalate")


class Advantages(NamedTuple):
    """Of one episode."""

    calls: list[float]  # one per call, for its arguments, in order
    outside: float  # of all other tokens


def credits(score: Score, reward: float, ignored: bool = False) -> dict[str, float]:
    """What an episode credits each kind of call with, by action type; `WHOLE` for all others.

    `reward` has the costs of malformed calls. An episode may have been closed by `ignore`
    (`ignored`); what the gate took for that is not the team's.
    """
    points = {part: weight * getattr(score, part) for part, weight in WEIGHTS.items()}
    healed = points["remediation"] + points["speed"] - score.cost
    taken = 0.0 if ignored else (1.0 - score.gate) * sum(points.values())
    return {
        WHOLE: reward,
        "classify_severity": points["severity"],
        "identify_root_cause": points["root_cause"] + healed,
        "remediate": healed,
        "escalate": points["escalation"] - taken,
    }


def kinds_of_credit(actions: Sequence[str]) -> list[str]:
    """For each action of an episode its key of `credits`; an empty name is no valid action."""
    given: set[str] = set()
    kinds = []
    for action in actions:
        first = action in ANSWERS and action not in given
        kinds.append(action if first else WHOLE)
        given.add(action)
    return kinds


def group_advantages(sessions: Sequence[ToolSession]) -> list[Advantages]:
    """The advantages of the closed episodes of one group, by the credit `part`."""
    made, given = [], []
    values: dict[str, list[float]] = defaultdict(list)
    for session in sessions:
        score, closed_by = final_score(session.episode), session.episode.record.closed_by
        gives = credits(score, session.reward(), ignored=closed_by == "ignore")
        actions = [step.action.type if step.action else "" for step in session.episode.history]
        kinds = kinds_of_credit(actions + [""] * session.late)  # calls that came too late
        for kind in {*kinds, WHOLE}:
            values[kind].append(gives[kind])
        made.append(kinds)
        given.append(gives)
    means = {kind: sum(each) / len(each) for kind, each in values.items()}
    return [
        Advantages([gives[kind] - means[kind] for kind in kinds], gives[WHOLE] - means[WHOLE])
        for kinds, gives in zip(made, given, strict=True)
    ]
