"""Figures of learning.

Each function takes data, returns a matplotlib `Figure`, and decides nothing about the data.

Learning is shown from several runs at once: arguments called `training`, `checkpoints` and
`evaluations` hold one frame a training seed, in one order. One seed is said to be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..play.scoring import PARTS, WEIGHTS
from .crossed import crossed_mean
from .figure import HALO, SMALL, Picture, draw_interval, label_ends, new_figure, spread
from .intervals import Interval
from .palette import FAINT, INK, TASK_COLOURS, policy_colour, words
from .strata import STRATA, group_order, label, named_once, stratum_changes

WINDOW = 15  # training steps of a running mean


def seeds_said(count: int) -> str:
    """How a figure says how many training seeds it shows."""
    return "one training seed" if count == 1 else f"{count} training seeds"


def seed_means(
    frames: Sequence[pd.DataFrame], task: str, policy: str, column: str = "score"
) -> tuple[Interval, list[float]]:
    """Mean of a column over incidents and seeds, with its interval over both (`crossed_mean`), and
    each seed's mean.

    Args:
        frames: rollouts of the same incidents, one frame a seed.
        task, policy: whose rows count.
    """
    columns = [
        frame[(frame.task == task) & (frame.policy == policy)].set_index("index")[column]
        for frame in frames
    ]
    values = pd.concat(columns, axis=1).to_numpy(float).T
    return crossed_mean([values]), values.mean(axis=1).tolist()


def _step_means(frame: pd.DataFrame, task: str) -> pd.Series:
    """Mean training score of a task at each step of one run."""
    return frame[frame.task == task].groupby("step")["score"].mean()


def smooth(means: pd.Series) -> pd.Series:
    """The running mean over `WINDOW` steps, of fewer at the ends."""
    return means.rolling(WINDOW, min_periods=1, center=True).mean()


def _played(training: Sequence[pd.DataFrame]) -> pd.Series:
    """Step to the number of episodes that a seed has played by its end."""
    return (
        pd.concat([frame.groupby("step").size() for frame in training], axis=1)
        .mean(axis=1)
        .cumsum()
    )


def _draw_learning(ax: Axes, training: Sequence[pd.DataFrame]) -> None:
    """A strong line a task, the running mean over all seeds; faint, each seed's own, or, where
    there is but one seed, its steps.
    """
    played, ends, single = _played(training), {}, len(training) == 1
    tasks = [task for task in TASK_COLOURS if any((frame.task == task).any() for frame in training)]
    for task in tasks:
        runs, colour = [_step_means(frame, task) for frame in training], TASK_COLOURS[task]
        for means in runs if single else map(smooth, runs):
            x = played.loc[means.index]
            ax.plot(x, means, color=colour, alpha=0.3 if single else 0.5, lw=0.9)
        strong = smooth(pd.concat(runs, axis=1).sort_index().mean(axis=1))
        ax.plot(played.loc[strong.index], strong, color=colour, lw=2.8, label=words(task))
        ends[words(task, lines=True)] = (strong.iloc[-1], colour)
    ax.set(
        xlabel="training episodes played",
        ylabel="mean score while training (0 to 1)",
        ylim=(0.0, 1.02),
        xlim=(0.0, played.iloc[-1]),
    )
    seeds = seeds_said(len(training))
    ax.set_title(f"While learning by GRPO\n{seeds}; strong: {WINDOW} steps' mean", fontsize=10)
    label_ends(ax, ends, weight="bold")


def plot_learning(training: Sequence[pd.DataFrame]) -> Picture:
    """Score against training episodes, while sampling on incidents of train.

    Args:
        training: one frame of training episodes a seed (columns step, task, score).
    """
    figure, axes = new_figure(3.2)
    _draw_learning(axes[0, 0], training)
    return figure


def plot_checkpoints(
    training: Sequence[pd.DataFrame],
    checkpoints: Sequence[pd.DataFrame],
    evaluations: Sequence[pd.DataFrame],
    references: Sequence[str] = ("loudest", "trace"),
) -> Picture:
    """Held-out score against training episodes, a panel a task: the base model, then every
    checkpoint, on the same incidents; faint lines are seeds, bands 95 % intervals.

    Args:
        training: one frame of training episodes a seed.
        checkpoints: from `experiment.evaluate_checkpoints`.
        evaluations: from `experiment.evaluate_run`.
        references: policies drawn as level lines, where they were evaluated.
    """
    played = _played(training)
    frames = []
    for own, whole in zip(checkpoints, evaluations, strict=True):
        start = whole[(whole.policy == "base") & whole["index"].isin(set(own["index"]))]
        frames.append(pd.concat([start.assign(step=0), own.assign(policy="trained")]))
    tasks = list(dict.fromkeys(frames[0]["task"]))
    figure, axes = new_figure(3.0, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        steps = sorted(set(frames[0]["step"]))
        x = [played.get(step, 0) for step in steps]
        cells = [
            seed_means(
                [frame[frame.step == step] for frame in frames], task, "trained" if step else "base"
            )
            for step in steps
        ]
        means = [cell.mean for cell, _ in cells]
        band = [cell.low for cell, _ in cells], [cell.high for cell, _ in cells]
        for own in zip(*(seeds for _, seeds in cells), strict=True):
            ax.plot(x, own, color=policy_colour("trained"), alpha=0.5, lw=0.9)
        ax.fill_between(x, *band, color=policy_colour("trained"), alpha=0.15, lw=0)
        ax.plot(x, means, "-o", color=policy_colour("trained"), lw=2.4, ms=5)
        ax.plot(x[:1], means[:1], "o", color=policy_colour("base"), ms=7, zorder=5)
        ax.annotate(
            "base", (x[0], means[0]), xytext=(3, -8), textcoords="offset points", va="top",
            fontsize=9, color=policy_colour("base"), path_effects=HALO,
        )  # fmt: skip
        ends = {"trained": (means[-1], policy_colour("trained"))}
        shown = evaluations[0][evaluations[0]["index"].isin(set(frames[0]["index"]))]
        for name, rows in shown[shown.task == task].groupby("policy")["score"]:
            if name in references:
                ends[name] = (rows.mean(), policy_colour(name))
                ax.axhline(rows.mean(), color=ends[name][1], lw=1.2, ls=(0, (4, 2)), zorder=1)
        ax.set_ylim(0.0, 1.02)
        label_ends(ax, ends)
        ax.set_title(words(task))
    axes[0, 0].set_ylabel("mean held-out score (0 to 1)")
    count = len(set(frames[0]["index"]))
    figure.supxlabel(
        f"training episodes played ({seeds_said(len(training))}; {count} held-out incidents a "
        "task, played greedily)",
        fontsize=10,
    )
    return figure


def _draw_gain(
    ax: Axes, evaluations: Sequence[pd.DataFrame], task: str, y: float, references: Sequence[str]
) -> None:
    """One task's row: an arrow from base to trained, and bars where the references stand."""
    base, base_seeds = seed_means(evaluations, task, "base")
    trained, trained_seeds = seed_means(evaluations, task, "trained")
    if len(evaluations) > 1:
        for policy, seeds in (("base", base_seeds), ("trained", trained_seeds)):
            ax.plot(seeds, [y] * len(seeds), "o", color=policy_colour(policy), alpha=0.3, ms=5)
    draw_interval(ax, base, y, policy_colour("base"), ms=8)
    draw_interval(ax, trained, y, policy_colour("trained"), ms=8)
    ax.annotate(
        "", (trained.mean, y), (base.mean, y),
        arrowprops={"arrowstyle": "-|>", "lw": 2.4, "color": policy_colour("trained"),
                    "shrinkA": 5, "shrinkB": 3},
    )  # fmt: skip
    middle = float(np.clip((base.mean + trained.mean) / 2.0, 0.3, 0.7))
    for text, side, policy in (
        (f"base {base.mean:.2f} ", "right", "base"),
        (f"→ trained {trained.mean:.2f}", "left", "trained"),
    ):
        ax.annotate(
            text, (middle, y), xytext=(0, -9), textcoords="offset points", ha=side, va="top",
            fontsize=9.5, weight="bold", color=policy_colour(policy),
        )  # fmt: skip
    ax.text(0.0, y + 0.4, words(task), fontsize=11, weight="bold", color=TASK_COLOURS[task])
    shown = evaluations[0][evaluations[0].task == task].groupby("policy")["score"].mean()
    names = [name for name in references if name in shown]
    for name, x in zip(names, spread([shown[name] for name in names], 0.12), strict=True):
        ax.plot([shown[name]] * 2, [y - 0.08, y + 0.14], color=policy_colour(name), lw=3)
        ax.text(x, y + 0.2, name, ha="center", fontsize=9, color=policy_colour(name))


