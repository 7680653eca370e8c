"""Figures of one incident: the cluster over time, and what a remediation changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from ..world.cluster import DEGRADED_ERRORS, DEGRADED_SLOWDOWN, State, is_degraded
from ..world.incidents import Incident
from ..world.topology import Topology
from .figure import SMALL, Picture, label_ends, new_figure
from .palette import FAINT, ILL, INK

TICK_MINUTES = 0.5
TIMES = "\N{MULTIPLICATION SIGN}"
WIDE = 4  # more services side by side leave no room for their names


def ill_services(topology: Topology, state: State) -> set[str]:
    """Names of the services in trouble (`severity.is_degraded`)."""
    return {name for i, name in enumerate(topology.names) if is_degraded(topology, state, i)}


def climb(incident: Incident, panels: int = 4) -> dict[int, str]:
    """The ticks that tell how an incident climbs, each with a title: the last healthy one, the
    first at which the root alone is ill (or its onset, where there is none), those at which more
    services follow, and the agent's arrival. For a false alarm, the first tick and the arrival.

    Args:
        incident: with one fault or none.
        panels: at most so many ticks, 3 or more.
    """
    ill = [ill_services(incident.topology, state) for state in incident.untreated]
    ticks, told = range(1, len(ill)), {0, incident.arrival}
    if incident.injection is not None:
        first = next((t for t in ticks if ill[t] == {incident.root}), incident.injection.onset)
        spreads = [t for t in ticks if t > first and len(ill[t]) > len(ill[t - 1])]
        told = {first - 1, first, *spreads[: panels - 3], incident.arrival}

    def title(t: int) -> str:
        agent = ", agent arrives" if t == incident.arrival else ""
        if ill[t] == {incident.root}:
            return f"tick {t}{agent}\nthe root alone is ill"
        return (
            f"tick {t}{agent}\n{len(ill[t]) or 'nobody'} {'are' if len(ill[t]) > 1 else 'is'} ill"
        )

    return {t: title(t) for t in sorted(told)}


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

    Services in trouble are red, the deeper the more requests fail; their circle says what share
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
        "red: in trouble; in the circle, the share of requests that fail, or "
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
