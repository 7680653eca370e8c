"""Figures of the benchmark; the conventions of `plots` hold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..world.tasks import SPLITS
from .intervals import mean_interval, reliability
from .plots import COLOURS, TASK_COLOURS, TASK_LABELS, new_figure


def plot_splits(frame: pd.DataFrame) -> Figure:
    """Mean score with 95 % intervals: a panel a task, splits along x, a line a policy."""
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(4.0 * len(tasks), 3.6, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        for policy in policies:
            part = frame[(frame.task == task) & (frame.policy == policy)]
            cells = [mean_interval(part[part.split == split]["score"]) for split in SPLITS]
            low, high = [c.mean - c.low for c in cells], [c.high - c.mean for c in cells]
            means = [c.mean for c in cells]
            ax.errorbar(
                range(len(SPLITS)),
                means,
                [low, high],
                color=COLOURS[policy],
                marker="o",
                ms=4,
                lw=1.2,
                label=policy,
            )
        ax.set_xticks(
            range(len(SPLITS)), [split.replace("_", "\n") for split in SPLITS], fontsize=8
        )
        ax.set(title=TASK_LABELS.get(task, task), ylim=(0, 1.05))
    axes[0, 0].set_ylabel("score")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        frameon=False,
        ncol=len(policies),
        loc="outside lower center",
    )
    return figure


def plot_hops(table: pd.DataFrame, fewest: int = 20) -> Figure:
    """Root-cause accuracy against distance from alert to root; distances with under `fewest`
    episodes are left out.
    """
    figure, axes = new_figure(6.5, 3.2)
    for policy, part in table[table["size"] >= fewest].groupby("policy", sort=False):
        axes[0, 0].plot(
            part["hops"], part["mean"], marker="o", ms=4, color=COLOURS[policy], label=policy
        )
    axes[0, 0].set(
        xlabel="calls from the nearest alert down to the root",
        ylabel="root cause right",
        ylim=(-0.02, 1.05),
    )
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].legend(frameon=False, fontsize=8, ncol=2)
    return figure


def plot_confusion(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Whom each policy blames (columns) for each root (rows), a panel a policy; shares of a row."""
    figure, axes = new_figure(5.2 * len(tables), 4.6, len(tables))
    for ax, (policy, table) in zip(axes[0], tables.items(), strict=True):
        ax.imshow(table, cmap="Blues", vmin=0.0, vmax=1.0)
        for (row, column), value in np.ndenumerate(table.to_numpy()):
            if value >= 0.05:
                colour = "white" if value > 0.6 else "black"
                ax.text(
                    column,
                    row,
                    f"{value:.2f}".lstrip("0"),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=colour,
                )
        ax.set_xticks(range(table.shape[1]), table.columns, rotation=45, ha="right", fontsize=7)
        ax.set_yticks(range(table.shape[0]), table.index, fontsize=7)
        ax.set(title=policy, xlabel="blamed", ylabel="root")
    return figure


def plot_steps(frame: pd.DataFrame) -> Figure:
    """Steps used: a panel a task, a box a policy; whiskers hold 90 % of the episodes."""
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(3.4 * len(tasks), 2.8, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        steps = [
            frame[(frame.task == task) & (frame.policy == policy)]["steps"] for policy in policies
        ]
        boxes = ax.boxplot(
            steps, whis=(5, 95), showfliers=False, orientation="horizontal", patch_artist=True
        )
        for box, policy in zip(boxes["boxes"], policies, strict=True):
            box.set(facecolor=COLOURS[policy], alpha=0.6)
        ax.set_yticks(range(1, len(policies) + 1), policies)
        ax.set(title=TASK_LABELS.get(task, task), xlabel="steps")
    axes[0, 0].invert_yaxis()
    return figure


def plot_reliability(answers: pd.DataFrame, openings: pd.DataFrame) -> Figure:
    """Stated probability against accuracy in ten bins: at the opening a line a task, and when
    answering, all tasks.

    Args:
        answers: rollouts of one policy (columns `confidence`, `root_cause`).
        openings: from `benchmark.opening_beliefs`, of every task.
    """
    figure, axes = new_figure(4.6, 4.0)
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color="#888888", lw=0.8, ls=":")
    for task, part in openings.groupby("task", sort=False):
        table = reliability(part["confidence"], part["correct"])
        ax.plot(table["confidence"], table["accuracy"], color=TASK_COLOURS.get(task), lw=1)
        label = f"opening, {TASK_LABELS.get(task, task)}"
        ax.scatter(
            table["confidence"],
            table["accuracy"],
            s=8 + 0.3 * table["answers"],
            color=TASK_COLOURS.get(task),
            label=label,
        )
    stated = answers[answers["confidence"].notna()]
    table = reliability(stated["confidence"], stated["root_cause"])
    ax.scatter(
        table["confidence"],
        table["accuracy"],
        marker="x",
        color="black",
        s=30,
        label="when answering, all tasks",
    )
    ax.set(
        xlabel="probability given to the likeliest root",
        ylabel="share of them right",
        xlim=(0, 1.02),
        ylim=(0, 1.02),
    )
    ax.legend(frameon=False, fontsize=8)
    return figure


def plot_dials(frame: pd.DataFrame) -> Figure:
    """Mean score against each dial: a panel a dial, a line a policy, bands are 95 % intervals.

    Args:
        frame: from `difficulty.sweep` (columns dial, value, policy, score).
    """
    dials = list(dict.fromkeys(frame["dial"]))
    columns = min(3, len(dials))
    figure, axes = new_figure(
        3.6 * columns,
        2.7 * -(-len(dials) // columns),
        columns,
        -(-len(dials) // columns),
        sharey=True,
    )
    for ax, dial in zip(axes.flat, dials, strict=False):
        for policy, part in frame[frame.dial == dial].groupby("policy", sort=False):
            cells = {value: mean_interval(group["score"]) for value, group in part.groupby("value")}
            x, values = list(cells), list(cells.values())
            ax.plot(
                x, [v.mean for v in values], marker="o", ms=3, color=COLOURS[policy], label=policy
            )
            ax.fill_between(
                x,
                [v.low for v in values],
                [v.high for v in values],
                color=COLOURS[policy],
                alpha=0.15,
                lw=0,
            )
        ax.set(xlabel=dial, ylim=(0, 1.05))
    for ax in axes.flat[len(dials) :]:
        ax.axis("off")
    for row in axes:
        row[0].set_ylabel("score")
    figure.legend(
        *axes.flat[0].get_legend_handles_labels(), frameon=False, ncol=6, loc="outside lower center"
    )
    return figure
