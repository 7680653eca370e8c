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

That is the credit `part`. There are others, to be compared with it (`call_advantages`):

| credit | the advantage of a call |
|---|---|
| `episode` | the reward, less its mean over the group |
| `to_go` | what is earned from then on (`bookings`), less its mean over calls of its number |
| `anchor` | that of `episode`, plus what is earned from then on, less its mean over that state |
| `belief` | by how much it changed what can be expected (see `privileged`) |

`anchor` is GiGPO (Feng et al. 2025, "Group-in-Group Policy Optimization"), without its division by
deviations. What is the same state is exact here: all that is seen follows from the incident and
from what was done before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ..play.actions import Action
from ..play.episode import Episode, Step, final_score
from ..play.scoring import (
    FALSE_PAGE_COST,
    FRUITLESS_COST,
    REPEAT_COST,
    WEIGHTS,
    Score,
    paid,
    single_faults,
)
from ..play.tools import MALFORMED_COST, ToolSession
from ..world.incidents import Incident

CREDITS = ("episode", "part", "to_go", "anchor", "belief")
TRUE_ONLY = ("to_go", "anchor", "belief")  # what looks at more of an incident than its score
WHOLE = "whole"  # what is given the whole reward
ANSWERS = ("classify_severity", "identify_root_cause", "remediate", "escalate")  # what is not
PARTS_OF = dict(zip(ANSWERS, ("severity", "root_cause", "remediation", "escalation"), strict=True))


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


class Advantages(NamedTuple):
    """Of one episode: `calls` has one a call (of `part`, its arguments'), in the order of
    `calls_made`; `outside` is that of all that is no call's.
    """

    calls: list[float]
    outside: float


def calls_made(session: ToolSession) -> list[Step | None]:
    """The calls of an episode in order; None for one on the closed incident, which is no step."""
    return [*session.episode.history, *[None] * session.late]


def _name(call: Step | None) -> str:
    """The action's type; empty for what was no valid action."""
    return call.action.type if call and call.action else ""


def call_advantages(
    credit: str, sessions: Sequence[ToolSession], reward: str = "score"
) -> list[list[float]]:
    """The advantage of each call that was made in the episodes of one group, in order: see
    `group_advantages`.
    """
    return [each.calls for each in group_advantages(credit, sessions, reward)]


def group_advantages(
    credit: str, sessions: Sequence[ToolSession], reward: str = "score"
) -> list[Advantages]:
    """The advantages of the episodes of one group.

    Args:
        credit: one of `CREDITS`.
        sessions: closed episodes at one incident.
        reward: what was paid, `score` or one of `rewards.LEFT_OUT`; `belief` knows `score` alone.

    Raises:
        ValueError: for an episode on a server, where the credit or the reward looks at what is true
            of the incident.
    """
    rewards = [reward_paid(session, reward) for session in sessions]
    if credit == "belief":
        return _changes_of_value(sessions)
    if credit == "part":
        return _by_part(sessions, rewards, reward)
    mean = sum(rewards) / len(rewards)
    whole = [one - mean for one in rewards]
    if credit == "episode":
        return [
            Advantages([advantage] * len(calls_made(session)), advantage)
            for session, advantage in zip(sessions, whole, strict=True)
        ]
    to_go = [list(accumulate(reversed(bookings(session, reward))))[::-1] for session in sessions]
    if credit == "to_go":
        places = [list(range(len(calls_made(session)))) for session in sessions]
        return [
            Advantages(calls, advantage)
            for calls, advantage in zip(_less_their_mean(to_go, places), whole, strict=True)
        ]
    states = [
        [tuple(done[:number]) for number in range(len(done))] for done in map(_done, sessions)
    ]
    return [
        Advantages([advantage + call for call in calls], advantage)
        for calls, advantage in zip(_less_their_mean(to_go, states), whole, strict=True)
    ]


def _done(session: ToolSession) -> list[object]:
    """The calls of an episode, without what they brought: that follows from them."""
    return [call and (call.action, call.observation.error) for call in calls_made(session)]


