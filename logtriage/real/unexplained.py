"""Our own rule for real incidents: a service is suspect for what its callees do not explain.

It knows metrics and calls, and no kinds of fault. What is wrong is counted in several currencies:

| currency | what a service owes of it |
|---|---|
| waiting, in ms x requests | what it took longer than usual, less what its callees did |
| wire | what its callers waited longer, less what it took itself |
| failures, in requests | those beyond its usual share, less those of its callees |
| each further metric of its own | how many sigmas it is off |
| new error lines | how many more than usual, in sigmas of a count |

Waiting and failures add up along calls: what a root adds, all above it pay. So a service that adds
60 failed requests stands out from one that fails all of its two. Alerts say which of the two to
look at. In each currency a service is singled out in so far as it owes more than all the others
(`shares`), and it is suspect if any currency singles it out: together they are a noisy or.

Developed on one half of the real cases; see `measure.real`.
"""

from __future__ import annotations

from collections import defaultdict
from math import log, sqrt
from statistics import median

from ..ceiling.grounding import LATENCIES, LEAST_SPREAD, RATE, SUCCESSES, Evidence, sigmas
from ..play.observation import Measure

# How much is nothing, in sigmas, or in times the usual wait of a call: a debt of this size is as
# likely noise as not. One value for all currencies, so that none is tuned.
NOTHING = 5.0
LEAST_WAIT = 1.0  # ms added to a call's usual wait: clocks of milliseconds tell no less
ALMOST = 1e-9  # what is left of a doubt when all is sure

Debts = dict[str, float]


def suspicion(evidence: Evidence) -> Debts:
    """How suspect each service is, from 0; the more the worse."""
    doubt: defaultdict[str, float] = defaultdict(float)
    for vote in votes(evidence).values():
        for service, share in vote.items():
            doubt[service] -= log(max(ALMOST, 1.0 - share))
    return dict(doubt)


def votes(evidence: Evidence) -> dict[str, Debts]:
    """How far each currency singles out each service, from 0 to 1."""
    found = own_metrics(evidence)
    kinds = {alert.metric for alert in evidence.alerts}
    if kinds != {"errors"}:  # something is slow, or nobody knows what is wrong
        found |= {"waiting": waiting(evidence), "wire": wire(evidence)}
    if "errors" in kinds:
        found["failures"] = failures(evidence)
    return found


def shares(debts: Debts, nothing: float = 0.0) -> Debts:
    """The share of each service, by squares, in all that is owed and in `nothing`."""
    total = nothing**2 + sum(debt**2 for debt in debts.values())
    return {name: debt**2 / total if total else 0.0 for name, debt in debts.items()}


def certain(share: Debts, surprise: Debts) -> Debts:
    """Shares, less where the surprise (sigmas, or times the usual) is near nothing."""
    return {
        name: one * surprise[name] ** 2 / (surprise[name] ** 2 + NOTHING**2)
        for name, one in share.items()
    }


def most(measure: Measure, rates: Measure | None, sign: float) -> tuple[float, float]:
    """What was added lately, `sign` x (value - usual) x requests, in the sample where it was
    farthest from nothing; and what one sigma would have been there.
    """
    usual, half = measure.usual or 0.0, len(measure.values) // 2
    counted = rates.values if rates is not None else (1.0,) * len(measure.values)
    found = [
        (sign * (value - usual) * rate, measure.sigma(LEAST_SPREAD) * rate)
        for value, rate in zip(measure.values[half:], counted[half:], strict=True)
        if value is not None and rate is not None
    ]
    return max(found, key=lambda one: abs(one[0]), default=(0.0, 0.0))


def added(
    evidence: Evidence, names: tuple[str, ...], sign: float
) -> dict[str, tuple[float, float]]:
    """`most` of each service, by the first of these measures that is known of it."""
    found = {}
    for service in evidence.graph.names:
        known = [one for one in evidence.measured(service, *names) if one.usual is not None]
        if known:
            rates = next(iter(evidence.measured(service, RATE)), None)
            found[service] = most(known[0], rates, sign)
    return found


def unexplained(evidence: Evidence, debts: Debts, wires: dict[tuple[str, str], float]) -> Debts:
    """What each service owes beyond what its callees, and the wires to them, made it owe."""
    rest = {}
    for service, debt in debts.items():
        callees = evidence.graph.service(service).downstream
        passed = sum(
            max(0.0, debts.get(one, 0.0)) + wires.get((service, one), 0.0) for one in callees
        )
        rest[service] = max(0.0, debt - passed)
    return rest


def wire_waits(evidence: Evidence) -> dict[tuple[str, str], tuple[float, float]]:
    """By (caller, callee): what the wire took longer, in ms x requests, and in times the call's
    usual wait.
    """
    waits = {}
    for call in evidence.calls:
        if None in (call.wait, call.usual_wait, call.served, call.usual_served):
            continue
        wait, usual_wait, served, usual_served = (
            float(one or 0.0)
            for one in (call.wait, call.usual_wait, call.served, call.usual_served)
        )
        longer = max(0.0, wait - served - max(0.0, usual_wait - usual_served))
        # Calls are counted by the minute, requests of measures by the second.
        rate = evidence.rate(call.callee) if call.rate is None else call.rate / 60.0
        waits[call.caller, call.callee] = longer * rate, longer / (LEAST_WAIT + usual_wait)
    return waits


def waiting(evidence: Evidence) -> Debts:
    """Who adds to the waiting by what it does itself."""
    wires = {call: longer for call, (longer, _) in wire_waits(evidence).items()}
    waits = added(evidence, LATENCIES, 1.0)
    debts = unexplained(evidence, {name: debt for name, (debt, _) in waits.items()}, wires)
    surprise = {name: debt / max(waits[name][1], ALMOST) for name, debt in debts.items()}
    return certain(shares(debts), surprise)


def wire(evidence: Evidence) -> Debts:
    """Whom its callers wait for longer than it takes. All of them should: of several callers the
    one in the middle says how surprising it is.
    """
    debts: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for (_, callee), (longer, relative) in wire_waits(evidence).items():
        debts[callee] += longer
        times[callee].append(relative)
    return certain(shares(debts), {name: median(values) for name, values in times.items()})


def failures(evidence: Evidence) -> Debts:
    """Who adds failed requests."""
    failed = {name: debt for name, (debt, _) in added(evidence, SUCCESSES, -0.01).items()}
    return shares(unexplained(evidence, failed, {}))


def own_metrics(evidence: Evidence) -> dict[str, Debts]:
    """A vote for each metric that travels along no call, and for error lines."""
    travelling = {*LATENCIES, *SUCCESSES, RATE, "p95 of its calls"}
    off: dict[str, Debts] = {}
    for service, known in evidence.measures.items():
        for name, measure in known.items():
            if name not in travelling:
                off.setdefault(name, {})[service] = abs(sigmas(measure))
    if evidence.counts:
        off["error lines"] = {
            row.service: max(0.0, row.errors - (row.usual_errors or 0.0))
            / sqrt(max(1.0, row.usual_errors or 0.0))
            for row in evidence.counts
        }
    return {name: shares(debts, NOTHING) for name, debts in off.items()}
