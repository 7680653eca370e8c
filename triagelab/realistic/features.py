"""What the ranker reads of an incident, real or simulated: numbers for each service.

    features(Block("train", 0).seen)
    features(arrays_of_evidence(evidence))

Real and simulated cases go through the same arrays, which have nan for a missing metric.
"""

import warnings
from itertools import chain

import numpy as np

from logtriage.play.observation import BAND, LEAST_SPREAD

from ..real.evidence import Evidence
from .generator import SAMPLES, Arrays
from .mesh import AT, METRICS

RECENT = SAMPLES // 2  # later samples are compared with the usual and with earlier ones
LATENCY, P95, AVAILABLE, REQUESTS = (
    AT[name] for name in ("latency", "p95", "available", "requests")
)


def arrays_of_evidence(seen: Evidence) -> Arrays:
    """Return what was seen of one incident as arrays; services are in the call graph's order."""
    at = seen.graph.position
    size = len(at)
    values = np.full((1, size, len(METRICS), SAMPLES), np.nan, np.float32)
    usual, deviation, low, high = np.full((4, 1, size, len(METRICS)), np.nan, np.float32)
    for row in chain.from_iterable(known.values() for known in seen.measures.values()):
        if row.name in AT:
            place = 0, at[row.service], AT[row.name]
            known = [_number(value) for value in row.values][-SAMPLES:]
            values[place][SAMPLES - len(known) :] = known
            usual[place], deviation[place] = _number(row.usual), _number(row.deviation)
            low[place], high[place] = _number(row.low), _number(row.high)
    calls = np.zeros((1, size, size), np.float32)
    for service in seen.graph.services:
        for callee in service.downstream:
            calls[0, at[service.name], at[callee]] = 1.0
    waits = np.full((1, size, size, 4), np.nan, np.float32)
    for call in seen.calls:
        times = (call.wait, call.usual_wait, call.served, call.usual_served)
        waits[0, at[call.caller], at[call.callee]] = list(map(_number, times))
    counts = np.full((1, size, 6), np.nan, np.float32)
    for count in seen.counts:
        now, before, *rest = map(_number, count[1:])
        ordinary = now - rest[0] - rest[2], before - rest[1] - rest[3]
        counts[0, at[count.service]] = [*ordinary, *rest]
    alerts = np.zeros((1, size, 2), np.float32)
    for alert in seen.alerts:
        alerts[0, at[alert.service], int(alert.metric == "errors")] = 1.0
    return Arrays(calls, values, usual, deviation, low, high, waits, counts, alerts)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def features(seen: Arrays) -> np.ndarray:
    """Return [B, N, feature] in float32: each metric compared with its usual and earlier samples,
    what the callees do not explain, calls, lines, alerts, and the place in the graph.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing are nan, and become 0
        rate = _rates(seen)
        parts = [_of_metrics(seen), _of_amounts(seen, rate), _of_lines(seen.counts)]
        parts += [_of_calls(seen, rate), _of_place(seen, rate)]
        return np.concatenate(parts, -1).astype(np.float32)


def _known(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def _cut(values: np.ndarray, most: float = 6.0) -> np.ndarray:
    return np.clip(_known(values), -most, most)


def _log_ratio(now: np.ndarray, then: np.ndarray, least: np.ndarray | float = 1.0) -> np.ndarray:
    return _cut(np.log((now + least) / (then + least)))


def _of_metrics(seen: Arrays) -> np.ndarray:
    """Eight numbers for each metric of a service."""
    usual, late = seen.usual, seen.values[..., RECENT:]
    size = np.abs(_known(usual))
    spread = np.fmax(_known(seen.deviation), _known((seen.high - seen.low) / BAND))
    spread = np.fmax(spread, np.fmax(LEAST_SPREAD * size, 1e-6))
    off = _known((late - usual[..., None]) / spread[..., None])
    farthest = np.take_along_axis(off, np.abs(off).argmax(-1)[..., None], -1)[..., 0]
    now, before = np.nanmean(late, -1), np.nanmean(seen.values[..., :RECENT], -1)
    least = 0.01 * size + 1e-3
    return np.concatenate(
        [
            np.arcsinh(farthest),
            np.arcsinh(_known((now - usual) / spread)),
            np.arcsinh(_known((now - before) / spread)),
            _log_ratio(now, usual, least),
            _log_ratio(now, before, least),
            _cut(np.log(spread / (size + 1e-3))),
            np.isfinite(late).mean(-1),
            np.isfinite(now) & np.isfinite(usual),
        ],
        -1,
    )


def _rates(seen: Arrays) -> np.ndarray:
    """[B, N] recent requests per sample, in the cluster's own unit."""
    now = np.nanmean(seen.values[:, :, REQUESTS, RECENT:], -1)
    return _known(now) + 0.01 * _known(seen.usual[:, :, REQUESTS])


