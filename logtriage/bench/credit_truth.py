"""How well estimators of credit know what a call was worth: their advantages beside those that
forks measured (see `training.forks`).

The frame has a row a call, and a column `credit_<name>` an estimator. The truth of a call is
`value_after - value_before`. It is itself an estimate, with the error variance
`error_before**2 + error_after**2`, which is subtracted wherever it would be taken for variance of
the truth. Calls of one incident share forks and luck, so intervals resample incidents: the
percentile bootstrap of clusters.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .intervals import LEVEL, RESAMPLES, mean_interval

INCIDENT = ["task", "index"]  # what makes two rows the same incident of `train`
PREFIX = "credit_"
# What `compare_credits` tells of an estimator, in the order of its columns.
MEASURES = ("correlation", "corrected", "bias", "slope", "deviation")


def estimators(frame: pd.DataFrame) -> list[str]:
    """Names of the estimators that the frame has columns of.

    Raises:
        ValueError: when there is none.
    """
    names = [name.removeprefix(PREFIX) for name in frame.columns if name.startswith(PREFIX)]
    if not names:
        raise ValueError(f"the frame has no column {PREFIX}<name>; add an estimator's advantages")
    return names


def true_advantages(frame: pd.DataFrame) -> pd.Series:
    """Each call's advantage, as the forks measured it."""
    return frame["value_after"] - frame["value_before"]


def compare_credits(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Each estimator beside the truth: on all calls, in either half of the episodes, and by action.

    With t the measured truth, e the estimate, noise the mean error variance of t, and means over
    calls, the measures are

    | measure | what |
    |---|---|
    | `correlation` | of e and t |
    | `corrected` | that over the root of the reliability: of e and a truth without noise |
    | `bias` | mean(e) - mean(t), as it is paid out, without any scale |
    | `slope` | cov(e, t) / var(e): what a call is worth on average, for each 1 that it is given |
    | `deviation` | mean((c e - t)**2) - noise, c the factor for which it is least |

    The `deviation` is around a truth without noise, in squared rewards. A factor that is the same
    for all calls only changes the learning rate, so it is none of an estimator's errors; a
    constant is, so c goes with no intercept. An estimator that says 0 everywhere has the mean
    squared truth, `square`, and one that is perfect has 0, both but for chance.

    The reliability of the truth is 1 - noise / var(t). Where it is not above 0 there is nothing to
    correct, and where e or t never differ no correlation or slope: these are nan. For chance,
    `corrected` may pass 1.

    Returns:
        A row an estimator and part: `estimator`, `by` (`all`, `half`, `action`), `part` (`all`;
        `first` or `second` half of the episode's calls, the middle one in the first; the action,
        `invalid` for a call that was none), `calls`, `incidents`, `reliability`, `square`, and each
        of `MEASURES` with its 95 % bootstrap interval (`<measure>_low`, `<measure>_high`; nan for
        fewer than two incidents).
    """
    names = estimators(frame)
    half = np.where(2 * frame["call"] < frame["calls"], "first", "second")
    parts = {"all": pd.Series("all", frame.index), "half": pd.Series(half, frame.index)}
    parts["action"] = frame["action"].replace("", "invalid")
    rows = []
    for by, part in parts.items():
        for value, rows_of_part in frame.groupby(part, sort=True):
            for name in names:
                row = {"estimator": name, "by": by, "part": value}
                rows.append({**row, **_compared(rows_of_part, PREFIX + name, seed)})
    return pd.DataFrame(rows)


def _compared(calls: pd.DataFrame, column: str, seed: int) -> dict[str, float]:
    """What `compare_credits` tells of one estimator on these calls."""
    truth, given = true_advantages(calls), calls[column]
    # All measures follow from sums over calls, so a resampled incident is one weighted row.
    terms = pd.DataFrame(
        {
            "calls": 1.0,
            "truth": truth,
            "given": given,
            "truth squared": truth**2,
            "given squared": given**2,
            "product": truth * given,
            "noise": calls["error_before"] ** 2 + calls["error_after"] ** 2,
        }
    )
    sums = terms.groupby([calls[key] for key in INCIDENT], sort=True).sum().to_numpy()
    incidents = len(sums)
    point = _measures(sums.sum(axis=0))
    told = {
        "calls": len(calls),
        "incidents": incidents,
        **{name: float(point[name]) for name in ("reliability", "square")},
    }
    drawn = None
    if incidents > 1:
        shares = np.full(incidents, 1.0 / incidents)
        weights = np.random.default_rng(seed).multinomial(incidents, shares, RESAMPLES)
        drawn = _measures(weights @ sums)
    for name in MEASURES:
        told[name] = float(point[name])
        ends = (np.nan, np.nan) if drawn is None else _limits(drawn[name])
        told[f"{name}_low"], told[f"{name}_high"] = ends
    return told


def _limits(draws: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of draws, of which those without a value are left out."""
    draws = draws[np.isfinite(draws)]
    if not len(draws):
        return np.nan, np.nan
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high)


