"""The project's own ranking rule: a service is suspect for what its callees do not explain.

It knows no kind of fault, and reads several signals:

| signal | residual of a service |
|---|---|
| waiting, in ms x requests | its latency above baseline, less that of its callees |
| network latency, in ms x requests | its callers' wait above baseline, less its own latency |
| failures, in requests | its failures above baseline, less those of its callees |
| each further metric | its robust z-score |
| error lines | their number above baseline, in standard deviations of a count |

Waiting and failures add up along calls, and are weighed by requests; alerts decide which of the two
to look at. Each signal singles out a service by its share of the squared residuals (`shares`). A
noisy or puts them together. Developed on one half of the real cases; see `bench.real_results`.
"""

from collections import defaultdict
from math import log, sqrt
from statistics import median

from .observed import LATENCIES, RATE, SUCCESSES, Evidence, z_score

# A residual of this size (a z-score, or in times the baseline wait of a call) is as likely noise as
# not. All signals share the value, so that none is tuned.
NOISE = 5.0
LEAST_WAIT = 1.0  # ms added to a call's baseline wait: clocks count in milliseconds
ALMOST = 1e-9  # keeps logarithms and divisions finite

Scores = dict[str, float]  # by service


def suspicion(evidence: Evidence) -> Scores:
    """How suspect each service is, from 0 up: minus log of the chance that no signal is right."""
    found: defaultdict[str, float] = defaultdict(float)
    for vote in votes(evidence).values():
        for service, share in vote.items():
            found[service] -= log(max(ALMOST, 1.0 - share))
    return dict(found)


def votes(evidence: Evidence) -> dict[str, Scores]:
    """How far each signal singles out each service, from 0 to 1."""
    found = own_metrics(evidence)
    kinds = {alert.metric for alert in evidence.alerts}
    if kinds != {"errors"}:  # something is slow, or nobody knows what is wrong
        found["waiting"] = waiting(evidence)
        found["network latency"] = network_latency(evidence)
    if "errors" in kinds:
        failed, _ = deviations(evidence, SUCCESSES, -0.01)
        found["failures"] = shares(residuals(evidence, failed, {}))
    return found


def shares(residuals: Scores, noise: float = 0.0) -> Scores:
    """The share of each service in the sum of all squared residuals and of `noise` squared."""
    total = noise**2 + sum(residual**2 for residual in residuals.values())
    return {name: residual**2 / total if total else 0.0 for name, residual in residuals.items()}


def discounted(share: Scores, size: Scores) -> Scores:
    """Shares, less where the residual is of the size of noise."""
    return {
        name: one * size[name] ** 2 / (size[name] ** 2 + NOISE**2) for name, one in share.items()
    }


def waiting(evidence: Evidence) -> Scores:
    """Which services are slower than their callees explain."""
    network = {call: added for call, (added, _) in network_waits(evidence).items()}
    slower, spread = deviations(evidence, LATENCIES, 1.0)
    rest = residuals(evidence, slower, network)
    size = {name: residual / max(spread[name], ALMOST) for name, residual in rest.items()}
    return discounted(shares(rest), size)


def network_latency(evidence: Evidence) -> Scores:
    """Which services their callers, by the median of them, wait for longer than they take."""
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for (_, callee), (added, relative) in network_waits(evidence).items():
        total[callee] += added
        times[callee].append(relative)
    return discounted(shares(total), {name: median(values) for name, values in times.items()})


def own_metrics(evidence: Evidence) -> dict[str, Scores]:
    """A vote of each metric that does not add up along calls, and of error lines."""
    additive = {*LATENCIES, *SUCCESSES, RATE, "p95 of its calls"}
    off: dict[str, Scores] = {}
    for service, known in evidence.measures.items():
        for name, measure in known.items():
            if name not in additive:
                off.setdefault(name, {})[service] = abs(z_score(measure))
    if evidence.counts:
        off["error lines"] = {
            row.service: max(0.0, row.errors - (row.usual_errors or 0.0))
            / sqrt(max(1.0, row.usual_errors or 0.0))
            for row in evidence.counts
        }
    return {name: shares(scores, NOISE) for name, scores in off.items()}


def deviations(evidence: Evidence, names: tuple[str, ...], sign: float) -> tuple[Scores, Scores]:
    """The recent `sign` x (value - baseline) x requests of largest size, and one spread there, of
    each service, by the first of these measures that it has.
    """
    found, spread = {}, {}
    for service in evidence.graph.names:
        known = [one for one in evidence.measured(service, *names) if one.usual is not None]
        if not known:
            continue
        measure, half = known[0], len(known[0].values) // 2
        rates = evidence.measured(service, RATE)
        counted = rates[0].values if rates else (1.0,) * len(measure.values)
        off = [
            (sign * (value - (measure.usual or 0.0)) * rate, measure.sigma * rate)
            for value, rate in zip(measure.values[half:], counted[half:], strict=True)
            if value is not None and rate is not None
        ]
        found[service], spread[service] = max(off, key=lambda one: abs(one[0]), default=(0.0, 0.0))
    return found, spread


def residuals(evidence: Evidence, totals: Scores, network: dict[tuple[str, str], float]) -> Scores:
    """What of each service's total its callees, and the network to them, do not explain."""
    rest = {}
    for service, total in totals.items():
        explained = sum(
            max(0.0, totals.get(callee, 0.0)) + network.get((service, callee), 0.0)
            for callee in evidence.graph.service(service).downstream
        )
        rest[service] = max(0.0, total - explained)
    return rest


def network_waits(evidence: Evidence) -> dict[tuple[str, str], tuple[float, float]]:
    """By (caller, callee): what the network added, in ms x requests and in baseline waits."""
    waits = {}
    for call in evidence.calls:
        wait, usual_wait = call.wait, call.usual_wait
        served, usual_served = call.served, call.usual_served
        if wait is None or usual_wait is None or served is None or usual_served is None:
            continue
        added = max(0.0, wait - served - max(0.0, usual_wait - usual_served))
        # Calls are counted by the minute, requests of measures by the second.
        rate = evidence.rate(call.callee) if call.rate is None else call.rate / 60.0
        waits[call.caller, call.callee] = added * rate, added / (LEAST_WAIT + usual_wait)
    return waits
