"""Tables of scores for terminals, notebooks and documents, and those of a sweep.

A sweep is a set of points. Each point has a row (what was varied), a training seed and the folder
of a run. The frame of all points is small enough to be committed (forty are about 400 kB); runs are
not. As in bsuite (Osband et al. 2020), `gather` makes the frame, `score` the table, and
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
import math
from collections.abc import Sequence
from functools import reduce
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logtriage.play.scoring import PARTS

from .audit import VERDICTS
from .intervals import (
    KEYS,
    Interval,
    before_and_after,
    calibration_error,
    compare_recipes,
    holm,
    matched,
    mean_interval,
    seed_means,
    seed_scores,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
    two_way_mean,
    two_way_share,
    verdict,
)
from .rollouts import scored
from .strata import FEWEST, label, stratum_changes, values_in, with_truth

REFERENCES = ("novice", "loudest", "trace", "belief", "oracle")  # beside a model, see `summarise`
CEILING = "belief"  # shares are relative to its score
CAREFUL = "trace"  # the script that an agent should surpass
DETECTION = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")  # strata in tables
UNSHOWN = ("benchmark", "seeds", "smallest_gain", f"over_{CAREFUL}")  # left out of `summary_table`
TRAINING = "training"  # the policy of rows about training
ALL = "all"  # the task of means over all tasks
MEASURES = ("score", *PARTS, "gate", "steps")
COLUMNS = (
    *("row", "seed", "base", "policy", "step", "episodes", "task", "split", "index"),
    *MEASURES,
    *("closed_by", "benchmark"),
)
CATEGORIES = ("base", "policy", "task", "split", "closed_by", "benchmark")
SMALL_INTEGERS = {"seed": "int16", "step": "int32", "episodes": "int16", "index": "int32"}
# Decimals of a step's means over some twenty episodes: more would be noise and cost bytes.
DECIMALS = {measure: 3 if measure == "score" else 2 for measure in MEASURES}

# -- as text ---------------------------------------------------------------------------------------


def cell_text(value: Any) -> str:
    """The text of a table's cell: a number with two decimals, an interval (or a list, from JSON) as
    `mean [low, high]`, and a base and a trained value (by name) as `base → trained`.
    """
    if isinstance(value, (dict, pd.Series)):
        return f"{value['base']:.2f} → {value['trained']:.2f}"
    if isinstance(value, (list, tuple)):
        return f"{Interval(*value):.2f}"
    return f"{value:.2f}" if isinstance(value, (float, np.floating)) else str(value)


def markdown(rows: pd.DataFrame | Sequence[dict[str, str]]) -> str:
    """A Markdown table of a frame, without its index, or of rows that map headings to text."""
    table = pd.DataFrame(rows)
    lines = [f"| {' | '.join(map(str, table.columns))} |", "|" + "---|" * len(table.columns)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(False, None)]
    return "\n".join(lines)


# -- an evaluation ---------------------------------------------------------------------------------


def score_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Rollouts as text: one row per policy and task, with the score and its interval, the parts of
    the score, and steps.

    Several attempts at an incident count as one value, their mean. Episodes without a score are
    left out; if there are any, the column `errors` counts them.
    """
    rows, failed = [], frame["score"].isna().any()
    for (policy, task), group in frame.groupby(["policy", "task"], sort=False):
        played = group[group["score"].notna()]
        incidents = played.groupby(KEYS, sort=False)["score"].mean()
        cells = {"policy": policy, "task": task}
        if failed:
            cells["errors"] = len(group) - len(played)
        cells["score"] = _interval_or_dash(incidents)
        cells |= {part: f"{played[part].mean():.2f}" for part in PARTS}
        rows.append(cells | {"steps": f"{played['steps'].mean():.1f}"})
    return pd.DataFrame(rows)


def _interval_or_dash(values: pd.Series) -> str:
    return str(mean_interval(values)) if len(values) > 1 else "-"


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


def pass_at(k: int, attempts: int, successes: int) -> float:
    """pass@k of one incident, the chance that one of k attempts solves it: the unbiased estimator
    of Chen et al. 2021, "Evaluating large language models trained on code", section 2.1.
    """
    return 1.0 - comb(attempts - successes, k) / comb(attempts, k)


def pass_all(k: int, attempts: int, successes: int) -> float:
    """pass^k of one incident, the chance that all k attempts solve it: Yao et al. 2024,
    "tau-bench", section 3.
    """
    return comb(successes, k) / comb(attempts, k)


