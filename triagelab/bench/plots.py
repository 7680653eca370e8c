"""Figures of policies, of one agent over its training seeds, and of a sweep.

Each function draws the data that it is given and returns the figure. The figures of an agent take
one frame per training seed, all in the same order, of what `bench.run_evaluation` has played: the
episodes of training, of checkpoints, or of the evaluation. They say how many seeds there are.

A colour means one policy or task throughout the repository. Figures are `WIDTH` inches wide, the
width of a README column (about 830 pixels), so that a font of 8 points is 8 points there.
"""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from scipy.optimize import isotonic_regression

from .intervals import Interval, mean_interval, range_of, seed_scores, two_way_mean
from .strata import STRATA, label, named_once, stratum_changes
from .sweep_tables import rows_of, scores_of, tasks_of

WIDTH = 8.6
DPI = 190  # twice the pixels of the page, for sharp screens
SMALL = 8.5  # points, of small text such as row names; no text is smaller

POLICY_COLOURS = {
    "random": "#949494",
    "constant": "#B05CD6",
    "loudest": "#C76C00",
    "novice": "#663300",
    "trace": "#2E9E5B",
    "belief": "#580063",
    "oracle": "#000000",
    "unexplained": "#C8102E",  # this project's rule for real incidents
    "ranker": "#1F5BFF",  # learned from simulated incidents alone, as the trained agent is
    "ceiling": "#580063",  # the posterior of `production`, as `belief` is of the other tasks
    "base": "#5F5A63",  # the embedded model before training ...
    "trained": "#1F5BFF",  # ... and after
    "agent": "#1F5BFF",  # the trained one that is in the package
}
OTHER_MODEL = "#331199"  # any other model; its row says which
TASK_COLOURS = {
    "single_crash": "#0698CA",
    "cascading_failure": "#D6219C",
    "silent_degradation": "#9B8804",
}
UNIT = np.linspace(0.0, 1.0, 6)  # ticks of a score or share
INK, FAINT = "#222222", "#B8B8B8"  # for what is neither policy nor task
WINDOW = 15  # training steps in a running mean
SHOWN = ("faults_detected", "false_alarms_dismissed")  # strata that are always in the figure
BASE, TRAINED = POLICY_COLOURS["base"], POLICY_COLOURS["trained"]

Frames = Sequence[pd.DataFrame]

# -- shared by all ---------------------------------------------------------------------------------


def policy_colour(name: str) -> str:
    """The colour of a policy, by its name in rollout frames; all unlisted models share one."""
    return POLICY_COLOURS.get(name, OTHER_MODEL)


def words(name: str) -> str:
    """An identifier as a label: `silent_degradation` is "silent degradation"."""
    return name.replace("_", " ")


class Picture(Figure):
    """A figure that a notebook shows by itself, without pyplot and its global state."""

    def png(self) -> bytes:
        """The figure as a PNG of at most 128 colours: a third of the size, with no visible loss."""
        pixels, small = BytesIO(), BytesIO()
        self.savefig(pixels, format="png")
        image = Image.open(pixels).convert("RGB")
        image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
        return small.getvalue()

    def save(self, path: str | Path) -> None:
        """Write `png` to a file."""
        Path(path).write_bytes(self.png())

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png(), {"width": round(96 * self.get_figwidth())}


