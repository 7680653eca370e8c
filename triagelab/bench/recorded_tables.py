"""The tables of docs/real.md and docs/production.md, as Markdown, from results/ alone."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd

from ..real.cases import SOURCES
from ..realistic.production_policies import RANKER
from .intervals import compare_recipes, holm
from .published import read
from .recorded_results import HALVES, OURS, RANKED, TITLES, production_table, real_table
from .results_tables import table

# Rules for real incidents: those that are not ours, and those whose code is gone.
OTHER_RULES = tuple(name for name in RANKED if name != OURS)
GONE_RULES = (
    *("commonest", "largest_ratio", "deepest", "random_walk"),
    *("error_lines", "worst_callee"),
)


@cache
def real_shares() -> pd.DataFrame:
    """The published `real_table`, by policy, source and part of the cases."""
    shares = real_table(read("real/cases.parquet"))
    return shares.set_index(["policy", "source", "part"])


def by_source(policy: str, column: str = "top1", part: str = "all") -> dict[str, Any]:
    """A policy's shares on each source; "-" where it has not played."""
    shares = real_shares()[column]
    return {source: shares.get((policy, source, part), "-") for source in SOURCES}


def best_rule(source: str, rules: Sequence[str] = OTHER_RULES) -> str:
    """The one of `rules` that finds most of a source's roots; by default, ours is left out."""
    shares = real_shares()["top1"]
    known = [name for name in rules if (name, source, "all") in shares]
    return max(known, key=lambda name: shares[name, source, "all"].mean)


def best_cells(rules: Sequence[str] = OTHER_RULES) -> dict[str, str]:
    """`best_rule` on each source, with its share."""
    best = {source: best_rule(source, rules) for source in SOURCES}
    return {at: f"{by_source(name)[at]:.2f} (`{name}`)" for at, name in best.items()}


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: our rule by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    published = read("real/published.csv").sort_values("top1").groupby("source").last()
    rows = {f"`{OURS}`, cases {half}": by_source(OURS, part=half) for half in HALVES}
    rows["best other rule, all cases"] = best_cells((*OTHER_RULES, *GONE_RULES))
    rows |= {f"`{name}`, all cases": by_source(name) for name in ("trace", "belief")}
    rows["published, all cases of the source"] = {
        source: f"{published['top1'][source]:.2f} ({published['method'][source].partition(',')[0]})"
        for source in SOURCES
    }
    return table([{"root named first": name, **row} for name, row in rows.items()])


def transfer_table() -> str:
    """Who names the root of real incidents first: the ranker, or rules that know no fault."""
    cases = read("real/cases.parquet")
    pairs = cases.groupby(["policy", "source", "root", "fault"])["top1"].mean()
    comparisons = []
    for at in SOURCES:
        theirs, ours = (pairs[name, at].to_numpy() for name in (best_rule(at), RANKER))
        comparisons.append(compare_recipes(theirs, ours, paired=True))
    adjusted = holm([p for _, p in comparisons])
    over = [f"{less:.2f}, p = {p:.2f}" for (less, _), p in zip(comparisons, adjusted, strict=True)]
    rows = {
        "`ranker`, five seeds": by_source(RANKER),
        "the same, by pairs of root and fault": by_source(RANKER, "by_group"),
        "`ranker`, among three": by_source(RANKER, "top3"),
        "best other rule": best_cells(),
        "`ranker` less that, by pairs": dict(zip(SOURCES, over, strict=True)),
        f"`{OURS}`": by_source(OURS),
    }
    return table(
        [
            {"root named first": name} | {TITLES[source]: row[source] for source in SOURCES}
            for name, row in rows.items()
        ]
    )


@cache
def production_shares() -> pd.DataFrame:
    """The published `recorded_results.production_table`."""
    return production_table(read("production/episodes.parquet"))


def policies_table() -> str:
    """How often policies answer the 500 incidents of `production`'s `test` rightly."""
    rows = []
    for row in production_shares().itertuples():
        stated = pd.notna(row.calibration_error)
        rows.append(
            {
                "policy": f"`{row.policy}`" + (", five seeds" if row.policy == RANKER else ""),
                "right": row.root,
                "remedy": row.remedy if stated else "-",
                "team": row.team if stated else "-",
                "root right, path wrong": row.path_wrong,
                "calibration error": f"{row.calibration_error:.3f}" if stated else "-",
            }
        )
    return table(rows)
