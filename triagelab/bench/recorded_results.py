"""Which policies find the root of recorded incidents, real or of `production`, with intervals.

    from logtriage.registry import make_policy
    from triagelab.bench.recorded_results import play_cases, real_table
    frame = play_cases(make_policy("trace"), "petshop")  # any policy, also a language model

The project's own rule, `unexplained`, was developed on one half of the real cases (`half`). The
other half was played once, when the rule was finished; docs/real.md says what that shows.
"""

import hashlib

import pandas as pd

from logtriage.catalogue import open_incident
from logtriage.policies.policy import Policy
from logtriage.registry import Policies, make_policy

from ..real.cases import SOURCES, load_source
from ..real.real_episode import REAL, TOP, RealEpisode, blames_root
from ..real.rules import RULES
from ..realistic.production_episode import PRODUCTION, ProductionEpisode, names_path
from ..realistic.production_policies import PRODUCTION_POLICIES
from .intervals import wilson
from .plots import (
    FAINT,
    INK,
    POLICY_COLOURS,
    SMALL,
    UNIT,
    Picture,
    draw_interval,
    name_rows,
    new_figure,
    words,
)
from .registry import POLICIES
from .rollouts import rollout, scored

HALVES = ("developed on", "held back")
ALL = "all"
OURS = "unexplained"
RANKED = ("random_ranking", *RULES)
SCRIPTED = (*RANKED, "loudest", "trace", "novice")
RECORDED_POLICIES: Policies = PRODUCTION_POLICIES | POLICIES  # for recorded incidents
# Field of `cases.Source` that says whether a source has what a rule reads, for rules that need it.
NEEDS = {"extra_wait": "edges_from"}
EPISODES = {PRODUCTION: ProductionEpisode, REAL: RealEpisode}  # of each recorded task
TITLES = {
    "petshop": "PetShop",
    "nezha-trainticket": "Train Ticket",
    "nezha-onlineboutique": "Online Boutique",
}
# Only in the table: rules whose code is gone, and the simulator's scripts other than `trace`.
NOT_DRAWN = ("largest_ratio", "deepest", "random_walk", "loudest", "novice")
TOGETHER = 4  # cases played at once; for a language model, some are 8,000 tokens long

# -- episodes --------------------------------------------------------------------------------------


def half(case: str) -> str:
    """Which of `HALVES` a case belongs to, by a hash of its id."""
    return HALVES[int(hashlib.sha256(case.encode()).hexdigest(), 16) % 2]


def reads(name: str, source: str) -> bool:
    """Whether a source has what a rule reads."""
    return name not in NEEDS or bool(getattr(load_source(source), NEEDS[name]))


def play_cases(
    policy: Policy, split: str, task: str = REAL, count: int | None = None
) -> pd.DataFrame:
    """Play a policy on the first `count` incidents of a split, by default on all real ones of a
    source, and return their `case_rows`.
    """
    count = count or len(load_source(split).cases)
    rows = rollout(policy, [task], split, count, batch=TOGETHER, open_episode=open_incident)
    return case_rows(rows)


def play_rules() -> pd.DataFrame:
    """Play all cases by `SCRIPTED`, but no rule on a source that lacks what it reads."""
    frames = [
        play_cases(make_policy(name, known=RECORDED_POLICIES), source)
        for name in SCRIPTED
        for source in SOURCES
        if reads(name, source)
    ]
    return pd.concat(frames, ignore_index=True)


def case_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Put episodes of recorded incidents (`rollouts.COLUMNS`) beside the truth. `blamed` holds the
    first `TOP` services blamed, in order, separated by spaces. `top1` and `top3` are 0 or 1. So is
    `path`, for `production` only: whether the services blamed are the fault's path to the users.
    It has columns for the remedy, the team and the confidence, too.
    """
    cells = []
    for row in rows.rename(columns={"index": "at"}).itertuples(index=False):
        case = EPISODES[row.task].find_case(row.split, row.at)
        blamed = row.blamed.split()
        cell = {
            "source": row.split,
            "index": row.at,
            "case": case.id,
            "half": half(case.id),
            "root": case.truth.root,
            "fault": case.truth.fault,
            "policy": row.policy,
            "blamed": " ".join(blamed[:TOP]),
            "top1": row.score,
            "top3": max(row.score, float(blames_root(blamed, case))),
            "benchmark": row.benchmark,
        }
        if row.task == PRODUCTION:
            cell["path"] = float(names_path(blamed, case))
            reported = ("remediation", "escalation", "confidence")
            cell |= {name: getattr(row, name) for name in reported}
        cells.append(cell)
    return pd.DataFrame(cells)


# -- tables ----------------------------------------------------------------------------------------


def recorded_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """`real_table` as text, for an evaluation (`evaluation.Evaluation`) of recorded incidents."""
    played = scored(frame)
    if played.empty:
        return played
    rows = case_rows(played)
    table = real_table(rows)
    table = table[table["part"] == ALL][["policy", "source", "cases", "top1", "top3"]]
    table = table.astype({"top1": str, "top3": str})
    if "path" not in rows:
        return table
    path = rows.groupby("policy")["path"].mean().round(3)
    return table.drop(columns="top3").assign(path=table["policy"].map(path))


def real_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, source and part of the cases, which is all of them or one of `HALVES`.

    Columns: `cases`; `top1` and `top3`, each an `Interval` by Wilson over cases, where several
    attempts at a case count as their mean; `groups`, the number of (root, fault) pairs; and
    `by_group`, the mean over groups of their `top1`. Since the cases of a group are near copies of
    each other, its Wilson interval counts each group as one case.
    """
    parts = {ALL: frame} | {part: frame[frame["half"] == part] for part in HALVES}
    every = pd.concat([some.assign(part=part) for part, some in parts.items()])
    rows = []
    for (policy, source, part), some in every.groupby(["policy", "source", "part"], sort=False):
        cases = some["case"].nunique()
        groups = some.groupby(["root", "fault"])["top1"].mean()
        rows.append(
            {
                "policy": policy,
                "source": source,
                "part": part,
                "cases": cases,
                "top1": wilson(some["top1"].mean(), cases),
                "top3": wilson(some["top3"].mean(), cases),
                "groups": len(groups),
                "by_group": wilson(groups.mean(), len(groups)),
            }
        )
    return pd.DataFrame(rows)


