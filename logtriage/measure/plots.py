"""Every figure. Each function takes data, returns a matplotlib `Figure`, and decides nothing about
the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from ..play.rewards import PARTS
from ..world.cluster import State
from ..world.topology import Topology
from .intervals import mean_interval

# Okabe and Ito's palette: distinguishable by colour-blind readers.
COLOURS = {
    "base": "#999999",
    "trained": "#0072B2",
    "random": "#BBBBBB",
    "constant": "#CC79A7",
    "loudest": "#E69F00",
    "junior": "#56B4E9",
    "trace": "#009E73",
    "belief": "#D55E00",
    "oracle": "#000000",
}
TASK_COLOURS = {
    "single_crash": "#56B4E9",
    "cascading_failure": "#D55E00",
    "silent_degradation": "#009E73",
}
TASK_LABELS = {
    "single_crash": "single crash",
    "cascading_failure": "cascading failure",
    "silent_degradation": "silent degradation",
}
HEALTH = colormaps["RdYlGn_r"]


class Picture(Figure):
    """A figure that a notebook shows by itself, without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1, **options
) -> tuple[Figure, np.ndarray]:
    """An empty figure of that size in inches, and its axes (rows, columns)."""
    figure = Picture(figsize=(width, height), layout="constrained", dpi=100)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_cluster(
    topology: Topology, states: Sequence[State], titles: Sequence[str], root: str | None = None
) -> Figure:
    """The call graph at several moments, side by side; colour is the share of requests that fail,
    width the slowdown.

    Args:
        topology: the call graph.
        states: one a panel.
        titles: one a panel.
        root: marked with a ring, when given.
    """
    figure, axes = new_figure(3.4 * len(states), 3.0, len(states))
    at, rest = topology.layout, topology.network.rest_latency
    for ax, state, title in zip(axes[0], states, titles, strict=True):
        for service in topology.services:
            x, y = at[service.name]
            for callee in service.downstream:
                style = "-" if callee in service.calls else ":"
                ax.plot(
                    [x, at[callee][0]], [y, at[callee][1]], style, color="#888888", lw=1, zorder=1
                )
        for i, name in enumerate(topology.names):
            x, y = at[name]
            slow = min(6.0, state.latency[i] / rest[i])
            ax.scatter(
                [x],
                [y],
                s=160 + 50 * slow,
                color=HEALTH(min(1.0, 0.08 + state.errors[i])),
                zorder=2,
                edgecolors="#222222",
                linewidths=2.5 if name == root else 0.6,
            )
            label = name.replace("-", "-\n", 1)
            ax.annotate(
                f"{label}\n{100 * state.errors[i]:.0f}% {state.latency[i]:.0f}ms",
                (x, y),
                fontsize=6.5,
                xytext=(0, -13),
                textcoords="offset points",
                bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.5},
                ha="center",
                va="top",
            )
        ax.set_title(title, fontsize=9)
        ax.set_xlim(-0.08, 1.08)
        ax.set_ylim(min(y for _, y in at.values()) - 0.75, 0.35)
        ax.axis("off")
    return figure


