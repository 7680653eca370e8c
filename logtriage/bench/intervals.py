"""Means over episodes with intervals, comparisons, and calibration.

Intervals are percentile bootstraps (`scipy.stats.bootstrap`), and Wilson's for shares of few cases;
those of several training seeds are in `crossed`.

Estimators follow Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical
precipice": resampling is stratified by task where tasks are averaged, the interquartile mean stands
beside the mean, and comparisons are probabilities of improvement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import bootstrap, norm, trim_mean

from ..play.scoring import PARTS

RESAMPLES = 2000
LEVEL = 0.95
KEYS = ["task", "split", "index"]  # what makes two rows the same incident


class Interval(NamedTuple):
    """A point estimate and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def checked_samples(samples: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The samples as floats.

    `ValueError` for none, one of fewer than two values, or a value that is not finite.
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


def _bootstrap(
    samples: Sequence[np.ndarray],
    statistic: Callable[..., np.ndarray],
    seed: int,
    paired: bool = False,
) -> Interval:
    """Interval of `statistic(*samples, axis)`; samples are resampled each for itself, or together
    when `paired`.
    """
    samples = checked_samples(samples)
    point = float(statistic(*samples, axis=-1))
    if all(np.ptp(sample) == 0.0 for sample in samples):
        return Interval(point, point, point)
    result = bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        paired=paired,
        rng=np.random.default_rng(seed),
    )
    return Interval(
        point, float(result.confidence_interval.low), float(result.confidence_interval.high)
    )


def mean_interval(values: np.ndarray | pd.Series, seed: int = 0) -> Interval:
    """Mean of `values` (n,) over episodes. A constant sample has an interval of no width.

    Raises:
        ValueError: for fewer than two values, or one that is not finite; likewise in every function
            here with an interval.
    """
    return _bootstrap([values], np.mean, seed)


