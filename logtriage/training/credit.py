"""Credit: what each answer of an episode is given of its reward.

One advantage for a whole episode praises a wrong severity for a right root, and the other way
round. The score is a sum of parts, and apart from gate, speed and costs the answer to one question
does not change what another is worth. So each is given what follows from it:

| what is written | is given |
|---|---|
| the severity | its points |
| the service blamed | the root's and the remedy's points, speed's, less costs |
| the remedy and its service | the remedy's points, speed's, less costs |
| the team | its points, less what the gate took for a wrong one |
| all else: which call to make, whom to ask, answers given again | the whole reward |

Costs of every kind are taken from the service and the remedy, since nearly all are a remedy's in
vain; what the gate took is the points before costs.

An advantage is that, less its mean over the episodes of the group which made the same call. Whether
to make a call at all is judged by the whole reward alone, or never to answer would look as good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..play.rewards import WEIGHTS, Score

CREDITS = ("episode", "part")
WHOLE = "whole"  # what is given the whole reward
ANSWERS = ("classify_severity", "identify_root_cause", "remediate", "escalate")  # what is not


def credits(score: Score, reward: float, ignored: bool = False) -> dict[str, float]:
    """What an episode gives each kind of call, by action type; `WHOLE` for all others.

    Args:
        score: of the episode.
        reward: what it was paid in training, its costs of malformed calls included.
        ignored: whether it was closed by `ignore`; what the gate took for that is none of the
            team's.
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
    """For each action of an episode, in order, the key of `credits` that it is given; an empty name
    is a call that was no valid action.
    """
    given: set[str] = set()
    kinds = []
    for action in actions:
        first = action in ANSWERS and action not in given
        kinds.append(action if first else WHOLE)
        given.add(action)
    return kinds


def advantages(
    made: Sequence[Sequence[str]], given: Sequence[dict[str, float]]
) -> list[dict[str, float]]:
    """The advantages of the episodes of one group, by kind of credit.

    Args:
        made: the kinds of credit (see `kinds_of_credit`) that occur in each episode.
        given: what each episode gives them, from `credits`.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for kinds, gives in zip(made, given, strict=True):
        for kind in {*kinds, WHOLE}:
            values[kind].append(gives[kind])
    means = {kind: sum(each) / len(each) for kind, each in values.items()}
    return [
        {kind: gives[kind] - means[kind] for kind in {*kinds, WHOLE}}
        for kinds, gives in zip(made, given, strict=True)
    ]
