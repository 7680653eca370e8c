"""Intervals over training seeds and incidents: both are samples, and every seed plays the same
incidents, so both are resampled, crosswise.

Values are arrays (seeds, incidents), one a stratum, mostly a task. Estimators are those of
`intervals`, and samples are refused as there (`checked_samples`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from .intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    checked_samples,
    pooled_iqm,
    stratified_iqm,
    stratified_mean,
)

DRAWS_AT_ONCE = 100  # of resamples that hold every seed and incident, for the sake of memory


@lru_cache(maxsize=16)  # tables ask for the same draws again and again, and they take longest
def resample_counts(seed: int, *sizes: int) -> tuple[np.ndarray, ...]:
    """For a sample of each size, how often each of its values is in each of `RESAMPLES` resamples:
    arrays (draws, size), which are shared and cannot be written.
    """
    random, found = np.random.default_rng(seed), []
    for size in sizes:
        drawn = random.multinomial(size, np.full(size, 1.0 / size), RESAMPLES)
        drawn.setflags(write=False)
        found.append(drawn)
    return tuple(found)


def _crossed_draws(strata: Sequence[np.ndarray], seed: int) -> np.ndarray:
    """Resampled means of each stratum (seeds, incidents): an array (strata, draws). Training seeds
    are drawn for all strata together, incidents for each.
    """
    counts = resample_counts(seed, len(strata[0]), *(part.shape[1] for part in strata))
    seeds, *incidents = (drawn / drawn.shape[1] for drawn in counts)
    return np.stack(
        [
            ((seeds @ part) * drawn).sum(axis=1)
            for part, drawn in zip(strata, incidents, strict=True)
        ]
    )


def _limits(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high)


def crossed_mean(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Mean over strata of the mean over training seeds and incidents; each of `strata` holds values
    (seeds, incidents).

    The same incidents are played after every seed, and both are samples, so both are resampled, the
    incidents stratum by stratum: Owen 2007, "The pigeonhole bootstrap". To take each seed for a
    stratum would take its incidents for new ones, and be far too narrow. For one seed it is
    `stratified_mean`, which says nothing about other seeds; of two it is still a little narrow.
    """
    if len(strata[0]) == 1:
        return stratified_mean([part[0] for part in strata], seed)
    checked = checked_samples(strata)
    point = float(np.mean([part.mean() for part in checked]))
    if all(np.ptp(part) == 0.0 for part in checked):
        return Interval(point, point, point)
    return Interval(point, *_limits(_crossed_draws(checked, seed).mean(axis=0)))


def crossed_iqm(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Interquartile mean of the scores of all seeds and incidents together, resampled as in
    `crossed_mean`; each of `strata` holds values (seeds, incidents).

    Where seeds differ much (half as much as incidents do), five of them are few, here and
    in `crossed_mean`: in a simulation the interval held the truth in 88 of 100 cases.
    """
    if len(strata[0]) == 1:
        return stratified_iqm([part[0] for part in strata], seed)
    checked = checked_samples(strata)
    point = float(pooled_iqm(*(part.ravel() for part in checked)))
    if all(np.ptp(part) == 0.0 for part in checked) and len(checked) == 1:
        return Interval(point, point, point)
    values = np.concatenate([part.ravel() for part in checked])
    order, cut = np.argsort(values), int(0.25 * values.size)
    counts = resample_counts(seed, len(checked[0]), *(part.shape[1] for part in checked))
    draws = []
    for start in range(0, RESAMPLES, DRAWS_AT_ONCE):
        seeds, *incidents = (drawn[start : start + DRAWS_AT_ONCE] for drawn in counts)
        often = [seeds[:, :, None] * drawn[:, None, :] for drawn in incidents]
        flat = np.concatenate([part.reshape(len(seeds), -1) for part in often], axis=1)
        # Of the values in order, the places that each takes up, and of these the ones kept.
        places = np.clip(np.cumsum(flat[:, order], axis=1), cut, values.size - cut)
        kept = np.diff(places, axis=1, prepend=cut)
        draws.append(kept @ values[order] / (values.size - 2 * cut))
    return Interval(point, *_limits(np.concatenate(draws)))


def _pair_draws(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], seed: int
) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    """Of each stratum, for both sides, the resampled means of every seed (seeds, draws), and the
    share with which each seed is drawn (seeds, draws). Seeds are drawn for each side, and for all
    strata together; incidents for each stratum, the same for both sides.
    """
    sizes = (len(before[0]), len(after[0]), *(part.shape[1] for part in before))
    theirs, ours, *incidents = (drawn.T / drawn.shape[1] for drawn in resample_counts(seed, *sizes))
    for old, new, drawn in zip(before, after, incidents, strict=True):
        yield (old @ drawn, theirs), (new @ drawn, ours)


def crossed_improvement(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], seed: int = 0
) -> Interval:
    """Chance that a training run of `after` has a higher mean score than one of `before` on the
    same incidents, ties half, the mean over strata (Agarwal et al. 2021); each stratum holds values
    (seeds, incidents).

    Incidents are resampled for both sides together, seeds each side for itself.
    """

    def wins(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
        """Of each pair of seeds, whether ours is better: (theirs, ours, draws)."""
        higher, same = ours[None] > theirs[:, None], np.isclose(ours[None], theirs[:, None])
        chance: np.ndarray = np.where(same, 0.5, higher)
        return chance

    old, new = checked_samples(before), checked_samples(after)
    points = [
        wins(x.mean(axis=1)[:, None], y.mean(axis=1)[:, None]).mean()
        for x, y in zip(old, new, strict=True)
    ]
    draws = [
        np.einsum("ijd,id,jd->d", wins(theirs, ours), chosen, drawn)
        for (theirs, chosen), (ours, drawn) in _pair_draws(old, new, seed)
    ]
    return Interval(float(np.mean(points)), *_limits(np.mean(draws, axis=0)))


def crossed_share(scores: np.ndarray, ceiling: np.ndarray, seed: int = 0) -> Interval:
    """Ratio of mean scores: those of training seeds (seeds, incidents) to a ceiling's on the same
    incidents (incidents,); resampled as in `crossed_mean`.
    """
    own, top = checked_samples([scores, np.broadcast_to(ceiling, scores.shape)])
    draws = [_crossed_draws([part], seed)[0] for part in (own, top)]  # the same draws of both
    return Interval(float(own.mean() / top.mean()), *_limits(draws[0] / draws[1]))
