"""Figures of policies and of the benchmark.

Each function takes data, returns a matplotlib `Figure`, and decides nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ..play.scoring import PARTS
from ..world.tasks import SPLITS
from .figure import (
    SMALL,
    Picture,
    draw_interval,
    draw_key,
    draw_shares,
    label_ends,
    label_points,
    new_figure,
    spread,
)
from .intervals import mean_interval, reliability
from .palette import FAINT, INK, OTHER_MODEL, TASK_COLOURS, VERDICT_COLOURS, policy_colour, words

DIAL_LABELS = {
    "noise": "noise: share of log lines",
    "gaps": "gaps: chance that a row is missing",
    "quiet": "quiet: ticks until the root speaks",
    "decoys": "decoys: innocent suspects",
    "services": "services in the call graph",
    "lag": "lag: ticks a hop takes",
}


def plot_policies(
    frame: pd.DataFrame, reported: Mapping[str, Mapping[str, float]] | None = None
) -> Picture:
    """Mean score with 95 % intervals: a panel a task, a row a policy in order of appearance.

    Args:
        frame: rollouts of any number of policies.
        reported: label to task to a score that others published, drawn as hollow diamonds in rows
            of their own.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    rows = [*policies, *(reported or {})]
    figure, axes = new_figure(0.9 + 0.3 * len(rows), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        for y, policy in enumerate(policies):
            cell = mean_interval(frame[(frame.task == task) & (frame.policy == policy)]["score"])
            draw_interval(ax, cell, y, policy_colour(policy))
        for y, scores in enumerate((reported or {}).values(), len(policies)):
            ax.plot(scores[task], y, "D", mfc="none", color=OTHER_MODEL)
        ax.set(title=words(task), xlabel="mean score (0 to 1)", xlim=(-0.04, 1.04))
        ax.grid(axis="y", color=FAINT, lw=0.5)
        ax.set_axisbelow(True)
    axes[0, 0].set_yticks(range(len(rows)), rows)
    axes[0, 0].invert_yaxis()
    for label, name in zip(axes[0, 0].get_yticklabels(), rows, strict=True):
        label.set_color(policy_colour(name))
    return figure


def plot_profiles(frame: pd.DataFrame) -> Picture:
    """Which part of the score each policy earns: a panel a task, policies down, parts across."""
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(1.7 + 0.24 * len(policies), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        table = frame[frame.task == task].groupby("policy")[list(PARTS)].mean().loc[policies]
        draw_shares(ax, table)
        ax.set_xticks(range(len(PARTS)), map(words, PARTS), rotation=40, ha="right")
        ax.set_title(words(task))
    axes[0, 0].set_yticks(range(len(policies)), policies)
    figure.supxlabel("share of each part earned: 0 is white, 1 is black", fontsize=9)
    return figure


def plot_price(frame: pd.DataFrame) -> Picture:
    """Mean score against mean steps used: a panel a task, a point a policy, with the 95 % interval
    of the score and a faint line over the steps that hold nine episodes in ten.

    Args:
        frame: rollouts of any number of policies.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(3.5, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        points = {}
        for policy in policies:
            rows = frame[(frame.task == task) & (frame.policy == policy)]
            colour = policy_colour(policy)
            score, steps = mean_interval(rows["score"]), rows["steps"]
            ax.plot(steps.quantile([0.05, 0.95]), [score.mean] * 2, color=colour, lw=5, alpha=0.18)
            ax.plot([steps.mean()] * 2, [score.low, score.high], color=colour, lw=1.6)
            ax.plot(steps.mean(), score.mean, "o", color=colour, ms=7)
            points[policy] = (steps.mean(), score.mean, colour)
        ax.set(title=words(task), ylim=(-0.05, 1.12), xlim=(0, 16))
        ax.set_yticks(np.linspace(0.0, 1.0, 6))
        label_points(ax, points)
    axes[0, 0].set_ylabel("mean score (0 to 1)")
    figure.supxlabel("steps used (dot: their mean; bar: nine episodes in ten)", fontsize=10)
    return figure


def plot_splits(frame: pd.DataFrame, left_out: tuple[str, ...] = ("random", "oracle")) -> Picture:
    """Mean score with 95 % intervals: a panel a task, a row a split, a dot a policy, whose name
    stands above its column of dots. A column that stays upright does not mind the split.

    Args:
        frame: rollouts on all splits.
        left_out: policies whose score is nearly 0, or 1, everywhere.
    """
    tasks = list(dict.fromkeys(frame["task"]))
    policies = [name for name in dict.fromkeys(frame["policy"]) if name not in left_out]
    figure, axes = new_figure(3.4, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        tops = []
        for policy in policies:
            part = frame[(frame.task == task) & (frame.policy == policy)]
            colour = policy_colour(policy)
            cells = [mean_interval(part[part.split == split]["score"]) for split in SPLITS]
            ax.axvline(cells[0].mean, color=colour, lw=0.9, alpha=0.35, ymax=0.97)
            for y, cell in enumerate(cells):
                draw_interval(ax, cell, y, colour)
            tops.append(cells[0].mean)
        for policy, top, x in zip(policies, tops, spread(tops, 0.085), strict=True):
            ax.annotate(
                policy, (top, -0.35), (x, -0.75), rotation=90, ha="center", va="bottom",
                fontsize=9, color=policy_colour(policy), annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": policy_colour(policy), "lw": 0.6,
                            "shrinkA": 1, "shrinkB": 0},
            )  # fmt: skip
        ax.set(xlabel="mean score (0 to 1)", xlim=(0.0, 1.04))
        ax.set_title(words(task), pad=62)
    axes[0, 0].set_yticks(range(len(SPLITS)), map(words, SPLITS))
    axes[0, 0].set_ylim(len(SPLITS) - 0.6, -0.5)
    return figure


def plot_hops(table: pd.DataFrame, fewest: int = 20) -> Picture:
    """Root-cause accuracy against distance from alert to root, a line a policy, with bands of two
    standard errors; distances with under `fewest` episodes are left out.

    Args:
        table: from `benchmark.hop_table` (columns policy, hops, mean, size).
    """
    figure, axes = new_figure(3.5)
    ax, ends, table = axes[0, 0], {}, table[table["size"] >= fewest]
    for policy, part in table.groupby("policy", sort=False):
        colour, mean = policy_colour(policy), part["mean"]
        error = 2.0 * np.sqrt(mean * (1.0 - mean) / part["size"])
        ax.fill_between(part["hops"], mean - error, mean + error, color=colour, alpha=0.12, lw=0)
        ax.plot(part["hops"], mean, "-o", color=colour, lw=2, ms=5, label=policy)
        ends[policy] = (mean.iloc[-1], colour)
    sizes = table.groupby("hops")["size"].max()
    ax.set_xticks(sizes.index, [f"{hops}\n{size:,} episodes" for hops, size in sizes.items()])
    ax.set(
        xlabel="calls from the nearest alert down to the root",
        ylabel="root cause right (share of episodes)",
        ylim=(-0.03, 1.05),
    )
    label_ends(ax, ends)
    return figure


def plot_confusion(tables: Mapping[str, pd.DataFrame]) -> Picture:
    """Whom each policy blames (columns) for each root (rows), a panel a policy; shares of a row.

    Right answers are outlined.
    """
    figure, axes = new_figure(3.6, len(tables), sharey=True)
    for ax, (policy, table) in zip(axes[0], tables.items(), strict=True):
        table = table[table.sum(axis=1) > 0]  # some services are never the root
        draw_shares(ax, table)
        for row, name in enumerate(table.index):
            if name in table.columns:
                corner = (list(table.columns).index(name) - 0.5, row - 0.5)
                ax.add_patch(Rectangle(corner, 1.0, 1.0, fill=False, edgecolor=INK, lw=1.6))
        ax.set_xticks(range(table.shape[1]), table.columns, rotation=40, ha="right")
        ax.set_title(f"{policy} blames", color=policy_colour(policy), weight="bold")
        ax.set_yticks(range(len(table.index)), table.index)
    axes[0, 0].set_ylabel("true root")
    figure.supxlabel("share of a row, outlined where the blame is right", fontsize=10)
    return figure


def _draw_stated(ax: Axes, openings: pd.DataFrame) -> None:
    """How sure the openings leave a policy: a strip of counts a task, in twenty bins."""
    bins = np.linspace(0.0, 1.0, 21)
    for row, (task, part) in enumerate(openings.groupby("task", sort=False)):
        counts, _ = np.histogram(part["confidence"], bins)
        heights = 0.75 * counts / len(part)
        ax.bar(bins[:-1], heights, 0.05, bottom=-row, align="edge", color=TASK_COLOURS[task])
        ax.text(
            0.02, -row + 0.36, words(task), color=TASK_COLOURS[task], weight="bold", fontsize=10
        )
        sure = (part["confidence"] >= 0.95).sum()
        ax.text(0.02, -row + 0.2, f"{sure} of {len(part)} say 0.95 or more", fontsize=9)
        ax.axhline(-row, color=FAINT, lw=0.8)
    ax.set(
        xlim=(0.0, 1.0), yticks=[],
        xlabel="stated probability of the likeliest root\n(height: share of the openings)",
        title="How sure the opening leaves it",
    )  # fmt: skip
    ax.spines["left"].set_visible(False)


def plot_reliability(answers: pd.DataFrame, openings: pd.DataFrame) -> Picture:
    """Whether stated probabilities mean what they say.

    Left, what is stated at the opening, a strip a task; right, stated against true for the task
    whose openings leave most doubt, with intervals of two standard errors, and the same when it
    answers.

    Args:
        answers: rollouts of one policy (columns `task`, `confidence`, `root_cause`).
        openings: from `benchmark.opening_beliefs`, of every task.
    """
    figure, axes = new_figure(3.6, 2)
    left, ax = axes[0]
    _draw_stated(left, openings)
    task = openings.groupby("task")["confidence"].mean().idxmin()
    part, colour = openings[openings.task == task], TASK_COLOURS[task]
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1.2)
    table = reliability(part["confidence"], part["correct"])
    error = 2.0 * np.sqrt(table["confidence"] * (1.0 - table["confidence"]) / table["answers"])
    ax.fill_between(
        table["confidence"], table["confidence"] - error, table["confidence"] + error,
        color=FAINT, alpha=0.35, lw=0,
    )  # fmt: skip
    ax.plot(table["confidence"], table["accuracy"], "o", color=colour, ms=7)
    for row in table.itertuples():
        ax.annotate(
            f"{row.answers}", (row.confidence, row.accuracy), xytext=(6, -10),
            textcoords="offset points", fontsize=SMALL, color=colour,
        )  # fmt: skip
    stated = answers[(answers.task == task) & answers["confidence"].notna()]
    said, right = stated["confidence"].mean(), stated["root_cause"].mean()
    ax.plot(said, right, "x", color=INK, ms=9, mew=2.2)
    ax.annotate(
        f"when it answers: says {said:.2f},\nis right in {right:.2f} ({len(stated)} answers)",
        (said, right), (0.06, 0.93), va="center", fontsize=9,
        arrowprops={"arrowstyle": "-", "lw": 0.6},
    )  # fmt: skip
    ax.set(
        xlabel="stated probability of the likeliest root", ylabel="share of them right",
        xlim=(0, 1.08), ylim=(0, 1.06),
        title=f"{words(task)}: stated against true",
    )  # fmt: skip
    ax.text(
        1.0, 0.03, "dots: openings, with their number;\ngrey: where chance may put them (2 s.e.)",
        ha="right", fontsize=9,
    )  # fmt: skip
    return figure


def plot_audit(frame: pd.DataFrame) -> Picture:
    """The share of each verdict: a panel a task, a bar a policy, shares of 0.1 or more written out.

    Args:
        frame: from `audit.audit`, of any number of policies.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(1.3 + 0.3 * len(policies), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        part = frame[frame.task == task]
        shares = pd.crosstab(part["policy"], part["verdict"], normalize="index")
        shares = shares.reindex(index=policies, columns=list(VERDICT_COLOURS), fill_value=0.0)
        left = np.zeros(len(policies))
        for verdict, colour in VERDICT_COLOURS.items():
            widths = shares[verdict].to_numpy()
            ax.barh(policies, widths, 0.7, left, color=colour, edgecolor="white", lw=0.5)
            ink = "white" if verdict in ("grounded", "reckless") else INK
            for y, (start, share) in enumerate(zip(left, widths, strict=True)):
                if share >= 0.1:
                    text = "1" if share > 0.995 else f"{share:.2f}"[1:]
                    ax.text(
                        start + share / 2.0, y, text,
                        ha="center", va="center", fontsize=SMALL, color=ink,
                    )  # fmt: skip
            left += widths
        ax.set(
            title=words(task), xlabel="share of episodes", xlim=(0.0, 1.0), xticks=(0.0, 0.5, 1.0)
        )
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0, 0].invert_yaxis()
    for label, name in zip(axes[0, 0].get_yticklabels(), policies, strict=True):
        label.set_color(policy_colour(name))
    meanings = {
        "grounded": "right, and likely", "lucky": "right, but unlikely",
        "misled": "wrong, but likely", "reckless": "wrong, and unlikely",
    }  # fmt: skip
    draw_key(
        figure,
        {
            f"{verdict} ({meanings[verdict]})" if verdict in meanings else verdict: colour
            for verdict, colour in VERDICT_COLOURS.items()
        },
    )
    return figure


def plot_dials(frame: pd.DataFrame) -> Picture:
    """Mean score against each dial: a panel a dial, a line a policy, bands are 95 % intervals.

    Args:
        frame: from `dials.sweep` (columns dial, value, policy, score).
    """
    dials = list(dict.fromkeys(frame["dial"]))
    columns = min(3, len(dials))
    figure, axes = new_figure(
        2.4 * -(-len(dials) // columns), columns, -(-len(dials) // columns), sharey=True
    )
    for place, (ax, dial) in enumerate(zip(axes.flat, dials, strict=False)):
        ends = {}
        for policy, part in frame[frame.dial == dial].groupby("policy", sort=False):
            cells = {value: mean_interval(group["score"]) for value, group in part.groupby("value")}
            x, values, colour = list(cells), list(cells.values()), policy_colour(policy)
            ax.plot(x, [v.mean for v in values], "-o", ms=4, lw=2, color=colour, label=policy)
            band = [v.low for v in values], [v.high for v in values]
            ax.fill_between(x, *band, color=colour, alpha=0.15, lw=0)
            ends[policy] = (values[-1].mean, colour)
        ax.set(xlabel=DIAL_LABELS.get(dial, dial), ylim=(0, 1.05))
        if place % columns == columns - 1 or place == len(dials) - 1:
            label_ends(ax, ends)
    for ax in axes.flat[len(dials) :]:
        ax.axis("off")
    for row in axes:
        row[0].set_ylabel("mean score (0 to 1)")
    return figure
