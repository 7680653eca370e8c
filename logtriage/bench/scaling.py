"""A law of scaling, fitted to a ladder of sizes, and what it is worth beyond them.

    points = sized_scores(frame, sizes)  # `analysis.gather`'s frame, and a table of what each cost
    law = fit_law(points)  # ceiling - score = a * N^-b
    extrapolation(law)  # 7e9 and 32e9, and how far beyond the largest measured size they are

Fitted is what is missing to the ceiling, the score of `belief` on the same incidents, since scores
end there: log(ceiling - score) is linear in log N, by least squares on the means of the sizes.
Uncertainty is bootstrapped: seeds are resampled within each size, since each size has its own, and
incidents, where their scores are given, for all sizes together, since they are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .crossed import resample_counts
from .figure import Picture, label_ends, new_figure
from .intervals import KEYS, LEVEL, Interval
from .learning_plots import seeds_said
from .palette import policy_colour, words

CEILING = "belief"
CARD_SIZES = (7e9, 32e9)  # for which the model card that this project starts from projects
FEWEST_SIZES = 3  # a line through two has no error
# The least that a resample may miss to the ceiling: its logarithm is needed, and a few incidents
# that are drawn again and again may exceed the ceiling by chance.
LEAST_GAP = 1e-3
FLOORS = np.linspace(0.0, 0.995, 200)  # of the least gap, where a saturating law may end
LAWS = ("constant", "power", "saturating")  # from the simplest on
AXES = {
    "parameters": "parameters of the model",
    "episodes": "training episodes",
    "cpu_seconds": "CPU seconds, of the base and of training",
}

Fit = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Law:
    """ceiling - score = a * N^-b, fitted.

    Attributes:
        by: what N is, a column of the points.
        ceiling: mean score of the ceiling.
        a, b: with 95 % intervals; a at N = 1 tells little, far from all data.
        sizes: the measured N, rising (sizes,).
        gaps: measured means of ceiling - score (sizes,).
        draws: log(a) and b of each resample (draws, 2).
        scatter: standard deviation of log(gap) around the law, with sizes - 2 degrees of freedom.
        resampled: what was: "seeds", "incidents", or "seeds and incidents".
        errors: law to its leave-one-size-out error: root mean square of predicted less measured
            score of a size from all others; nan where a law needs more sizes.
    """

    by: str
    ceiling: float
    a: Interval
    b: Interval
    sizes: np.ndarray
    gaps: np.ndarray
    draws: np.ndarray
    scatter: float
    resampled: str
    errors: dict[str, float]

    @property
    def favoured(self) -> str:
        """The law of the least leave-one-size-out error; with four sizes a hint, no more."""
        known = {name: error for name, error in self.errors.items() if not np.isnan(error)}
        return min(known, key=known.__getitem__)

    def __str__(self) -> str:
        low, high = self.sizes[0], self.sizes[-1]
        return (
            f"{self.ceiling:.3f} - score = a N^-b, N {words(self.by)} from {low:,.0f} to"
            f" {high:,.0f}: b = {self.b}, a = {self.a.mean:.3g} [{self.a.low:.3g},"
            f" {self.a.high:.3g}] ({self.resampled} resampled)"
        )


def sized_scores(frame: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Held-out scores of a ladder, each with its size, its cost and the ceiling.

    Args:
        frame: from `analysis.gather`; `belief` must have played the same incidents.
        sizes: a row a point: row, seed, parameters, episodes, cpu_seconds (of training) and
            base_cpu_seconds.

    Returns:
        A row an incident of a point: row, seed, parameters, episodes, cpu_seconds (base and
        training together), task, split, index, score, ceiling.

    Raises:
        ValueError: for a point without its size, or an incident without its ceiling.
    """
    coordinates = ["row", "seed", *KEYS, "score"]
    frame = frame.astype({"row": str, "task": str, "split": str})
    top = frame.loc[frame["policy"] == CEILING, [*KEYS, "score"]]
    trained = frame.loc[frame["policy"] == "trained", coordinates]
    costs = sizes.assign(cpu_seconds=sizes["cpu_seconds"] + sizes["base_cpu_seconds"])
    costs = costs[["row", "seed", "parameters", "episodes", "cpu_seconds"]].astype({"row": str})
    points = trained.merge(costs, how="left", on=["row", "seed"], validate="m:1").merge(
        top.rename(columns={"score": "ceiling"}), how="left", on=KEYS, validate="m:1"
    )
    for name, lack in (("parameters", "a size"), ("ceiling", f"the score of {CEILING}")):
        if points[name].isna().any():
            first = points[points[name].isna()].iloc[0]
            raise ValueError(
                f"{first['row']} seed {first['seed']}, {first['task']} {first['index']} has not"
                f" {lack}; measure it first"
            )
    return points