def _measures(sums: np.ndarray) -> dict[str, np.ndarray]:
    """`MEASURES`, `reliability` and `square` from sums (..., 7) in the order of `_compared`."""
    means = sums / sums[..., :1]
    _, truth, given, truth2, given2, product, noise = np.moveaxis(means, -1, 0)
    spread, spread_given = _above_rounding(truth2, truth), _above_rounding(given2, given)
    together = product - truth * given
    with np.errstate(divide="ignore", invalid="ignore"):
        reliability = 1.0 - noise / spread
        correlation = together / np.sqrt(spread * spread_given)
        corrected = correlation / np.sqrt(np.where(reliability > 0.0, reliability, np.nan))
        slope = together / spread_given
        # the least squares of one factor; an estimate of nothing but 0 explains nothing
        explained = np.where(given2 > 0.0, product**2 / given2, 0.0)
    return {
        "reliability": reliability,
        "square": truth2 - noise,
        "correlation": correlation,
        "corrected": corrected,
        "bias": given - truth,
        "slope": slope,
        "deviation": truth2 - explained - noise,
    }


def _above_rounding(squares: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Variance from the mean square and the mean; nan where it is nothing but rounding."""
    variance = squares - means**2
    return np.where(variance > 1e-12 * np.maximum(squares, 1e-12), variance, np.nan)


def baseline_bias(frame: pd.DataFrame) -> pd.DataFrame:
    """What a baseline of those that went on takes for granted, by the number of the call.

    A baseline that is the mean over those of the group that made a call of number k compares them
    with each other alone. That they went on at all was the policy's own doing, and whatever it was
    worth is in that baseline, and in nobody's advantage. So the mean value before call k of the
    episodes that made it is compared with the mean over all of the group, in which an episode that
    has ended has its reward: the `difference` is the mean advantage that is lost.

    An episode without a call is in no row, and so in no mean.

    Returns:
        A row a call number, over the incidents where somebody made it: `call` (from 0),
        `incidents`, `episodes` (that made it), `share` (of those there), and the means over
        incidents of `value_on`, `value_all` and `difference` with its 95 % bootstrap interval over
        incidents (`difference_low`, `difference_high`; nan for one).
    """
    keys = [*INCIDENT, "episode"]
    rewards = frame.groupby(keys)["reward"].first()
    sizes = rewards.groupby(INCIDENT).size()
    rows = []
    for call, going in frame.groupby("call", sort=True):
        values = going.set_index(keys)["value_before"]
        on = values.groupby(INCIDENT).mean()
        everybody = values.reindex(rewards.index).fillna(rewards).groupby(INCIDENT).mean()
        everybody = everybody[on.index]
        difference = on - everybody
        low = high = np.nan
        if len(on) > 1:
            _, low, high = mean_interval(difference)
        rows.append(
            {
                "call": call,
                "incidents": len(on),
                "episodes": len(going),
                "share": len(going) / sizes[on.index].sum(),
                "value_on": on.mean(),
                "value_all": everybody.mean(),
                "difference": difference.mean(),
                "difference_low": low,
                "difference_high": high,
            }
        )
    return pd.DataFrame(rows)
