"""Figures of the benchmark, and of one incident.

Each function takes data, returns a figure, and decides nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes

from ..world.cluster import DEGRADED_ERRORS, DEGRADED_SLOWDOWN, State, is_degraded
from ..world.incidents import Incident
from ..world.tasks import SPLITS
from ..world.topology import Topology
from .figure import (
    FAINT,
    ILL,
    INK,
    SMALL,
    TASK_COLOURS,
    VERDICT_COLOURS,
    Picture,
    draw_interval,
    draw_key,
    label_ends,
    new_figure,
    policy_colour,
    spread,
    words,
)
from .intervals import mean_interval, reliability

TICK_MINUTES = 0.5
TIMES = "\N{MULTIPLICATION SIGN}"
WIDE = 4  # more services side by side leave no room for their names
MEANINGS = {
    "grounded": "right, and likely",
    "lucky": "right, but unlikely",
    "misled": "wrong, but likely",
    "reckless": "wrong, and unlikely",
}


def plot_policies(frame: pd.DataFrame) -> Picture:
    """Mean score with 95 % intervals: one panel per task, one row per policy in order of
    appearance. The mean number of steps is at the right.

    Args:
        frame: rollouts of any number of policies.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(0.9 + 0.3 * len(policies), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        for y, policy in enumerate(policies):
            own = frame[(frame["task"] == task) & (frame["policy"] == policy)]
            draw_interval(ax, mean_interval(own["score"]), y, policy_colour(policy))
            steps = f"{own['steps'].mean():.1f}"
            ax.text(1.2, y, steps, ha="right", va="center", fontsize=SMALL)
        ax.set(title=words(task), xlim=(-0.04, 1.22), xticks=np.linspace(0.0, 1.0, 6))
        ax.grid(axis="y", color=FAINT, lw=0.5)
        ax.set_axisbelow(True)
    figure.supxlabel("mean score (0 to 1); at the right, the mean number of steps", fontsize=10)
    _name_rows(axes[0, 0], policies)
    return figure


def _name_rows(ax: Axes, policies: Sequence[str]) -> None:
    """Policies as coloured names from the top of an axes down."""
    ax.set_yticks(range(len(policies)), policies)
    ax.set_ylim(len(policies) - 0.5, -0.5)
    for label, name in zip(ax.get_yticklabels(), policies, strict=True):
        label.set_color(policy_colour(name))


def plot_splits(frame: pd.DataFrame, left_out: tuple[str, ...] = ("random", "oracle")) -> Picture:
    """Mean score with 95 % intervals: one panel per task, one row per split, one dot per policy,
    whose name is above its column. A column that stays upright does not depend on the split.

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
            own = frame[(frame["task"] == task) & (frame["policy"] == policy)]
            colour = policy_colour(policy)
            cells = [mean_interval(own[own["split"] == split]["score"]) for split in SPLITS]
            ax.axvline(cells[0].mean, color=colour, lw=0.9, alpha=0.35, ymax=0.97)
            for y, cell in enumerate(cells):
                draw_interval(ax, cell, y, colour)
            tops.append(cells[0].mean)
        for policy, top, x in zip(policies, tops, spread(tops, 0.085), strict=True):
            colour = policy_colour(policy)
            ax.annotate(
                policy, (top, -0.35), (x, -0.75), rotation=90, ha="center", va="bottom",
                fontsize=9, color=colour, annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6,
                            "shrinkA": 1, "shrinkB": 0},
            )  # fmt: skip
        ax.set(xlabel="mean score (0 to 1)", xlim=(0.0, 1.04))
        ax.set_title(words(task), pad=62)
    axes[0, 0].set_yticks(range(len(SPLITS)), map(words, SPLITS))
    axes[0, 0].set_ylim(len(SPLITS) - 0.6, -0.5)
    return figure


def plot_hops(table: pd.DataFrame, fewest: int = 20) -> Picture:
    """Root-cause accuracy against distance from alert to root, one line per policy, with bands of
    two standard errors; distances with under `fewest` episodes are left out.

    Args:
        table: from `benchmark.hop_table`.
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


def plot_reliability(openings: pd.DataFrame) -> Picture:
    """Whether the probability that `belief` states at the opening means what it says: one panel per
    task, one dot per bin with its number of openings, and a band of two standard errors.

    Args:
        openings: from `benchmark.opening_beliefs`.
    """
    tasks = list(dict.fromkeys(openings["task"]))
    figure, axes = new_figure(3.2, len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        part, colour = openings[openings["task"] == task], TASK_COLOURS[task]
        table = reliability(part["confidence"], part["correct"])
        stated = table["confidence"]
        error = 2.0 * np.sqrt(stated * (1.0 - stated) / table["answers"])
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1.2)
        ax.fill_between(stated, stated - error, stated + error, color=FAINT, alpha=0.35, lw=0)
        ax.plot(stated, table["accuracy"], "o", color=colour, ms=7)
        for row in table.itertuples():
            ax.annotate(
                f"{row.answers}", (row.confidence, row.accuracy), xytext=(6, -10),
                textcoords="offset points", fontsize=SMALL, color=colour,
            )  # fmt: skip
        ax.set(title=words(task), xlim=(0, 1.16), ylim=(-0.02, 1.06))
        ax.set_xticks(np.linspace(0.0, 1.0, 6))
    axes[0, 0].set_ylabel("share of them right")
    figure.supxlabel("stated probability of the likeliest root, at the opening", fontsize=10)
    return figure


def plot_audit(frame: pd.DataFrame) -> Picture:
    """The share of each verdict: one panel per task, one bar per policy; shares of 0.1 or more are
    written out.

    Args:
        frame: from `audit.audit`, of any number of policies.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(1.3 + 0.3 * len(policies), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        part = frame[frame["task"] == task]
        shares = pd.crosstab(part["policy"], part["verdict"], normalize="index")
        shares = shares.reindex(index=policies, columns=list(VERDICT_COLOURS), fill_value=0.0)
        left = np.zeros(len(policies))
        for verdict, colour in VERDICT_COLOURS.items():
            widths = shares[verdict].to_numpy()
            rows = range(len(policies))
            ax.barh(rows, widths, 0.7, left, color=colour, edgecolor="white", lw=0.5)
            ink = "white" if verdict in ("grounded", "reckless") else INK
            for y, (start, share) in enumerate(zip(left, widths, strict=True)):
                if share >= 0.1:
                    text = "1" if share > 0.995 else f"{share:.2f}"[1:]
                    ax.text(
                        start + share / 2.0, y, text,
                        ha="center", va="center", fontsize=SMALL, color=ink,
                    )  # fmt: skip
            left += widths
        ax.set(title=words(task), xlabel="share of episodes", xlim=(0, 1), xticks=(0, 0.5, 1))
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    _name_rows(axes[0, 0], policies)
    key = {
        f"{verdict} ({MEANINGS[verdict]})" if verdict in MEANINGS else verdict: colour
        for verdict, colour in VERDICT_COLOURS.items()
    }
    draw_key(figure, key)
    return figure


# -- one incident --------------------------------------------------------------------------------


def ill_services(topology: Topology, state: State) -> set[str]:
    """Names of the degraded services."""
    return {name for i, name in enumerate(topology.names) if is_degraded(topology, state, i)}


def climb(incident: Incident, panels: int = 4) -> dict[int, str]:
    """The ticks that show how an incident climbs, each with a title: the last healthy one, the
    first at which the root alone is ill (or its onset, where there is none), those at which more
    services follow, and the agent's arrival. For a false alarm, the first tick and the arrival.

    Args:
        incident: with one fault or none.
        panels: at most so many ticks, 3 or more.
    """
    ill = [ill_services(incident.topology, state) for state in incident.untreated]
    ticks, shown = range(1, len(ill)), {0, incident.arrival}
    if incident.injection is not None:
        first = next((t for t in ticks if ill[t] == {incident.root}), incident.injection.onset)
        spreads = [t for t in ticks if t > first and len(ill[t]) > len(ill[t - 1])]
        shown = {first - 1, first, *spreads[: panels - 3], incident.arrival}

    def title(t: int) -> str:
        agent = ", agent arrives" if t == incident.arrival else ""
        if ill[t] == {incident.root}:
            return f"tick {t}{agent}\nthe root alone is ill"
        return (
            f"tick {t}{agent}\n{len(ill[t]) or 'nobody'} {'are' if len(ill[t]) > 1 else 'is'} ill"
        )

    return {t: title(t) for t in sorted(shown)}


def _condition(topology: Topology, state: State, i: int) -> tuple[str, float]:
    """What is written in a service's circle, and how deep its red is, from 0 to 1."""
    if not is_degraded(topology, state, i):
        return "", 0.0
    slowdown = state.latency[i] / topology.network.rest_latency[i]
    if state.errors[i] > DEGRADED_ERRORS:
        return f"{100 * state.errors[i]:.0f} %", 0.2 + 0.7 * state.errors[i]
    return (f"{slowdown:.1f}{TIMES}" if slowdown > DEGRADED_SLOWDOWN else "full"), 0.2


def _draw_state(ax: Axes, topology: Topology, state: State, root: str | None, roomy: bool) -> None:
    at = topology.layout
    for service in topology.services:
        for callee in service.downstream:
            style = "-" if callee in service.calls else ":"
            ax.plot(
                *zip(at[service.name], at[callee], strict=True),
                style,
                color=FAINT,
                lw=1.3,
                zorder=1,
            )
    for i, name in enumerate(topology.names):
        said, depth = _condition(topology, state, i)
        ax.scatter(
            *at[name],
            s=900 if roomy else 110,
            color=colormaps[ILL](depth) if depth else "white",
            edgecolors=INK,
            linewidths=3.5 if name == root else 0.8,
            zorder=2,
        )
        if roomy:
            colour = "white" if depth > 0.6 else INK
            ax.annotate(said, at[name], ha="center", va="center", fontsize=SMALL, color=colour)
    rows = max(-y for _, y in at.values())
    ax.set(xlim=(-0.02, 1.02), ylim=(-rows - 0.5, 0.4 if roomy else 0.7))
    ax.axis("off")


def draw_cluster(
    topology: Topology, states: Sequence[State], titles: Sequence[str], root: str | None = None
) -> Picture:
    """The call graph at several moments, side by side; the first names the services.

    Degraded services are red, the deeper the more requests fail; their circle says what share
    fails or, where none does, how many times slower they are than at rest. In graphs more than
    `WIDE` across, circles stay empty and only edges and root are named.

    Args:
        topology: the call graph.
        states: one a panel.
        titles: one a panel.
        root: marked with a ring, when given.
    """
    at, kinds = topology.layout, {service.name: service.kind for service in topology.services}
    rows = [y for _, y in at.values()]
    roomy = max(rows.count(y) for y in rows) <= WIDE
    ratios = [1.45, *[1.0] * (len(states) - 1)]
    figure, axes = new_figure(3.1, len(states), width_ratios=ratios)
    for ax, state, title in zip(axes[0], states, titles, strict=True):
        _draw_state(ax, topology, state, root, roomy)
        ax.set_title(title, fontsize=10)
    for name in topology.names:
        if roomy or name == root or kinds[name] == "edge":
            above = not roomy and kinds[name] == "edge"
            axes[0, 0].annotate(
                name.replace("-", "-\n", 1) if roomy and len(name) > 12 else name,
                at[name],
                xytext=(0, 7 if above else -18 if roomy else -8),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                fontsize=SMALL,
                weight="bold" if name == root else "normal",
                bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 0.3},
            )
    figure.supxlabel(
        "red: degraded; in the circle, the share of requests that fail, or "
        + TIMES
        + " the time at rest"
        + ("; thick ring: the root" if root else "")
        + "; a tick is 30 s",
        fontsize=9,
    )
    return figure


