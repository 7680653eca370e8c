"""Figures of what estimators of credit know: see `credit_truth`.

Each function takes data, returns a matplotlib `Figure`, and decides nothing about the data.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .figure import SMALL, Picture, draw_interval, new_figure
from .intervals import Interval
from .palette import FAINT, INK, words

# A measure of `credit_truth`, what its axis says, and where a perfect estimator is.
SHOWN = (
    ("corrected", "correlation with the true advantage", 1.0),
    ("bias", "bias: mean credit less mean truth", 0.0),
    ("deviation", "squared error, best scale, of the truth's", 0.0),
)
ROW_HEIGHT = 0.3  # inches an estimator


def plot_credit(table: pd.DataFrame) -> Picture:
    """Each estimator's correlation with the truth, its bias, and what it leaves unexplained, over
    all calls, with 95 % intervals; a row of panels a policy.

    The correlation is the one that is corrected for the noise of the truth; the plain one is a grey
    ring. The squared error is a share of the mean squared truth: 1 is what knowing nothing has; not
    drawn where noise leaves nothing of that truth. A level line is where a perfect estimator
    stands.

    Args:
        table: of `credit_truth.compare_credits`, with the column `policy`.

    Raises:
        ValueError: when the table has no row over all calls.
    """
    whole = table[table["by"] == "all"]
    if whole.empty:
        raise ValueError("the table has no row with by == 'all'; pass all of compare_credits")
    policies = list(dict.fromkeys(whole["policy"]))
    names = list(dict.fromkeys(whole["estimator"]))
    height = len(policies) * (1.0 + ROW_HEIGHT * len(names))
    figure, axes = new_figure(height, len(SHOWN), len(policies), sharex="col", sharey=True)
    for row, policy in zip(axes, policies, strict=True):
        of_policy = whole[whole["policy"] == policy].set_index("estimator").loc[names]
        for ax, (measure, _, perfect) in zip(row, SHOWN, strict=True):
            _draw_measure(ax, of_policy, measure)
            ax.axvline(perfect, color=FAINT, lw=1.0, zorder=1)
        row[0].set_title(words(policy), fontsize=10, loc="left")
        row[0].set_yticks(range(len(names)), [words(name) for name in names])
        row[0].set_ylim(len(names) - 0.4, -0.6)
    for ax, (_, label, _) in zip(axes[-1], SHOWN, strict=True):
        ax.set_xlabel(label, fontsize=SMALL)
    return figure


def _draw_measure(ax: Axes, estimators: pd.DataFrame, measure: str) -> None:
    """A dot and an interval an estimator, from the top."""
    for y, (_, row) in enumerate(estimators.iterrows()):
        unit = row["square"] if measure == "deviation" else 1.0
        unit = unit if unit > 0.0 else np.nan  # a share of what is not there is none
        ends = (row[measure], row[f"{measure}_low"], row[f"{measure}_high"])
        draw_interval(ax, Interval(*(end / unit for end in ends)), y, INK)
        if measure == "corrected":
            ax.plot([row["correlation"]], [y], "o", ms=5.0, mfc="white", mec=FAINT, zorder=5)