def production_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, the best first: `root` is the share of right answers with Wilson's
    interval, where attempts, as of several seeds, count as their mean.
    """
    rows = [
        {"policy": policy, "root": wilson(played["top1"].mean(), played["index"].nunique())}
        for policy, played in frame.groupby("policy", sort=False)
    ]
    return pd.DataFrame(rows).sort_values("root", ascending=False, ignore_index=True)


# -- figures ---------------------------------------------------------------------------------------


def plot_real(table: pd.DataFrame, published: pd.DataFrame) -> Picture:
    """Plot the share of cases whose root is named first, with Wilson's interval over cases: one row
    per policy of `real_table` that is not in `NOT_DRAWN`. A small ring is the share whose root is
    named among the first three. The diamonds below are what others report of a source (of PetShop,
    delays alone; `published.csv` in `results/real`).
    """
    table = table[(table["part"] == ALL) & ~table["policy"].isin(NOT_DRAWN)]
    means = (
        table.assign(mean=[share.mean for share in table["top1"]]).groupby("policy")["mean"].mean()
    )
    published = published.assign(method=published["method"].str.replace(", latency", ""))
    policies, others = list(means.sort_values().index[::-1]), list(published["method"].unique())
    rows = [*policies, *others]
    # Embedded agents have the colour of the trained one.
    colours = {
        name: POLICY_COLOURS.get("trained" if name.startswith("embedded") else name, INK)
        for name in rows
    }
    figure, axes = new_figure(0.235 * len(rows) + 1.0, columns=len(TITLES), sharey=True)
    for ax, (source, title) in zip(axes[0], TITLES.items(), strict=True):
        own, reported = (frame[frame["source"] == source] for frame in (table, published))
        cells = [(row.policy, row.top1, row.top3.mean, "o") for row in own.itertuples()]
        for row in reported.itertuples():
            cells.append((row.method, wilson(row.top1, row.cases), row.top3, "D"))
        for name, top1, top3, marker in cells:
            y, colour = rows.index(name), colours[name]
            draw_interval(ax, top1, y, colour, marker=marker)
            ax.plot([top3], [y], marker, mfc="white", mec=colour, ms=3.5, zorder=5)
        cases, all_cases = own["cases"].max(), reported["cases"].max()
        ax.set_title(f"{title}\n{cases} cases (published: {all_cases})", fontsize=10)
        ax.axhline(len(policies) - 0.5, color=FAINT, lw=0.8)
        ax.set(xlim=(-0.03, 1.03), xticks=UNIT)
        ax.grid(axis="x", color=FAINT, lw=0.5, alpha=0.6)
    figure.supxlabel(
        "share of cases whose root is named first, 95 % intervals; ring: among three", fontsize=10
    )
    labels = [words(name) for name in policies] + [f"{name} (published)" for name in others]
    name_rows(axes[0, 0], labels, [*colours.values()], fontsize=SMALL)
    axes[0, 0].get_yticklabels()[rows.index(OURS)].set(weight="bold")
    return figure


def plot_production(table: pd.DataFrame) -> Picture:
    """Plot the share of right answers, one row per policy of `production_table`, with intervals."""
    figure, axes = new_figure(0.24 * len(table) + 0.8)
    ax = axes[0, 0]
    for y, row in enumerate(table.itertuples()):
        draw_interval(ax, row.root, y, POLICY_COLOURS.get(row.policy, INK))
    name_rows(ax, map(words, table["policy"]), fontsize=SMALL)
    ax.set(xlim=(0.0, 1.0), xticks=UNIT)
    ax.set_xlabel("share of incidents answered rightly, 95 % intervals")
    return figure
