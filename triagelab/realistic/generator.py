"""Incidents of `production` as arrays, one block at a time: a pure function of split and number.

    block = Block("test", 0)
    block.seen.values  # [incident, service, metric, sample]

An incident is drawn from its cause: a cluster, a root, a kind of fault and its strength. These tell
what each metric should be (`mesh.consequences`), and noise is added to that.

The logarithm of value over usual is the effect of the fault plus noise. Samples are correlated,
counts of few requests are noisy, and the day may be unlike the usual. Now and then, a metric moves
to another level (before the window or from some sample on), or a single sample is far off.
These are the `PATTERNS`.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from . import randomisation
from .mesh import APPLICATION, AT, BLOCK, METRICS, Change, Draw, Mesh, consequences
from .randomisation import CHANCES, DEPLOYED, GROUPS, HIDDEN, NETWORK, NO_FAULT, sizes

SAMPLES = 6
# Which samples of a metric are off: none; all, or those from sample 1 .. 5 on; a single one.
PATTERNS = np.concatenate(
    [np.zeros((1, SAMPLES)), np.triu(np.ones((SAMPLES, SAMPLES))), np.eye(SAMPLES)]
).astype(np.float32)
BEFORE = 0.75  # share of the metrics at another level that moved before the window
ZERO = 2  # the sample in which the fault begins
ONSETS = np.array([2.0, 2.25, 2.5, 2.75, 3.0], np.float32)  # in samples; all equally likely
LATENCY_SHARE = 0.7  # share of a p95's noise that the mean latency has
OWN_NOISE = {"latency": 0.2, "p95": 0.3}  # extra noise of each, relative to `Mesh.noise`
LINES_NOISE, LINES_FAR, FAR_LINES = 0.45, 1.0, 0.12  # log lines: sigma, another level, its chance
BURSTS = np.array([1.0, 5.0, 25.0])  # new complaints a minute of a bystander, all equally likely
BURST = 0.03  # its chance
BURSTINESS = 2.0  # shape of the gamma that a count's mean is multiplied by
FAILING_SHARES = np.array([0.01, 0.05, 0.2, 0.5, 1.0])  # if a bystander fails on its own
SELDOM = 0.7  # requests in a period; of fewer, the median is 0
CUT = ("memory", "node cpu")  # metrics that end at 100 %
FAR_CALL, FAR_SERVED = 2.0, 1.2  # extra sigma of a call at another level: network, and callee


def pattern_chances(shift: np.ndarray, spike: np.ndarray) -> np.ndarray:
    """Return chances [B, pattern] from those of another level and of a spike, [B, 1] each."""
    later = np.full(SAMPLES, (1.0 - BEFORE) / (SAMPLES - 1))
    later[0] = BEFORE
    each = np.full(SAMPLES, 1.0 / SAMPLES)
    return np.concatenate([1.0 - shift - spike, shift * later, spike * each], axis=1)


Sigma = np.ndarray | float


@dataclass(frozen=True)
class Noise:
    """Noise of one metric: sigmas of logarithms, which broadcast to [B, N]; `follows` is [B, 1]."""

    wander: Sigma  # of samples that follow one another
    counted: Sigma  # of each sample alone
    day: Sigma  # of all samples together
    level: float  # of another level, and of a spike
    follows: np.ndarray  # correlation of a sample with the one before

    def draw(self, draw: Draw, chances: np.ndarray, count: int, size: int) -> np.ndarray:
        """Draw noise, [B, N, sample]."""
        shape = (count, size, SAMPLES)
        steps = draw.normal(*shape)
        new = np.sqrt(1.0 - self.follows**2)
        for at in range(1, SAMPLES):
            steps[..., at] = self.follows * steps[..., at - 1] + new * steps[..., at]
        pattern = (draw.uniform((0.0, 1.0), count, size, 1) > np.cumsum(chances, 1)[:, None]).sum(2)
        far = PATTERNS[np.minimum(pattern, len(PATTERNS) - 1)] * draw.normal(count, size, 1)
        return (
            _column(self.wander) * steps
            + _column(self.counted) * draw.normal(*shape)
            + _column(self.day) * draw.normal(count, size, 1)
            + np.float32(self.level) * far
        )


def _column(sigma: Sigma) -> np.ndarray:
    return np.asarray(sigma, np.float32)[..., None]


class Lines(NamedTuple):
    """Log lines a minute, [B, N], and their usual numbers."""

    ordinary: np.ndarray  # neither errors nor warnings
    usual: np.ndarray  # their usual number
    errors: np.ndarray
    usual_errors: np.ndarray
    warnings: np.ndarray
    usual_warnings: np.ndarray


class Arrays(NamedTuple):
    """Incidents [B] on clusters of one size [N], as they were measured; nan is unknown."""

    calls: np.ndarray  # [B, caller, callee] 0 or 1
    values: np.ndarray  # [B, N, metric, sample]
    usual: np.ndarray  # [B, N, metric]
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    waits: np.ndarray  # [B, caller, callee, (wait, usual wait, served, usual served)] in ms
    counts: np.ndarray  # [B, N, field of `Lines`]
    alerts: np.ndarray  # [B, N, (slow, failing)]


class Block:
    """`BLOCK` incidents [B] on clusters of one size [N], named by split and number: the truth, the
    noise, and what is shown of them.
    """

    def __init__(self, split: str, number: int) -> None:
        name = sha256(f"production/{split}/{number}".encode()).digest()
        draw = Draw(np.random.Generator(np.random.Philox(int.from_bytes(name[:16], "big"))))
        low, high = np.log(randomisation.SERVICES[0]), np.log(randomisation.SERVICES[1] + 1)
        size = int(np.exp(low + (high - low) * draw.stream.random()))
        self.mesh = Mesh(draw, size)
        # [B] number in `randomisation.FAILURES`, or `NO_FAULT`; root -1 without a fault
        self.kind, self.root = _cause(draw, self.mesh)
        strength = draw.uniform((0.0, 1.0), BLOCK, len(GROUPS))
        strength[draw.chance(HIDDEN[self.kind], BLOCK, len(GROUPS))] = np.nan
        effects = sizes(self.kind, strength)
        self.change = consequences(self.mesh, np.maximum(self.root, 0), effects)
        self.onset = draw.stream.integers(0, len(ONSETS), BLOCK)  # [B] number in `ONSETS`

        self.noise = _noises(draw, self.mesh)
        shift = draw.uniform(randomisation.SHIFTS, BLOCK, 1)
        spike = draw.uniform(randomisation.SPIKES, BLOCK, 1)
        self.chances = pattern_chances(shift, spike)  # [B, pattern] of `PATTERNS`
        follows = self.noise["latency"].follows
        together = Noise(draw.uniform(randomisation.LOAD, BLOCK, 1), 0.0, 0.0, 0.0, follows)
        self.load = np.exp(together.draw(draw, self.chances, BLOCK, 1))  # [B, 1, sample] requests
        self.steady_cpu = draw.uniform((0.1, 0.9), BLOCK, size)  # [B, N] share without requests
        self.usual = _usual(self.mesh)  # [B, N, metric] of which `seen` may lack some

        values = self._values(draw)
        self.failing = draw.uniform(randomisation.FAILING, BLOCK, 1)  # [B, 1] chance of a bystander
        self.requests, self.failures = self._count(draw, values)  # [B, N, sample] in the period
        self._hide(draw, values)
        bands = _usual_bands(draw, self.mesh, self.noise, self.usual)
        waits = _calls(draw, self.mesh, self.root, self.change)
        self.minutes = draw.uniform((1.0, 3.0), BLOCK, 1)  # in which log lines were counted
        self.lines = _lines(draw, self.mesh, self.change, self.load, self.minutes)
        self.logged = draw.chance(0.8, BLOCK) & (self.mesh.style != APPLICATION)  # [B]
        counts = np.where(self.logged[:, None, None], np.stack(self.lines, -1), np.nan)
        alerts = self._alerts(values, bands[0])
        calls = self.mesh.calls.astype(np.float32)
        self.seen = Arrays(calls, values, *bands, waits, counts, alerts)  # not rounded
        at_root = np.arange(size) == self.root[:, None]
        deploys = np.where(at_root, DEPLOYED[self.kind][:, None], 0.0)
        chances = np.maximum(deploys, randomisation.DEPLOYS)
        self.deployed = draw.chance(chances, BLOCK, size)  # [B, N]

    def _values(self, draw: Draw) -> np.ndarray:
        """Draw each metric except availability, [B, N, metric, sample]."""
        mesh, change = self.mesh, self.change
        part = struck(self.onset)[:, None]

        def changed(ratio: np.ndarray) -> np.ndarray:
            """The logarithm of a value over its usual; at least 3 % is left."""
            return np.log1p(np.maximum(part * ratio[..., None], -0.97))

        steady = self.steady_cpu[..., None]
        logs = {
            "latency": changed(change.latency),
            "p95": changed(change.latency),
            "p95 of its calls": changed(change.calls),
            "requests": np.log(self.load) + changed(change.requests),
            "cpu": np.log(steady + (1.0 - steady) * self.load + part * change.cpu[..., None]),
            "memory": changed(change.memory),
            "node cpu": changed(change.node),
        }
        shape = (*mesh.own.shape, SAMPLES)
        drawn = {
            name: noise.draw(draw, self.chances, *mesh.own.shape)
            for name, noise in self.noise.items()
        }
        drawn["p95"] = drawn["latency"]
        machine = np.broadcast_to(mesh.machine[..., None], shape)
        drawn["node cpu"] = np.take_along_axis(drawn["node cpu"], machine, 1)
        for name, sigma in OWN_NOISE.items():
            common = drawn[name] * (LATENCY_SHARE if name == "latency" else 1.0)
            drawn[name] = common + sigma * mesh.noise[..., None] * draw.normal(*shape)
        values = np.empty((*mesh.own.shape, len(METRICS), SAMPLES), np.float32)
        for name, ratio in logs.items():
            times = np.exp(np.minimum(ratio + drawn[name], 60.0))  # nothing measured is infinite
            values[:, :, AT[name]] = self.usual[:, :, AT[name], None] * times
        for name in CUT:
            values[:, :, AT[name]] = np.round(np.minimum(values[:, :, AT[name]], 100.0), 1)
        return values

    def _count(self, draw: Draw, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw requests and failures, and set the two metrics that follow from them."""
        shape, period = self.mesh.own.shape, self.mesh.period[..., None]
        requests = np.rint(np.minimum(values[:, :, AT["requests"]] * period, 1e7)).astype(np.int64)
        alone = FAILING_SHARES[draw.stream.integers(0, len(FAILING_SHARES), (*shape, 1))]
        alone = alone * draw.chance(self.failing, *shape)[..., None]
        struck_share = struck(self.onset)[:, None] * self.change.errors[..., None]
        share = np.maximum(self.mesh.errors[..., None] + struck_share, alone)
        failures = draw.stream.binomial(requests, np.clip(share, 0.0, 1.0))
        with np.errstate(invalid="ignore"):
            values[:, :, AT["available"]] = 100.0 * (1.0 - failures / requests)
        values[:, :, AT["requests"]] = requests / np.where(period > 60.0, 1.0, period)
        return requests, failures

    def _hide(self, draw: Draw, values: np.ndarray) -> None:
        """Set samples to nan that are lost, had no requests, or are not measured at all."""
        lost = draw.chance(draw.uniform(randomisation.MISSING, BLOCK, 1, 1), *self.requests.shape)
        for name in ("latency", "p95"):
            values[:, :, AT[name]][lost | (self.requests == 0)] = np.nan
        values[~self.mesh.measured] = np.nan

    def _alerts(self, values: np.ndarray, usual: np.ndarray) -> np.ndarray:
        """Tell who is slow, and who fails; an application's monitoring alerts on one entry."""
        mesh, after = self.mesh, values[:, :, :, ZERO + 1 :]
        late = np.nan_to_num(after[:, :, AT["p95"]], nan=0.0).max(-1)
        slow = late > 3.0 * np.nan_to_num(usual[:, :, AT["p95"]], nan=np.inf)
        counted = np.maximum(self.requests[..., ZERO + 1 :].sum(-1), 1)
        failed = self.failures[..., ZERO + 1 :].sum(-1) / counted - mesh.errors
        alone = (mesh.style == APPLICATION)[:, None]
        fails = mesh.entry & (failed > np.where(alone, 0.004, 0.05))
        timed = np.isfinite(after[:, :, [AT["latency"], AT["p95"]]]).any((2, 3))
        slow = np.where(alone, mesh.entry & timed & ~fails.any(1, keepdims=True), slow)
        busiest = np.where(alone, (mesh.rate * mesh.entry * (slow | fails)), 0.0)
        alerted = ~alone | (busiest == busiest.max(1, keepdims=True))
        return np.stack([slow & alerted, fails & alerted], -1).astype(np.float32)


