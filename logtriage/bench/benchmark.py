"""The benchmark: every policy on every task and split, what it means, and what can be had without
diagnosis.

`run_benchmark` plays 7 policies x 3 tasks x 5 splits in parts of `PART` incidents, over processes,
and keeps every finished part, so the same command continues what was interrupted. Everything else
here is a table made from those episodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..ceiling.posterior import Posterior
from ..ceiling.prior import cached_prior
from ..play.episode import Episode
from ..policies.scripted import mean_score
from ..world.incidents import Incident, sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from ..world.topology import DEFAULT_TOPOLOGY
from .audit import audit_policies
from .benchmark_plots import (
    plot_audit,
    plot_confusion,
    plot_dials,
    plot_hops,
    plot_price,
    plot_reliability,
    plot_splits,
)
from .dials import sweep
from .exploits import RulePolicy, describe, search
from .intervals import (
    Interval,
    brier,
    calibration_error,
    matched,
    mean_interval,
    probability_of_improvement,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
)
from .power import power_table
from .registry import POLICIES, make_policy
from .rollouts import episode_row
from .runs import write_text

PART = 100  # incidents played by one process at a time
EXPLOIT_SEEDS = 2
EXPLOIT_CLIMBS = 4  # hill climbs of a search


def hops(incident: Incident, episode: Episode) -> int:
    """Fewest calls from an alerted service (or, without alerts, an edge) down to the root; -1 for a
    false alarm.
    """
    if incident.root is None:
        return -1
    topology = incident.topology
    near = {alert.service for alert in episode.opening.alerts or ()} or {
        s.name for s in topology.services if s.is_edge
    }
    distance = 0
    while incident.root not in near and distance < len(topology.services):
        near |= {callee for name in near for callee in topology.service(name).downstream}
        distance += 1
    return distance


def play_part(policy: str, task: str, split: str, first: int, count: int, folder: str) -> None:
    """Play incidents `first` to `first + count - 1` and keep the rows; a part that is there is left
    alone.
    """
    path = Path(folder) / f"{policy}-{task}-{split}-{first}-{count}.jsonl"
    if path.exists():
        return
    played = [Episode(sample_incident(task, split, index)) for index in range(first, first + count)]
    player = make_policy(policy, first)
    player.play(played)
    rows = []
    for episode in played:
        row = episode_row(episode, policy, 0.0)
        del row["seconds"]  # of no meaning when processes share cores, and never the same twice
        incident = episode.incident
        rows.append(
            {
                **row,
                "root": incident.root,
                "blamed": episode.record.root_cause,
                "hops": hops(incident, episode),
            }
        )
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def source_digest() -> str:
    """A digest of the package's sources: episodes played by other code are not taken for these."""
    package = Path(__file__).parents[1]
    found = [*package.rglob("*.py"), *package.rglob("*.txt")]
    sources = sorted(path for path in found if path.relative_to(package).parts[0] != "build")
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def run_benchmark(
    folder: str | Path, incidents: int = 500, processes: int = 2, progress: bool = True
) -> pd.DataFrame:
    """Play everything that `folder` lacks; a row an episode, in a fixed order.

    Args:
        folder: where the parts are kept, in a subfolder for each state of the package's sources.
        incidents: per policy, task and split.
        processes: played at once.
        progress: whether to show a bar.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    folder = Path(folder) / source_digest()
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (policy, task, split, first, min(PART, incidents - first), str(folder))
        for policy in sorted(POLICIES, key=lambda name: name != "belief")  # the slow one first
        for split in reversed(SPLITS)
        for task in TASKS
        for first in range(0, incidents, PART)
    ]
    done = Parallel(n_jobs=processes, return_as="generator_unordered")(
        delayed(play_part)(*job) for job in jobs
    )
    for _ in tqdm(done, total=len(jobs), desc="benchmark", disable=not progress, mininterval=2.0):
        pass
    frames = []
    for policy in POLICIES:
        for task in TASKS:
            for split in SPLITS:
                for first in range(0, incidents, PART):
                    name = f"{policy}-{task}-{split}-{first}-{min(PART, incidents - first)}.jsonl"
                    frames.append(
                        pd.read_json(
                            folder / name, lines=True, dtype={"confidence": float, "benchmark": str}
                        )
                    )
    frame = pd.concat(frames, ignore_index=True)
    return frame.astype({"confidence": float, "benchmark": str})


def score_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a policy and split: mean score a task with its interval, mean and IQM over tasks, share
    of `belief`'s score.
    """
    rows = []
    for (policy, split), part in frame.groupby(["policy", "split"], sort=False):
        ceiling = frame[(frame.policy == "belief") & (frame.split == split)]
        strata = [group["score"].to_numpy() for _, group in part.groupby("task", sort=False)]
        rows.append(
            {
                "policy": policy,
                "split": split,
                **{
                    task: mean_interval(group["score"])
                    for task, group in part.groupby("task", sort=False)
                },
                "mean": stratified_mean(strata),
                "iqm": stratified_iqm(strata),
                "share_of_ceiling": share_of_ceiling(part, ceiling),
            }
        )
    return pd.DataFrame(rows)