def plot_healing(curves: Mapping[str, Sequence[float]], arrival: int) -> Figure:
    """User-facing error share over ticks, a line a course of action; `arrival` marks the agent's
    first tick.
    """
    figure, axes = new_figure(6.5, 2.6)
    for label, values in curves.items():
        axes[0, 0].plot(range(len(values)), 100 * np.asarray(values), marker=".", label=label)
    axes[0, 0].axvline(arrival, color="#888888", lw=0.8, ls=":")
    axes[0, 0].set(
        xlabel="tick (30 s each); dotted: the agent arrives", ylabel="user requests\nthat fail, %"
    )
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def plot_policies(
    frame: pd.DataFrame, reported: Mapping[str, Mapping[str, float]] | None = None
) -> Figure:
    """Mean score with 95 % intervals, a group of bars a task, a bar a policy in order of
    appearance.

    Args:
        frame: rollouts of any number of policies.
        reported: label to task to a score that others published, drawn as hollow markers beside the
            bars.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(1.6 + 2.3 * len(tasks), 3.2)
    ax, width = axes[0, 0], 0.8 / (len(policies) + (1 if reported else 0))
    cycle = ("#0072B2", "#56B4E9", "#D55E00", "#F0E442")
    extra = iter(cycle * len(policies))
    for j, policy in enumerate(policies):
        colour = COLOURS.get(policy) or next(extra)
        cells = [
            mean_interval(frame[(frame.task == task) & (frame.policy == policy)]["score"])
            for task in tasks
        ]
        x = np.arange(len(tasks)) + j * width
        ax.bar(
            x,
            [c.mean for c in cells],
            width * 0.92,
            color=colour,
            label=policy,
            yerr=[[c.mean - c.low for c in cells], [c.high - c.mean for c in cells]],
            error_kw={"lw": 0.9},
        )
    for label, scores in (reported or {}).items():
        x = np.arange(len(tasks)) + len(policies) * width
        ax.plot(x, [scores[task] for task in tasks], "D", mfc="none", color="#D55E00", label=label)
    ax.set_xticks(
        np.arange(len(tasks)) + 0.4 - width / 2, [TASK_LABELS.get(task, task) for task in tasks]
    )
    ax.set(ylabel="score", ylim=(0, 1.05))
    ax.legend(frameon=False, fontsize=8, ncol=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _draw_learning(ax, episodes: pd.DataFrame, window: int = 5) -> None:
    """A line a task: each step's mean faint, a running mean over `window` steps strong."""
    played = episodes.groupby("step").size().cumsum()
    for task in dict.fromkeys(episodes["task"]):
        means = episodes[episodes.task == task].groupby("step")["score"].mean()
        x, colour, label = (
            played.loc[means.index],
            TASK_COLOURS.get(task, "#000000"),
            TASK_LABELS.get(task, task),
        )
        ax.plot(x, means, color=colour, alpha=0.22, lw=1)
        ax.plot(
            x,
            means.rolling(window, min_periods=1, center=True).mean(),
            color=colour,
            lw=2.2,
            label=label,
        )
    ax.set(xlabel="training episodes (incidents of train)", ylabel="score", ylim=(0, 1.02))


def _draw_held_out(
    ax, episodes: pd.DataFrame, checkpoints: pd.DataFrame, evaluation: pd.DataFrame
) -> None:
    """Held-out score against training episodes: the base at 0, then every checkpoint, on the same
    incidents.
    """
    played = episodes.groupby("step").size().cumsum()
    start = evaluation[
        (evaluation.policy == "base") & evaluation["index"].isin(set(checkpoints["index"]))
    ].assign(step=0)
    for task, rows in pd.concat([start, checkpoints]).groupby("task", sort=False):
        cells = {step: mean_interval(group["score"]) for step, group in rows.groupby("step")}
        x, values = [played.get(step, 0) for step in cells], list(cells.values())
        colour, label = TASK_COLOURS.get(task, "#000000"), TASK_LABELS.get(task, task)
        ax.plot(x, [v.mean for v in values], marker="o", ms=4, color=colour, lw=2, label=label)
        ax.fill_between(
            x, [v.low for v in values], [v.high for v in values], color=colour, alpha=0.12, lw=0
        )
    ax.set(xlabel="training episodes", ylabel="held-out score, greedy", ylim=(0, 1.02))