def plot_gain(
    training: Sequence[pd.DataFrame],
    evaluations: Sequence[pd.DataFrame],
    references: Sequence[str] = ("loudest", "trace", "belief"),
) -> Picture:
    """The whole story in one figure: the learning curve, and base against trained on held-out
    incidents, with 95 % intervals over incidents and seeds.

    Args:
        training: one frame of training episodes a seed.
        evaluations: one frame a seed, rollouts of `base`, `trained` and the references.
        references: policies drawn as upright bars, where they were evaluated.
    """
    figure, axes = new_figure(4.1, 2, width_ratios=(1.0, 1.25))
    left, right = axes[0]
    tasks = list(dict.fromkeys(evaluations[0]["task"]))
    for row, task in enumerate(tasks):
        _draw_gain(right, evaluations, task, -row, references)
    right.set(xlim=(-0.01, 1.06), ylim=(0.62 - len(tasks), 0.58))
    right.set(xlabel="mean score on held-out incidents (0 to 1)", yticks=[])
    right.set_xticks(np.linspace(0.0, 1.0, 6))
    right.spines["left"].set_visible(False)
    count = evaluations[0].groupby(["task", "policy"])["index"].nunique().max()
    right.set_title(
        f"Before and after, on incidents it has not seen\n{seeds_said(len(training))}; {count} "
        "incidents a task, 95 % intervals",
        fontsize=10,
    )
    _draw_learning(left, training)
    return figure


