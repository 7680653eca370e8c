"""Tables of scores for reading: a terminal's, a notebook's and a document's."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ..play.scoring import PARTS
from .intervals import (
    KEYS,
    Interval,
    before_and_after,
    matched,
    mean_interval,
    seed_scores,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
    two_way_mean,
    two_way_share,
)
from .rollouts import scored
from .strata import label, stratum_changes, values_in, with_truth

REFERENCES = ("novice", "loudest", "trace", "belief", "oracle")  # beside a model, see `summarise`
CEILING = "belief"  # shares are of its score
CAREFUL = "trace"  # the script that an agent should surpass
DETECTION = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")  # strata in a table
UNSHOWN = ("benchmark", "seeds", "smallest_gain", f"over_{CAREFUL}")  # of a summary


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
    known, rows = with_truth(scored(frame)), []
    known = known.assign(**{name: values_in(known, name) for name in DETECTION})
    for (policy, task), own in known.groupby(["policy", "task"], sort=False):
        cells = {"policy": policy, "task": task}
        for name in DETECTION:
            count = own[name].count()
            cells[label(name)] = f"{own[name].mean():.2f} of {count}" if count else "-"
        rows.append(cells)
    return pd.DataFrame(rows)


# -- a model before and after training -----------------------------------------------------------


def summarise(frames: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """A model before and after training, a row per task, from one evaluation per training seed.

    Returns:
        Task, benchmark, seeds and episodes (incidents of each); `base`, `trained` and `gain`, with
        intervals in which seeds and incidents are resampled; `smallest_gain`, of a seed; the mean
        scores of `start` (before a warm-up) and the `REFERENCES` that every seed has beside it;
        `share_of_belief` and `over_trace` (how much better than that script), where these are among
        them; and each stratum (see `bench.strata`), where it has groups by group.

    Raises:
        ValueError: when the frames do not hold the same incidents.
    """
    base, trained = ([one[one.policy == name] for one in frames] for name in ("base", "trained"))
    changes, rows = stratum_changes(base, trained), []
    beside = ("start", *REFERENCES)
    played = [name for name in beside if all((one.policy == name).any() for one in frames)]
    for task in changes["task"].unique():
        names = ("base", "trained", *played)
        scores = {name: seed_scores(frames, task, name) for name in names}
        after = scores["trained"]
        row: dict[str, Any] = {
            "task": task,
            "benchmark": frames[0]["benchmark"].iloc[0],
            "seeds": len(frames),
            "episodes": after.shape[1],
            **before_and_after([scores["base"]], [after]),
        }
        row |= {name: float(scores[name].mean()) for name in played}
        if CEILING in played:
            row[f"share_of_{CEILING}"] = (
                two_way_share(after, scores[CEILING][0])
                if len(frames) > 1
                else share_of_ceiling(after[0], scores[CEILING][0])
            )
        if CAREFUL in played:
            row[f"over_{CAREFUL}"] = two_way_mean([after - scores[CAREFUL]])
        rows.append(row | _strata_of(changes[changes.task == task]))
    return rows


def _strata_of(changes: pd.DataFrame) -> dict[str, Any]:
    """One task's rows of `stratum_changes` by stratum, and where it has groups by group."""
    strata: dict[str, Any] = {}
    for row in changes.itertuples():
        change = [round(value, 4) for value in (row.change, row.low, row.high)]
        cell = {
            "incidents": row.incidents,
            "base": round(row.base, 4),
            "trained": round(row.trained, 4),
            # None where there are too few incidents for an interval
            "change": None if math.isnan(row.low) else change,
            "fell": row.fell,
        }
        where = strata.setdefault(row.stratum, {}) if row.group else strata
        where[row.group or row.stratum] = cell
    return strata


def summary_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """`summarise`'s rows (or `summary.json` read back) as text cells; of the strata, faults and
    false alarms.
    """

    def cell(value: Any) -> Any:
        if isinstance(value, dict):
            return f"{value['base']:.2f} → {value['trained']:.2f}"
        if isinstance(value, (list, tuple)):
            return f"{Interval(*value):.2f}"
        return f"{value:.2f}" if isinstance(value, float) else value

    table = pd.DataFrame(
        {
            label(key) if key in DETECTION else key.replace("_", " "): cell(value)
            for key, value in row.items()
            if key in DETECTION or not (isinstance(value, dict) or key in UNSHOWN)
        }
        for row in rows
    )
    return table.fillna("-")


def split_table(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """A model before and after training on each split, as text: means over the tasks, with
    intervals, and the paired gain; from one frame per training seed.
    """
    rows = []
    for split in frames[0]["split"].unique():
        own = [one[one["split"] == split] for one in frames]
        base, trained = (
            [seed_scores(own, task, name) for task in own[0]["task"].unique()]
            for name in ("base", "trained")
        )
        means = before_and_after(base, trained)
        cells = {name: f"{means[name]:.2f}" for name in ("base", "trained", "gain")}
        rows.append({"split": split} | cells)
    return pd.DataFrame(rows)


# -- policies beside each other ------------------------------------------------------------------


def policy_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per policy and split: the mean score of each task with its interval, mean and
    interquartile mean over tasks, and the share of the ceiling's score on the same incidents.
    """
    rows = []
    for (policy, split), part in frame.groupby(["policy", "split"], sort=False):
        best = frame[(frame["policy"] == CEILING) & (frame["split"] == split)]
        tasks = {task: group["score"] for task, group in part.groupby("task", sort=False)}
        rows.append(
            {
                "policy": policy,
                "split": split,
                **{task: mean_interval(scores) for task, scores in tasks.items()},
                "mean": stratified_mean([*tasks.values()]),
                "iqm": stratified_iqm([*tasks.values()]),
                "share_of_ceiling": share_of_ceiling(*matched(part, best)),
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
