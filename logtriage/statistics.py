"""Means with intervals. Bootstrap throughout (`scipy.stats.bootstrap`, percentile method, fixed seed)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

RESAMPLES = 2000
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_interval(values: np.ndarray | pd.Series, seed: int = 0) -> Interval:
    """Mean of `values` (n,) over episodes. A constant sample has an interval of no width.

    Raises:
        ValueError: for fewer than two values; one episode has no interval.
    """
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        raise ValueError(f"an interval needs at least 2 episodes, got {values.size}")
    if np.ptp(values) == 0.0:
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    result = bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return Interval(float(values.mean()), float(result.confidence_interval.low), float(result.confidence_interval.high))


def paired_gain(before: pd.DataFrame, after: pd.DataFrame, column: str = "score", seed: int = 0) -> Interval:
    """Mean of `after - before` on the same incidents, with its interval.

    Args:
        before, after: rollout frames; rows are matched by (task, split, index).
        column: what to compare.

    Raises:
        ValueError: when the frames do not hold the same incidents, once each.
    """
    keys = ["task", "split", "index"]
    left, right = (frame.set_index(keys)[column].sort_index() for frame in (before, after))
    if not left.index.equals(right.index) or not left.index.is_unique:
        raise ValueError("before and after must hold the same incidents once each; roll both out on the same ones")
    return mean_interval((right - left).to_numpy(), seed)


def summarise(frame: pd.DataFrame, by: tuple[str, ...] = ("task", "policy"), column: str = "score") -> pd.DataFrame:
    """A row a group, in order of appearance: episodes, mean, low, high of `column`."""
    rows = []
    for key, group in frame.groupby(list(by), sort=False):
        mean, low, high = mean_interval(group[column])
        rows.append({**dict(zip(by, key, strict=True)), "episodes": len(group), "mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows)
