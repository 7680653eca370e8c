"""Who solves `production`, and how far the ranker's chances can be trusted on real clusters.

frame = play_production(make_policy("ceiling", known=RECORDED_POLICIES), 500)
production_table(frame)
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..catalogue import open_incident
from ..logs.suspects import POSSIBLE_FROM
from ..policies.policy import Policy
from ..production.dials import NO_FAULT
from ..production.features import arrays_of_evidence
from ..production.generator import Arrays, Block
from ..production.mesh import BLOCK
from ..production.production_episode import PRODUCTION
from ..production.ranker import Ranker, chances
from ..real.cases import SOURCES, load_source
from ..real.observed import gather
from ..real.real_episode import RealEpisode
from ..real.rules import ASK_ALL
from .intervals import calibration_error, wilson
from .plots import INK, POLICY_COLOURS, SMALL, UNIT, Picture, draw_interval, new_figure, words
from .real_results import case_rows
from .rollouts import rollout

CALIBRATION = 900_000_000  # first block of `train` that no ranker has seen
COVERAGE = 0.9


def play_production(policy: Policy, count: int) -> pd.DataFrame:
    """Play the first so many incidents of `test`; rows as `real_results.case_rows`, and what was
    said of the remedy and the team.
    """
    rows = rollout(policy, [PRODUCTION], "test", count, open_episode=open_incident)
    told = rows[["remediation", "escalation", "confidence"]].reset_index(drop=True)
    return pd.concat([case_rows(rows), told], axis=1)


def production_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, the best first. Columns: `root`, right answers with Wilson's interval
    (several attempts at one, as of training seeds, being their mean); of the real faults the shares
    with the right `remedy` and `team`; `path_wrong`, of those whose root was named the share whose
    way to the users was told wrongly; `calibration_error` of the confidence, nan without one.
    """
    rows = []
    for policy, played in frame.groupby("policy", sort=False):
        faults = played[played["root"] != ""]
        named = faults[faults["top1"] == 1.0]
        error = np.nan
        if played["confidence"].notna().all():
            error = calibration_error(played["confidence"], played["top1"])
        rows.append(
            {
                "policy": policy,
                "root": wilson(played["top1"].mean(), played["index"].nunique()),
                "remedy": faults["remediation"].mean(),
                "team": faults["escalation"].mean(),
                "path_wrong": 1.0 - named["path"].mean(),
                "calibration_error": error,
            }
        )
    return pd.DataFrame(rows).sort_values("root", ascending=False, ignore_index=True)


def conformal(ranker: Ranker, blocks: int = 60) -> pd.DataFrame:
    """Sets of services that hold the root with a chance of `COVERAGE` on incidents of `production`,
    and what that promise is worth elsewhere.

    A set holds every answer (a service, or that nothing is wrong) that is at least as likely as the
    threshold, which is set on incidents of `train` that no ranker has seen. Returns one row per
    place: `coverage`, the mean `size` of a set, and `silent`, the share of sets that hold "nothing
    is wrong".
    """
    of_truth = np.concatenate([truth for _, truth in _simulated(ranker, "train", blocks)])
    rank = int(np.floor((1.0 - COVERAGE) * (len(of_truth) + 1))) - 1
    threshold = np.sort(of_truth)[max(rank, 0)]
    rows = []
    for place, answers in _everywhere(ranker, blocks).items():
        held = [chance >= threshold for chance, _ in answers]
        covered = np.concatenate([truth >= threshold for _, truth in answers]).mean()
        size = np.concatenate([one.sum(1) for one in held]).mean()
        silent = np.concatenate([one[:, -1] for one in held]).mean()
        rows.append({"place": place, "coverage": covered, "size": size, "silent": silent})
    return pd.DataFrame(rows)


def metrics_alone(ranker: Ranker, blocks: int = 60) -> pd.DataFrame:
    """What the ranker makes of metrics and the call graph alone, all that `triage --metrics` reads;
    what is usual is known here, and there estimated from earlier samples.

    Returns one row per place: `right`, the share of incidents whose likeliest answer is true;
    `named`, the share in which a service is likelier than not; `named_right`, how many of those are
    right.
    """
    rows = []
    for place, answers in _everywhere(ranker, blocks, alone=True).items():
        right = np.concatenate([chance.max(1) == truth for chance, truth in answers])
        named = np.concatenate([chance[:, :-1].max(1) >= POSSIBLE_FROM for chance, _ in answers])
        row = {"place": place, "right": right.mean(), "named": named.mean()}
        rows.append(row | {"named_right": right[named].mean()})
    return pd.DataFrame(rows)


def without_the_rest(seen: Arrays) -> Arrays:
    """Metrics and calls alone: without alerts, what callers wait, and counts of log lines."""
    return seen._replace(
        waits=np.full_like(seen.waits, np.nan),
        counts=np.full_like(seen.counts, np.nan),
        alerts=np.zeros_like(seen.alerts),
    )


Answers = list[tuple[np.ndarray, np.ndarray]]  # chances [B, N + 1], and that of the truth [B]


def _everywhere(ranker: Ranker, blocks: int, alone: bool = False) -> dict[str, Answers]:
    """The ranker's answers on `test` and on the real cases, by place; `alone`, without the rest."""
    places = {PRODUCTION: _simulated(ranker, "test", blocks, alone)}
    return places | {source: _recorded(ranker, source, alone) for source in SOURCES}


def _simulated(ranker: Ranker, split: str, blocks: int, alone: bool = False) -> Answers:
    first = CALIBRATION if split == "train" else 0
    found = []
    for number in range(first, first + blocks):
        block = Block(split, number)
        seen = without_the_rest(block.shown) if alone else block.shown
        chance, _ = chances(ranker, seen)
        truth = np.where(block.kind == NO_FAULT, chance.shape[1] - 1, block.root)
        found.append((chance, chance[np.arange(BLOCK), truth]))
    return found


def _recorded(ranker: Ranker, source: str, alone: bool = False) -> Answers:
    found = []
    for index in range(len(load_source(source).cases)):
        episode = RealEpisode.open(source, index)
        graph = episode.incident.topology
        seen = arrays_of_evidence(gather(graph, [episode.opening, episode.act(ASK_ALL)]))
        chance, _ = chances(ranker, without_the_rest(seen) if alone else seen)
        found.append((chance, chance[:, graph.position[episode.incident.case.truth.root]]))
    return found


def draw_production(folder: str | Path) -> list[Path]:
    """Draw the figure of `results/production` again; returns the file."""
    folder = Path(folder)
    table = production_table(pd.read_parquet(folder / "episodes.parquet"))
    plot_production(table).save(folder / "policies.png")
    return [folder / "policies.png"]


def plot_production(table: pd.DataFrame) -> Picture:
    """Share of right answers, one row per policy of `production_table`, with Wilson's interval."""
    figure, axes = new_figure(0.24 * len(table) + 0.8)
    ax = axes[0, 0]
    for y, row in enumerate(table.itertuples()):
        draw_interval(ax, row.root, y, POLICY_COLOURS.get(row.policy, INK))
    ax.set_yticks(range(len(table)), [words(name) for name in table["policy"]], fontsize=SMALL)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set(xlim=(0.0, 1.0), xticks=UNIT)
    ax.set_xlabel("share of incidents answered rightly, 95 % intervals")
    return figure