def _cells(points: pd.DataFrame, by: str) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """The sizes, rising (sizes,), and of each what its scores miss to the ceiling, an array (seeds,
    incidents) a task.
    """
    lacking = {by, "seed", "score", "ceiling"} - set(points.columns)
    if lacking:
        raise ValueError(f"points need the columns {sorted(lacking)}; see `sized_scores`")
    group = "parameters" if "parameters" in points else by
    points = points.assign(gap=points["ceiling"] - points["score"])
    for name in {"task", "split", "index"} - set(points.columns):
        points = points.assign(**{name: 0})
    found: list[tuple[float, dict[Hashable, pd.DataFrame]]] = []
    for _, part in points.groupby(group):
        tables = {
            task: own.pivot(index="seed", columns=["split", "index"], values="gap").sort_index(
                axis=1
            )
            for task, own in part.groupby("task")
        }
        if any(table.isna().any(axis=None) for table in tables.values()):
            raise ValueError(f"the seeds of {group} {part[group].iloc[0]} have other incidents")
        found.append((float(part[by].mean()), tables))
    found.sort(key=lambda one: one[0])
    sizes = np.array([size for size, _ in found])
    played = [[(task, *table.columns) for task, table in tables.items()] for _, tables in found]
    others = [size for size, one in zip(sizes, played, strict=True) if one != played[0]]
    if others:
        raise ValueError(
            f"all sizes need the same incidents, but {others[0]:,.0f} {by} have others than "
            f"{sizes[0]:,.0f}; evaluate both on the same ones"
        )
    if len(np.unique(sizes)) < FEWEST_SIZES:
        raise ValueError(f"a law needs {FEWEST_SIZES} different {by}, got {list(np.unique(sizes))}")
    return sizes, [[table.to_numpy(float) for table in tables.values()] for _, tables in found]


def _resampled_gaps(cells: list[list[np.ndarray]], seed: int) -> np.ndarray:
    """Mean gap of each size in each resample: (draws, sizes). Seeds are drawn for each size and for
    all its tasks together, incidents for each task and all sizes together.

    n seeds spread less around their own mean than around the true one, by sqrt((n - 1) / n), which
    of three or four is much; they are spread that much wider before they are drawn.
    """
    counts = (parts[0].shape[0] for parts in cells)
    incidents = (part.shape[1] for part in cells[0])
    drawn = [one / one.shape[1] for one in resample_counts(seed, *counts, *incidents)]
    columns = []
    for parts, seeds in zip(cells, drawn, strict=False):  # first those of seeds, a size each
        count = len(parts[0])
        wider = np.sqrt(count / max(1, count - 1))
        means = [
            ((seeds @ (centre + wider * (part - centre))) * often).sum(axis=1)
            for part, often in zip(parts, drawn[len(cells) :], strict=True)
            for centre in [part.mean(axis=0)]
        ]
        columns.append(np.mean(means, axis=0))
    return np.stack(columns, axis=1)


