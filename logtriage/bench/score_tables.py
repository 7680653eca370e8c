"""Tables of scores for reading: a terminal's, a notebook's and a document's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd

from ..play.scoring import PARTS
from .intervals import (
    KEYS,
    Interval,
    matched,
    mean_interval,
    probability_of_improvement,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
)
from .strata import label, strata

SHOWN_STRATA = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")


def score_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Rollouts as text: one row per policy and task, with the score and its interval, the parts of
    the score, and steps.

    Several attempts at an incident are one value, their mean. Episodes without a score are left
    out, and counted in a column `errors` where there are any.
    """
    rows, failed = [], frame["score"].isna()
    for (policy, task), group in frame.groupby(["policy", "task"], sort=False):
        played = group[group["score"].notna()]
        incidents = played.groupby(KEYS, sort=False)["score"].mean()
        rows.append(
            {
                "policy": policy,
                "task": task,
                **({"errors": len(group) - len(played)} if failed.any() else {}),
                "score": str(mean_interval(incidents)) if len(incidents) > 1 else "-",
                **{part: f"{played[part].mean():.2f}" for part in PARTS},
                "steps": f"{played['steps'].mean():.1f}",
            }
        )
    return pd.DataFrame(rows)


def detection_table(frame: pd.DataFrame) -> pd.DataFrame:
    """What a policy did with faults and with false alarms, as text: one row per policy and task."""
    rows = []
    for (policy, task), own in strata(frame).groupby(["policy", "task"], sort=False):
        found = own.set_index("stratum")
        cells = {label(name): "-" for name in SHOWN_STRATA}
        for name in SHOWN_STRATA:
            if name in found.index:
                own_row = found.loc[name]
                cells[label(name)] = f"{own_row['mean']:.2f} of {own_row['episodes']}"
        rows.append({"policy": policy, "task": task, **cells})
    return pd.DataFrame(rows)


def policy_scores(frame: pd.DataFrame, ceiling: str = "belief") -> pd.DataFrame:
    """One row per policy and split: the mean score of each task with its interval, mean and
    interquartile mean over tasks, and the share of the ceiling's score on the same incidents.
    """
    rows = []
    for (policy, split), part in frame.groupby(["policy", "split"], sort=False):
        best = frame[(frame["policy"] == ceiling) & (frame["split"] == split)]
        tasks = {task: group["score"] for task, group in part.groupby("task", sort=False)}
        rows.append(
            {
                "policy": policy,
                "split": split,
                **{task: mean_interval(scores) for task, scores in tasks.items()},
                "mean": stratified_mean([*tasks.values()]),
                "iqm": stratified_iqm([*tasks.values()]),
                "share_of_ceiling": share_of_ceiling(part, best),
            }
        )
    return pd.DataFrame(rows)


def policy_comparisons(frame: pd.DataFrame, split: str = "test") -> pd.DataFrame:
    """Each policy against the one before it on the same incidents, one row per task: the gain, and
    the probability of improvement.
    """
    rows, names = [], list(dict.fromkeys(frame["policy"]))
    for task in dict.fromkeys(frame["task"]):
        part = frame[(frame["split"] == split) & (frame["task"] == task)]
        for before, after in pairwise(names):
            sides = matched(part[part["policy"] == before], part[part["policy"] == after])
            rows.append(
                {
                    "task": task,
                    "before": before,
                    "after": after,
                    "gain": mean_interval(sides[1] - sides[0]),
                    "probability of improvement": probability_of_improvement(*sides),
                }
            )
    return pd.DataFrame(rows)


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """A table with its intervals (also as lists, from JSON) as `mean [low, high]`."""
    return table.map(
        lambda value: str(Interval(*value)) if isinstance(value, (list, Interval)) else value
    )


def markdown(rows: pd.DataFrame | Sequence[dict[str, str]]) -> str:
    """A table in Markdown: a frame without its index, or text cells by their heads."""
    table = pd.DataFrame(rows)
    lines = [f"| {' | '.join(map(str, table.columns))} |", "|" + "---|" * len(table.columns)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(False, None)]
    return "\n".join(lines)