def _less_their_mean(
    values: Sequence[Sequence[float]], places: Sequence[Sequence[object]]
) -> list[list[float]]:
    """The values of a group's calls, each less the mean over those in the same place; 0 where one
    is alone.
    """
    together: dict[object, list[float]] = defaultdict(list)
    for calls, where in zip(values, places, strict=True):
        for value, place in zip(calls, where, strict=True):
            together[place].append(value)
    means = {place: sum(each) / len(each) for place, each in together.items()}
    return [
        [value - means[place] for value, place in zip(calls, where, strict=True)]
        for calls, where in zip(values, places, strict=True)
    ]


def _by_part(
    sessions: Sequence[ToolSession], rewards: Sequence[float], reward: str
) -> list[Advantages]:
    made = [kinds_of_credit([_name(call) for call in calls_made(session)]) for session in sessions]
    given = [
        credits(score_paid(session, reward), value, session.episode.record.closed_by == "ignore")
        for session, value in zip(sessions, rewards, strict=True)
    ]
    return [
        Advantages([advantage[kind] for kind in kinds], advantage[WHOLE])
        for kinds, advantage in zip(made, advantages(made, given), strict=True)
    ]


def _changes_of_value(sessions: Sequence[ToolSession]) -> list[Advantages]:
    from .privileged import values  # which needs numpy and scipy, and `settings` does without

    for session in sessions:
        true_incident(session)
    return [
        Advantages(
            [after - before for before, after in pairwise(worth)], session.reward() - worth[0]
        )
        for session, worth in zip(sessions, values(sessions), strict=True)
    ]


def score_paid(session: ToolSession, reward: str) -> Score:
    """What a closed episode is paid as score (see `rewards.paid`); `ValueError` where that cannot
    be known.
    """
    if reward == "score":
        return final_score(session.episode)
    return paid(session.episode.record, true_incident(session), reward)


def reward_paid(session: ToolSession, reward: str) -> float:
    """What an episode is paid in training: `ToolSession.reward` with another score."""
    session.episode.abandon()
    return score_paid(session, reward).total - MALFORMED_COST * session.malformed


def true_incident(session: ToolSession) -> Incident:
    """What is true of the incident of an episode in this process.

    Raises:
        ValueError: for one that is played on a server, which keeps that to itself.
    """
    if not isinstance(session.episode, Episode):
        raise ValueError(
            "a server does not tell what is true of an incident; play in this process, or choose "
            "credit 'episode' or 'part' and reward 'score'"
        )
    return session.episode.incident


def bookings(session: ToolSession, reward: str = "score") -> list[float]:
    """What each call of a closed episode earned; the sum is what the episode was paid.

    The first answer to a question earns its part of the score, and every call costs what it caused.
    All else is booked to the call that closed the incident: speed, what the gate took, what
    dismissing a false alarm earned, and with two faults what is judged of both together. Who walked
    away did so with the last call.
    """
    incident, score = true_incident(session), score_paid(session, reward)
    earned: list[float] = []
    seen: dict[str, int] = defaultdict(int)
    closing = 0
    for number, call in enumerate(calls_made(session)):
        name = _name(call)
        seen[name] += 1
        if call is not None:
            closing = number
        booked = 0.0 if name else -MALFORMED_COST
        if call is not None and call.action is not None and name in PARTS_OF:
            part = PARTS_OF[name]
            if seen[name] == 1:
                booked += WEIGHTS[part] * getattr(score, part)
            booked -= _cost(call.action, seen[name], incident)
        earned.append(booked)
    if earned:
        earned[closing] += reward_paid(session, reward) - sum(earned)
    return earned


def _cost(answer: Action, times: int, incident: Incident) -> float:
    """What an answer cost; `times` is how often its question had then been answered."""
    judged = 1 if answer.type == "classify_severity" else incident.task.faults
    cost = REPEAT_COST * (times > max(1, judged))
    if answer.type == "remediate":
        right = {(fault.remedy, fault.root) for fault in single_faults(incident)}
        cost += FRUITLESS_COST * (answer.args not in right)
    if answer.type == "escalate" and incident.injection is None:
        cost += FALSE_PAGE_COST
    return cost