def struck(onset: np.ndarray) -> np.ndarray:
    """Return the share of each sample after the onset (a number in `ONSETS`), [..., sample]."""
    return np.clip(np.arange(SAMPLES) + 1.0 - ONSETS[onset][..., None], 0.0, 1.0).astype(np.float32)


def _cause(draw: Draw, mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Draw a kind of fault for each incident, and a root, uniformly from those it can strike:
    faults of the network need a caller.
    """
    kind = draw.stream.choice(len(CHANCES), BLOCK, p=CHANCES)
    can = mesh.can_fail & (mesh.calls.any(1) | ~np.isin(kind, NETWORK)[:, None])
    none = (kind == NO_FAULT) | ~can.any(1)
    root = (can * draw.uniform((0.01, 1.0), *can.shape)).argmax(1)
    return np.where(none, NO_FAULT, kind), np.where(none, -1, root)


def _noises(draw: Draw, mesh: Mesh) -> dict[str, Noise]:
    """The noise of each metric of each service."""
    few = 1.0 / np.sqrt(mesh.rate * mesh.period + 0.5)
    ends = randomisation.CORRELATED, randomisation.DRIFT, randomisation.BUSY
    follows, day, busy = (draw.uniform(limits, len(few), 1) for limits in ends)
    calls = draw.lognormal(*randomisation.CALLS_P95, len(few), 1) * mesh.noise
    memory = draw.lognormal(*randomisation.MEMORY, *few.shape)
    node = draw.lognormal(*randomisation.NODE_CPU, len(few), 1)
    cpu = np.clip(0.8 * mesh.noise, 0.05, 0.6)
    return {
        # Also the p95's, as most of it is shared.
        "latency": Noise(0.8 * mesh.noise, 0.5 * few, day + 0.3 * mesh.noise, 1.0, follows),
        "p95 of its calls": Noise(calls, 0.5 * few, 0.3 + mesh.noise, 1.2, follows),
        "requests": Noise(busy, few, day, 1.0, follows),
        "cpu": Noise(cpu, 0.0, 0.5 * day, 0.6, follows),
        "memory": Noise(0.4 * memory, 0.03 / mesh.memory, memory, 0.08, follows),  # rounded to .1
        "node cpu": Noise(node, 0.0, 0.6 * node, 0.3, follows),
    }


def _usual(mesh: Mesh) -> np.ndarray:
    """The usual value of each metric, [B, N, metric]."""
    calls = (mesh.latency - mesh.own) / np.maximum(mesh.waits, 1e-6)
    calls_take = np.where(mesh.waits > 0.0, calls * mesh.tail, 2.0)
    available = 100.0 * (1.0 - np.where(mesh.errors < 1e-3, 0.0, mesh.errors))
    node = np.minimum(mesh.cpu_of_machine / mesh.cores, 100.0)
    times = mesh.latency, mesh.latency * mesh.tail, calls_take
    every = (*times, available, mesh.rate, mesh.cpu, mesh.memory, node)  # as `METRICS`
    return np.stack(every, -1).astype(np.float32)


def _usual_bands(
    draw: Draw, mesh: Mesh, noise: dict[str, Noise], usual: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The usual value as it is known, its robust spread, and its 5th and 95th percentile."""
    count, size = mesh.own.shape
    sigma = np.empty_like(usual)
    for name, own in (noise | {"p95": noise["latency"]}).items():
        share = LATENCY_SHARE if name == "latency" else 1.0
        day = own.day if name in CUT else 0.0  # their bands are of several days
        sigma[:, :, AT[name]] = share * np.sqrt(own.wander**2 + own.counted**2 + day**2)
    sigma[:, :, AT["available"]] = 0.0
    known = usual.copy()
    often = mesh.rate * mesh.period > SELDOM
    known[:, :, AT["requests"]] *= often * np.where(mesh.period > 60.0, mesh.period, 1.0)
    rarely = mesh.rate * mesh.period < draw.uniform((0.0, 0.5), count, size)
    known[:, :, : AT["available"]][rarely] = np.nan
    uneven = np.exp(draw.uniform((0.0, 2.0), count, size, 1) * draw.chance(0.35, count, size, 1))
    above = np.minimum(1.645 * sigma * uneven, 9.0)
    low, high = known * np.exp(-1.645 * sigma), known * np.exp(above)
    deviation = known * sigma * draw.uniform((0.3, 1.0), count, size, 1)
    at = AT["available"]
    fails = 1.0 - usual[:, :, at] / 100.0
    spread = 100.0 * np.sqrt(fails * (1.0 - fails) / np.maximum(mesh.rate * mesh.period, 1.0))
    deviation[:, :, at], high[:, :, at] = spread, 100.0
    low[:, :, at] = usual[:, :, at] - 1.645 * spread - 30.0 * fails
    for array in (known, deviation, low, high):
        array[~mesh.measured] = np.nan
    return known, deviation, low, high


def _calls(draw: Draw, mesh: Mesh, root: np.ndarray, change: Change) -> np.ndarray:
    """Draw `Arrays.waits`: what callers and callees measure of their calls after the onset."""
    count, size = mesh.own.shape
    square = (count, size, size)
    kept = draw.chance(0.9, count) & (mesh.style != APPLICATION)
    untimed = draw.chance(draw.uniform(randomisation.UNTIMED, count, 1, 1), *square)
    known = mesh.calls & kept[:, None, None] & ~untimed
    far = draw.uniform(randomisation.FAR_CALLS, count, 1, 1)
    noise = draw.lognormal(*randomisation.NETWORK_NOISE, count, 1, 1)
    served_noise = draw.lognormal(*randomisation.SERVED_NOISE, count, 1, 1)
    slower = np.maximum(1.0 + change.latency, 0.05)
    wobble = served_noise + FAR_SERVED * draw.chance(far, *square)
    served = (mesh.latency * slower)[:, None, :] * np.exp(wobble * draw.normal(*square))
    wobble = noise + FAR_CALL * draw.chance(far, *square)
    to_root = (np.arange(size) == root[:, None])[:, None, :]
    wire = mesh.wire + to_root * change.delay[..., None]
    network = wire * np.exp(wobble * draw.normal(*square))
    usual = np.broadcast_to(mesh.latency[:, None], square)
    waits = np.stack([served + network, usual + mesh.wire, served, usual], -1)
    waits[~known] = np.nan
    return waits


def _lines(draw: Draw, mesh: Mesh, change: Change, load: np.ndarray, minutes: np.ndarray) -> Lines:
    """Draw the log lines a minute, counted over so many minutes after the onset."""
    count, size = mesh.own.shape
    usual_lines = draw.lognormal(0.6, 0.9, count, size) * draw.lognormal(1.0, 1.0, count, 1)
    usual_lines = usual_lines * mesh.rate * 60.0
    wobble = LINES_NOISE + LINES_FAR * draw.chance(FAR_LINES, count, size)
    today = usual_lines * load[:, :, -1] * (1.0 - change.lines)
    lines = today * np.exp(wobble * draw.normal(count, size))

    def complain(quiet: float, median: float, added: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        usual = draw.lognormal(median, 1.3, count, size) * ~draw.chance(quiet, count, size)
        burst = BURSTS[draw.stream.integers(0, len(BURSTS), (count, size))]
        mean = usual + added + burst * draw.chance(BURST, count, size)
        mean = (mean + 0.01) * draw.stream.standard_gamma(BURSTINESS, (count, size)) / BURSTINESS
        return draw.stream.poisson(np.minimum(mean * minutes, 1e6)) / minutes, usual

    errors, usual_errors = complain(0.7, 0.8, change.error_lines)
    warnings, usual_warnings = complain(0.55, 2.0, 0.3 * change.error_lines)
    ordinary = np.rint(lines * minutes) / minutes
    return Lines(ordinary, np.rint(usual_lines), errors, usual_errors, warnings, usual_warnings)