def fit_law(points: pd.DataFrame, by: str = "parameters", seed: int = 0) -> Law:
    """Fit ceiling - score = a * N^-b, with its uncertainty, and compare it with other laws.

    With three to five seeds a size, the intervals of a and b hold the truth nine times in ten (in a
    simulation, 0.89; 0.93 with ten): they are a little narrow.

    Args:
        points: from `sized_scores`, or a row a (parameters, seed), a task or not, with the columns
            score and ceiling. With `index` a row is an incident, and incidents are resampled too.
        by: the column that N is; the mean of a size where its points differ.
        seed: of the bootstrap.

    Raises:
        ValueError: for fewer than three sizes, incidents that differ, nothing to resample, or a
            size whose mean is not below the ceiling.
    """
    sizes, cells = _cells(points, by)
    gaps = np.array([np.mean([part.mean() for part in parts]) for parts in cells])
    if gaps.min() < LEAST_GAP:
        at = sizes[gaps.argmin()]
        raise ValueError(f"at {at:,.0f} {by} the ceiling is reached; nothing is left to a law")
    ways = {
        "seeds": any(len(parts[0]) > 1 for parts in cells),
        "incidents": any(part.shape[1] > 1 for part in cells[0]),
    }
    if not any(ways.values()):
        raise ValueError("nothing to resample: give several seeds a size, or each incident's score")
    draws = _lines(np.log(sizes), np.log(np.maximum(_resampled_gaps(cells, seed), LEAST_GAP)))
    log_a, b = _lines(np.log(sizes), np.log(gaps)[None])[0]
    residuals = np.log(gaps) - (log_a - b * np.log(sizes))
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)
    by_task = points.groupby("task") if "task" in points else points.groupby(lambda _: 0)
    return Law(
        by=by,
        ceiling=float(by_task["ceiling"].mean().mean()),
        a=Interval(*(float(np.exp(value)) for value in (log_a, low[0], high[0]))),
        b=Interval(float(b), float(low[1]), float(high[1])),
        sizes=sizes,
        gaps=gaps,
        draws=draws,
        scatter=float(np.sqrt((residuals**2).sum() / (len(sizes) - 2))),
        resampled=" and ".join(name for name, done in ways.items() if done),
        errors={name: _left_out_error(name, sizes, gaps) for name in LAWS},
    )