def _of_amounts(seen: Arrays, rate: np.ndarray) -> np.ndarray:
    """Waiting and failing, weighted by requests, so that they add up along calls: for each service,
    and for what its callees do not explain, both relative to the whole cluster.
    """
    late = seen.values[..., RECENT:]
    by_mean = np.isfinite(np.nanmean(late[:, :, LATENCY], -1))
    slower = []
    for of in (np.nanmean, np.nanmax):
        mean, p95 = (of(late[:, :, at], axis=-1) - seen.usual[:, :, at] for at in (LATENCY, P95))
        slower.append(np.where(by_mean, mean, p95))
    failing = seen.usual[:, :, AVAILABLE] - np.nanmean(late[:, :, AVAILABLE], -1)
    columns = []
    for each in (*slower, failing):
        amount = _known(each) * rate
        callees = (seen.calls @ np.maximum(amount, 0.0)[..., None])[..., 0]
        columns += [_share(amount), _share(np.maximum(0.0, amount - callees))]
    return np.stack(columns, -1)


def _share(amount: np.ndarray) -> np.ndarray:
    return amount / (np.sqrt((amount**2).sum(1, keepdims=True)) + 1e-9)


def _of_calls(seen: Arrays, rate: np.ndarray) -> np.ndarray:
    """How much longer its timed calls take, as callee and caller: mean, most, least; how many."""
    wait, usual_wait, served, usual_served = np.moveaxis(seen.waits, -1, 0)
    known = np.isfinite(wait) & np.isfinite(usual_wait)
    network = np.maximum(wait - served, 0.0)
    usual_network = np.maximum(usual_wait - usual_served, 0.0)
    added = _known(np.maximum(network - usual_network, 0.0))
    amount = added * rate[:, None, :]
    whole = np.sqrt((amount**2).sum((1, 2), keepdims=True)) + 1e-9
    each = np.stack(
        [
            _log_ratio(wait, usual_wait),
            _log_ratio(served, usual_served),
            _log_ratio(network, usual_network),
            np.sqrt(np.clip(_known(added / (1.0 + usual_wait)), 0.0, 20.0)),
            amount / whole,
        ],
        -1,
    )
    timed = (known * seen.calls)[..., None]
    each = each * timed
    columns = []
    for axis in (1, 2):
        number = timed.sum(axis)
        least = np.where(timed > 0.0, each, 9.0).min(axis) * (number > 0.0)
        share = number / np.maximum(seen.calls.sum(axis)[..., None], 1.0)
        columns += [each.sum(axis) / np.maximum(number, 1.0), each.max(axis), least, share]
    return np.concatenate(columns, -1)


def _of_lines(counts: np.ndarray) -> np.ndarray:
    """Log lines, errors and warnings, compared with their usual numbers."""
    lines, usual_lines, errors, usual_errors, warns, usual_warns = np.moveaxis(counts, -1, 0)
    return np.stack(
        [
            _log_ratio(lines, usual_lines),
            _cut((errors - usual_errors) / np.sqrt(usual_errors + 1.0), 9.0),
            _cut((warns - usual_warns) / np.sqrt(usual_warns + 1.0), 9.0),
            _cut(np.log1p(errors)),
            _cut(np.log1p(usual_errors)),
            np.isfinite(lines),
        ],
        -1,
    )


def _of_place(seen: Arrays, rate: np.ndarray) -> np.ndarray:
    """Callers, callees, size of the cluster, traffic, and alerts, its own and any service's."""
    callers, callees = seen.calls.sum(1), seen.calls.sum(2)
    busiest = rate.max(1, keepdims=True)
    cluster = np.full_like(callers, np.log(callers.shape[1]) - 3.0)
    traffic = np.log((rate + 1e-3) / (busiest + 1e-3))
    columns = [np.log1p(callers), np.log1p(callees), callers == 0.0, cluster, traffic]
    anybody = np.broadcast_to(seen.alerts.max(1, keepdims=True), seen.alerts.shape)
    return np.concatenate([np.stack(columns, -1), seen.alerts, anybody], -1)