def attempts_table(frame: pd.DataFrame, attempts: int) -> pd.DataFrame:
    """One row per policy, task and k (1, 2, 4 and so on, and all `attempts`): pass@k and pass^k as
    text, each the mean over incidents with its 95 % interval.

    Attempts that ended in an error do not count. An incident with fewer than k others is left out,
    and `incidents` counts the rest.
    """
    rows = []
    ks = sorted({attempts, *(2**n for n in range(attempts.bit_length()))})
    ended = frame[frame["solved"].notna()].astype({"solved": int})
    for (policy, task), group in ended.groupby(["policy", "task"], sort=False):
        counted = group.groupby(KEYS)["solved"].agg(["size", "sum"])
        for k in ks:
            enough = counted[counted["size"] >= k].to_numpy()
            row = {"policy": policy, "task": task, "k": k, "incidents": len(enough)}
            for name, estimate in (("pass@k", pass_at), ("pass^k", pass_all)):
                values = [estimate(k, int(n), int(won)) for n, won in enough]
                row[name] = _interval_or_dash(pd.Series(values))
            rows.append(row)
    return pd.DataFrame(rows)


def audit_table(frame: pd.DataFrame) -> pd.DataFrame:
    """An audit, one row per policy and task: the share of each verdict; the share of right answers
    that are grounded, with its 95 % interval (None below `FEWEST` right answers); the mean number
    of questions per episode, the mean regret of a question, and that of answering.

    Several training seeds (column `seed`, empty if nothing was trained) or attempts at an incident
    do not count as further incidents.
    """
    rows = []
    frame = frame[frame["verdict"].notna()]  # an episode that failed was not audited
    frame = frame.astype({"question_regret": float, "answer_regret": float})  # None, from a file
    seeds = frame["seed"].fillna("") if "seed" in frame else ""
    frame = frame.assign(seed=seeds, attempt=frame.get("attempt", 0))
    for (policy, task), part in frame.groupby(["policy", "task"], sort=False):
        verdicts = part.pivot(index=["seed", "attempt"], columns="index", values="verdict")
        verdicts = verdicts.dropna(axis="columns").to_numpy()  # those with all attempts
        grounded, right = verdicts == "grounded", np.isin(verdicts, ("grounded", "lucky"))
        enough = right.sum() >= FEWEST
        asked, regret = part["weighed"].sum(), part["question_regret"] * part["weighed"]
        rows.append(
            {
                "policy": policy,
                "task": task,
                **{name: (part["verdict"] == name).mean() for name in VERDICTS},
                "grounded_share_of_right": two_way_share(grounded, right) if enough else None,
                "questions": part["questions"].mean(),
                "question_regret": regret.sum() / asked if asked else float("nan"),
                "answer_regret": part["answer_regret"].mean(),
            }
        )
    return pd.DataFrame(rows)


# -- a model before and after training -------------------------------------------------------------


