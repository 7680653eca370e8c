"""The analysis of a sweep: one frame for all its points, and one contract for every sweep.

    frame = gather([("recipe", 0, Path("runs/ladder/recipe/seed-0")), ...])
    score(frame, against="recipe")  # a table
    plot_learning(frame)  # the figures are in `sweep_plots`
    plot_seeds(frame, against="recipe")

A sweep is a set of points: a row (what was varied) and a training seed, each a run's folder. The
frame of all is small enough to be committed; runs are not. The contract is that of bsuite (Osband
et al. 2020).

| rows of the frame | policy | row, seed | one row is |
|---|---|---|---|
| training | training | the point's | the mean of a step's episodes of a task, `index` -1 |
| after | trained | the point's | a held-out incident, `step` 0, as all below |
| before | base | none ("", -1) | likewise, once for all points with this `base` |
| scripts | their names | none ("", -1) | likewise, once for the sweep |

`base` is the digest of the weights that a point began with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd

from ..play.scoring import PARTS
from .crossed import crossed_improvement, crossed_iqm, crossed_mean
from .intervals import KEYS, Interval
from .strata import values_in, with_truth

TRAINING = "training"  # the policy of rows that tell of training
ALL = "all"  # the task of means over all tasks
MEASURES = ("score", *PARTS, "gate", "steps")
COLUMNS = (
    *("row", "seed", "base", "policy", "step", "episodes", "task", "split", "index"),
    *MEASURES,
    *("closed_by", "benchmark"),
)
CATEGORIES = ("base", "policy", "task", "split", "closed_by", "benchmark")
SMALL_INTEGERS = {"seed": "int16", "step": "int32", "episodes": "int16", "index": "int32"}
# Decimals of what a step of training comes to: it is a mean of some twenty episodes, so more would
# be noise, and cost more bytes than all the rest.
DECIMALS = {measure: 3 if measure == "score" else 2 for measure in MEASURES}
SHARES = ("faults_detected", "false_alarms_dismissed")  # strata that stand in the table of scores
# What a row of scores has beside itself, since nothing was measured.
NOT_COMPARED = dict.fromkeys(("difference", "improvement"), Interval(*[float("nan")] * 3))

Strata = list[np.ndarray]  # a task each: scores (seeds, incidents)


# -- the frame -----------------------------------------------------------------------------------


def gather(points: Sequence[tuple[str, int, Path]]) -> pd.DataFrame:
    """One frame for a whole sweep, with the columns `COLUMNS`; see the head of this file.

    Of the held-out incidents, those are taken that all points have played before and after
    training, split by split and task by task: a file may hold more of them than was asked for last.

    As parquet with compression zstd, forty points of 200 steps and 600 incidents are about 400 kB.

    Args:
        points: row, seed and the folder of a run that is trained and evaluated; the rows of the
            sweep keep this order.

    Raises:
        FileNotFoundError: for a point that is not finished.
        ValueError: for a point named twice, results of several versions of the benchmark, or a task
            of which no incident was played by all points.
    """
    names = [(row, seed) for row, seed, _ in points]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"a point stands for one run, but {twice} were given twice; drop one")
    files = [[_file(Path(folder), name) for name in _FILES] for _, _, folder in points]
    common = _common_incidents([held_out for _, held_out in files])
    parts = []
    for (row, seed, folder), (training, held_out) in zip(points, files, strict=True):
        held_out = held_out[held_out.set_index(KEYS).index.isin(common)]
        bases = held_out.loc[held_out["policy"] == "base", "weights"].unique()
        if len(bases) != 1:
            raise ValueError(f"{folder} must be evaluated from one base, found {list(bases)}")
        shared = held_out["policy"] != "trained"
        own = pd.concat([_steps(training), held_out[~shared]])
        of_base = held_out["policy"] == "base"
        parts += [
            own.assign(row=row, seed=seed, base=bases[0]),
            held_out[of_base].assign(row="", seed=-1, base=bases[0]),
            held_out[shared & ~of_base].assign(row="", seed=-1, base=""),
        ]
    return _whole(parts, names)


def join(frames: Sequence[pd.DataFrame], names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """The points of several frames of one sweep as one frame; incidents that all frames hold.

    Args:
        frames: from `gather`; the first that holds a point counts.
        names: row and seed of each point that is wanted, in the order of the sweep.

    Raises:
        ValueError: for a point that no frame holds, results of several versions of the benchmark,
            or a task of which there is no incident that all frames hold.
    """
    common = _common_incidents([one[one["policy"] != TRAINING] for one in frames])
    left, parts = set(names), []
    for one in frames:
        one = one.astype({"row": str})
        points = pd.MultiIndex.from_frame(one[["row", "seed"]])
        counts = one.set_index(KEYS).index.isin(common) | (one["policy"] == TRAINING)
        parts.append(one[counts & (points.isin(left) | (one["row"] == ""))])
        left -= set(points)
    if left:
        lacking = ", ".join(sorted(f"{row}/seed-{seed}" for row, seed in left))
        raise ValueError(f"no frame holds {lacking}; run the sweep first")
    frame = pd.concat(parts)
    bases = frame.loc[frame["policy"] == "trained", "base"].unique()
    return _whole([frame[frame["base"].isin(["", *bases])]], names)


def _whole(parts: Sequence[pd.DataFrame], names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """Parts of a frame as one, sorted as the points are, with what is shared once."""
    frame = pd.concat(parts, ignore_index=True)
    versions = [one for one in frame["benchmark"].unique() if one]
    if len(versions) != 1:
        raise ValueError(
            f"results of the benchmark's versions {versions} are never put together; evaluate the "
            "points again"
        )
    frame = frame.drop_duplicates(["row", "seed", "base", "policy", "step", *KEYS])
    return _small(frame.sort_values("row", key=_places(names), kind="stable"))


_FILES: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    "episodes.jsonl": lambda path: pd.read_json(path, lines=True),
    "evaluation.parquet": pd.read_parquet,
}


def _file(folder: Path, name: str) -> pd.DataFrame:
    """One of the two files of a point that count."""
    if not (folder / name).exists():
        raise FileNotFoundError(f"{folder} lacks {name}; train and evaluate this point first")
    frame = _FILES[name](folder / name)
    return frame if name.endswith("jsonl") else frame.assign(step=0, episodes=1)


def _common_incidents(held_out: Sequence[pd.DataFrame]) -> pd.MultiIndex:
    """The incidents (`KEYS`) that base and trained have played in all points' files."""
    played = [
        frame[frame["policy"] == policy].set_index(KEYS).index
        for frame in held_out
        for policy in ("base", "trained")
    ]
    common = reduce(pd.MultiIndex.intersection, played)
    tasks = {task for one in played for task in one.unique("task")}
    lacking = sorted(tasks - set(common.unique("task")))
    if lacking:
        raise ValueError(
            f"no incident of {', '.join(lacking)} was played by all points, before and after "
            "training; evaluate them again, on the same incidents"
        )
    return common


