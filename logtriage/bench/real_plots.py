"""The figure of real incidents: who finds the root, a panel a source."""

from __future__ import annotations

import pandas as pd

from .figure import SMALL, Picture, draw_interval, new_figure
from .palette import FAINT, INK, POLICY_COLOURS, words

TITLES = {
    "petshop": "PetShop",
    "nezha-trainticket": "Train Ticket",
    "nezha-onlineboutique": "Online Boutique",
}


def plot_real(table: pd.DataFrame, published: pd.DataFrame) -> Picture:
    """Share of cases whose root is named first, a row a policy, with its interval over cases; a
    small ring is the share named among the first three. Below, as diamonds, what others report.

    Args:
        table: from `real.real_table`.
        published: from `real.published_frame`.
    """
    table = table[table["part"] == "all"]
    policies = list(dict.fromkeys(table["policy"]))
    others = list(dict.fromkeys(name.split(",")[0] for name in published["method"]))
    rows = [*policies, *others]
    figure, axes = new_figure(0.235 * len(rows) + 0.8, columns=len(TITLES), sharey=True)
    for ax, (source, title) in zip(axes[0], TITLES.items(), strict=True):
        for row in table[table["source"] == source].itertuples():
            at = policies.index(row.policy)
            colour = POLICY_COLOURS.get(row.policy, INK)
            draw_interval(ax, row.top1, at, colour)
            ax.plot([row.top3.mean], [at], "o", mfc="white", mec=colour, ms=3.5, zorder=2)
        for row in published[published["source"] == source].itertuples():
            at = len(policies) + others.index(row.method.split(",")[0])
            ax.plot([row.top1], [at], "D", color=INK, ms=5.0, zorder=4)
            ax.plot([row.top3], [at], "D", mfc="white", mec=INK, ms=3.5, zorder=2)
        cases = int(table.loc[table["source"] == source, "cases"].max())
        ax.set_title(f"{title}, {cases} cases", fontsize=10)
        ax.axhline(len(policies) - 0.5, color=FAINT, lw=0.8)
        ax.set_xlim(-0.03, 1.03)
        ax.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
        ax.grid(axis="x", color=FAINT, lw=0.5, alpha=0.6)
        ax.set_xlabel("root named first (ring: in three)", fontsize=9)
    first = axes[0, 0]
    labels = [words(name) for name in policies] + [f"{name} (published)" for name in others]
    first.set_yticks(range(len(rows)), labels, fontsize=SMALL)
    first.set_ylim(len(rows) - 0.5, -0.5)
    return figure
