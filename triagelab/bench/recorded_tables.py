"""The table of docs/real.md, as Markdown, from results/ alone."""

from functools import cache
from typing import Any

import pandas as pd

from ..real.cases import SOURCES
from .published import read
from .recorded_results import HALVES, OURS, RANKED, real_table
from .results_tables import table

# Rules for real incidents that are not ours; the code of the second line's is gone.
OTHER_RULES = (
    *(name for name in RANKED if name != OURS),
    *("commonest", "largest_ratio", "deepest", "random_walk", "error_lines", "worst_callee"),
)


@cache
def real_shares() -> pd.DataFrame:
    """The published `real_table`, by policy, source and part of the cases."""
    shares = real_table(read("real/cases.parquet"))
    return shares.set_index(["policy", "source", "part"])


def by_source(policy: str, part: str = "all") -> dict[str, Any]:
    """A policy's shares of roots named first on each source; "-" where it has not played."""
    shares = real_shares()["top1"]
    return {source: shares.get((policy, source, part), "-") for source in SOURCES}


def best_other_rule(source: str) -> str:
    """The share of the one of `OTHER_RULES` that finds most of a source's roots, and its name."""
    shares = real_shares()["top1"]
    means = {
        name: shares[name, source, "all"].mean
        for name in OTHER_RULES
        if (name, source, "all") in shares
    }
    best = max(means, key=means.__getitem__)
    return f"{shares[best, source, 'all']:.2f} (`{best}`)"


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: our rule by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    published = read("real/published.csv").sort_values("top1").groupby("source").last()
    rows = {f"`{OURS}`, cases {half}": by_source(OURS, half) for half in HALVES}
    rows["best other rule, all cases"] = {source: best_other_rule(source) for source in SOURCES}
    rows |= {f"`{name}`, all cases": by_source(name) for name in ("trace", "belief")}
    rows["published, best result reported"] = {
        source: f"{published['top1'][source]:.2f} ({published['method'][source].partition(',')[0]})"
        for source in SOURCES
    }
    return table([{"root named first": name, **row} for name, row in rows.items()])