def _lines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares of `y` (draws, sizes) on `x` (sizes,): intercepts and falls (draws, 2)."""
    centred = x - x.mean()
    fall = -(y @ centred) / (centred**2).sum()
    return np.stack([y.mean(axis=1) + fall * x.mean(), fall], axis=1)


def _fit_constant(sizes: np.ndarray, gaps: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    level = np.exp(np.log(gaps).mean())
    return lambda at: np.full(np.shape(at), level)


def _fit_power(sizes: np.ndarray, gaps: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    log_a, b = _lines(np.log(sizes), np.log(gaps)[None])[0]
    return lambda at: np.exp(log_a - b * np.log(at))


def _fit_saturating(sizes: np.ndarray, gaps: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """a * N^-b + c: a power law of what is above c, for the c of a grid from 0 to just below the
    least gap that leaves the least error on logs.
    """
    floors = gaps.min() * FLOORS[:, None]
    log_a, b = _lines(np.log(sizes), np.log(gaps - floors)).T[:, :, None]
    fitted = np.exp(log_a - b * np.log(sizes)) + floors
    best = ((np.log(fitted) - np.log(gaps)) ** 2).sum(axis=1).argmin()
    return lambda at: np.exp(log_a[best] - b[best] * np.log(at)) + floors[best]


FITS: dict[str, tuple[Fit, int]] = {  # and how many parameters each has
    "constant": (_fit_constant, 1),
    "power": (_fit_power, 2),
    "saturating": (_fit_saturating, 3),
}


def _left_out_error(name: str, sizes: np.ndarray, gaps: np.ndarray) -> float:
    """Root mean square error of a law that predicts each size from all others; nan where those are
    fewer than its parameters.
    """
    fit, parameters = FITS[name]
    if len(sizes) - 1 < parameters:
        return float("nan")
    errors = []
    for at in range(len(sizes)):
        others = np.arange(len(sizes)) != at
        predicted = fit(sizes[others], gaps[others])(sizes[at : at + 1])
        errors.append(predicted[0] - gaps[at])
    return float(np.sqrt(np.mean(np.square(errors))))


def predict(law: Law, sizes: Sequence[float] | np.ndarray) -> pd.DataFrame:
    """The law's score at each size, with a 95 % prediction interval for the mean of a new size: of
    a and b as resampled, and of how measured sizes scatter around the law (t-distributed, since
    there are few).

    Returns:
        A row a size: its N under the name `law.by`, score, low, high.
    """
    x = np.log(np.asarray(sizes, dtype=float))
    scatter = law.scatter * np.random.default_rng(0).standard_t(
        len(law.sizes) - 2, (len(law.draws), 1)
    )
    drawn = law.draws[:, :1] - law.draws[:, 1:] * x + scatter
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)
    fitted = np.log(law.a.mean) - law.b.mean * x
    # The larger the gap, the lower the score; below zero no score can be.
    score, worst, best = (np.maximum(law.ceiling - np.exp(gap), 0.0) for gap in (fitted, high, low))
    return pd.DataFrame(
        {law.by: np.asarray(sizes, dtype=float), "score": score, "low": worst, "high": best}
    )


def extrapolation(law: Law, sizes: Sequence[float] = CARD_SIZES) -> pd.DataFrame:
    """`predict` beyond what was measured, with the factor by which each size exceeds the largest
    that was: a law that is fitted over a factor of thirty says nothing of a thousand times more,
    whatever its interval, which knows only of its own kind of error.
    """
    table = predict(law, sizes)
    return table.assign(factor=table[law.by] / law.sizes.max())


def plot_scaling(points: pd.DataFrame, law: Law) -> Picture:
    """Score against size: a dot a seed, a strong one the mean of a size, the law with its 95 %
    prediction interval, and the ceiling.

    Args:
        points: that the law was fitted to.
        law: from `fit_law`.
    """
    figure, axes = new_figure(3.3, width=6.5)
    ax, colour = axes[0, 0], policy_colour("trained")
    size = "parameters" if "parameters" in points else law.by
    by_task = ["task"] if "task" in points else []
    runs = points.groupby([size, "seed", *by_task])[[law.by, "score"]].mean()
    runs = runs.groupby(level=[size, "seed"]).mean()
    x = np.geomspace(law.sizes.min() / 1.3, law.sizes.max() * 1.3, 60)
    band = predict(law, x)
    ax.fill_between(x, band["low"], band["high"], color=colour, alpha=0.12, lw=0)
    ax.plot(x, band["score"], color=colour, lw=1.6)
    ax.plot(runs[law.by], runs["score"], "o", color=colour, alpha=0.3, ms=5)
    ax.plot(law.sizes, law.ceiling - law.gaps, "o", color=colour, ms=7, zorder=4)
    ax.axhline(law.ceiling, color=policy_colour(CEILING), lw=1.4, ls=(0, (4, 2)))
    ax.set_xscale("log")
    ax.set_xlim(x[0], x[-1])
    ax.set_xticks(law.sizes, [_short(one) for one in law.sizes], minor=False)
    ax.minorticks_off()
    counts = runs.groupby(level=size).size()
    ax.set(
        xlabel=f"{AXES[law.by]} ({seeds_said(int(counts.max()))} a size)",
        ylabel="mean held-out score (0 to 1)",
        ylim=(max(0.0, min(runs["score"].min(), band["low"].min()) - 0.03), law.ceiling + 0.04),
    )
    told = f"b = {law.b.mean:.2f}\n[{law.b.low:.2f}, {law.b.high:.2f}]"
    ends = {
        CEILING: (law.ceiling, policy_colour(CEILING)),
        told: (float(band["score"].iloc[-1]), colour),
    }
    label_ends(ax, ends)
    return figure


def _short(value: float) -> str:
    """A number in three digits at most: 1,048,576 is "1.0M"."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.2g}{name}" if value < 10 * unit else f"{value / unit:.0f}{name}"
    return f"{value:.0f}"
