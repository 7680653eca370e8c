"""Whom to suspect: trouble flows from who complains to whom it complains of, and stays where nobody
else is blamed.

Each service has a mass, by its own unusual lines and metrics. Of it, the share of its lines of
trouble that names another flows to that one, again and again; with a call graph, so does a part
of what names nobody, to callees that are in trouble. A service is suspected by what stays with it.
This is a random walk along complaints, as PageRank's, absorbed where a service blames itself.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

from ..real.observed import Measure
from .evidence import SYMPTOM_WEIGHT, ServiceEvidence
from .measures import is_unusual, sigmas

ROUNDS = 30
STAYS = 0.1  # share of its mass that a service keeps whatever it says: who complains is in trouble
SILENT_GUILT = 0.25  # share that flows on to callees in trouble, of a symptom that names nobody
# How sure: shares of all mass, and times the next. Judgements; `docs/logs.md` says how they fared.
LIKELY_SHARE, LIKELY_TIMES = 0.5, 2.0
POSSIBLE_TIMES = 1.25

LIKELY, POSSIBLE, UNSURE = "likely", "possible", "not enough evidence"


@dataclass(frozen=True)
class Suspect:
    """A service and its share of all that is wrong, 0 to 1."""

    service: str
    share: float


def rank(
    evidence: Mapping[str, ServiceEvidence],
    measures: Sequence[Measure] = (),
    calls: Mapping[str, Sequence[str]] | None = None,
) -> list[Suspect]:
    """The services with a share in what is wrong, the first suspect first.

    Args:
        evidence: by service.
        measures: metrics of services, compared with the usual.
        calls: whom each service calls, where that is known.
    """
    mass = {name: one.mass for name, one in evidence.items()}
    for measure in measures:
        if is_unusual(measure):
            mass[measure.service] = mass.get(measure.service, 0.0) + log2(abs(sigmas(measure))) / 2
    flows = {name: _flow(evidence[name], mass, calls) if name in evidence else {} for name in mass}
    kept: dict[str, float] = defaultdict(float)
    moving = dict(mass)
    for _ in range(ROUNDS):
        later: dict[str, float] = defaultdict(float)
        for name, amount in moving.items():
            out = {other: share for other, share in flows.get(name, {}).items() if share > 0.0}
            leaving = (1.0 - STAYS) * min(1.0, sum(out.values()))
            kept[name] += amount * (1.0 - leaving)
            for other, share in out.items():
                later[other] += amount * leaving * share / sum(out.values())
        moving = later
        if not moving:
            break
    for name, amount in moving.items():
        kept[name] += amount
    total = sum(kept.values())
    found = [Suspect(name, amount / total) for name, amount in kept.items() if amount > 0.0]
    return sorted(found, key=lambda one: (-one.share, one.service))


def _flow(
    one: ServiceEvidence, mass: Mapping[str, float], calls: Mapping[str, Sequence[str]] | None
) -> dict[str, float]:
    """Shares of a service's mass that go to others."""
    flow = one.names
    unnamed = 1.0 - min(1.0, sum(flow.values()))
    troubled = {
        callee: mass.get(callee, 0.0)
        for callee in (calls or {}).get(one.name, ())
        if mass.get(callee, 0.0) > 0.0
    }
    symptom = any(trouble.weight == SYMPTOM_WEIGHT for trouble in one.troubles)
    if troubled and symptom and unnamed > 0.0:
        total = sum(troubled.values())
        for callee, amount in troubled.items():
            flow[callee] = flow.get(callee, 0.0) + SILENT_GUILT * unnamed * amount / total
    return flow


def how_sure(suspects: Sequence[Suspect]) -> str:
    """How sure the first suspect is, in words, by its share and by how far the next is behind."""
    if not suspects:
        return UNSURE
    first, second = suspects[0].share, suspects[1].share if len(suspects) > 1 else 0.0
    if first >= LIKELY_SHARE and first >= LIKELY_TIMES * second:
        return LIKELY
    return POSSIBLE if first >= POSSIBLE_TIMES * second else UNSURE
