"""Tables of scores for terminals, notebooks and documents."""

import math
from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from logtriage.play.scoring import PARTS

from .audit import VERDICTS
from .intervals import (
    KEYS,
    Interval,
    before_and_after,
    matched,
    mean_interval,
    seed_scores,
    share_of_reference,
    two_way_mean,
    two_way_share,
)
from .rollouts import scored
from .strata import label, stratum_changes, values_in, with_truth

REFERENCES = ("novice", "loudest", "trace", "belief", "oracle")  # beside a model, see `summarise`
REFERENCE = "belief"  # near-optimal: shares are relative to its score
CAREFUL = "trace"  # the script that an agent should surpass
DETECTION = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")  # strata in tables
LEFT_OUT = ("benchmark", "seeds", "smallest_gain", f"over_{CAREFUL}")  # left out of `summary_table`

# -- as text ---------------------------------------------------------------------------------------


def cell_text(value: Any) -> str:
    """The text of a table's cell: a number with two decimals, an interval (or a list, from JSON) as
    `mean [low, high]`, and a base and a trained value (by name) as `base → trained`.
    """
    if isinstance(value, (dict, pd.Series)):
        return f"{value['base']:.2f} → {value['trained']:.2f}"
    if isinstance(value, (list, tuple)):
        return f"{Interval(*value):.2f}"
    return f"{value:z.2f}" if isinstance(value, (float, np.floating)) else str(value)


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
    known = with_truth(scored(frame))
    values = {label(name): values_in(known, name) for name in DETECTION}
    groups = known[["policy", "task"]].assign(**values).groupby(["policy", "task"], sort=False)
    shares, counts = groups.mean().map("{:.2f}".format), groups.count()
    return (shares + " of " + counts.astype(str)).where(counts > 0, "-").reset_index()


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
    """An audit, one row per policy and task: the share of each verdict, and the mean number of
    questions per episode.
    """
    audited = frame[frame["verdict"].notna()]  # an episode that failed was not audited
    shares = {name: audited["verdict"] == name for name in VERDICTS}
    rows = audited[["policy", "task"]].assign(**shares, questions=audited["questions"])
    return rows.groupby(["policy", "task"], sort=False, as_index=False).mean()


# -- a model before and after training -------------------------------------------------------------


def summarise(frames: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """A model before and after training, one row per task, from one evaluation per training seed.

    Returns:
        Task, benchmark, seeds and episodes (incidents of each); `base`, `trained` and `gain`, with
        intervals over seeds and incidents; `smallest_gain`, the smallest of any seed; the mean
        scores of the `REFERENCES`, as far as every frame has them;
        `share_of_belief` and `over_trace` (how much better than that script), if these are among
        them; and each stratum (see `bench.strata`), by group if it has groups.

    Raises:
        ValueError: when the frames do not hold the same incidents.
    """
    changes, rows = stratum_changes(frames), []
    played = [name for name in REFERENCES if all((frame.policy == name).any() for frame in frames)]
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
        if REFERENCE in played:
            best = scores[REFERENCE][0]
            row[f"share_of_{REFERENCE}"] = (
                share_of_reference(after[0], best)
                if len(frames) == 1
                else two_way_share(after, best)
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
            if key in DETECTION or not (isinstance(value, dict) or key in LEFT_OUT)
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
        own = [frame[frame["split"] == split] for frame in frames]
        tasks = own[0]["task"].unique()
        sides = ([seed_scores(own, task, name) for task in tasks] for name in ("base", "trained"))
        means = before_and_after(*sides)
        cells = {name: f"{means[name]:.2f}" for name in ("base", "trained", "gain")}
        rows.append({"split": split} | cells)
    return pd.DataFrame(rows)


# -- the benchmark ---------------------------------------------------------------------------------


def policy_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per policy and split: the mean score of each task with its interval, the mean over
    tasks, and the share of the reference's score on the same incidents.
    """
    rows = []
    for (policy, split), part in frame.groupby(["policy", "split"], sort=False):
        best = frame[(frame["policy"] == REFERENCE) & (frame["split"] == split)]
        best = best.merge(part[KEYS])
        tasks = {task: group["score"] for task, group in part.groupby("task", sort=False)}
        rows.append(
            {
                "policy": policy,
                "split": split,
                **{task: mean_interval(scores) for task, scores in tasks.items()},
                "mean": mean_interval(*tasks.values()),
                "share_of_reference": share_of_reference(*matched(part, best)),
            }
        )
    return pd.DataFrame(rows)
