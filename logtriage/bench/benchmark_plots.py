"""Figures of the benchmark, and of one incident.

Each function takes data, returns a figure, and decides nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ..world.cluster import DEGRADED_ERRORS, DEGRADED_SLOWDOWN, State, is_degraded
from ..world.incidents import Incident
from ..world.topology import Topology
from .figure import (
    FAINT,
    INK,
    SMALL,
    VERDICT_COLOURS,
    Picture,
    draw_interval,
    label_ends,
    new_figure,
    policy_colour,
    words,
)
from .intervals import mean_interval

PANELS = 4  # moments of an incident
TICK_MINUTES = 0.5
TIMES = "\N{MULTIPLICATION SIGN}"
WIDE = 4  # more services side by side leave no room for their names
MEANINGS = {
    "grounded": "grounded (right, and likely)",
    "lucky": "lucky (right, but unlikely)",
    "unanswered": "unanswered",
    "misled": "misled (wrong, but likely)",
    "reckless": "reckless (wrong, and unlikely)",
}


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
    _name_rows(axes[0, 0], policies)
    return figure


def _name_rows(ax: Axes, policies: Sequence[str]) -> None:
    """Policies as coloured names from the top of an axes down."""
    ax.set_yticks(range(len(policies)), policies)
    ax.set_ylim(len(policies) - 0.5, -0.5)
    for label, name in zip(ax.get_yticklabels(), policies, strict=True):
        label.set_color(policy_colour(name))


def plot_audit(frame: pd.DataFrame) -> Picture:
    """The share of each verdict: one panel per task, one bar per policy; shares of 0.1 or more are
    written out. The rows are those of `audit.audit_policies`.
    """
    tasks, policies = list(dict.fromkeys(frame["task"])), list(dict.fromkeys(frame["policy"]))
    figure, axes = new_figure(1.3 + 0.3 * len(policies), len(tasks), sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        part = frame[frame["task"] == task]
        shares = pd.crosstab(part["policy"], part["verdict"], normalize="index")
        shares = shares.reindex(index=policies, columns=list(VERDICT_COLOURS), fill_value=0.0)
        left = np.zeros(len(policies))
        for verdict, colour in VERDICT_COLOURS.items():
            own = shares[verdict].to_numpy()
            bars = ax.barh(policies, own, 0.7, left, color=colour, edgecolor="white", lw=0.5)
            texts = ["1" if share > 0.995 else f"{share:.2f}"[1:] for share in own]
            texts = [text if share >= 0.1 else "" for text, share in zip(texts, own, strict=True)]
            ink = "white" if verdict in ("grounded", "reckless") else INK
            ax.bar_label(bars, texts, label_type="center", fontsize=SMALL, color=ink)
            left += own
        ax.set(title=words(task), xlabel="share of episodes", xlim=(0, 1), xticks=(0, 0.5, 1))
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    _name_rows(axes[0, 0], policies)
    figure.legend(
        handles=[Patch(color=VERDICT_COLOURS[name], label=text) for name, text in MEANINGS.items()],
        loc="outside upper left",
        ncols=len(MEANINGS),
        fontsize=SMALL,
        frameon=False,
        handlelength=0.7,
        columnspacing=1.2,
    )
    return figure


# -- one incident --------------------------------------------------------------------------------


def climb(incident: Incident) -> dict[int, str]:
    """The ticks that show how an incident climbs, `PANELS` at most, each with a title: the last
    healthy one, the first at which the root alone is ill (or its onset, where there is none), those
    at which more services follow, and the agent's arrival. For a false alarm, the first tick and
    the arrival.
    """
    topology = incident.topology
    ill = [
        {name for i, name in enumerate(topology.names) if is_degraded(topology, state, i)}
        for state in incident.untreated
    ]
    ticks, shown = range(1, len(ill)), {0, incident.arrival}
    if incident.injection is not None:
        first = next((t for t in ticks if ill[t] == {incident.root}), incident.injection.onset)
        spreads = [t for t in ticks if t > first and len(ill[t]) > len(ill[t - 1])]
        shown = {first - 1, first, *spreads[: PANELS - 3], incident.arrival}

    def title(t: int) -> str:
        agent = ", agent arrives" if t == incident.arrival else ""
        who = f"{len(ill[t]) or 'nobody'} {'are' if len(ill[t]) > 1 else 'is'} ill"
        return f"tick {t}{agent}\n{'the root alone is ill' if ill[t] == {incident.root} else who}"

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
            ends = zip(at[service.name], at[callee], strict=True)
            ax.plot(*ends, style, color=FAINT, lw=1.3, zorder=1)
    for i, name in enumerate(topology.names):
        said, depth = _condition(topology, state, i)
        ax.scatter(
            *at[name],
            s=900 if roomy else 110,
            color=colormaps["Reds"](depth) if depth else "white",
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


def plot_climb(incident: Incident) -> Picture:
    """The call graph at the moments of `climb`, side by side; the first names the services.

    Degraded services are red, the deeper the more requests fail; their circle says what share
    fails or, where none does, how many times slower they are than at rest. The root has a thick
    ring. In graphs more than `WIDE` across, circles stay empty and only edges and root are named.
    """
    topology, root, moments = incident.topology, incident.root, climb(incident)
    at, edges = topology.layout, [topology.names[i] for i in topology.edges]
    rows = [y for _, y in at.values()]
    roomy = max(rows.count(y) for y in rows) <= WIDE
    figure, axes = new_figure(3.1, len(moments), width_ratios=[1.45, *[1.0] * (len(moments) - 1)])
    for ax, (tick, title) in zip(axes[0], moments.items(), strict=True):
        _draw_state(ax, topology, incident.untreated[tick], root, roomy)
        ax.set_title(title, fontsize=10)
    for name in topology.names if roomy else dict.fromkeys([*edges, root or edges[0]]):
        above = not roomy and name in edges
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
    ring = "; thick ring: the root" if root else ""
    figure.supxlabel(
        "red: degraded; in the circle, the share of requests that fail, or "
        f"{TIMES} the time at rest{ring}; a tick is 30 s",
        fontsize=9,
    )
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