def hop_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Root-cause accuracy by policy and distance from alert to root, with the number of episodes.

    All held-out splits and tasks together, without false alarms.
    """
    faults = frame[(frame["hops"] >= 0) & (frame["split"] != "train")]
    table = (
        faults.groupby(["policy", "hops"], sort=False)["root_cause"]
        .agg(["mean", "size"])
        .reset_index()
    )
    return table.sort_values(["policy", "hops"], kind="stable", ignore_index=True)


def confusion(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """How often each service (columns; `nobody` last) is blamed when each (rows; `nothing wrong`
    last) is the root.
    """
    roots, blamed = frame["root"].fillna("nothing wrong"), frame["blamed"].fillna("nobody")
    table = pd.crosstab(roots, blamed, normalize="index")
    return table.reindex(
        index=[*names, "nothing wrong"], columns=[*names, "nobody"], fill_value=0.0
    )


def opening_beliefs(task: str, split: str, incidents: int) -> pd.DataFrame:
    """What the belief says before anything is asked: each incident's likeliest root (or none), its
    probability, and whether that is so. Columns `confidence`, `correct`, `task`. For calibration
    over the whole range."""
    rows = []
    for index in range(incidents):
        episode = Episode(sample_incident(task, split, index))
        belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS[task], split))
        belief.see(episode.opening, None)
        roots = belief.roots()
        names = (*episode.incident.topology.names, None)
        best = int(roots.argmax())
        rows.append(
            {
                "task": task,
                "confidence": min(1.0, roots[best]),
                "correct": names[best] == episode.incident.root,
            }
        )
    return pd.DataFrame(rows)


def calibration_table(frame: pd.DataFrame, openings: pd.DataFrame) -> pd.DataFrame:
    """Calibration error and Brier score of `belief`'s root cause, a row a task: when it answers,
    and at the opening.
    """
    stated = frame[
        (frame.policy == "belief") & (frame.split == "test") & frame["confidence"].notna()
    ]
    rows = []
    for task in dict.fromkeys(frame["task"]):
        end, start = stated[stated.task == task], openings[openings.task == task]
        rows.append(
            {
                "task": task,
                "ece": calibration_error(end["confidence"], end["root_cause"]),
                "brier": brier(end["confidence"], end["root_cause"]),
                "ece at the opening": calibration_error(start["confidence"], start["correct"]),
                "brier at the opening": brier(start["confidence"], start["correct"]),
            }
        )
    return pd.DataFrame(rows)


def comparison_table(frame: pd.DataFrame, split: str = "test") -> pd.DataFrame:
    """Each policy against the one before it, a row a task: gain paired by incident, and probability
    of improvement.
    """
    rows, names = [], list(dict.fromkeys(frame["policy"]))
    for task in dict.fromkeys(frame["task"]):
        part = frame[(frame.split == split) & (frame.task == task)]
        for before, after in pairwise(names):
            left, right = matched(part[part.policy == before], part[part.policy == after])
            row = {
                "task": task,
                "before": before,
                "after": after,
                "gain": mean_interval(right - left),
            }
            rows.append(
                {**row, "probability of improvement": probability_of_improvement(left, right)}
            )
    return pd.DataFrame(rows)


def power(frame: pd.DataFrame) -> pd.DataFrame:
    """`power.power_table` for each task: scores of `loudest` on `test`, differences of `trace`
    from it.

    Two policies this unlike are the worst case of pairing; before and after a little training,
    pairs do better.
    """
    tables = []
    for task in dict.fromkeys(frame["task"]):
        part = frame[(frame.split == "test") & (frame.task == task)]
        left, right = matched(part[part.policy == "loudest"], part[part.policy == "trace"])
        tables.append(power_table(left, right - left).assign(task=task))
    return pd.concat(tables, ignore_index=True)


def exploit_table(
    climbs: int = EXPLOIT_CLIMBS,
    incidents: int = 500,
    seeds: int = EXPLOIT_SEEDS,
    processes: int = 2,
) -> pd.DataFrame:
    """The best rules found without diagnosis, two rows a task: with features of what was
    seen, and blind.

    Columns: the score on the incidents of `train` that chose the rule, on `test`, that of `loudest`
    there, the rule in words, and its steps, with which it can be played again.
    """
    from joblib import Parallel, delayed

    jobs = [
        (task, seed, blind) for blind in (False, True) for task in TASKS for seed in range(seeds)
    ]
    found = Parallel(n_jobs=processes)(
        delayed(search)(task, climbs, seed, blind) for task, seed, blind in jobs
    )
    rows, held_out = [], range(incidents)
    for task, blind in product(TASKS, (False, True)):
        finds = [
            find for job, find in zip(jobs, found, strict=True) if (job[0], job[2]) == (task, blind)
        ]
        rule, score = max(finds, key=lambda find: find[1])
        rows.append(
            {
                "task": task,
                "blind": blind,
                "train": score,
                "test": mean_score(RulePolicy(rule), task, "test", held_out),
                "loudest": mean_score(make_policy("loudest"), task, "test", held_out),
                "rule": describe(rule),
                "steps": [list(step) for step in rule],
            }
        )
    return pd.DataFrame(rows)


def as_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table as JSON-ready rows, numbers rounded to six digits."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [round(float(x), 6) for x in value]
        if isinstance(value, (float, np.floating)):
            return round(float(value), 6)
        return value.item() if isinstance(value, np.generic) else value

    return [{key: plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def make_report(
    folder: str | Path,
    results: str | Path,
    incidents: int = 500,
    processes: int = 2,
    climbs: int = EXPLOIT_CLIMBS,
) -> None:
    """Everything under `results/benchmark/`: the episodes, every table as JSON, every figure.

    Args:
        folder: where finished parts are kept between attempts.
        results: where the report goes; files there are replaced.
        incidents: per policy, task and split; dials and audit use fewer in proportion.
        processes: at once.
        climbs: hill climbs of each search for exploits.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    frame = run_benchmark(folder, incidents, processes)
    openings = pd.concat(
        [opening_beliefs(task, "test", incidents) for task in TASKS], ignore_index=True
    )
    fewer = max(2, incidents * 2 // 5)
    dials = sweep(incidents=fewer, processes=processes)
    audited = audit_policies(incidents=fewer, processes=processes)
    tables = {
        "scores": score_table(frame),
        "hops": hop_table(frame),
        "calibration": calibration_table(frame, openings),
        "comparisons": comparison_table(frame),
        "power": power(frame),
        "exploits": exploit_table(climbs, incidents, processes=processes),
    }
    frame.to_parquet(results / "episodes.parquet", index=False)
    dials.to_parquet(results / "dials.parquet", index=False)
    audited.to_parquet(results / "audit.parquet", index=False)
    openings.to_parquet(results / "openings.parquet", index=False)
    for name, table in tables.items():
        rows = {"benchmark": BENCHMARK_VERSION, "incidents": incidents, "rows": as_records(table)}
        write_text(results / f"{name}.json", json.dumps(rows, indent=1) + "\n")
    draw_report(results)


def draw_report(results: str | Path) -> list[Path]:
    """Draw every figure of a report anew, from its tables; returns the files."""
    results = Path(results)
    frame = pd.read_parquet(results / "episodes.parquet")
    test = frame[frame.split == "test"]
    cascades = test[test.task == "cascading_failure"]
    tables = {
        name: confusion(cascades[cascades.policy == name], DEFAULT_TOPOLOGY.names)
        for name in ("loudest", "trace")
    }
    incidents = int(test.groupby(["task", "policy"]).size().max())
    openings = pd.read_parquet(results / "openings.parquet")
    figures = {
        "scores": plot_price(test),
        "splits": plot_splits(frame),
        "hops": plot_hops(read_table(results, "hops"), fewest=min(20, incidents)),
        "confusion": plot_confusion(tables),
        "reliability": plot_reliability(test[test.policy == "belief"], openings),
        "dials": plot_dials(pd.read_parquet(results / "dials.parquet")),
        "audit": plot_audit(pd.read_parquet(results / "audit.parquet")),
    }
    for name, figure in figures.items():
        figure.save(results / f"{name}.png")
    return [results / f"{name}.png" for name in figures]


def read_table(results: str | Path, name: str) -> pd.DataFrame:
    """A table of the report; intervals are lists of mean, low, high.

    `FileNotFoundError` names the command that makes it.
    """
    path = Path(results) / f"{name}.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `make benchmark` first")
    return pd.DataFrame(json.loads(path.read_text())["rows"])


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """A table, of `read_table` or of intervals, for reading: those as `mean [low, high]`."""
    return table.map(
        lambda value: str(Interval(*value)) if isinstance(value, (list, Interval)) else value
    )
