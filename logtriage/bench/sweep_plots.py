"""The two figures of a sweep, by one contract for every sweep: how its rows learned, and what each
came to on held-out incidents (see `analysis`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .analysis import TRAINING, rows_of, scores_of, seeds_of, tasks_of
from .crossed import crossed_mean
from .figure import Picture, draw_interval, label_ends, new_figure
from .learning_plots import WINDOW, seeds_said, smooth
from .palette import FAINT, INK, policy_colour, words

LABELLED = 4  # rows up to which each has its name in a figure of learning
# Dashes and width of lines that are named: whole and strong, dashed, long dashes, dots.
STYLES: list[tuple[Any, float]] = [
    ("-", 2.2),
    ((0, (3, 1.5)), 1.6),
    ((0, (7, 1.5)), 1.6),
    ((0, (1, 1)), 1.8),
]


def _learned(frame: pd.DataFrame, row: str, task: str) -> list[pd.Series]:
    """Smoothed training score of each seed that was trained on the task, by the number of episodes
    that the seed had played by then.
    """
    own = frame[(frame["policy"] == TRAINING) & (frame["row"] == row)]
    curves = []
    for _, part in own.groupby("seed", observed=True):
        played = part.groupby("step")["episodes"].sum().cumsum()
        steps = part[part["task"] == task].set_index("step")["score"].astype(float)
        if len(steps):  # a few incidents may all be of other tasks
            curves.append(smooth(steps).set_axis(played.loc[steps.index]))
    return curves


def _named(frame: pd.DataFrame, against: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The rows that a figure of learning names, with the name and the style of each: all of a few,
    else the best and the worst of the trained, and `against`.
    """
    rows = rows_of(frame)
    means = {row: np.mean([part.mean() for part in scores_of(frame, row)]) for row in rows}
    named: dict[str, tuple[str, dict[str, Any]]] = {}
    if len(rows) <= LABELLED:
        for row, (dashes, width) in zip(rows, STYLES, strict=False):
            named[row] = words(row), {"color": INK, "ls": dashes, "lw": width}
    else:
        for said, pick, (dashes, width) in zip(("best", "worst"), (max, min), STYLES, strict=False):
            row = pick(rows, key=means.__getitem__)
            named[row] = f"{words(row)}, {said}", {"color": INK, "ls": dashes, "lw": width}
    if against:
        seeds_of(frame, against)  # it must be there
        said = named[against][0] if against in named else words(against)
        named[against] = said, {"color": policy_colour("trained"), "lw": 2.2}
    return named


def plot_learning(frame: pd.DataFrame, against: str = "") -> Picture:
    """Training score against episodes: a panel a task, a line a row, the mean of its seeds, which
    are faint behind it.

    Named are all of four rows or fewer; of more, the best of the trained on held-out incidents
    (strong), the worst (dashed) and `against` (blue), before the others in grey. A row that never
    trained on a task has no line in its panel.

    Args:
        frame: from `gather`.
        against: a row that the others are compared with.
    """
    tasks, rows, named = tasks_of(frame), rows_of(frame), _named(frame, against)
    figure, axes = new_figure(3.2, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        ends, longest = {}, 0.0
        for row in rows:
            curves = _learned(frame, row, task)
            if not curves:
                continue
            name, style = named.get(row, ("", {"color": FAINT, "lw": 1.3}))
            mean = pd.concat(curves, axis=1).sort_index()
            mean = mean.interpolate("index", limit_area="inside").mean(axis=1)
            longest = max(longest, float(mean.index[-1]))
            ax.plot(mean.index, mean, label=row, zorder=3 if name else 2, **style)
            if name:
                ends[name] = (float(mean.iloc[-1]), style["color"])
                for curve in curves:
                    ax.plot(curve.index, curve, color=style["color"], alpha=0.2, lw=0.7, zorder=1)
        ax.set(title=words(task), ylim=(0.0, 1.02), xlim=(0.0, longest or None))
        ax.locator_params(axis="x", nbins=3)
    label_ends(axes[0, -1], ends)  # once: the styles are the same in all panels
    axes[0, 0].set_ylabel("mean score while training (0 to 1)")
    grey = "" if len(named) == len(rows) else f"; grey: the other {len(rows) - len(named)} rows"
    figure.supxlabel(
        f"training episodes played ({_seeds_said(frame)}; {WINDOW} steps' mean{grey})", fontsize=10
    )
    return figure


def _seeds_said(frame: pd.DataFrame) -> str:
    """How many seeds the rows have."""
    counts = sorted({len(seeds_of(frame, row)) for row in rows_of(frame)})
    if len(counts) == 1:
        return f"{seeds_said(counts[0])} a row"
    return f"{counts[0]} to {counts[-1]} training seeds a row"


def plot_seeds(frame: pd.DataFrame, against: str = "") -> Picture:
    """Held-out scores: a panel a task, a row for each of the sweep. Faint dots are training seeds,
    a strong one with its line their mean with the 95 % interval over seeds and incidents, a grey
    one the base, and the upright line is at the mean of `against`.

    Args:
        frame: from `gather`.
        against: a row that the others are compared with.
    """
    tasks, rows = tasks_of(frame), rows_of(frame)
    figure, axes = new_figure(1.0 + 0.24 * len(rows), len(tasks), sharey=True)
    colour = policy_colour("trained")
    of_row = {row: (scores_of(frame, row, "base"), scores_of(frame, row)) for row in rows}
    for at, (ax, task) in enumerate(zip(axes[0], tasks, strict=True)):
        for y, row in enumerate(rows):
            before, after = (side[at] for side in of_row[row])
            ax.plot([before.mean()], [y], "o", color=policy_colour("base"), ms=4, zorder=2)
            ax.plot(after.mean(axis=1), [y] * len(after), "o", color=colour, alpha=0.3, ms=4)
            draw_interval(ax, crossed_mean([after]), y, colour, ms=5.5)
        if against:
            seeds_of(frame, against)  # it must be there
            mean = of_row[against][1][at].mean()
            ax.axvline(mean, color=INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
        ax.set(title=words(task), ylim=(len(rows) - 0.4, -0.6))
        ax.locator_params(axis="x", nbins=5)
    axes[0, 0].set_yticks(range(len(rows)), [words(row) for row in rows])
    line = f"; dashed: {words(against)}" if against else ""
    figure.supxlabel(
        f"mean held-out score (0 to 1; {_seeds_said(frame)}; grey: before training{line})",
        fontsize=10,
    )
    return figure