def new_figure(height: float, columns: int = 1, **options: Any) -> tuple[Picture, np.ndarray]:
    """An empty figure of `WIDTH` by `height` inches, and its axes (1, columns); `options` are
    passed to `Figure.subplots`.
    """
    figure = Picture(figsize=(WIDTH, height), layout="constrained", dpi=DPI)
    axes = figure.subplots(1, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
    return figure, axes


def task_panels(height: float, tasks: Sequence[str]) -> tuple[Picture, dict[str, Axes]]:
    """A figure with one panel per task; only the first panel shows the names of the rows."""
    figure, axes = new_figure(height, len(tasks), sharey=True)
    panels = dict(zip(tasks, axes[0], strict=True))
    for task, ax in panels.items():
        ax.set_title(words(task))
    return figure, panels


def spread(values: Sequence[float], gap: float) -> np.ndarray:
    """`values` moved as little as possible (least squares) so that neighbours are `gap` apart."""
    wanted = np.asarray(values, dtype=float)
    order, shifts = np.argsort(wanted, kind="stable"), gap * np.arange(len(wanted))
    moved = np.empty_like(wanted)
    moved[order] = isotonic_regression(wanted[order] - shifts).x + shifts
    return moved


def label_ends(ax: Axes, ends: Mapping[str, tuple[float, str]], weight: str = "normal") -> None:
    """Write names to the right of an axes, each where its line ends, without overlaps.

    Args:
        ax: finished axes; its limits must not change afterwards.
        ends: maps each label to its height in data units and its colour.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None  # all axes here belong to a figure
    figure.draw_without_rendering()  # before this, the axes has no height
    lines = max((label.count("\n") for label in ends), default=0) + 1
    points = ax.get_window_extent().height * 72.0 / figure.dpi
    low, high = ax.get_ylim()
    heights = spread([y for y, _ in ends.values()], 1.3 * lines * 9 / points * (high - low))
    style: dict[str, Any] = {"va": "center", "fontsize": 9, "weight": weight}
    style |= {"xycoords": ax.get_yaxis_transform(), "annotation_clip": False}
    style |= {"xytext": (6, 0), "textcoords": "offset points"}
    for (name, (_, colour)), y in zip(ends.items(), heights, strict=True):
        ax.annotate(name, (1.0, y), color=colour, **style)


def draw_interval(ax: Axes, x: Interval, y: float, colour: str, **style: Any) -> None:
    """Draw a dot at the mean and a line over the 95 % interval, at height `y`."""
    ax.plot([x.low, x.high], [y, y], color=colour, lw=1.6, zorder=3, solid_capstyle="butt")
    ax.plot([x.mean], [y], color=colour, zorder=4, **{"marker": "o", "ms": 6.0, **style})


def name_rows(ax: Axes, names: Iterable[str], colours: Iterable[str] = (), **style: Any) -> None:
    """Name the rows of an axes from the top down, with half a row of room above and below."""
    names = [*names]
    ax.set_yticks(range(len(names)), names, **style)
    ax.set_ylim(len(names) - 0.5, -0.5)
    for tick, colour in zip(ax.get_yticklabels(), colours, strict=False):
        tick.set_color(colour)


# -- policies beside each other --------------------------------------------------------------------


def plot_policies(frame: pd.DataFrame) -> Picture:
    """Plot mean scores with 95 % intervals: one panel per task, one row per policy in order of
    appearance, and the mean number of steps at the right.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, panels = task_panels(0.9 + 0.3 * len(policies), tasks)
    for task, ax in panels.items():
        for y, policy in enumerate(policies):
            own = frame[(frame["task"] == task) & (frame["policy"] == policy)]
            draw_interval(ax, mean_interval(own["score"]), y, policy_colour(policy))
            steps = f"{own['steps'].mean():.1f}"
            ax.text(1.2, y, steps, ha="right", va="center", fontsize=SMALL, backgroundcolor="w")
        ax.set(xlim=(-0.04, 1.22), xticks=UNIT)
        ax.grid(axis="y", color=FAINT, lw=0.5)
        ax.set_axisbelow(True)
    counts = frame.groupby(["policy", "task"])["index"].nunique()
    figure.supxlabel(
        f"mean score of {range_of(counts)} incidents of each panel (0 to 1), 95 % intervals; at the"
        " right, mean steps",
        fontsize=10,
    )
    name_rows(panels[tasks[0]], policies, map(policy_colour, policies))
    return figure


# -- one agent -----------------------------------------------------------------------------------


def count_seeds(count: int) -> str:
    """The number of training seeds as the text of a figure."""
    return "one training seed" if count == 1 else f"{count} training seeds"


def _played(training: Frames) -> pd.Series:
    """For each step, the number of episodes that a seed has played by the end of it."""
    sizes = pd.concat([frame.groupby("step").size() for frame in training], axis=1)
    return sizes.mean(axis=1).cumsum()


def plot_learning(training: pd.DataFrame) -> Picture:
    """Plot one seed's scores while it learns, sampling on `train`, against the training episodes
    played (columns step, task, score). Each task has a colour; faint lines are the means of steps,
    strong ones running means over `WINDOW` steps, or fewer at the ends.
    """
    figure, axes = new_figure(3.2)
    ax, played, ends = axes[0, 0], _played([training]), {}
    for task, colour in TASK_COLOURS.items():
        means = training[training["task"] == task].groupby("step")["score"].mean()
        if means.empty:
            continue
        strong = means.rolling(WINDOW, min_periods=1, center=True).mean()
        ax.plot(played.loc[means.index], means, color=colour, alpha=0.3, lw=0.9)
        ax.plot(played.loc[means.index], strong, color=colour, lw=2.8)
        ends[task.replace("_", "\n")] = (strong.iloc[-1], colour)
    ax.set(
        xlabel="training episodes played",
        ylabel="mean score of sampled play (0 to 1)",
        ylim=(0.0, 1.02),
        xlim=(0.0, played.iloc[-1]),
    )
    title = f"While learning by GRPO\none training seed; strong: {WINDOW} steps' mean"
    ax.set_title(title, fontsize=10)
    label_ends(ax, ends, weight="bold")
    return figure


def plot_checkpoints(training: Frames, checkpoints: Frames, evaluations: Frames) -> Picture:
    """Plot held-out scores against training episodes, one panel per task: the base model and then
    every checkpoint, on the same incidents. Faint lines are seeds, bands 95 % intervals, and
    horizontal lines scripts. Axes begin at 0.5 if the model is never below.
    """
    played, indices = _played(training), set(checkpoints[0]["index"])
    whole = [frame[frame["index"].isin(indices)] for frame in evaluations]
    frames = [pd.concat(pair) for pair in zip(whole, checkpoints, strict=True)]
    steps, tasks = sorted(set(checkpoints[0]["step"])), list(dict.fromkeys(frames[0]["task"]))
    x = [0, *(played[step] for step in steps)]
    players = ["base", *(f"checkpoint-{step}" for step in steps)]
    scores = {task: [seed_scores(frames, task, name) for name in players] for task in tasks}
    floor = 0.5 if min(at.mean(1).min() for each in scores.values() for at in each) > 0.5 else 0.0
    figure, panels = task_panels(3.2, tasks)
    for task, ax in panels.items():
        ax.plot(x, [at.mean(axis=1) for at in scores[task]], color=TRAINED, alpha=0.5, lw=0.9)
        means, low, high = zip(*(two_way_mean([at]) for at in scores[task]), strict=True)
        ax.fill_between(x, low, high, color=TRAINED, alpha=0.15, lw=0)
        ax.plot(x, means, "-o", color=TRAINED, lw=2.4, ms=5)
        ax.plot(x[:1], means[:1], "o", color=BASE, ms=7, zorder=5)
        ends = {"trained": (means[-1], TRAINED)}
        for name, own in whole[0][whole[0]["task"] == task].groupby("policy")["score"]:
            if name in ("loudest", "trace"):
                below = f"\n{own.mean():.2f} ↓" if own.mean() < floor else ""
                ends[f"{name}{below}"] = (max(own.mean(), floor), policy_colour(name))
                ax.axhline(own.mean(), color=policy_colour(name), lw=1.2, ls=(0, (4, 2)), zorder=1)
        ax.set_ylim(floor, 1.02)
        label_ends(ax, ends)
    levels = {task: [at.mean() for at in each] for task, each in scores.items()}
    most = max(tasks, key=lambda task: levels[task][-1] - levels[task][0])
    figure.suptitle(f"It gains most on {words(most)}", fontsize=10.5)
    panels[tasks[0]].set_ylabel("mean held-out score (0 to 1)")
    seeds = f"thin: {count_seeds(len(training))}; band: 95 %; grey: the base; ↓: below the axis"
    how = f"{len(indices)} held-out incidents a task, played greedily"
    figure.supxlabel(f"training episodes played ({how})\n{seeds}", fontsize=10)
    return figure


def _draw_gain(ax: Axes, evaluations: Frames, task: str, y: float) -> None:
    """Draw the row of a task: an arrow from base to trained, and bars for scripts."""
    means = {}
    for policy, colour in (("base", BASE), ("trained", TRAINED)):
        scores = seed_scores(evaluations, task, policy)
        if len(scores) > 1:
            ax.plot(scores.mean(axis=1), [y] * len(scores), "o", color=colour, alpha=0.3, ms=5)
        cell = two_way_mean([scores])
        draw_interval(ax, cell, y, colour, ms=8)
        means[policy] = cell.mean
    arrow = {"arrowstyle": "-|>", "lw": 2.4, "color": TRAINED, "shrinkA": 5, "shrinkB": 3}
    ax.annotate("", (means["trained"], y), (means["base"], y), arrowprops=arrow)
    middle = float(np.clip(np.mean(list(means.values())), 0.2, 0.8))
    style: dict[str, Any] = {"va": "top", "fontsize": 9.5, "weight": "bold"}
    style |= {"xytext": (0, -9), "textcoords": "offset points"}
    before, after = f"base {means['base']:.2f} ", f"→ trained {means['trained']:.2f}"
    ax.annotate(before, (middle, y), ha="right", color=BASE, **style)
    ax.annotate(after, (middle, y), ha="left", color=TRAINED, **style)
    scripts = evaluations[0][evaluations[0]["task"] == task].groupby("policy")["score"].mean()
    names = [name for name in ("loudest", "trace", "belief") if name in scripts]
    for name, x in zip(names, spread([scripts[name] for name in names], 0.07), strict=True):
        ax.plot([scripts[name]] * 2, [y - 0.1, y + 0.16], color=policy_colour(name), lw=3)
        ax.text(x, y + 0.22, name, ha="center", fontsize=9, color=policy_colour(name))


def plot_gain(training: Frames, evaluations: Frames) -> Picture:
    """Plot base against trained on held-out incidents, both played greedily, with 95 % intervals
    over incidents and seeds. Bars are scripts. The title counts the episodes of `training`.
    """
    tasks = list(dict.fromkeys(evaluations[0]["task"]))
    figure, axes = new_figure(0.8 + 0.85 * len(tasks))
    ax = axes[0, 0]
    for row, task in enumerate(tasks):
        _draw_gain(ax, evaluations, task, -row)
    count = evaluations[0].groupby(["task", "policy"])["index"].nunique().max()
    faint = " (faint)" if len(evaluations) > 1 else ""
    ax.set(xlim=(-0.01, 1.04), ylim=(0.55 - len(tasks), 0.5), xticks=UNIT)
    ax.set(xlabel="mean score (0 to 1) of greedy play, before training and after")
    ax.set_yticks(range(0, -len(tasks), -1), map(words, tasks), fontsize=11, weight="bold")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_title(
        f"{_played(training).iloc[-1]:,.0f} episodes of GRPO, then {count} incidents a task that no"
        f" training saw\n{count_seeds(len(training))}{faint}; lines: 95 % intervals; bars: scripts",
        fontsize=10,
    )
    return figure


def plot_strata(evaluations: Frames) -> Picture:
    """Plot what a mean hides, from base to trained: one row per task for `SHOWN`, and one for each
    other stratum that fell. More is better, except for real faults dismissed.

    A blue line is a change for the better by more than its paired 95 % interval, a thick black one
    ("worse") such a change for the worse, and a grey one is no significant change.
    """
    changes = named_once(stratum_changes(evaluations))
    changes = changes[changes["stratum"].isin(SHOWN) | changes["fell"]]
    order = changes["stratum"].map([*STRATA].index)
    changes = changes.iloc[order.argsort(kind="stable")]
    figure, axes = new_figure(0.9 + 0.32 * len(changes))
    ax = axes[0, 0]
    for y, (_, row) in enumerate(changes.iterrows()):
        _draw_change(ax, row, y)
        ax.text(1.04, y, f"of {row['incidents']}", va="center", fontsize=SMALL)
    names = [f"{label(row.stratum, row.group)}, {words(row.task)}" for row in changes.itertuples()]
    name_rows(ax, names, fontsize=SMALL + 0.5)
    ax.set(xlim=(-0.02, 1.02), xticks=UNIT, xticklabels=[f"{share:.0%}" for share in UNIT])
    seeds = count_seeds(len(evaluations))
    said = f"share of these incidents ({seeds}); grey dot: base, blue: trained"
    lines = "line: grey may be chance, thick black is worse"
    figure.supxlabel(f"{said}; {lines}", fontsize=10)
    return figure


def _draw_change(ax: Axes, row: pd.Series, y: int) -> None:
    """Draw a row of `stratum_changes` at height `y`."""
    colour = INK if row["fell"] else TRAINED if row["gained"] else FAINT
    ends = [row["base"], row["trained"]]
    ax.plot(ends, [y, y], color=colour, lw=4 if row["fell"] else 2.4, zorder=1)
    for x, own in zip(ends, (BASE, TRAINED), strict=True):
        ax.plot([x], [y], "o", color=own, ms=6, zorder=4)
    if row["fell"]:
        left = min(ends) > 0.4
        x, side = (min(ends) - 0.06, "right") if left else (max(ends) + 0.06, "left")
        ax.text(x, y, "worse", ha=side, va="center", fontsize=SMALL, weight="bold")


# -- the rows of a sweep -------------------------------------------------------------------------


def plot_sweep_seeds(frame: pd.DataFrame, against: str = "") -> Picture:
    """Plot the held-out scores of a sweep, from `sweep_tables.gather`'s frame: one panel per task,
    one line per row. Faint dots are training seeds, the strong dot is their mean with its 95 %
    interval over seeds and incidents, and the grey dot is the base.

    The dashed line is the mean of `against`. Axes begin at 0.
    """
    tasks, rows = tasks_of(frame), rows_of(frame)
    of_row = {row: (scores_of(frame, row, "base"), scores_of(frame, row)) for row in rows}
    counts = sorted({len(after[0]) for _, after in of_row.values()})
    seeds = count_seeds(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    figure, panels = task_panels(1.0 + 0.24 * len(rows), tasks)
    for at, ax in enumerate(panels.values()):
        for y, row in enumerate(rows):
            before, after = (side[at] for side in of_row[row])
            ax.plot([before.mean()], [y], "o", color=BASE, ms=4, zorder=2)
            ax.plot(after.mean(axis=1), [y] * len(after), "o", color=TRAINED, alpha=0.3, ms=4)
            draw_interval(ax, two_way_mean([after]), y, TRAINED, ms=5.5)
        if against:
            mean = of_row[against][1][at].mean()
            ax.axvline(mean, color=INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
        ax.set(xlim=(-0.02, 1.02), xticks=UNIT)
    name_rows(panels[tasks[0]], map(words, rows))
    panels[tasks[0]].set_ylim(len(rows) - 0.4, -0.6)
    line = f"; dashed: {words(against)}" if against else ""
    figure.supxlabel(
        f"mean score of {of_row[rows[0]][1][0].shape[1]} held-out incidents (0 to 1; {seeds} a row;"
        f" grey: before training{line})",
        fontsize=10,
    )
    return figure
