"""What the runs of an experiment come to: tables of one seed and of several."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..bench.intervals import (
    mean_interval,
    paired_gain,
    share_of_ceiling,
    two_way_mean,
    two_way_share,
)
from ..bench.runs import write_text
from ..bench.strata import gains, label, stratum_changes
from .experiment import REFERENCES

CEILING = "belief"  # shares are of its score
TEACHER = "trace"  # the expert that one track imitates
# Of the strata, those in a table; all are in `summary.json`.
DETECTION = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per task, written to `summary.json`: base, trained, and the paired gain, each with
    its 95 % interval; the references; and each stratum before and after (see `bench.strata`).
    """
    base, trained = (evaluation[evaluation.policy == name] for name in ("base", "trained"))
    changes, rows = stratum_changes(base, trained), []
    for task, part in evaluation.groupby("task", sort=False):
        before, after = (part[part.policy == name] for name in ("base", "trained"))
        (benchmark,) = part["benchmark"].unique()
        row = {
            "task": task,
            "benchmark": benchmark,
            "episodes": len(before),
            "base": mean_interval(before["score"]),
            "trained": mean_interval(after["score"]),
            "gain": paired_gain(before, after),
            "root_cause_base": before["root_cause"].mean(),
            "root_cause_trained": after["root_cause"].mean(),
        }
        for name in REFERENCES:
            reference = part[part.policy == name]
            if len(reference):
                row[name] = reference["score"].mean()
        if CEILING in row:
            row[f"share_of_{CEILING}"] = share_of_ceiling(after, part[part.policy == CEILING])
        rows.append({**row, **_strata_of(changes[changes.task == task])})
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_text(Path(run) / "summary.json", f"[\n{lines}\n]\n")
    return rows


def _strata_of(changes: pd.DataFrame) -> dict[str, Any]:
    """One task's rows of `stratum_changes` by stratum, and where it has groups by group."""
    strata: dict[str, Any] = {}
    for row in changes.itertuples():
        cell = {
            "incidents": row.incidents,
            "base": round(row.base, 4),
            "trained": round(row.trained, 4),
            # None where there are too few incidents for an interval
            "change": None
            if math.isnan(row.low)
            else [round(value, 4) for value in (row.change, row.low, row.high)],
            "fell": row.fell,
        }
        if row.group:
            strata.setdefault(row.stratum, {})[row.group] = cell
        else:
            strata[row.stratum] = cell
    return strata


def summary_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """`summarise_run`'s rows (or `summary.json` read back) as text cells; of the strata, faults and
    false alarms.
    """

    def cell(value: Any) -> Any:
        if isinstance(value, dict):
            return f"{value['base']:.2f} → {value['trained']:.2f}"
        if isinstance(value, (list, tuple)):
            return "{:.2f} [{:.2f}, {:.2f}]".format(*value)
        return f"{value:.2f}" if isinstance(value, float) else value

    table = pd.DataFrame(
        {
            label(key) if key in DETECTION else key.replace("_", " "): cell(value)
            for key, value in row.items()
            if key in DETECTION or not isinstance(value, dict)
        }
        for row in rows
    )
    return table.fillna("-")


def summarise_seeds(runs: Sequence[str | Path], split: str = "test") -> pd.DataFrame:
    """Several training seeds together, from their `evaluation.parquet`: one row per task.

    Args:
        runs: folders, each the run of one seed, evaluated on the same incidents.
        split: of these incidents.

    Returns:
        Columns task, benchmark, seeds and episodes (incidents of each); base, trained and gain,
        means over seeds with intervals in which seeds and incidents are resampled; share_of_belief
        and over_trace (how much better than the script `trace`) likewise, where every run has
        played those, else None; smallest_gain, of a seed; the references' mean scores; and base and
        trained shares of faults detected, false alarms dismissed and faults dismissed, nan where a
        task has none.

    Raises:
        ValueError: when the runs were not evaluated on the same incidents.
    """
    folders = [Path(run) for run in runs]
    frames = [pd.read_parquet(folder / "evaluation.parquet") for folder in folders]
    frames = [frame[frame["split"] == split] for frame in frames]
    base, trained = ([one[one.policy == name] for one in frames] for name in ("base", "trained"))
    changes, gained, rows = stratum_changes(base, trained), gains(base, trained), []
    for task in gained:

        def scores(policy: str, task: str = task) -> np.ndarray:
            """Scores of a policy in all runs, (seeds, incidents)."""
            own = [one[(one.task == task) & (one.policy == policy)] for one in frames]
            return np.stack([rows.sort_values("index")["score"] for rows in own])

        before, after = scores("base"), scores("trained")
        played = [name for name in REFERENCES if all((one.policy == name).any() for one in frames)]
        share = two_way_share(after, scores(CEILING)[0]) if CEILING in played else None
        strata = changes[changes.task == task].set_index(["stratum", "group"])
        row: dict[str, Any] = {
            "task": task,
            "benchmark": frames[0]["benchmark"].iloc[0],
            "seeds": len(folders),
            "episodes": before.shape[1],
            "base": two_way_mean([before]),
            "trained": two_way_mean([after]),
            "gain": gained[task],
            f"share_of_{CEILING}": share,
            f"over_{TEACHER}": two_way_mean([after - scores(TEACHER)])
            if TEACHER in played
            else None,
            "smallest_gain": (after - before).mean(axis=1).min(),
            **{name: scores(name).mean() for name in played},
        }
        for name in DETECTION:
            for policy in ("base", "trained"):
                has = (name, "") in strata.index
                row[f"{name}_{policy}"] = strata.loc[(name, ""), policy] if has else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def first_and_last(episodes: pd.DataFrame, count: int = 10) -> pd.DataFrame:
    """The model card's table: mean training score of the first and the last `count` incidents of
    each task.

    One completion of each incident counts, so that the ten are ten different ones. Where first and
    last would share some, it says "too few": they would be compared with themselves.
    """
    rows = []
    for task, group in episodes.drop_duplicates(["task", "index"]).groupby("task", sort=False):
        values: list[Any] = ["too few"] * 3
        if len(group) >= 2 * count:
            first, last = group["score"].iloc[:count].mean(), group["score"].iloc[-count:].mean()
            values = [first, last, last - first]
        columns = (f"first {count}", f"last {count}", "change")
        rows.append(
            {"task": task, **dict(zip(columns, values, strict=True)), "incidents": len(group)}
        )
    return pd.DataFrame(rows)