def summarise(frames: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """A model before and after training, one row per task, from one evaluation per training seed.

    Returns:
        Task, benchmark, seeds and episodes (incidents of each); `base`, `trained` and `gain`, with
        intervals over seeds and incidents; `smallest_gain`, the smallest of any seed; the mean
        scores of `start` (before a warm-up) and the `REFERENCES`, as far as every frame has them;
        `share_of_belief` and `over_trace` (how much better than that script), if these are among
        them; and each stratum (see `bench.strata`), by group if it has groups.

    Raises:
        ValueError: when the frames do not hold the same incidents.
    """
    changes, rows = stratum_changes(frames), []
    beside = ("start", *REFERENCES)
    played = [name for name in beside if all((one.policy == name).any() for one in frames)]
    for task, own in changes.groupby("task", sort=False):
        scores = {name: seed_scores(frames, task, name) for name in ("base", "trained", *played)}
        after = scores["trained"]
        row: dict[str, Any] = {
            "task": task,
            "benchmark": frames[0]["benchmark"].iloc[0],
            "seeds": len(frames),
            "episodes": after.shape[1],
            **before_and_after([scores["base"]], [after]),
            **{name: float(scores[name].mean()) for name in played},
        }
        if CEILING in played:
            best = scores[CEILING][0]
            row[f"share_of_{CEILING}"] = (
                share_of_ceiling(after[0], best) if len(frames) == 1 else two_way_share(after, best)
            )
        if CAREFUL in played:
            row[f"over_{CAREFUL}"] = two_way_mean([after - scores[CAREFUL]])
        rows.append(row | _strata_of(own))
    return rows


def _strata_of(changes: pd.DataFrame) -> dict[str, Any]:
    """One task's rows of `stratum_changes` by stratum, and then by group if there are groups."""
    strata: dict[str, Any] = {}
    for row in changes.itertuples():
        change = [round(value, 4) for value in (row.change, row.low, row.high)]
        cell = {
            "incidents": row.incidents,
            "base": round(row.base, 4),
            "trained": round(row.trained, 4),
            "change": None if math.isnan(row.low) else change,  # too few incidents
            "fell": row.fell,
        }
        where = strata.setdefault(row.stratum, {}) if row.group else strata
        where[row.group or row.stratum] = cell
    return strata


def summary_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """`summarise`'s rows (or those of `summary.json`) as text; of the strata, only `DETECTION`."""
    table = pd.DataFrame(
        {
            label(key) if key in DETECTION else key.replace("_", " "): cell_text(value)
            for key, value in row.items()
            if key in DETECTION or not (isinstance(value, dict) or key in UNSHOWN)
        }
        for row in rows
    )
    return table.fillna("-").astype({"episodes": int})


def split_table(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """A model before and after training on each split, as text: means over the tasks and the paired
    gain, with intervals. `frames` has one frame per training seed.
    """
    rows = []
    for split in frames[0]["split"].unique():
        own = [one[one["split"] == split] for one in frames]
        tasks = own[0]["task"].unique()
        sides = ([seed_scores(own, task, name) for task in tasks] for name in ("base", "trained"))
        means = before_and_after(*sides)
        cells = {name: f"{means[name]:.2f}" for name in ("base", "trained", "gain")}
        rows.append({"split": split} | cells)
    return pd.DataFrame(rows)


# -- the benchmark ---------------------------------------------------------------------------------


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


def calibration_table(frame: pd.DataFrame, openings: pd.DataFrame) -> pd.DataFrame:
    """Expected calibration error and Brier score (the mean squared difference of confidence and
    outcome) of `belief`'s root cause, one row per task: when it answers, and at the opening.
    """
    stated = frame[(frame["policy"] == "belief") & (frame["split"] == "test")]
    stated = stated[stated["confidence"].notna()].assign(correct=stated["root_cause"])
    rows = []
    for task in dict.fromkeys(frame["task"]):
        row: dict[str, Any] = {"task": task}
        for when, answers in (("", stated), (" at the opening", openings)):
            own = answers[answers["task"] == task]
            confidence, correct = own["confidence"], own["correct"].astype(float)
            row[f"ece{when}"] = calibration_error(confidence, correct)
            row[f"brier{when}"] = float(((confidence - correct) ** 2).mean())
        rows.append(row)
    return pd.DataFrame(rows)


# -- a sweep ---------------------------------------------------------------------------------------


def gather(points: Sequence[tuple[str, int, Path]]) -> pd.DataFrame:
    """Gather a whole sweep into one frame with the columns `COLUMNS`; see the head of this file.

    Only held-out incidents that all points have played before and after training are taken, since a
    file may hold more of them than were asked for last.

    `points`: row, seed and run folder of each; the rows of the sweep keep this order.
    """
    files = [_files(Path(folder)) for _, _, folder in points]
    played = [
        held_out[held_out["policy"] == policy].set_index(KEYS).index
        for _, held_out in files
        for policy in ("base", "trained")
    ]
    common, parts = reduce(pd.MultiIndex.intersection, played), []
    for (row, seed, _), (training, held_out) in zip(points, files, strict=True):
        held_out = held_out[held_out.set_index(KEYS).index.isin(common)]
        own, of_base = held_out["policy"] == "trained", held_out["policy"] == "base"
        base = held_out.loc[of_base, "weights"].iloc[0]
        parts += [
            pd.concat([_steps(training), held_out[own]]).assign(row=row, seed=seed, base=base),
            held_out[of_base].assign(row="", seed=-1, base=base),
            held_out[~own & ~of_base].assign(row="", seed=-1, base=""),
        ]
    frame = pd.concat(parts, ignore_index=True)
    versions = set(frame["benchmark"]) - {""}
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {', '.join(sorted(versions))} are never put "
            "together; evaluate the points again"
        )
    frame = frame.drop_duplicates(["row", "seed", "base", "policy", "step", *KEYS])
    rows = [*dict.fromkeys(row for row, _, _ in points), ""]  # shared rows come last
    frame = frame[[*COLUMNS]].assign(row=pd.Categorical(frame["row"], rows))
    frame = frame.sort_values("row", kind="stable", ignore_index=True)
    for name in CATEGORIES:  # in order of appearance
        frame[name] = pd.Categorical(frame[name], frame[name].unique())
    return frame.astype({**SMALL_INTEGERS, **dict.fromkeys(MEASURES, "float32")})


def _files(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A point's training episodes, and its held-out ones."""
    for name in ("episodes.jsonl", "evaluation.parquet"):
        if not (folder / name).exists():
            raise FileNotFoundError(f"{folder} lacks {name}; train and evaluate this point first")
    held_out = pd.read_parquet(folder / "evaluation.parquet").assign(step=0, episodes=1)
    return pd.read_json(folder / "episodes.jsonl", lines=True), held_out


def _steps(training: pd.DataFrame) -> pd.DataFrame:
    """The means of training episodes, one row per step and task."""
    groups = training.groupby(["step", "task"], sort=True)
    means = groups[list(MEASURES)].mean().round(DECIMALS)
    rest = {"policy": TRAINING, "split": "train", "index": -1, "closed_by": "", "benchmark": ""}
    return means.assign(episodes=groups.size(), **rest).reset_index()


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


def seeds_of(frame: pd.DataFrame, row: str) -> list[int]:
    """The training seeds of a row; `ValueError` for a row that the sweep does not have."""
    own = frame[(frame["row"] == row) & (frame["policy"] == "trained")]
    if own.empty:
        raise ValueError(f"no row {row!r} in this sweep; choose one of {', '.join(rows_of(frame))}")
    return sorted(int(seed) for seed in own["seed"].unique())


def scores_of(frame: pd.DataFrame, row: str, policy: str = "trained") -> list[np.ndarray]:
    """The scores of a policy in a row of the sweep: an array (seeds, incidents) for each of
    `tasks_of`, with seeds and incidents sorted. `base` is the base that each seed started from.
    """
    frame = frame[frame["policy"].isin([policy, "trained"])]
    tables = []
    for seed in seeds_of(frame, row):
        own = frame[(frame["row"] == row) & (frame["seed"] == seed)]
        if policy == "base":
            own = frame[frame["base"].isin(own["base"].unique()) & (frame["policy"] == policy)]
        tables.append(own.set_index(KEYS)["score"].sort_index().rename(seed))
    table = pd.concat(tables, axis=1)
    tasks = table.index.get_level_values("task").astype(str)
    return [table[tasks == task].to_numpy(float).T for task in tasks_of(frame)]


def score(frame: pd.DataFrame, against: str = "") -> pd.DataFrame:
    """The results of each row of a sweep on held-out incidents: one row per (row, task), where task
    `all` is the mean of the tasks.

    Columns: seeds and incidents; base, trained and gain (paired by incident), each with its 95 %
    interval over seeds and incidents (`x_low`, `x_high`); smallest_gain of a seed. With a row
    `against` also the difference from its trained with a t interval over seeds, p of no difference,
    and verdict (`intervals.verdict`), for which p is adjusted over all rows of a task (Holm).
    """
    places = {task: slice(at, at + 1) for at, task in enumerate(tasks_of(frame))}
    places[ALL] = slice(None)
    theirs = scores_of(frame, against) if against else []
    records = []
    for row in rows_of(frame):
        before, after = (scores_of(frame, row, policy) for policy in ("base", "trained"))
        compared = against not in ("", row)
        paired = compared and trained_alike(frame, row, against)
        for task, where in places.items():
            record: dict[str, Any] = {"row": row, "task": task, "seeds": len(after[0])}
            record["incidents"] = sum(part.shape[1] for part in after[where])
            record |= _flat(before_and_after(before[where], after[where]))
            if compared:
                sides = seed_means(theirs[where]), seed_means(after[where])
                difference, p = compare_recipes(*sides, paired)
                record |= _flat({"difference": difference, "p": p})
            records.append(record)
    table = pd.DataFrame(records)
    if against:
        adjusted = table.groupby("task")["p"].transform(holm)
        cells = zip(table["difference"], table["p"], adjusted, strict=True)
        table["verdict"] = [verdict(*cell) for cell in cells]
        table.loc[table["row"] == against, "verdict"] = ""
    return table


def trained_alike(frame: pd.DataFrame, row: str, other: str) -> bool:
    """Whether two rows trained the same seeds for the same steps, on as many episodes of each task.
    Only then do seeds pair: otherwise the same seed draws other incidents.
    """
    training = frame[frame["policy"] == TRAINING].astype({"row": str, "task": str})
    played = training.set_index(["row", "seed", "step", "task"])["episodes"].sort_index()
    return bool(played.loc[row].equals(played.loc[other]))


def _flat(record: dict[str, Any]) -> dict[str, float]:
    """Split each interval into the columns x, x_low and x_high."""
    flat: dict[str, float] = {}
    for name, value in record.items():
        ends = value if isinstance(value, Interval) else [value]
        flat |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=False))
    return flat


def comparison_table(frame: pd.DataFrame, against: str, task: str = ALL) -> pd.DataFrame:
    """Compare each row of a sweep with the row `against`, as text, the best first: on a task, or on
    the mean of all (`all`).
    """
    table = score(frame, against=against)
    table = table[table["task"] == task].sort_values("trained", ascending=False).set_index("row")
    shown = {
        name: [
            f"{Interval(*ends):.2f}"
            for ends in table[[name, f"{name}_low", f"{name}_high"]].to_numpy()
        ]
        for name in ("trained", "gain", "difference")
    }
    shown |= {"p": table["p"].map("{:.3f}".format), "verdict": table["verdict"]}
    return pd.DataFrame(shown, table.index).replace(
        {r"^nan.*": "", r"^0\.000$": "<0.001"}, regex=True
    )