def _places(names: Sequence[tuple[str, int]]) -> Callable[[pd.Series], pd.Series]:
    """A key by which rows of a frame are sorted as they are in the sweep, what is shared last."""
    order = {row: place for place, row in enumerate(dict.fromkeys(row for row, _ in names))}
    return lambda rows: rows.map({**order, "": len(order)})


def _steps(training: pd.DataFrame) -> pd.DataFrame:
    """Episodes of training as a row a (step, task)."""
    groups = training.groupby(["step", "task"], sort=True)
    means = groups[list(MEASURES)].mean().round(DECIMALS)
    rest = {"policy": TRAINING, "split": "train", "index": -1, "closed_by": "", "benchmark": ""}
    return means.assign(episodes=groups.size(), **rest).reset_index()


def _small(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in its final types: categories in order of appearance."""
    rows = [row for row in frame["row"].unique() if row]
    frame = frame[list(COLUMNS)].astype({**SMALL_INTEGERS, **dict.fromkeys(MEASURES, "float32")})
    frame["row"] = pd.Categorical(frame["row"], [*rows, ""])
    for name in CATEGORIES:
        frame[name] = pd.Categorical(frame[name], frame[name].unique())
    return frame.reset_index(drop=True)


def rows_of(frame: pd.DataFrame) -> list[str]:
    """The rows of a sweep, in its order."""
    return [row for row in frame["row"].astype(str).unique() if row]


def tasks_of(frame: pd.DataFrame) -> list[str]:
    """The tasks that were held out, in order of appearance."""
    return list(frame.loc[frame["policy"] == "trained", "task"].astype(str).unique())


def seeds_of(frame: pd.DataFrame, row: str) -> list[int]:
    """The training seeds of a row; `ValueError` for a row that the sweep has not."""
    own = frame[(frame["row"] == row) & (frame["policy"] == "trained")]
    if row == "" or own.empty:
        raise ValueError(f"no row {row!r} in this sweep; choose one of {', '.join(rows_of(frame))}")
    return sorted(int(seed) for seed in own["seed"].unique())


def scores_of(
    frame: pd.DataFrame, row: str, policy: str = "trained", column: str = "score"
) -> Strata:
    """A column of a row's policy, an array (seeds, incidents) for each of `tasks_of`; seeds and
    incidents are sorted.

    Args:
        frame: from `gather`.
        row: of the sweep.
        policy: `trained`, or `base`, which is that of each seed.
        column: of the frame.

    Raises:
        ValueError: for an unknown row, or seeds that were not evaluated on the same incidents.
    """
    frame = frame[frame["policy"].isin([policy, "trained"])]
    tables = []
    for seed in seeds_of(frame, row):
        trained = frame[(frame["row"] == row) & (frame["seed"] == seed)]
        played = trained.set_index(KEYS)[column].sort_index()
        if policy == "base":
            base = frame["base"].isin(trained["base"].unique()) & (frame["policy"] == policy)
            played = frame[base].set_index(KEYS)[column].sort_index()
        tables.append(played.rename(seed))
    if not all(one.index.equals(tables[0].index) for one in tables):
        raise ValueError(
            f"the seeds of {row} were not evaluated on the same incidents; evaluate them again"
        )
    table = pd.concat(tables, axis=1)
    tasks = table.index.get_level_values("task").astype(str)
    return [table[tasks == task].to_numpy(float).T for task in tasks_of(frame)]


# -- score ---------------------------------------------------------------------------------------


def score(frame: pd.DataFrame, against: str = "") -> pd.DataFrame:
    """What each row of a sweep came to, on held-out incidents.

    Args:
        frame: from `gather`.
        against: a row that the others are compared with.

    Returns:
        A row a (row, task), and for task `all` the mean of the tasks. Columns seeds and incidents;
        base, trained, iqm (the interquartile mean of trained) and gain (paired by incident), each
        with its 95 % interval in which seeds and incidents are resampled (`x_low`, `x_high`);
        smallest_gain, of a seed; `faults_detected` and `false_alarms_dismissed`, `_base` and
        `_trained`, nan where a task has none. With `against` also difference, to that row's
        trained, paired by seed and incident, and improvement, the chance that a run scores above
        one of that row (`crossed_improvement`); both nan in that row itself.

    Raises:
        ValueError: as `scores_of`, and when `against` has other seeds, or other incidents.
    """
    told = _with_shares(frame)
    tasks = tasks_of(told)
    parts: dict[str, slice] = {task: slice(at, at + 1) for at, task in enumerate(tasks)}
    records = []
    for row in rows_of(told):
        before, after = (scores_of(told, row, policy) for policy in ("base", "trained"))
        gained = [y - x for x, y in zip(before, after, strict=True)]
        shares = _shares(told, row)
        others = _comparable(told, row, against) if against not in ("", row) else []
        for task, where in {**parts, ALL: slice(None)}.items():
            cells = {
                "base": crossed_mean(before[where]),
                "trained": crossed_mean(after[where]),
                "iqm": crossed_iqm(after[where]),
                "gain": crossed_mean(gained[where]),
            }
            against_it = _compared(others[where], after[where]) if others else {}
            least = np.mean([part.mean(axis=1) for part in gained[where]], axis=0).min()
            records.append(
                {
                    "row": row,
                    "task": task,
                    "seeds": len(after[0]),
                    "incidents": sum(part.shape[1] for part in after[where]),
                    **_flat(cells),
                    "smallest_gain": float(least),
                    **{name: _mean_of_known(values[where]) for name, values in shares.items()},
                    **_flat(NOT_COMPARED if row == against else against_it),
                }
            )
    return pd.DataFrame(records)


def _flat(cells: Mapping[str, Interval]) -> dict[str, float]:
    """Intervals as columns x, x_low and x_high."""
    ends = (("", 0), ("_low", 1), ("_high", 2))
    return {f"{name}{end}": cell[at] for name, cell in cells.items() for end, at in ends}


def _with_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """What was held out of base and trained, with a column a stratum of `SHARES`."""
    held_out = with_truth(frame[frame["policy"].isin(["base", "trained"])])
    return held_out.assign(**{name: values_in(held_out, name) for name in SHARES})


def _shares(told: pd.DataFrame, row: str) -> dict[str, np.ndarray]:
    """Each of `SHARES`, before and after, of each task: (tasks,)."""
    return {
        f"{name}_{policy}": np.array(
            [_mean_of_known(part) for part in scores_of(told, row, policy, name)]
        )
        for name in SHARES
        for policy in ("base", "trained")
    }


def _mean_of_known(values: np.ndarray) -> float:
    """The mean of what is not nan; nan where all is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _comparable(told: pd.DataFrame, row: str, against: str) -> Strata:
    """`scores_of` the row that another is compared with, of the same seeds and incidents."""
    theirs = scores_of(told, against)
    seeds = seeds_of(told, row), seeds_of(told, against)
    if seeds[0] != seeds[1]:
        raise ValueError(
            f"rows are compared seed by seed, but {row} has {seeds[0]} and {against} {seeds[1]}; "
            "train both with the same seeds"
        )
    trained = told[told["policy"] == "trained"]
    sides = [trained.loc[trained["row"] == one, KEYS].drop_duplicates() for one in (row, against)]
    if not sides[0].merge(sides[1], how="outer", indicator=True)["_merge"].eq("both").all():
        raise ValueError(
            f"{row} and {against} were not evaluated on the same incidents; evaluate them again"
        )
    return theirs


def _compared(theirs: Strata, ours: Strata) -> dict[str, Interval]:
    """A row's trained scores less those of another, and the chance that they are higher."""
    difference = crossed_mean([y - x for x, y in zip(theirs, ours, strict=True)])
    return {"difference": difference, "improvement": crossed_improvement(theirs, ours)}
