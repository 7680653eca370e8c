"""Means with 95 % intervals, and comparisons of training recipes.

| what is compared | interval |
|---|---|
| episodes of one policy | percentile bootstrap over incidents, stratified by task |
| an agent of several training seeds | two-way bootstrap: seeds and incidents are both resampled |
| two training recipes | t over the means of seeds; Holm over a table's rows |
| a share of few cases | Wilson's |

The bootstrap follows Agarwal et al. 2021, "Deep reinforcement learning at the edge of the
statistical precipice"; the two-way bootstrap follows Owen 2007, "The pigeonhole bootstrap".
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import bootstrap, norm, ttest_1samp, ttest_ind

RESAMPLES = 2000
LEVEL = 0.95
KEYS = ["task", "split", "index"]  # what makes two rows the same incident

Strata: TypeAlias = Sequence[np.ndarray]  # for each task, values (seeds, incidents)


class Interval(NamedTuple):
    """A point estimate and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """`f"{interval:.2f}"` is "0.50 [0.41, 0.59]"; without a spec there are three decimals."""
        spec = spec or ".3f"  # z: no negative zero; of a limit it says on which side of 0 it is
        return f"{self.mean:z{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


def _checked(samples: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the samples as floats; `ValueError` if one is too small or not finite."""
    samples = [np.asarray(sample, dtype=float) for sample in samples]
    sizes = [sample.size for sample in samples]
    if min(sizes, default=0) < 2 or not all(np.isfinite(sample).all() for sample in samples):
        raise ValueError(
            f"an interval needs at least 2 episodes a sample and finite values, got {sizes} "
            "episodes; play more, or drop those without a score"
        )
    return samples


def _is_constant(samples: Sequence[np.ndarray]) -> bool:
    return all(np.ptp(sample) == 0.0 for sample in samples)


def range_of(counts: pd.Series) -> str:
    """The least and the largest of some counts: `40`, or `24 to 40`."""
    return " to ".join(map(str, sorted({counts.min(), counts.max()})))


# -- over incidents ------------------------------------------------------------------------------


def _bootstrap(
    samples: Sequence[np.ndarray], statistic: Callable[..., np.ndarray], paired: bool = False
) -> Interval:
    """Interval of `statistic(*samples, axis)`; `paired` samples are resampled together."""
    samples = _checked(samples)
    point = float(statistic(*samples, axis=-1))
    if _is_constant(samples):
        return Interval(point, point, point)
    ends = bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        paired=paired,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Interval(point, float(ends.low), float(ends.high))


def mean_interval(*strata: np.ndarray | pd.Series) -> Interval:
    """Mean over tasks of the mean over episodes. `strata` are each task's scores (n,), or those of
    one task alone; constant ones have an interval of no width.
    """
    return _bootstrap(strata, lambda *parts, axis: np.mean([x.mean(axis) for x in parts], axis=0))


def matched(before: pd.DataFrame, after: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of two rollout frames with their incidents in the same order. `ValueError`
    unless both hold the same incidents, once each.
    """
    left, right = (frame.set_index(KEYS)["score"].sort_index() for frame in (before, after))
    if not left.index.equals(right.index) or not left.index.is_unique:
        raise ValueError(
            "before and after must hold the same incidents once each; play both on the same ones"
        )
    return left.to_numpy(float), right.to_numpy(float)


def share_of_reference(scores: np.ndarray, reference: np.ndarray) -> Interval:
    """Ratio of mean scores (n,) on the same incidents."""
    return _bootstrap([scores, reference], lambda x, y, axis: x.mean(axis) / y.mean(axis), True)


# -- over training seeds and incidents -----------------------------------------------------------


@lru_cache(maxsize=16)  # tables reuse the same draws, and drawing takes longest
def _resample_shares(*sizes: int) -> tuple[np.ndarray, ...]:
    """Resample a sample of each size, and return how large a share each value has in each of the
    `RESAMPLES` draws: arrays (draws, size) whose rows sum to 1. They are shared and so read-only.
    """
    random, resampled = np.random.default_rng(0), []
    for size in sizes:
        shares = random.multinomial(size, np.full(size, 1.0 / size), RESAMPLES) / size
        shares.setflags(write=False)
        resampled.append(shares)
    return tuple(resampled)


def _limits(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high)


def _two_way_draws(strata: Strata) -> np.ndarray:
    """Resampled means of each stratum, (strata, draws). All strata share the draws of seeds. The
    values of n seeds vary less around their own mean than around the true one, by sqrt((n - 1) /
    n), so their deviations are first stretched by the inverse.
    """
    seeds, *incidents = _resample_shares(len(strata[0]), *(part.shape[1] for part in strata))
    stretch = np.sqrt(len(strata[0]) / max(1, len(strata[0]) - 1))
    means = []
    for part, drawn in zip(strata, incidents, strict=True):
        centre = part.mean(axis=0)
        means.append(((seeds @ (centre + stretch * (part - centre))) * drawn).sum(axis=1))
    return np.stack(means)


def two_way_mean(strata: Strata) -> Interval:
    """Mean over tasks of the mean over training seeds and incidents.

    Seeds play the same incidents, so counting their episodes as new ones would make the interval
    far too narrow. For one seed this is `mean_interval`, which says nothing about other seeds;
    with three the interval is still a little narrow (`tests/lab/bench/test_intervals.py`).
    """
    if len(strata[0]) == 1:
        return mean_interval(*(part[0] for part in strata))
    checked = _checked(strata)
    point, least, most = (
        float(np.mean([statistic(part) for part in checked]))
        for statistic in (np.mean, np.min, np.max)
    )
    if _is_constant(checked):
        return Interval(point, point, point)
    low, high = _limits(_two_way_draws(checked).mean(axis=0))
    return Interval(point, max(low, least), min(high, most))  # stretched draws may lie outside


def two_way_share(scores: np.ndarray, reference: np.ndarray) -> Interval:
    """Mean of `scores` (seeds, incidents) over the mean of `reference` (incidents,) on the same
    incidents. Resampled as in `two_way_mean`.
    """
    own, top = _checked([scores, np.broadcast_to(reference, scores.shape)])
    point = float(own.mean() / top.mean())
    draws = [_two_way_draws([part])[0] for part in (own, top)]  # both use the same draws
    return Interval(point, *_limits(draws[0] / draws[1]))


def seed_scores(frames: Sequence[pd.DataFrame], task: str, policy: str) -> np.ndarray:
    """A policy's scores (seeds, incidents) on a task, from one frame per training seed."""
    own = [frame[(frame["task"] == task) & (frame["policy"] == policy)] for frame in frames]
    columns = [frame.set_index("index")["score"].sort_index() for frame in own]
    return np.asarray(pd.concat(columns, axis=1), dtype=float).T


def seed_means(strata: Strata) -> np.ndarray:
    """Each seed's mean over tasks: (seeds,)."""
    return np.asarray(np.mean([part.mean(axis=1) for part in strata], axis=0))


def before_and_after(before: Strata, after: Strata) -> dict[str, Any]:
    """Summarise training: `base`, `trained` and the paired `gain`, each a `two_way_mean`, and
    `smallest_gain`, the smallest gain of any seed.
    """
    gained = [y - x for x, y in zip(before, after, strict=True)]
    sides = {"base": before, "trained": after, "gain": gained}
    intervals = {name: two_way_mean(strata) for name, strata in sides.items()}
    return {**intervals, "smallest_gain": float(seed_means(gained).min())}


# -- two training recipes ------------------------------------------------------------------------


def compare_recipes(theirs: np.ndarray, ours: np.ndarray, paired: bool) -> tuple[Interval, float]:
    """Mean of `ours` minus `theirs`, both (seeds,), with a t interval over training seeds, and the
    p value of no difference; interval and p value are nan if either has one seed.

    The incidents are taken as given: the interval is for other seeds on these incidents. If
    `paired`, seeds pair by place (see `sweep_tables.trained_alike`); if not, it is Welch's test.
    """
    difference = float(ours.mean() - theirs.mean())
    if min(theirs.size, ours.size) < 2:
        return Interval(difference, np.nan, np.nan), np.nan
    sample = [ours - theirs] if paired else [ours, theirs]
    if _is_constant(sample):
        return Interval(*[difference] * 3), float(difference == 0.0)
    test = ttest_1samp(*sample, 0.0) if paired else ttest_ind(*sample, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return Interval(difference, float(low), float(high)), float(test.pvalue)


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust the p values of a family (Holm 1979); their order is kept, and nan stays nan."""
    p = pd.Series(np.asarray(p_values, dtype=float))
    ordered = p.dropna().sort_values(kind="stable")
    scaled = np.arange(len(ordered), 0, -1) * ordered
    return np.asarray(scaled.cummax().clip(upper=1.0).reindex(p.index))


def verdict(difference: float, p: float, adjusted: float) -> str:
    """Put a comparison into words: `better` or `worse` if its adjusted p value is below 0.05,
    `suggestive` if only the plain one is, else `no significant difference`; `one seed` if p is nan.
    """
    if np.isnan(p):
        return "one seed"
    if adjusted < 1.0 - LEVEL:
        return "better" if difference > 0.0 else "worse"
    return "suggestive" if p < 1.0 - LEVEL else "no significant difference"


# -- shares ----------------------------------------------------------------------------------------


def wilson(share: float, trials: int) -> Interval:
    """A share of `trials` with its 95 % interval by Wilson's score, which holds for few trials and
    for shares of 0 and 1. If the share is a mean of values from 0 to 1, it is conservative.
    """
    z2 = float(norm.ppf(0.5 + LEVEL / 2.0)) ** 2
    middle = (share + z2 / (2.0 * trials)) / (1.0 + z2 / trials)
    deviation = np.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * trials)) / trials)
    half = float(deviation) / (1.0 + z2 / trials)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))
