"""Whom to suspect: trouble flows from who complains to whom it complains of, and stays where nobody
else is blamed.

Each service has a mass, by its own unusual lines. Of it, the share of its lines of trouble that
names another flows to that one, again and again; with a call graph, so does a part of what names
nobody, to callees that are in trouble. A service is suspected by what stays with it. This is a
random walk along complaints, as PageRank's, absorbed where a service blames itself.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from .evidence import ServiceEvidence
from .levels import WARN

ROUNDS = 30
STAYS = 0.1  # share of its mass that a service keeps whatever it says: who complains is in trouble
SILENT_GUILT = 0.25  # share that flows on to callees in trouble, of a symptom that names nobody
# The logarithm of the odds that the first suspect is right: fitted to logs that the simulator made
# of incidents of `train` (`tests/logs/simulated.py`, which also measures it on others).
OWN_CAUSE, BLAMED, NEXT, GAIN = 1.6, 1.1, -2.5, 0.85
MOST_GAIN = 80.0  # of a window, beyond which it is no clearer
LIKELY_FROM, POSSIBLE_FROM = 0.8, 0.5
NEAR = 0.45  # share of the first suspect's, from which neither is sure
MOST_HOPS = 6

LIKELY, POSSIBLE, UNSURE = "likely", "possible", "not enough evidence"


@dataclass(frozen=True)
class Suspect:
    """A service and its share of all that is wrong, 0 to 1."""

    service: str
    share: float


def rank(
    evidence: Mapping[str, ServiceEvidence], calls: Mapping[str, Sequence[str]] | None = None
) -> list[Suspect]:
    """The services with a share in what is wrong, the first suspect first. `calls` tells whom each
    service calls, where that is known.
    """
    mass = {name: one.mass for name, one in evidence.items()}
    flows = {name: _flow(one, mass, calls or {}) for name, one in evidence.items()}
    kept: dict[str, float] = defaultdict(float)
    moving = dict(mass)
    for _ in range(ROUNDS):
        later: dict[str, float] = defaultdict(float)
        for name, amount in moving.items():
            out = sum(flows[name].values())
            leaving = (1.0 - STAYS) * min(1.0, out)
            kept[name] += amount * (1.0 - leaving)
            for other, share in flows[name].items():
                later[other] += amount * leaving * share / out
        moving = later
    total = sum(kept.values())
    found = [Suspect(name, amount / total) for name, amount in kept.items() if amount > 0.0]
    return sorted(found, key=lambda one: (-one.share, one.service))


def _flow(
    one: ServiceEvidence, mass: Mapping[str, float], calls: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Shares of a service's mass that go to others."""
    flow = {other: share for other, share in one.names.items() if share > 0.0}
    unnamed = 1.0 - min(1.0, sum(flow.values()))
    callees = calls.get(one.name, ())
    troubled = {name: mass[name] for name in callees if mass.get(name, 0.0) > 0.0}
    if unnamed > 0.0 and any(trouble.symptom for trouble in one.troubles):
        total = sum(troubled.values())
        for callee, amount in troubled.items():
            flow[callee] = flow.get(callee, 0.0) + SILENT_GUILT * unnamed * amount / total
    return flow


def chain_to(root: str, evidence: Mapping[str, ServiceEvidence]) -> list[str]:
    """Who made whom fail, from the root to the last that complains: each of whom the next complains
    more than anybody else does.
    """
    found = [root]
    while len(found) < MOST_HOPS:
        blames = {one.name: one.names.get(found[-1], 0.0) * one.mass for one in evidence.values()}
        others = [name for name in blames if name not in found and blames[name] > 0.0]
        if not others:
            break
        found.append(max(others, key=lambda name: (blames[name], name)))
    return found


def accusers(service: str, evidence: Mapping[str, ServiceEvidence]) -> list[ServiceEvidence]:
    """Those that complain of a service."""
    return [one for one in evidence.values() if one.names.get(service, 0.0) > 0.0]


def confidence(
    suspects: Sequence[Suspect], evidence: Mapping[str, ServiceEvidence], gain: float
) -> float:
    """The probability that the first suspect is the root, by whether its own lines tell of a cause,
    whether others complain of it, how far the next is behind, and how clear the window is (its
    `gain`).
    """
    if not suspects:
        return 0.0
    first = suspects[0]
    cause = evidence[first.service].cause
    blamed = bool(accusers(first.service, evidence))
    behind = suspects[1].share / first.share if len(suspects) > 1 else 0.0
    clear = log(min(gain, MOST_GAIN) / 10.0)
    odds = OWN_CAUSE * cause + BLAMED * blamed + NEXT * behind + GAIN * clear
    return 1.0 / (1.0 + exp(-odds))


def doubts(suspects: Sequence[Suspect], evidence: Mapping[str, ServiceEvidence]) -> list[str]:
    """What of the evidence forbids to be sure of the first suspect."""
    first, found = evidence[suspects[0].service], []
    own = [one for one in accusers(first.name, evidence) if one.own_share > 0.5]
    if not (first.troubles or first.silent):
        found.append("it has no unusual line of its own")
    elif all(one.symptom for one in first.troubles) and not first.silent:
        found.append("its lines tell only what others do to it")
    elif all(one.level == WARN for one in first.troubles) and not (first.cause or first.silent):
        found.append("it has only warnings")
    elif own and not first.cause:
        found.append(f"{own[0].name}, which complains of it, has trouble of its own")
    if len(suspects) > 1 and suspects[1].share > NEAR * suspects[0].share:
        found.append(f"{suspects[1].service} is in trouble, too")
    return found