def plot_healing(curves: Mapping[str, Sequence[float]], arrival: int) -> Picture:
    """Share of user requests that fail over time, a line a course of action.

    Args:
        curves: label to a value a tick from tick 0 on; the first, of doing nothing, is drawn as a
            broad band, so that it shows under lines that follow it.
        arrival: the tick at which the agent arrives, minute 0.
    """
    figure, axes = new_figure(2.9)
    ax = axes[0, 0]
    styles = [
        {"color": FAINT, "lw": 9, "solid_capstyle": "round"},
        {"color": INK, "lw": 1.8, "ls": (0, (2, 1.5))},
        {"color": INK, "lw": 2.4, "marker": "o", "ms": 4},
    ]
    ends = {}
    for (label, values), style in zip(curves.items(), styles, strict=False):
        minutes = TICK_MINUTES * (np.arange(len(values)) - arrival)
        ax.plot(minutes, 100.0 * np.asarray(values), label=label, **style)
        ends[label] = (100.0 * values[-1], "#6B6B6B" if style["color"] == FAINT else INK)
    top = 100.0 * max(max(values) for values in curves.values())
    ax.set(
        xlabel="minutes after the agent arrives",
        ylabel="user requests that fail, %",
        ylim=(-0.06 * max(top, 5.0), 1.12 * max(top, 5.0)),
    )
    ax.axvline(0.0, color=INK, lw=0.8, ls=":")
    ax.annotate(
        "it acts", (0.0, 1.0), xycoords=ax.get_xaxis_transform(), xytext=(4, -2),
        textcoords="offset points", va="top", fontsize=SMALL,
    )  # fmt: skip
    label_ends(ax, ends)
    return figure
