"""How likely each (root, kind of fault) of an incident is, to somebody who knows the cluster.

This is the ceiling of `production`: it knows the constants of the cluster (`mesh.Mesh`), the noise,
today's traffic, and what is shown of the incident. Given a cause and its strengths, the noise of
one metric is independent of the others', so the likelihood is a product. Strengths are integrated
on a grid, separately for each group of effects, and the onset over its five values. Alerts are not
read: they say little that the metrics do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from . import generator as world
from .dials import CHANCES, DEPLOYED, DEPLOYS, FAILURES, GROUP_OF, GROUPS, HIDDEN, NO_FAULT, sizes
from .generator import ONSETS, SAMPLES, Block, eligible, log_change, struck
from .mesh import AT, Change, consequences

STRENGTHS = (np.arange(8) + 0.5) / 8.0  # the grid: midpoints of eight equal parts
UNKNOWN = 1e4  # variance of a sample that nobody measured
LEAST = 3e-3  # smaller changes of a metric are ignored
PARTS = struck(np.arange(len(ONSETS)))  # [onset, sample]


@dataclass(frozen=True)
class Causes:
    """All causes [H] (root, kind and strength) of one group of effects, and what each changes."""

    root: np.ndarray
    kind: np.ndarray
    at: np.ndarray  # [root, kind, strength] number of the cause, -1 if there is none
    change: Change


def posterior(block: Block, at: int) -> tuple[np.ndarray, float]:
    """Return the chance of each (service, kind) and of no fault, for incident `at` of a block."""
    size = block.mesh.own.shape[1]
    evidence = np.zeros((size, len(FAILURES), len(ONSETS)))
    for group in range(len(GROUPS)):
        evidence += _group_evidence(block, at, group)
    weights = logsumexp(evidence, axis=2) - np.log(len(ONSETS))
    ratio = np.ones((size, len(FAILURES)))
    if block.logged[at]:  # lines tell of deployments
        often = np.maximum(DEPLOYED[:NO_FAULT], DEPLOYS)
        ratio = np.where(
            block.deployed[at][:, None], often / DEPLOYS, (1.0 - often) / (1.0 - DEPLOYS)
        )
    kinds = np.arange(len(FAILURES))
    can = np.stack([eligible(block.mesh, np.full(len(block.kind), one))[at] for one in kinds], 1)
    with np.errstate(divide="ignore"):
        prior = np.log(CHANCES[:NO_FAULT] * can / np.maximum(can.sum(0), 1))
    # A kind of fault that can strike no service here counts as no fault.
    nothing = CHANCES[NO_FAULT] + CHANCES[:NO_FAULT][~can.any(0)].sum()
    every = np.append((weights + prior + np.log(ratio)).ravel(), np.log(nothing))
    chance = np.exp(every - logsumexp(every))
    return chance[:-1].reshape(size, len(FAILURES)), float(chance[-1])


def _group_evidence(block: Block, at: int, group: int) -> np.ndarray:
    """Log-likelihood ratio of each (root, kind, onset) to no fault, from one group of effects."""
    causes = _causes(block, at, group)
    logs = np.zeros((len(causes.root), len(ONSETS)))
    for cause, onset_logs in _READERS[group](block, at, causes):
        logs[cause] += onset_logs
    size = causes.at.shape[0]
    evidence = np.zeros((size, len(FAILURES), len(ONSETS)))
    for kind in np.unique(causes.kind):
        mean = logsumexp(logs[causes.at[:, kind]], axis=1) - np.log(len(STRENGTHS))
        hidden = HIDDEN[kind, group]
        with np.errstate(divide="ignore"):
            evidence[:, kind] = np.logaddexp(np.log1p(-hidden) + mean, np.log(hidden))
    return evidence


def _causes(block: Block, at: int, group: int) -> Causes:
    size = block.mesh.own.shape[1]
    effects = {name for name, of in GROUP_OF.items() if of == group}
    kinds = [at for at, one in enumerate(FAILURES) if one.effects.keys() & effects]
    grid = np.meshgrid(np.arange(size), kinds, np.arange(len(STRENGTHS)), indexing="ij")
    root, kind, step = (one.ravel() for one in grid)
    number = np.full((size, len(FAILURES), len(STRENGTHS)), -1)
    number[root, kind, step] = np.arange(len(root))
    strength = np.full((len(root), len(GROUPS)), np.nan, np.float32)
    strength[:, group] = STRENGTHS[step]
    cluster = np.full(len(root), at)
    change = consequences(block.mesh, cluster, root, sizes(kind, strength))
    return Causes(root, kind, number, change)


Found = Iterator[tuple[np.ndarray, np.ndarray]]  # causes, and log-likelihood ratios by onset


def _read_time(block: Block, at: int, causes: Causes) -> Found:
    """Evidence of the latencies of services, the p95 of their calls, and each call."""
    mesh, change = block.mesh, causes.change
    usual, values = block.usual[at], block.shown.values[at]
    size = mesh.own.shape[1]
    base = block.noise["latency"].covariance(at, size)
    shares = np.array([world.LATENCY_SHARE, 1.0])
    own = np.array([world.OWN_NOISE["latency"], world.OWN_NOISE["p95"]])
    alone = np.repeat((own * mesh.noise[at][:, None]) ** 2, SAMPLES, axis=1)
    both = np.kron(np.outer(shares, shares), np.ones((SAMPLES, SAMPLES)))
    covariance = np.tile(base, (1, 1, 2, 2)) * both + _diagonal(alone)[:, None]
    seen = np.log(values[:, :2] / usual[:, :2, None]).reshape(size, -1)
    yield from _series(covariance, seen, block.chances[at], change.latency, copies=2)
    yield from _metric(block, at, "p95 of its calls", change.calls)

    calls = block.calls
    noise, served, far = (one[at].item() for one in (calls.noise, calls.served_noise, calls.far))
    for caller, callee in np.argwhere(np.isfinite(calls.network[at])):
        cause = np.flatnonzero(np.abs(change.latency[:, callee]) > LEAST)
        ratio = np.append(change.latency[cause, callee], 0.0)
        took = block.shown.waits[at, caller, callee, 2] / mesh.latency[at, callee]
        off = np.log(took / np.maximum(1.0 + ratio, 0.05))
        yield cause, _gained(_two_normals(off, served, world.FAR_SERVED, far))
        cause = np.flatnonzero((causes.root == callee) & (change.delay[:, 0] > 0.0))
        wire = mesh.wire[at, caller, callee] + np.append(change.delay[cause, 0], 0.0)
        off = np.log(calls.network[at, caller, callee] / wire)
        yield cause, _gained(_two_normals(off, noise, world.FAR_CALL, far))


def _read_requests(block: Block, at: int, causes: Causes) -> Found:
    """Evidence of how many requests there are, and how many of them fail."""
    mesh = block.mesh
    expected = (mesh.rate[at] * mesh.period[at])[:, None] * block.load[at]
    seen = np.log((block.requests[at] + 0.5) / (expected + 0.5))
    seen = np.where(mesh.measured[at, :, AT["requests"], None], seen, np.nan)
    covariance = block.noise["requests"].covariance(at, len(seen))
    yield from _series(covariance, seen, block.chances[at], causes.change.requests)

    failing = block.failing[at].item()
    chances = _seldom(failing, len(world.FAILING_SHARES))
    alone = np.append(0.0, world.FAILING_SHARES)[:, None]
    for service in np.flatnonzero(mesh.measured[at, :, AT["available"]]):
        count, failed = block.requests[at, service], block.failures[at, service]
        cause = np.flatnonzero(causes.change.errors[:, service] > 1e-5)
        added = np.append(causes.change.errors[cause, service], 0.0)
        usual = mesh.errors[at, service]
        share = (usual + PARTS * added[:, None, None])[:, :, None]
        share = np.clip(np.maximum(share, alone), 1e-9, 1.0 - 1e-9)
        logs = (failed * np.log(share) + (count - failed) * np.log1p(-share)).sum(-1)
        yield cause, _gained(logsumexp(logs + chances, axis=-1))


def _read_resources(block: Block, at: int, causes: Causes) -> Found:
    """Evidence of the memory and cpu of services, and of the cpu of their machines."""
    yield from _metric(block, at, "memory", causes.change.memory)
    steady = block.steady_cpu[at][:, None]
    today = steady + (1.0 - steady) * block.load[at]
    yield from _metric(block, at, "cpu", causes.change.cpu, today)
    # A machine's cpu is one series, which is repeated for each of its services.
    machine = block.mesh.machine[at]
    measured = block.mesh.measured[at, :, AT["node cpu"]]
    told = np.array([measured[machine == one].sum() for one in machine])
    yield from _metric(block, at, "node cpu", causes.change.node, weight=1.0 / np.maximum(told, 1))


def _read_lines(block: Block, at: int, causes: Causes) -> Found:
    """Evidence of the counts of log lines, and of errors and warnings among them."""
    lines = block.lines
    if not block.logged[at]:
        return
    minutes = block.minutes[at].item()
    load = block.load[at, 0, -1]
    for service in range(block.mesh.own.shape[1]):
        cause = np.flatnonzero(causes.change.told[:, service] > 1e-3)
        added = np.append(causes.change.told[cause, service], 0.0)
        errors = round(lines.errors[at, service] * minutes)
        warnings = round(lines.warnings[at, service] * minutes)
        logs = _count_logs(errors, lines.usual_errors[at, service] + added, minutes)
        mean = lines.usual_warnings[at, service] + 0.3 * added
        yield cause, _gained(logs + _count_logs(warnings, mean, minutes))

        cause = np.flatnonzero(causes.change.lines[:, service] > 0.0)
        usual = lines.usual[at, service] * minutes * load
        mean = usual * (1.0 - np.append(causes.change.lines[cause, service], 0.0))
        off = np.log((lines.ordinary[at, service] * minutes + 0.5) / (mean + 0.5))
        yield cause, _gained(_two_normals(off, world.LINES_NOISE, world.LINES_FAR, world.FAR_LINES))


_READERS = (_read_time, _read_requests, _read_resources, _read_lines)


def _metric(
    block: Block,
    at: int,
    name: str,
    change: np.ndarray,
    today: np.ndarray | float = 1.0,
    weight: np.ndarray | float = 1.0,
) -> Found:
    """Yield the evidence of one metric. Without a cause, it would be `today` times the usual; a
    cause adds `change` times the usual.
    """
    usual = block.usual[at][:, AT[name], None]
    values = block.shown.values[at, :, AT[name]]
    if name in world.CUT:
        values = np.where(values < 100.0, values, np.nan)  # the true value is unknown
    seen = np.log(values / (usual * today))
    covariance = block.noise[name].covariance(at, len(seen))
    added = change[..., None] / today  # relative to `today`
    yield from _series(covariance, seen, block.chances[at], added, weight=weight)


def _series(
    covariance: np.ndarray,
    seen: np.ndarray,
    chances: np.ndarray,
    change: np.ndarray,
    copies: int = 1,
    weight: np.ndarray | float = 1.0,
) -> Found:
    """Yield the evidence of one series per service, `seen` [N, D], for causes that change it by
    `change`: [H, N], or [H, N, sample] if the change differs from sample to sample. The evidence of
    each series is multiplied by its `weight`, [N].
    """
    weight = np.broadcast_to(weight, len(seen))
    missing = ~np.isfinite(seen)
    covariance = covariance + _diagonal(missing * UNKNOWN)[:, None]
    seen = np.where(missing, 0.0, seen)
    white = np.linalg.inv(np.linalg.cholesky(covariance))  # [N, pattern, D, D]
    scale = np.log(np.diagonal(white, axis1=-2, axis2=-1)).sum(-1)
    base = np.log(np.maximum(chances, 1e-12)) + scale
    for service in range(len(seen)):
        if missing[service].all():
            continue
        ratio = change[:, service]
        cause = np.flatnonzero(np.abs(ratio).reshape(len(ratio), -1).max(1) > LEAST)
        if not len(cause):
            continue
        ratio = ratio[cause].reshape(len(cause), 1, -1)
        mean = log_change(PARTS * ratio)
        mean = np.tile(mean, (1, 1, copies)).reshape(-1, seen.shape[1])
        mean = np.concatenate([mean, np.zeros((1, seen.shape[1]))])
        off = (seen[service] - mean) @ white[service].transpose(0, 2, 1)  # [pattern, P, D]
        logs = logsumexp(base[service][:, None] - 0.5 * (off**2).sum(-1), axis=0)
        gained = (logs[:-1] - logs[-1]).reshape(len(cause), -1)
        yield cause, gained * weight[service]


def _gained(logs: np.ndarray) -> np.ndarray:
    """Return how far each is above the last, which has no cause: [H, onset], or [H, 1]."""
    gained = logs[:-1] - logs[-1]
    return gained if gained.ndim == 2 else gained[:, None]


def _diagonal(values: np.ndarray) -> np.ndarray:
    return values[..., None] * np.eye(values.shape[-1])


def _two_normals(off: np.ndarray, sigma: float, more: float, share: float) -> np.ndarray:
    """Log density of a normal whose sigma is larger by `more` in a `share` of the cases."""
    wide = sigma + more
    near = np.log1p(-share) - np.log(sigma) - 0.5 * (off / sigma) ** 2
    return np.logaddexp(near, np.log(share) - np.log(wide) - 0.5 * (off / wide) ** 2)


def _count_logs(seen: int, mean: np.ndarray, minutes: float) -> np.ndarray:
    """Log probability of a count whose mean is gamma distributed and has a burst now and then."""
    bursts = np.append(0.0, world.BURSTS)
    mean = (mean[:, None] + bursts + 0.01) * minutes
    share = world.BURSTINESS / (world.BURSTINESS + mean)
    logs = gammaln(seen + world.BURSTINESS) - gammaln(seen + 1) - gammaln(world.BURSTINESS)
    logs = logs + world.BURSTINESS * np.log(share) + seen * np.log1p(-share)
    return logsumexp(logs + _seldom(world.BURST, len(world.BURSTS)), axis=1)


def _seldom(share: float, ways: int) -> np.ndarray:
    """Log chances of the ordinary case, and of `ways` others, which divide `share` equally."""
    return np.log(np.append(1.0 - share, np.full(ways, share / ways)))