def _pooled_mean(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    means: np.ndarray = np.mean([sample.mean(axis) for sample in samples], axis=0)
    return means


def pooled_iqm(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    """Interquartile mean of all samples together, along `axis`."""
    middle: np.ndarray = trim_mean(np.concatenate(samples, axis), 0.25, axis)
    return middle


def stratified_mean(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Mean over tasks of the mean over episodes; each of `strata`, a task's scores (n,), is
    resampled for itself.
    """
    return _bootstrap(strata, _pooled_mean, seed)


def stratified_iqm(strata: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Interquartile mean of all episodes: mean without the lowest and highest quarter; resampled
    stratum by stratum.
    """
    return _bootstrap(strata, pooled_iqm, seed)


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


def paired_gain(
    before: pd.DataFrame, after: pd.DataFrame, column: str = "score", seed: int = 0
) -> Interval:
    """Mean of `after - before` on the same incidents, with its interval; errors as `matched`.

    Args:
        before, after: rollout frames; rows are matched by (task, split, index).
        column: what to compare.
    """
    left, right = matched(before, after, column)
    return mean_interval(right - left, seed)


def share_of_ceiling(scores: pd.DataFrame, ceiling: pd.DataFrame, seed: int = 0) -> Interval:
    """Ratio of mean scores on the same incidents, with its interval; errors as `matched`, or for a
    ceiling of mean 0.
    """
    top, own = matched(ceiling, scores)
    if top.mean() == 0.0:
        raise ValueError("a share needs a ceiling above 0, got mean score 0")
    return _bootstrap(
        [own, top], lambda x, y, axis=-1: x.mean(axis) / y.mean(axis), seed, paired=True
    )


def probability_of_improvement(before: np.ndarray, after: np.ndarray, seed: int = 0) -> Interval:
    """Chance that an episode of `after` (m,) scores above one of `before` (n,), ties half:
    Mann-Whitney U over n m.
    """
    before, after = checked_samples([before, after])
    values, ranks = np.unique(np.concatenate([before, after]), return_inverse=True)

    def counts(sample: np.ndarray) -> np.ndarray:
        """How often each rank occurs in each row."""
        rows = (
            sample.reshape(-1, sample.shape[-1]).astype(int)
            + len(values) * np.arange(sample[..., 0].size)[:, None]
        )
        return np.bincount(rows.ravel(), minlength=len(values) * len(rows)).reshape(
            *sample.shape[:-1], len(values)
        )

    def share(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        worse, better = counts(x), counts(y)
        wins = ((np.cumsum(worse, axis) - 0.5 * worse) * better).sum(axis)
        chance: np.ndarray = wins / (x.shape[axis] * y.shape[axis])
        return chance

    return _bootstrap([ranks[: before.size], ranks[before.size :]], share, seed)


def summarise(
    frame: pd.DataFrame, by: tuple[str, ...] = ("task", "policy"), column: str = "score"
) -> pd.DataFrame:
    """A row a group, in order of appearance: episodes, mean, low, high of `column`. Episodes
    without a value are left out, and counted in a column `errors` where there are any.
    """
    rows, failed = [], frame[column].isna()
    for key, group in frame.groupby(list(by), sort=False):
        values = group[column].dropna()
        mean, low, high = mean_interval(values)
        rows.append(
            {
                **dict(zip(by, key, strict=True)),
                "episodes": len(values),
                **({"errors": len(group) - len(values)} if failed.any() else {}),
                "mean": mean,
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows)


def score_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Rollouts for reading: a row a policy and task, the score with its interval, parts and steps,
    all as text.

    Several attempts at an incident are one value, their mean. Episodes without a score are left
    out, and counted in a column `errors` where there are any.
    """
    rows, failed = [], frame["score"].isna()
    for (name, task), group in frame.groupby(["policy", "task"], sort=False):
        played = group[group["score"].notna()]
        incidents = played.groupby(KEYS, sort=False)["score"].mean()
        rows.append(
            {
                "policy": name,
                "task": task,
                **({"errors": len(group) - len(played)} if failed.any() else {}),
                "score": str(mean_interval(incidents)) if len(incidents) > 1 else "-",
                **{part: f"{played[part].mean():.2f}" for part in PARTS},
                "steps": f"{played['steps'].mean():.1f}",
            }
        )
    return pd.DataFrame(rows)


def _answers(confidence: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as floats (n,).

    `ValueError` unless each answer has a confidence in [0, 1] and is right (1) or wrong (0).
    """
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
    """Confidence (n,) against accuracy: a row for each of `bins` equal bins of [0, 1] that holds
    any answer.

    Returns:
        Columns `answers`, `confidence` (mean stated), `accuracy` (share right).

    Raises:
        ValueError: unless each answer has a confidence in [0, 1] and is right (1) or wrong (0).
    """
    confidence, correct = _answers(confidence, correct)
    place = np.minimum(bins - 1, (confidence * bins).astype(int))
    table = pd.DataFrame({"bin": place, "confidence": confidence, "accuracy": correct}).groupby(
        "bin"
    )
    return (
        table.mean()
        .assign(answers=table.size())[["answers", "confidence", "accuracy"]]
        .reset_index(drop=True)
    )


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean gap of confidence and accuracy, bins weighed by answers;
    errors as `reliability`.
    """
    table = reliability(confidence, correct, bins)
    return float(
        np.average((table["confidence"] - table["accuracy"]).abs(), weights=table["answers"])
    )


def brier(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Brier score: mean squared difference of confidence and outcome. 0 is best, 0.25 a coin that
    says so.

    Raises:
        ValueError: as `reliability`.
    """
    confidence, correct = _answers(confidence, correct)
    return float(np.mean((confidence - correct) ** 2))


def wilson(share: float, trials: int) -> Interval:
    """A share of `trials` with its 95 % interval by Wilson's score, which holds for few trials and
    for shares of 0 and 1. The share may be a mean over trials, each from 0 to 1: then the interval
    is wide rather than narrow.

    Raises:
        ValueError: for a share outside [0, 1] or no trial.
    """
    if not 0.0 <= share <= 1.0 or trials < 1:
        raise ValueError(f"need a share in [0, 1] of at least 1 trial, got {share} of {trials}")
    z2 = float(norm.ppf(0.5 + LEVEL / 2.0)) ** 2
    middle = (share + z2 / (2.0 * trials)) / (1.0 + z2 / trials)
    spread = np.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * trials)) / trials)
    half = float(spread) / (1.0 + z2 / trials)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))
