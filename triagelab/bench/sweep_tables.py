"""The results of a sweep as one frame, and tables of it.

A sweep is a set of points. Each point has a row (what was varied), a training seed and the folder
of a run. The frame of all points is small enough to be committed; runs are not. As in bsuite
(Osband et al. 2020), `gather` makes the frame, `comparison_table` the table, and
`plots.plot_sweep_seeds` the figure.

| rows of the frame | policy | row, seed | one row is |
|---|---|---|---|
| training | training | the point's | the mean of a step's episodes of a task, `index` -1 |
| after | trained | the point's | a held-out incident, `step` 0, as all below |
| before | base | none ("", -1) | the same, once for all points with this `base` |
| scripts | their names | none ("", -1) | the same, once for the sweep |

`base` is the digest of the weights that a point started from.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .intervals import (
    KEYS,
    Interval,
    before_and_after,
    compare_recipes,
    holm,
    seed_means,
    seed_scores,
    verdict,
)
from .strata import check_one_version

TRAINING = "training"  # the policy of rows about training
ALL = "all"  # the task of means over all tasks
COLUMNS = (
    *("row", "seed", "base", "policy", "step", "episodes", "task", "split", "index"),
    *("score", "benchmark"),
)


def gather(points: Sequence[tuple[str, int, Path]]) -> pd.DataFrame:
    """Gather a whole sweep into one frame with the columns `COLUMNS`; see the head of this file.

    Only held-out incidents that all points have played before and after training are taken, since a
    file may hold more of them than were asked for last.

    `points`: row, seed and run folder of each; the rows of the sweep keep this order.
    """
    parts = []
    for row, seed, folder in points:
        held_out = pd.read_parquet(folder / "evaluation.parquet").assign(step=0, episodes=1)
        base = held_out.loc[held_out["policy"] == "base", "weights"].iloc[0]
        steps = _steps(pd.read_json(folder / "episodes.jsonl", lines=True))
        parts.append(pd.concat([steps, held_out]).assign(row=row, seed=seed, base=base))
    frame = pd.concat(parts, ignore_index=True)
    training, trained, of_base = (frame["policy"] == name for name in (TRAINING, "trained", "base"))
    check_one_version([frame[~training]])  # of training none is noted
    times = frame[trained | of_base].groupby(KEYS).size()
    common = times[times == 2 * len(points)].index
    frame.loc[~training & ~trained, ["row", "seed"]] = ["", -1]
    frame.loc[~training & ~trained & ~of_base, "base"] = ""
    frame = frame[training | frame.set_index(KEYS).index.isin(common)]
    frame = frame.drop_duplicates(["row", "seed", "base", "policy", "step", *KEYS])
    return frame[[*COLUMNS]].reset_index(drop=True)


def _steps(training: pd.DataFrame) -> pd.DataFrame:
    """The means of training episodes, one row per step and task."""
    groups = training.groupby(["step", "task"], sort=True)
    rest = {"policy": TRAINING, "split": "train", "index": -1, "benchmark": ""}
    return groups[["score"]].mean().assign(episodes=groups.size(), **rest).reset_index()


def read_sweep(folder: str | Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read the plan (`sweep.json`) and the frame (`episodes.parquet`) of a finished sweep."""
    record = json.loads((Path(folder) / "sweep.json").read_text())
    return record, pd.read_parquet(Path(folder) / "episodes.parquet")


def rows_of(frame: pd.DataFrame) -> list[str]:
    """The rows of a sweep, in its order."""
    return [row for row in frame["row"].astype(str).unique() if row]


def tasks_of(frame: pd.DataFrame) -> list[str]:
    """The tasks that were held out, in order of appearance."""
    return list(frame.loc[frame["policy"] == "trained", "task"].astype(str).unique())


def scores_of(frame: pd.DataFrame, row: str, policy: str = "trained") -> list[np.ndarray]:
    """The scores of a policy in a row of the sweep: an array (seeds, incidents) for each of
    `tasks_of`, with seeds and incidents sorted. `base` is the base that each seed started from.
    `ValueError` for a row that the sweep does not have.
    """
    trained = frame[frame["policy"] == "trained"]
    seeds = [own for _, own in trained[trained["row"] == row].groupby("seed")]
    if not seeds:
        raise ValueError(f"no row {row!r} in this sweep; choose one of {', '.join(rows_of(frame))}")
    if policy == "base":
        bases = frame[frame["policy"] == "base"]
        seeds = [bases[bases["base"].isin(own["base"])] for own in seeds]
    return [seed_scores(seeds, task, policy) for task in tasks_of(frame)]


def training_table(frame: pd.DataFrame, steps: int = 5) -> pd.DataFrame:
    """The mean training reward of each row's first and last few `steps`, of all its seeds."""
    own = frame[frame["policy"] == TRAINING].astype({"row": str})
    reward = own.groupby(["row", "seed", "step"], sort=False)["score"].mean()
    seeds = reward.groupby(["row", "seed"], sort=False)
    table = pd.DataFrame({"first": seeds.head(steps), "last": seeds.tail(steps)})
    return table.groupby("row", sort=False).mean().round(3)


def trained_alike(frame: pd.DataFrame, row: str, other: str) -> bool:
    """Whether two rows trained the same seeds for the same steps, on as many episodes of each task.
    Only then do seeds pair: otherwise the same seed draws other incidents.
    """
    training = frame[frame["policy"] == TRAINING].astype({"row": str, "task": str})
    played = training.set_index(["row", "seed", "step", "task"])["episodes"].sort_index()
    return bool(played.loc[row].equals(played.loc[other]))


def comparison_table(frame: pd.DataFrame, against: str, task: str = ALL) -> pd.DataFrame:
    """Compare each row of a sweep with the row `against` on held-out incidents, as text, the best
    first: on a task, or on the mean of all (`all`).

    Columns: trained, and gain over the base (paired by incident), with 95 % intervals over seeds
    and incidents; difference from `against`, with a t interval over seeds; p of no difference; and
    verdict (`intervals.verdict`), for which p is adjusted over all rows (Holm).
    """
    held_out = frame if task == ALL else frame[frame["task"] == task]
    theirs, rows = seed_means(scores_of(held_out, against)), []
    for row in rows_of(frame):
        after, difference, p = scores_of(held_out, row), Interval(np.nan, np.nan, np.nan), np.nan
        means = before_and_after(scores_of(held_out, row, "base"), after)
        if row != against:
            paired = trained_alike(frame, row, against)
            difference, p = compare_recipes(theirs, seed_means(after), paired)
        intervals = {"trained": means["trained"], "gain": means["gain"], "difference": difference}
        rows.append({"row": row, **intervals, "p": p})
    table = pd.DataFrame(rows).set_index("row")
    table["adjusted"] = holm(table["p"])
    table = table.sort_values("trained", ascending=False)
    text = table[["trained", "gain", "difference"]].map("{:.2f}".format)
    text["p"] = table["p"].map("{:.3f}".format)
    text["verdict"] = [
        "" if row.Index == against else verdict(row.difference.mean, row.p, row.adjusted)
        for row in table.itertuples()
    ]
    return text.replace({r"^nan.*": "", r"^0\.000$": "<0.001"}, regex=True)
