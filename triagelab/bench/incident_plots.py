"""Figures of one incident: how it climbs to the users, and what heals it."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from logtriage.world.cluster import Cluster, is_degraded
from logtriage.world.incidents import Incident

from .plots import FAINT, INK, SMALL, Picture, new_figure


def plot_climb(incident: Incident) -> Picture:
    """Plot how an incident climbs when nobody acts: one row per service with the users' edge on
    top, and one column per tick until the agent arrives. A degraded service is red, and darker the
    more of its requests fail; the root is bold.
    """
    topology, states = incident.topology, incident.untreated[: incident.arrival + 1]
    names = sorted(topology.names, key=topology.depth.__getitem__)
    places = [topology.position[name] for name in names]
    red = [
        [is_degraded(topology, state, i) * (0.2 + 0.7 * state.errors[i]) for state in states]
        for i in places
    ]
    figure, axes = new_figure(0.8 + 0.22 * len(names))
    ax = axes[0, 0]
    ax.pcolormesh(red, cmap="Reds", vmin=0.0, vmax=1.0, edgecolors="white", lw=1.5)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=SMALL)
    if incident.root:
        ax.get_yticklabels()[names.index(incident.root)].set(weight="bold")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("ticks of 30 s, until the agent arrives; red: degraded; bold: the root")
    return figure


def plot_healing(incident: Incident) -> Picture:
    """Plot the share of user requests that fail, until ten ticks after the agent arrives: if
    nothing is done, if the edge is restarted, and if the right remedy is applied to the root. If
    there are several edges, the worst one counts.
    """
    topology, root, remedy = incident.topology, incident.root, incident.remedy
    edge = topology.names[0]
    symptom = ", a symptom: errors come back" if root not in (None, edge) else ""
    figure, axes = new_figure(2.9)
    ax = axes[0, 0]

    def draw(name: str, applied: str, service: str, **style: Any) -> None:
        cluster = Cluster(topology, incident.injection, incident.untreated, incident.arrival)
        if applied:
            cluster.remediate(applied, topology.position[service])
        for _ in range(10):
            cluster.advance()
        states = cluster.states[: cluster.tick + 1]
        errors = [100.0 * max(state.errors[i] for i in topology.entry_services) for state in states]
        ax.plot(0.5 * (np.arange(len(states)) - incident.arrival), errors, label=name, **style)

    draw("nothing done", "", "", color=FAINT, lw=9)
    draw(f"restart {edge}{symptom}", "restart", edge, color=INK, lw=1.8, ls=(0, (2, 1.5)))
    if root and remedy:
        style = {"color": INK, "lw": 2.4, "marker": "o", "ms": 4}
        draw(f"{remedy} {root}, where it began", remedy, root, **style)
    ax.axvline(0.0, color=INK, lw=0.8, ls=":")
    ax.set_xlabel("minutes after the agent arrives, and acts")
    ax.set_ylabel("user requests that fail, %")
    ax.legend(fontsize=9, frameon=False)
    return figure
