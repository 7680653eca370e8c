"""Figures of the benchmark, and of one incident.

Each function takes data, returns a figure, and decides nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from ..world.cluster import is_degraded
from ..world.incidents import Incident
from .figure import (
    FAINT,
    INK,
    SMALL,
    Picture,
    draw_interval,
    label_ends,
    new_figure,
    policy_colour,
    words,
)
from .intervals import mean_interval

TICK_MINUTES = 0.5


def plot_policies(frame: pd.DataFrame) -> Picture:
    """Mean score with 95 % intervals: one panel per task, one row per policy in order of
    appearance. The mean number of steps is at the right.
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
    axes[0, 0].set_yticks(range(len(policies)), policies)
    axes[0, 0].set_ylim(len(policies) - 0.5, -0.5)
    for label, name in zip(axes[0, 0].get_yticklabels(), policies, strict=True):
        label.set_color(policy_colour(name))
    return figure


def plot_climb(incident: Incident) -> Picture:
    """How an incident climbs when nobody acts: one row per service, users' edge on top, one column
    per tick up to the agent's arrival. A degraded service is red, the deeper the more requests
    fail; the true root is bold.
    """
    topology, states = incident.topology, incident.untreated[: incident.arrival + 1]
    names = sorted(topology.names, key=topology.depth.__getitem__)
    ill = [
        [
            (0.2 + 0.7 * state.errors[i]) if is_degraded(topology, state, i) else 0.0
            for state in states
        ]
        for i in map(topology.position.__getitem__, names)
    ]
    figure, axes = new_figure(0.8 + 0.22 * len(names))
    ax = axes[0, 0]
    ax.pcolormesh(ill, cmap="Reds", vmin=0.0, vmax=1.0, edgecolors="white", lw=1.5)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=SMALL)
    if incident.root:
        ax.get_yticklabels()[names.index(incident.root)].set(weight="bold")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("ticks of 30 s, until the agent arrives; red: degraded; bold: the root")
    return figure


def plot_healing(curves: Mapping[str, Sequence[float]], arrival: int) -> Picture:
    """Share of user requests that fail over time, one line per course of action.

    Args:
        curves: label to a value per tick from tick 0 on; the first, of doing nothing, is drawn as a
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
        xlabel="minutes after the agent arrives, and acts",
        ylabel="user requests that fail, %",
        ylim=(-0.06 * max(top, 5.0), 1.12 * max(top, 5.0)),
    )
    ax.axvline(0.0, color=INK, lw=0.8, ls=":")
    label_ends(ax, ends)
    return figure