def plot_parts(evaluations: Sequence[pd.DataFrame]) -> Picture:
    """Each part of the score before and after training: a panel a task, a row a part, with 95 %
    intervals over incidents.

    Args:
        evaluations: one frame a seed, rollouts of `base` and `trained`.
    """
    tasks = list(dict.fromkeys(evaluations[0]["task"]))
    figure, axes = new_figure(2.9, len(tasks), sharey=True)
    widest: tuple[float, Any, int, list[tuple[float, str]]] = (-1.0, axes[0, 0], 0, [])
    for ax, task in zip(axes[0], tasks, strict=True):
        for y, part in enumerate(PARTS):
            before, after = (
                seed_means(evaluations, task, policy, part)[0] for policy in ("base", "trained")
            )
            ends = sorted([(before.mean, "base"), (after.mean, "trained")])
            widest = max(
                widest, (abs(after.mean - before.mean), ax, y, ends), key=lambda one: one[0]
            )
            ax.plot([before.mean, after.mean], [y, y], color=FAINT, lw=4, zorder=1)
            # a little apart, so that equal ones are both seen
            draw_interval(ax, before, y - 0.1, policy_colour("base"), ms=7)
            draw_interval(ax, after, y + 0.1, policy_colour("trained"), ms=7)
        ax.set(title=words(task), xlabel="share earned (0 to 1)", xlim=(-0.04, 1.04))
    _, ax, y, ends = widest  # the names stand once, where there is most room for them
    for (x, name), side in zip(ends, ("right", "left"), strict=True):
        ax.annotate(
            name, (x, y - 0.1), xytext=(6 if side == "right" else -6, 7),
            textcoords="offset points",
            ha=side, fontsize=9, weight="bold", color=policy_colour(name),
        )  # fmt: skip
    labels = [f"{words(part)} ({WEIGHTS[part]:.2f})" for part in PARTS]
    axes[0, 0].set_yticks(range(len(PARTS)), labels)
    axes[0, 0].set_ylim(len(PARTS) - 0.5, -0.8)
    return figure


def _draw_stratum(ax: Axes, row: Any, y: float, seeds: Sequence[tuple[float, float]]) -> None:
    """One stratum of one task: base and trained joined by a line that says what the change is, and
    each seed's own dots, faint, where there are several.
    """
    better = STRATA[row.stratum].better
    gained = better * row.change > 0.0 and (row.low > 0.0 or row.high < 0.0)
    colour = INK if row.fell else policy_colour("trained") if gained else FAINT
    ax.plot([row.base, row.trained], [y, y], color=colour, lw=4 if row.fell else 2.4, zorder=1)
    if len(seeds) > 1:
        for policy, values in zip(("base", "trained"), zip(*seeds, strict=True), strict=True):
            ax.plot(values, [y] * len(values), "o", color=policy_colour(policy), alpha=0.3, ms=4)
    for policy, value in (("base", row.base), ("trained", row.trained)):
        ax.plot([value], [y], "o", color=policy_colour(policy), ms=7, zorder=4)
    if row.fell:
        low, high = sorted([row.base, row.trained])
        x, offset, side = (high, 7, "left") if high < 0.7 else (low, -7, "right")
        ax.annotate(
            "worse", (x, y), xytext=(offset, 0), textcoords="offset points", ha=side, va="center",
            fontsize=9, weight="bold", color=INK, path_effects=HALO, zorder=5,
        )  # fmt: skip