def plot_learning(
    episodes: pd.DataFrame,
    checkpoints: pd.DataFrame | None = None,
    evaluation: pd.DataFrame | None = None,
) -> Figure:
    """Score against training episodes: while sampling on incidents of train, and beside it on
    held-out ones.

    Args:
        episodes: a run's training episodes (columns step, task, score).
        checkpoints, evaluation: from `experiment.evaluate_checkpoints` and `evaluate_run`; without
            them, one panel.
    """
    figure, axes = new_figure(
        10.0 if checkpoints is not None else 6.5, 3.0, 1 if checkpoints is None else 2, sharey=True
    )
    _draw_learning(axes[0, 0], episodes)
    if checkpoints is not None:
        _draw_held_out(axes[0, 1], episodes, checkpoints, evaluation)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def plot_gain(
    episodes: pd.DataFrame,
    evaluation: pd.DataFrame,
    references: Sequence[str] = ("loudest", "trace"),
) -> Figure:
    """The whole story in one figure: the learning curve, and base against trained on held-out
    incidents.

    Args:
        episodes: the run's training episodes.
        evaluation: rollouts of `base`, `trained` and the reference policies on one split.
        references: scripted policies drawn as ticks across the bars.
    """
    tasks = list(TASK_COLOURS)
    figure = Picture(figsize=(10, 3.4), layout="constrained", dpi=100)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _draw_learning(left, episodes)
    left.set_title("Learning, from reward alone")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    for i, task in enumerate(tasks):
        part = evaluation[evaluation.task == task]
        for j, policy in enumerate(("base", "trained")):
            cell = mean_interval(part[part.policy == policy]["score"])
            right.bar(
                i + 0.34 * j,
                cell.mean,
                0.3,
                color="#BBBBBB" if policy == "base" else TASK_COLOURS[task],
                yerr=[[cell.mean - cell.low], [cell.high - cell.mean]],
                error_kw={"lw": 1},
            )
            right.annotate(
                f"{cell.mean:.2f}",
                (i + 0.34 * j, 0.02),
                ha="center",
                fontsize=8,
                color="black" if policy == "base" else "white",
            )
        for name in references:
            mean = part[part.policy == name]["score"].mean()
            right.plot(
                [i - 0.18, i + 0.52],
                [mean, mean],
                color="#222222",
                lw=1,
                ls="--" if name == "loudest" else "-.",
            )
            right.annotate(name, (i + 0.53, mean), fontsize=7, va="center")
    right.set_xticks(
        np.arange(len(tasks)) + 0.17, [TASK_LABELS[task].replace(" ", "\n") for task in tasks]
    )
    right.set(
        ylim=(0, 1.02),
        xlim=(-0.35, len(tasks) - 0.1),
        title="Held-out incidents: base (grey), trained (95 %)",
    )
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)
    return figure


def plot_parts(
    before: pd.DataFrame, after: pd.DataFrame, labels: tuple[str, str] = ("base", "trained")
) -> Figure:
    """Each part of the score before and after, a panel a task, with 95 % intervals."""
    tasks = list(dict.fromkeys(before["task"]))
    figure, axes = new_figure(3.3 * len(tasks), 2.7, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        for j, (label, frame) in enumerate(zip(labels, (before, after), strict=True)):
            cells = [mean_interval(frame[frame.task == task][part]) for part in PARTS]
            y = np.arange(len(PARTS)) + 0.38 * j
            ax.barh(
                y,
                [c.mean for c in cells],
                0.34,
                label=label,
                color="#BBBBBB" if j == 0 else TASK_COLOURS.get(task),
                xerr=[[c.mean - c.low for c in cells], [c.high - c.mean for c in cells]],
                error_kw={"lw": 0.8},
            )
        ax.set(xlim=(0, 1.05), title=TASK_LABELS.get(task, task))
        ax.set_yticks(np.arange(len(PARTS)) + 0.19, [part.replace("_", " ") for part in PARTS])
        ax.title.set_fontsize(9)
    axes[0, 0].invert_yaxis()
    axes[0, -1].legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def plot_small_samples(
    scores: np.ndarray, sizes: Sequence[int] = (10, 30, 100, 300, 1000), draws: int = 2000
) -> Figure:
    """How far the difference of two averages of n episodes strays when nothing has changed.

    Args:
        scores: scores of one unchanging policy, (n,).
        sizes: numbers of episodes averaged.
        draws: pairs of averages drawn for each size.
    """
    random = np.random.default_rng(0)
    figure, axes = new_figure(6.5, 2.8)
    differences = [
        random.choice(scores, (draws, n)).mean(1) - random.choice(scores, (draws, n)).mean(1)
        for n in sizes
    ]
    axes[0, 0].boxplot(
        differences, whis=(2.5, 97.5), showfliers=False, tick_labels=[str(n) for n in sizes]
    )
    axes[0, 0].axhline(0.0, color="#888888", lw=0.8)
    axes[0, 0].set(xlabel="episodes in each average", ylabel="last minus first\n(whiskers: 95 %)")
    return figure
