"""Rank suspects by the evidence on each service, and find all that a log shows.

Each service has a mass, given by its own unusual lines. The share of its trouble that names another
service flows on to it, again and again; part of what names nobody flows to callees in trouble. What
stays with a service makes it suspect: a random walk along complaints, as in PageRank.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logtriage.world.call_graph import CallGraph

from .causes import cause_of
from .evidence import Evidence, ServiceEvidence, accusers, weigh
from .levels import WARN
from .names import PLATFORM
from .tally import UNNAMED, Tally
from .window import Window, find_window

ROUNDS = 30
STAYS = 0.1  # share of its mass that a service always keeps: one that complains is in trouble
CALLEE_SHARE = 0.25  # of a symptom that names nobody, the share that flows to callees in trouble
MOST_HOPS = 6
FEW = 60  # records of a log that is short: no suspect in it is likely

Calls = Mapping[str, Sequence[str]]  # the callees of each service


@dataclass(frozen=True)
class Suspect:
    """A service and its share of all that is wrong, from 0 to 1."""

    service: str
    share: float


def rank(evidence: Evidence, calls: Calls | None = None) -> list[Suspect]:
    """Rank services by their share of what is wrong. `calls` are the callees of each, if known."""
    mass = {name: service.mass for name, service in evidence.items()}
    flows = {
        name: _flow(service, _blamed(service, evidence), mass, calls or {})
        for name, service in evidence.items()
    }
    stays: dict[str, float] = defaultdict(float)
    moving = dict(mass)
    for _ in range(ROUNDS):
        later: dict[str, float] = defaultdict(float)
        for name, amount in moving.items():
            out = sum(flows[name].values())
            leaving = (1.0 - STAYS) * min(1.0, out)
            stays[name] += amount * (1.0 - leaving)
            for other, share in flows[name].items():
                later[other] += amount * leaving * share / out
        moving = later
    kept = {name: amount for name, amount in stays.items() if amount > 0.0 and name != UNNAMED}
    # What runs services is named only where it died, where it alone tells what has happened to
    # itself, or where others complain of it alone.
    named = [name for name in kept if not PLATFORM.match(name) or evidence[name].died]
    named = named or [name for name in kept if evidence[name].cause or accusers(name, evidence)]
    total = sum(kept[name] for name in named)
    suspects = [Suspect(name, kept[name] / total) for name in named]
    return sorted(suspects, key=lambda suspect: (-suspect.share, suspect.service))


def _blamed(service: ServiceEvidence, evidence: Evidence) -> dict[str, float]:
    """Return whom a service complains of, with the share of its trouble that each is to blame for:
    what it ended of is what those of them did that speak.
    """
    blamed = {other: share for other, share in service.names.items() if share > 0.0}
    lacking = {name for trouble in service.troubles if trouble.of_another for name in trouble.names}
    speaking = [name for name in blamed if name in lacking and evidence[name].lines > 0.0]
    total = sum(blamed[name] for name in speaking)
    return blamed | {
        name: blamed[name] + service.ended_share * blamed[name] / total for name in speaking
    }


def _flow(
    service: ServiceEvidence, blamed: Mapping[str, float], mass: Mapping[str, float], calls: Calls
) -> dict[str, float]:
    """Return the shares of a service's mass that flow to others."""
    flow = dict(blamed)
    unnamed = 1.0 - min(1.0, sum(flow.values()))
    callees = calls.get(service.name, ())
    troubled = {name: mass[name] for name in callees if mass.get(name, 0.0) > 0.0}
    if unnamed > 0.0 and any(trouble.symptom for trouble in service.troubles):
        total = sum(troubled.values())
        for callee, amount in troubled.items():
            flow[callee] = flow.get(callee, 0.0) + CALLEE_SHARE * unnamed * amount / total
    return flow


def chain_to(root: str, evidence: Evidence) -> list[str]:
    """Return who made whom fail, from the root: next is the one that complains most of the last."""
    chain = [root]
    while len(chain) < MOST_HOPS:
        last = chain[-1]
        others = [service for service in accusers(last, evidence) if service.name not in chain]
        if not others:
            break
        most = max(others, key=lambda service: (service.names[last] * service.mass, service.name))
        chain.append(most.name)
    return chain


@dataclass(frozen=True)
class Findings:
    """What was found in a log, before it is put into words."""

    window: Window | None  # None if no stretch is unlike the rest
    evidence: Evidence
    suspects: Sequence[Suspect]  # the most suspect first


def findings_of(tally: Tally, graph: CallGraph | None = None) -> Findings:
    """Find the window of a log, the evidence in it and the suspects, by the call graph if given."""
    window = find_window(tally)
    if tally.merge_replicas(*(window[:2] if window else (0, 0))):
        window = find_window(tally)
    if window and tally.records < FEW and _told_before(tally, window):
        window = None
    evidence = weigh(tally, window, graph.names if graph else ())
    calls: Calls
    if graph:
        calls = {service.name: service.downstream for service in graph.services}
    else:  # who only suffers may call whoever died; without a calm stretch, whoever tells a cause
        telling = [
            name for name, own in evidence.items() if own.died or (window is None and own.cause)
        ]
        calls = {name: [other for other in telling if other != name] for name in evidence}
    return Findings(window, evidence, rank(evidence, calls))


def _told_before(tally: Tally, window: Window) -> bool:
    """Whether an error before a window tells what has happened to its service, so that there, in a
    log of few lines, not all is well.
    """
    shapes = [shape for second, shape, _ in tally.lines() if second < window.start]
    return any(shape.level > WARN and cause_of(shape.example).own for shape in shapes)
