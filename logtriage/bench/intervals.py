"""Means with 95 % intervals, comparisons of training recipes, and calibration.

| what is compared | interval |
|---|---|
| episodes of one policy | percentile bootstrap over incidents, stratified by task |
| an agent of several training seeds | two-way bootstrap: seeds and incidents are both resampled |
| two training recipes | t over seeds, each seed's mean one value; Holm over a table's rows |
| a share of few cases | Wilson's |

The bootstrap and the interquartile mean follow Agarwal et al. 2021, "Deep reinforcement learning at
the edge of the statistical precipice"; the two-way bootstrap follows Owen 2007, "The pigeonhole
bootstrap".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import bootstrap, norm, trim_mean, ttest_1samp, ttest_ind

RESAMPLES = 2000
LEVEL = 0.95
KEYS = ["task", "split", "index"]  # what makes two rows the same incident


class Interval(NamedTuple):
    """A point estimate and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """`f"{interval:.2f}"` is "0.50 [0.41, 0.59]"; without a spec there are three decimals."""
        return "{} [{}, {}]".format(*(format(value, spec or ".3f") for value in self))

    def __str__(self) -> str:
        return format(self)


def checked_samples(samples: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The samples as floats.

    Raises:
        ValueError: for none, one of fewer than two values, or a value that is not finite; so does
            every function below that returns a bootstrap interval.
    """
    samples = [np.asarray(sample, dtype=float) for sample in samples]
    if min((sample.size for sample in samples), default=0) < 2:
        raise ValueError(
            "an interval needs at least 2 episodes a sample, got"
            f" {[sample.size for sample in samples]}"
        )
    if not all(np.isfinite(sample).all() for sample in samples):
        raise ValueError(
            "an interval needs finite values, got nan or infinity; drop those episodes first"
        )
    return samples


def is_constant(samples: Sequence[np.ndarray]) -> bool:
    """Whether no sample varies, so that there is nothing to resample."""
    return all(np.ptp(sample) == 0.0 for sample in samples)


# -- over incidents ------------------------------------------------------------------------------


def _bootstrap(
    samples: Sequence[np.ndarray],
    statistic: Callable[..., np.ndarray],
    seed: int = 0,
    paired: bool = False,
) -> Interval:
    """Interval of `statistic(*samples, axis)`; `paired` samples are resampled together."""
    samples = checked_samples(samples)
    point = float(statistic(*samples, axis=-1))
    if is_constant(samples):
        return Interval(point, point, point)
    found = bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        paired=paired,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(point, float(found.low), float(found.high))


def mean_interval(values: np.ndarray | pd.Series, seed: int = 0) -> Interval:
    """Mean of `values` (n,) over episodes; a constant sample has an interval of no width."""
    return _bootstrap([values], np.mean, seed)


def stratified_mean(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Mean over tasks of the mean over episodes. `strata` holds each task's scores (n,)."""

    def mean(*samples: np.ndarray, axis: int) -> np.ndarray:
        means: np.ndarray = np.mean([sample.mean(axis) for sample in samples], axis=0)
        return means

    return _bootstrap(strata, mean, seed)


def stratified_iqm(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Interquartile mean: of all episodes without the lowest and the highest quarter."""

    def middle(*samples: np.ndarray, axis: int) -> np.ndarray:
        found: np.ndarray = trim_mean(np.concatenate(samples, axis), 0.25, axis)
        return found

    return _bootstrap(strata, middle, seed)


def matched(
    before: pd.DataFrame, after: pd.DataFrame, column: str = "score"
) -> tuple[np.ndarray, np.ndarray]:
    """A column of two rollout frames on the same incidents, in the same order.

    Raises:
        ValueError: when the frames do not hold the same incidents, once each.
    """
    left, right = (frame.set_index(KEYS)[column].sort_index() for frame in (before, after))
    if not left.index.equals(right.index) or not left.index.is_unique:
        raise ValueError(
            "before and after must hold the same incidents once each; roll both out on the same"
            " ones"
        )
    return left.to_numpy(float), right.to_numpy(float)


def paired_gain(before: pd.DataFrame, after: pd.DataFrame, column: str = "score") -> Interval:
    """Mean of `after - before` on the same incidents; errors as `matched`."""
    left, right = matched(before, after, column)
    return mean_interval(right - left)


def share_of_ceiling(scores: pd.DataFrame, ceiling: pd.DataFrame) -> Interval:
    """Ratio of mean scores on the same incidents; errors as `matched`, and for a ceiling of 0."""
    top, own = matched(ceiling, scores)
    if top.mean() == 0.0:
        raise ValueError("a share needs a ceiling above 0, got mean score 0")
    return _bootstrap([own, top], lambda x, y, axis: x.mean(axis) / y.mean(axis), paired=True)


def probability_of_improvement(before: np.ndarray, after: np.ndarray, seed: int = 0) -> Interval:
    """Chance that an episode of `after` scores above one of `before`, ties half.

    Both are scores (n,) of the same incidents in the same order. All n^2 pairs of episodes count
    (Mann-Whitney U); incidents are resampled for both sides together.
    """
    before, after = checked_samples([before, after])
    if before.shape != after.shape:
        raise ValueError(f"need scores of the same incidents, got {before.size} and {after.size}")
    wins = (after > before[:, None]) + 0.5 * (after == before[:, None])
    (drawn,) = resample_shares(seed, before.size)
    return Interval(float(wins.mean()), *_limits(((drawn @ wins) * drawn).sum(axis=1)))


# -- over training seeds and incidents -----------------------------------------------------------


@lru_cache(maxsize=16)  # tables ask for the same draws again and again, and they take longest
def resample_shares(seed: int, *sizes: int) -> tuple[np.ndarray, ...]:
    """For a sample of each size, the share of each value in `RESAMPLES` resamples: arrays (draws,
    size) that sum to 1 over values, shared between callers and read-only.
    """
    random, found = np.random.default_rng(seed), []
    for size in sizes:
        shares = random.multinomial(size, np.full(size, 1.0 / size), RESAMPLES) / size
        shares.setflags(write=False)
        found.append(shares)
    return tuple(found)


def _limits(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high)


def _two_way_draws(strata: Sequence[np.ndarray], seed: int) -> np.ndarray:
    """Resampled means of each stratum (seeds, incidents): an array (strata, draws).

    Training seeds are drawn for all strata together, incidents for each stratum. A few seeds vary
    around their own mean by less than around the true one, by sqrt((n - 1) / n), so their
    deviations are stretched by the inverse first.
    """
    seeds, *incidents = resample_shares(seed, len(strata[0]), *(part.shape[1] for part in strata))
    stretch = np.sqrt(len(strata[0]) / max(1, len(strata[0]) - 1))
    means = []
    for part, drawn in zip(strata, incidents, strict=True):
        centre = part.mean(axis=0)
        means.append(((seeds @ (centre + stretch * (part - centre))) * drawn).sum(axis=1))
    return np.stack(means)


def two_way_mean(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Mean over tasks of the mean over training seeds and incidents.

    Every seed plays the same incidents, and both are samples, so both are resampled. Taking each
    seed's episodes for new ones would make the interval far too narrow. One seed is
    `stratified_mean`, which says nothing about other seeds; with three the interval is a little
    narrow still (see `tests/bench/test_intervals.py` for its coverage).

    Args:
        strata: values (seeds, incidents) of each task.
        seed: of the resampling.
    """
    if len(strata[0]) == 1:
        return stratified_mean([part[0] for part in strata], seed)
    checked = checked_samples(strata)
    point, least, most = (
        float(np.mean([statistic(part) for part in checked]))
        for statistic in (np.mean, np.min, np.max)
    )
    if is_constant(checked):
        return Interval(point, point, point)
    low, high = _limits(_two_way_draws(checked, seed).mean(axis=0))
    return Interval(point, max(low, least), min(high, most))  # stretched draws may lie beyond


def two_way_share(scores: np.ndarray, ceiling: np.ndarray, seed: int = 0) -> Interval:
    """Ratio of mean scores: those of training seeds (seeds, incidents) to a ceiling's on the same
    incidents, (incidents,) or (seeds, incidents); resampled as in `two_way_mean`.
    """
    own, top = checked_samples([scores, np.broadcast_to(ceiling, scores.shape)])
    point = float(own.mean() / top.mean())
    draws = [_two_way_draws([part], seed)[0] for part in (own, top)]  # the same draws of both
    return Interval(point, *_limits(draws[0] / draws[1]))


# -- two training recipes ------------------------------------------------------------------------


class Comparison(NamedTuple):
    """A difference of two recipes over training seeds, and the p value of no difference."""

    difference: Interval
    p: float


def compare_recipes(theirs: np.ndarray, ours: np.ndarray, paired: bool) -> Comparison:
    """Mean score of `ours` less `theirs`, with a t interval over training seeds.

    The incidents are the same for all seeds of both, and taken as given: the interval is for other
    seeds on these incidents. Of a single seed nothing is known (nan).

    Args:
        theirs, ours: each seed's mean score, (seeds,).
        paired: whether equal places are runs with the same seed, steps and training incidents;
            otherwise Welch's test.

    Raises:
        ValueError: when paired recipes have different numbers of seeds.
    """
    theirs, ours = np.asarray(theirs, float), np.asarray(ours, float)
    if paired and theirs.shape != ours.shape:
        raise ValueError(
            f"paired recipes need the same seeds, got {theirs.size} and {ours.size}; compare them"
            " unpaired"
        )
    difference = float(ours.mean() - theirs.mean())
    if min(theirs.size, ours.size) < 2:
        return Comparison(Interval(difference, np.nan, np.nan), np.nan)
    sample = [ours - theirs] if paired else [ours, theirs]
    if is_constant(sample):
        return Comparison(Interval(*[difference] * 3), float(difference == 0.0))
    test = ttest_1samp(*sample, 0.0) if paired else ttest_ind(*sample, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return Comparison(Interval(difference, float(low), float(high)), float(test.pvalue))


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """P values adjusted for being a family (Holm 1979), in the same order; nan stays nan."""
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    order = [place for place in np.argsort(p, kind="stable") if not np.isnan(p[place])]
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p[place]))
        adjusted[place] = largest
    return adjusted


def verdict(difference: float, p: float, adjusted: float) -> str:
    """What a comparison shows: `better` or `worse` where its adjusted p value is below 0.05,
    `suggestive` where only the plain one is, else `no significant difference`.
    """
    if np.isnan(p):
        return "one seed"
    if adjusted < 1.0 - LEVEL:
        return "better" if difference > 0.0 else "worse"
    return "suggestive" if p < 1.0 - LEVEL else "no significant difference"


def episodes_needed(deviation: float, gain: float, power: float = 0.8, paired: bool = False) -> int:
    """Episodes in each of two averages (or pairs) with which a two-sided z-test at 5 % sees a gain.

    Args:
        deviation: standard deviation of the scores, or, when `paired`, of the differences.
        gain: true difference of the means, above 0.
        power: chance to see it, in [0.5, 1).
        paired: whether both averages are over the same incidents.
    """
    if not (deviation > 0.0 and gain > 0.0 and 0.5 <= power < 1.0):
        raise ValueError(
            "need a deviation and a gain above 0 and a power in [0.5, 1), got"
            f" {deviation}, {gain} and {power}"
        )
    quantiles = norm.ppf(0.5 + LEVEL / 2.0) + norm.ppf(power)
    return max(2, int(np.ceil((1 if paired else 2) * (deviation * quantiles / gain) ** 2)))


def power_of(deviation: float, gain: float, episodes: int) -> float:
    """Chance that a two-sided z-test at 5 % on two averages of `episodes` sees `gain`."""
    shift, limit = gain / (deviation * np.sqrt(2.0 / episodes)), norm.ppf(0.5 + LEVEL / 2.0)
    return float(norm.sf(limit - shift) + norm.cdf(-limit - shift))


# -- calibration and shares ----------------------------------------------------------------------


def _answers(confidence: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as floats (n,), checked."""
    confidence, correct = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=float)
    if confidence.shape != correct.shape or confidence.size == 0:
        raise ValueError(
            f"need one confidence an answer and at least one, got {confidence.size} and"
            f" {correct.size}"
        )
    if not ((confidence >= 0.0) & (confidence <= 1.0)).all():
        raise ValueError("confidence must lie in [0, 1]; is it a percentage?")
    if not np.isin(correct, (0.0, 1.0)).all():
        raise ValueError("correct must be 0 or 1, or a boolean, for each answer")
    return confidence, correct


def reliability(confidence: np.ndarray, correct: np.ndarray, bins: int = 10) -> pd.DataFrame:
    """Confidence (n,) against accuracy: one row for each of `bins` equal bins that holds an answer.

    Returns:
        Columns `answers`, `confidence` (mean stated), `accuracy` (share right).

    Raises:
        ValueError: unless each answer has a confidence in [0, 1] and is right (1) or wrong (0).
    """
    confidence, correct = _answers(confidence, correct)
    place = np.minimum(bins - 1, (confidence * bins).astype(int))
    table = pd.DataFrame({"bin": place, "confidence": confidence, "accuracy": correct})
    groups = table.groupby("bin")
    means = groups.mean().assign(answers=groups.size())
    return means[["answers", "confidence", "accuracy"]].reset_index(drop=True)


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean gap of confidence and accuracy, bins weighed by answers."""
    table = reliability(confidence, correct, bins)
    gaps = (table["confidence"] - table["accuracy"]).abs()
    return float(np.average(gaps, weights=table["answers"]))


def brier(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Brier score: mean squared difference of confidence and outcome; 0 is best."""
    confidence, correct = _answers(confidence, correct)
    return float(np.mean((confidence - correct) ** 2))


def wilson(share: float, trials: int) -> Interval:
    """A share of `trials` with its 95 % interval by Wilson's score, which holds for few trials and
    for shares of 0 and 1. The share may be a mean of values from 0 to 1: then it is conservative.

    Raises:
        ValueError: for a share outside [0, 1] or no trial.
    """
    if not 0.0 <= share <= 1.0 or trials < 1:
        raise ValueError(f"need a share in [0, 1] of at least 1 trial, got {share} of {trials}")
    z2 = float(norm.ppf(0.5 + LEVEL / 2.0)) ** 2
    middle = (share + z2 / (2.0 * trials)) / (1.0 + z2 / trials)
    deviation = np.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * trials)) / trials)
    half = float(deviation) / (1.0 + z2 / trials)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))
