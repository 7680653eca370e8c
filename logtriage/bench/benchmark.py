"""The benchmark: every policy on every task and split, and tables made from those episodes.

Four studies are finished: their tables in `results/benchmark` stay, and their code is in the
commits named here. `exploits.json` holds the best rules that hill climbing found without diagnosis
(264b8c9), `dials.parquet` scores against each setting of a task (264b8c9), `power.json` how many
episodes show a gain, and `hops.json` how often a root is found by its distance from an alert (both
d1e2645).
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from ..ceiling.posterior import Posterior
from ..ceiling.prior import cached_prior
from ..play.episode import Episode
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from ..world.topology import DEFAULT_TOPOLOGY
from .audit import COLUMNS, judge_result
from .intervals import calibration_error
from .registry import POLICIES, make_policy
from .rollouts import CORE, Judge, rollout
from .runs import write_text
from .score_tables import policy_scores

PART = 100  # incidents played by one process at a time
AUDITED = ("random", "loudest", "novice", "trace", "belief")


def _play(
    policy: str, task: str, split: str, first: int, count: int, judge: Judge | None
) -> pd.DataFrame:
    made = make_policy(policy, first)
    rows = rollout(made, [task], split, count, first, judge=judge)
    columns = [*CORE, *(COLUMNS if judge else ())]
    # Seconds mean nothing when processes share cores, and are never the same twice.
    return rows[columns].drop(columns="seconds")


def run_benchmark(
    policies: Iterable[str],
    splits: Iterable[str],
    incidents: int,
    processes: int,
    part: int = PART,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """Play so many incidents of every task by every policy: one row per episode, with the columns
    of an audit where `judge` makes them. A policy's random numbers begin anew with each `part`.
    """
    parts = [
        (policy, task, split, first, min(part, incidents - first), judge)
        for policy in policies
        for task in TASKS
        for split in splits
        for first in range(0, incidents, part)
    ]
    played = Parallel(n_jobs=processes, return_as="generator")(
        delayed(_play)(*part) for part in parts
    )
    bar = tqdm(played, "benchmark", len(parts), mininterval=2.0)
    return pd.concat(bar, ignore_index=True)


def opening_beliefs(task: str, incidents: int) -> pd.DataFrame:
    """What `belief` states before anything is asked: the `confidence` of each incident's likeliest
    root (or none), and whether that is `correct`. For calibration over the whole range.
    """
    rows = []
    for index in range(incidents):
        episode = Episode(sample_incident(task, "test", index))
        belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS[task], "test"))
        belief.see(episode.opening, None)
        roots = belief.roots()
        best = int(roots.argmax())
        correct = (*episode.incident.topology.names, None)[best] == episode.incident.root
        rows.append({"task": task, "confidence": min(1.0, roots[best]), "correct": correct})
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


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [round(end, 6) for end in value]
    return round(value, 6) if isinstance(value, float) else value


def make_report(results: str | Path, incidents: int = 500, processes: int = 2) -> None:
    """Play the benchmark into the folder `results`: its episodes, and every table as JSON.

    `incidents` are per policy, task and split; the audit uses two fifths of them.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    frame = run_benchmark(POLICIES, SPLITS, incidents, processes)
    openings = pd.concat([opening_beliefs(task, incidents) for task in TASKS])
    some = max(2, incidents * 2 // 5)
    audited = run_benchmark(AUDITED, ["test"], some, processes, part=some, judge=judge_result)
    for name, played in {"episodes": frame, "openings": openings, "audit": audited}.items():
        played.to_parquet(results / f"{name}.parquet", index=False)
    tables = {"scores": policy_scores(frame), "calibration": calibration_table(frame, openings)}
    for name, table in tables.items():
        rows = table.map(_rounded).to_dict("records")
        report = {"benchmark": BENCHMARK_VERSION, "incidents": incidents, "rows": rows}
        write_text(results / f"{name}.json", json.dumps(report, indent=1) + "\n")


def read_table(results: str | Path, name: str) -> pd.DataFrame:
    """A table of the report; intervals are lists of mean, low, high."""
    return pd.DataFrame(json.loads((Path(results) / f"{name}.json").read_text())["rows"])
