"""Tables of a published sweep that people read: each row beside the one that the others are
compared with, and whom each row dismisses. What they are made of is in `analysis`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from .analysis import ALL, score
from .strata import detection_table

SHOWN = (
    *("seeds", "base", "trained", "gain", "gain_low", "gain_high", "smallest_gain"),
    *("difference", "difference_low", "difference_high"),
)
UNDECIDED = "not told apart"


def read_sweep(folder: str | Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """What was asked (`sweep.json`) and the frame (`episodes.parquet`) of a finished sweep.

    Raises:
        FileNotFoundError: when one of the two is not in the folder.
    """
    folder = Path(folder)
    record = json.loads((folder / "sweep.json").read_text())
    return record, pd.read_parquet(folder / "episodes.parquet")


def comparison_table(frame: pd.DataFrame, against: str, task: str = ALL) -> pd.DataFrame:
    """Each row of a sweep beside one of them, the best first.

    Args:
        frame: of `analysis.gather`.
        against: the row that the others are compared with.
        task: one of the frame's, or `all` for the mean of the tasks.

    Returns:
        A line a row, which is the index: the columns `SHOWN` of `analysis.score`, to three
        decimals, and `verdict`: `better` or `worse` where the 95 % interval of the difference does
        not hold 0, else `not told apart`; empty for the row itself.

    Raises:
        ValueError: as `score`, and for a task that the frame has not.
    """
    table = score(frame, against=against)
    if task not in set(table["task"]):
        known = ", ".join(dict.fromkeys(table["task"]))
        raise ValueError(f"the sweep has no task {task!r:.60}; it has {known}")
    shown = table[table["task"] == task].set_index("row")[[*SHOWN]].round(3)
    shown["verdict"] = UNDECIDED
    shown.loc[shown["difference_low"] > 0, "verdict"] = "better"
    shown.loc[shown["difference_high"] < 0, "verdict"] = "worse"
    shown.loc[against, "verdict"] = ""
    return shown.sort_values("trained", ascending=False)


def dismissal_table(frame: pd.DataFrame, task: str = "silent_degradation") -> pd.DataFrame:
    """What each row, and the base, does with real faults and with false alarms of a task: the
    columns of `strata.detection_table`, as text, a line a row, which is the index.
    """
    told = frame[frame["policy"].isin(["base", "trained"]) & (frame["task"] == task)]
    told = told.assign(policy=told["row"].astype(str).replace("", "base"))
    return detection_table(told).set_index("policy").drop(columns="task").rename_axis("row")


def knowledge_table(
    compared: pd.DataFrame, rows: Mapping[str, Mapping[str, Any]], estimators: pd.DataFrame
) -> pd.DataFrame:
    """What training by each credit came to, beside how well that credit knows what calls are worth.

    Args:
        compared: of `comparison_table`.
        rows: of the sweep: what each changes. Taken are those that change the credit alone, and the
            one that changes nothing, whose credit is `part`.
        estimators: of `credit_truth.compare_credits`, with the column `policy`.

    Returns:
        A line a row, which is the index: trained, difference and verdict; and for each policy the
        `correlation` with the true advantages, corrected for noise, and the `bias`, over all calls.
    """
    credits = {}
    for row, changed in rows.items():
        if not changed:
            credits[row] = "part"
        elif set(changed) == {"changes"} and set(changed["changes"]) == {"credit"}:
            credits[row] = changed["changes"]["credit"]
    whole = estimators[estimators["by"] == "all"].set_index(["estimator", "policy"])
    known = whole[["corrected", "bias"]].rename(columns={"corrected": "correlation"})
    known = known.unstack("policy")
    known.columns = [f"{measure}, {policy}" for measure, policy in known.columns]
    known = known.reindex(credits.values()).set_axis(list(credits)).round(3)
    return compared.loc[list(credits), ["trained", "difference", "verdict"]].join(known)
