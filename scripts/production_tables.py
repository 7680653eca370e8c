"""The tables of docs/production.md, from results/production and results/real."""

from functools import cache

import numpy as np
import pandas as pd
from tables import ROOT

from logtriage.bench.intervals import compare_recipes, holm
from logtriage.bench.production_results import production_table
from logtriage.bench.real_results import ALL, OURS, RANKED, TITLES, real_table
from logtriage.bench.score_tables import markdown
from logtriage.production.production_policies import CEILING, RANKER
from logtriage.real.cases import SOURCES

RESULTS = ROOT / "results" / "production"


@cache
def real_cases() -> pd.DataFrame:
    """The published rows of real incidents."""
    return pd.read_parquet(ROOT / "results/real/cases.parquet")


@cache
def played() -> pd.DataFrame:
    """The published rows of `production`."""
    return pd.read_parquet(RESULTS / "episodes.parquet")


@cache
def solved() -> pd.DataFrame:
    """`production_results.production_table` of what is published."""
    return production_table(played())


def production_policies_table() -> str:
    """Who answers the 500 incidents of `test` rightly."""
    rows = []
    for row in solved().itertuples():
        stated = pd.notna(row.calibration_error)
        rows.append(
            {
                "policy": f"`{row.policy}`" + (", five seeds" if row.policy == RANKER else ""),
                "right": f"{row.root:.2f}",
                "remedy": f"{row.remedy:.2f}" if stated else "-",
                "team": f"{row.team:.2f}" if stated else "-",
                "root right, path wrong": f"{row.path_wrong:.2f}",
                "calibration error": f"{row.calibration_error:.3f}" if stated else "-",
            }
        )
    return markdown(rows)


@cache
def transfer() -> pd.DataFrame:
    """`real_table` of all cases, by policy and source."""
    table = real_table(real_cases())
    return table[table["part"] == ALL].set_index(["policy", "source"])


def best_rule(table: pd.DataFrame, source: str) -> str:
    """The rule that finds most of a source's roots, `unexplained` aside."""
    known = [name for name in RANKED if name != OURS and (name, source) in table.index]
    return max(known, key=lambda one: table.loc[(one, source), "top1"].mean)


def by_pair(policy: str, source: str) -> np.ndarray:
    """The share that a policy finds of each (root, fault) of a source, in one order."""
    cases = real_cases()
    some = cases[(cases["policy"] == policy) & (cases["source"] == source)]
    return some.groupby(["root", "fault"])["top1"].mean().to_numpy()


def transfer_table() -> str:
    """Who names the root of real incidents first: the ranker, and rules that know no fault."""
    table = transfer()

    def cells(policy: str, column: str) -> dict[str, str]:
        return {TITLES[source]: f"{table.loc[(policy, source), column]:.2f}" for source in SOURCES}

    best, over, chances = {}, {}, []
    for source in SOURCES:
        name = best_rule(table, source)
        best[TITLES[source]] = f"{table.loc[(name, source), 'top1']:.2f} (`{name}`)"
        gained = compare_recipes(by_pair(name, source), by_pair(RANKER, source), paired=True)
        over[TITLES[source]], chance = gained
        chances.append(chance)
    less = {
        title: f"{gain:.2f}, p = {chance:.2f}"
        for (title, gain), chance in zip(over.items(), holm(chances), strict=True)
    }
    rows = [
        {"root named first": "`ranker`, five seeds", **cells(RANKER, "top1")},
        {"root named first": "the same, by pairs of root and fault", **cells(RANKER, "by_group")},
        {"root named first": "`ranker`, among three", **cells(RANKER, "top3")},
        {"root named first": "best other rule", **best},
        {"root named first": "`ranker` less that, by pairs", **less},
        {"root named first": "`unexplained`", **cells(OURS, "top1")},
    ]
    return markdown(rows)


def seeds_table() -> str:
    """The ranker by seed: which of them is in the package."""
    real, simulated = (one[one["policy"] == RANKER] for one in (real_cases(), played()))
    rows = []
    for seed, some in simulated.groupby("seed"):
        shares = real[real["seed"] == seed].groupby("source")["top1"].mean()
        rows.append(
            {
                "seed": f"{seed:.0f}",
                "`production`": f"{some['top1'].mean():.2f}",
                **{TITLES[source]: f"{shares[source]:.2f}" for source in SOURCES},
            }
        )
    return markdown(rows)


def conformal_table() -> str:
    """What sets that cover 90 % in simulation cover elsewhere, over the seeds."""
    sets = pd.read_csv(RESULTS / "conformal.csv").groupby("place", sort=False)
    rows = [
        {
            "where": TITLES.get(place, f"`{place}`"),
            "covered": f"{some['coverage'].mean():.2f}",
            "by seed": f"{some['coverage'].min():.2f} to {some['coverage'].max():.2f}",
            "answers in a set": f"{some['size'].mean():.1f}",
            'sets with "nothing is wrong"': f"{some['silent'].mean():.2f}",
        }
        for place, some in sets
    ]
    return markdown(rows)


def metrics_alone_table() -> str:
    """What `triage --metrics` is worth: the shipped ranker, by metrics and call graph alone."""
    rows = [
        {
            "where": TITLES.get(row.place, f"`{row.place}`"),
            "likeliest answer right": f"{row.right:.2f}",
            "a service named": f"{row.named:.2f}",
            "of these right": f"{row.named_right:.2f}",
        }
        for row in pd.read_csv(RESULTS / "metrics_alone.csv").itertuples()
    ]
    return markdown(rows)


def production_facts() -> dict[str, str]:
    """`production.ranker` and the like: shares of right answers; `transfer.petshop`: the ranker's
    on real cases, `transfer.rule.petshop`: the best rule's; `apart.petshop`: the area under a
    classifier's curve, that source held out.
    """
    table = solved().set_index("policy")
    numbers = {f"production.{name}": f"{one.mean:.2f}" for name, one in table["root"].items()}
    numbers["production.ece"] = f"{table.loc[CEILING, 'calibration_error']:.3f}"
    known = transfer()
    for source in SOURCES:
        rule = best_rule(known, source)
        for name, policy in ((source, RANKER), (f"rule.{source}", rule)):
            numbers[f"transfer.{name}"] = f"{known.loc[(policy, source), 'top1'].mean:.2f}"
    apart = pd.read_csv(RESULTS / "apart.csv").groupby("held_out")
    numbers |= {f"apart.{name}": f"{some['auc'].mean():.2f}" for name, some in apart}
    return numbers | {"apart.seen": f"{apart['auc_of_seen'].mean().mean():.3f}"}