def plot_strata(evaluations: Sequence[pd.DataFrame]) -> Picture:
    """What the mean hides: a panel a task, a row a stratum, base joined to trained; the number of
    incidents stands at the right. Faint dots are seeds, where there are several.

    A blue line is a change for the better by more than its paired 95 % interval, a thick black one
    a change for the worse, and a grey one none that so many incidents could tell.

    Args:
        evaluations: one frame a seed, rollouts of `base` and `trained` on the same incidents.
    """
    base, trained = (
        [frame[frame.policy == policy] for frame in evaluations] for policy in ("base", "trained")
    )
    changes = stratum_changes(base, trained)
    by_seed = [
        stratum_changes(*pair).set_index(["task", "stratum", "group"])[["base", "trained"]]
        for pair in zip(base, trained, strict=True)
    ]
    shown = named_once(changes)[["stratum", "group"]].drop_duplicates()
    strata = {name: list(shown[shown.stratum == name]["group"]) for name in STRATA}
    rows, y = {}, 0.0  # (stratum, group) to its height; a gap before each that has groups
    for name, groups in strata.items():
        if name == "steps":  # no share
            continue
        y += 0.9 * (STRATA[name].by != "" and name != "root_by_depth")
        for group in sorted(groups, key=group_order):
            rows[name, group] = y
            y += 1.0
    tasks = list(changes["task"].unique())
    figure, axes = new_figure(0.9 + 0.29 * y, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        for row in changes[changes.task == task].itertuples():
            at = rows.get((row.stratum, row.group))
            if at is None:
                continue
            key = (task, row.stratum, row.group)
            _draw_stratum(ax, row, at, [tuple(table.loc[key]) for table in by_seed])
            ax.text(1.24, at, str(row.incidents), ha="right", va="center", fontsize=SMALL)
        ax.set(title=words(task), xlim=(-0.04, 1.25))
        ax.set_xticks(np.linspace(0.0, 1.0, 6))
    # The names stand once, at the top row, where there is most room between the two.
    first = changes[changes["stratum"] == next(iter(rows))[0]]
    widest = first.loc[first["change"].abs().idxmax()]
    sides = ("right", "left") if widest["change"] > 0.0 else ("left", "right")
    for policy, side in zip(("base", "trained"), sides, strict=True):
        axes[0, tasks.index(widest["task"])].annotate(
            policy, (widest[policy], 0.0), xytext=(6 if side == "right" else -6, 5),
            textcoords="offset points", ha=side, va="bottom", fontsize=9, weight="bold",
            color=policy_colour(policy),
        )  # fmt: skip
    figure.supxlabel(
        f"share (0 to 1; {seeds_said(len(evaluations))}); at the right of a row, its incidents",
        fontsize=10,
    )
    axes[0, 0].set_yticks(list(rows.values()), [label(*key) for key in rows])
    axes[0, 0].set_ylim(y - 0.4, -0.9)
    return figure


def plot_small_samples(
    scores: np.ndarray, sizes: Sequence[int] = (10, 30, 100, 300, 1000), draws: int = 2000
) -> Picture:
    """How far the difference of two averages of n episodes strays when nothing has changed.

    Args:
        scores: scores of one unchanging policy, (n,).
        sizes: numbers of episodes averaged.
        draws: pairs of averages drawn for each size.
    """
    random = np.random.default_rng(0)
    figure, axes = new_figure(2.8, width=6.5)
    ax = axes[0, 0]
    for x, size in enumerate(sizes):
        first, last = (random.choice(scores, (draws, size)).mean(1) for _ in range(2))
        low, high = np.quantile(last - first, (0.025, 0.975))
        ax.plot([x, x], [low, high], color=INK, lw=7, solid_capstyle="butt")
        ax.annotate(
            f"±{(high - low) / 2.0:.2f}", (x, high), xytext=(0, 4), textcoords="offset points",
            ha="center", fontsize=9,
        )  # fmt: skip
    ax.axhline(0.0, color=INK, lw=0.8)
    ax.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    ax.set(
        xlabel="episodes in each of the two averages",
        ylabel="last minus first average,\nscore (95 % of pairs)",
        xlim=(-0.6, len(sizes) - 0.4),
    )
    ax.margins(y=0.15)
    return figure
