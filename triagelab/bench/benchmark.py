"""Play the benchmark: every script on every task and split.

results/README.md says which commits have the code of the other tables in `results/benchmark`, which
are finished studies.
"""

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from logtriage.registry import make_policy
from logtriage.world.tasks import SPLITS, TASKS

from .audit import judge_result
from .registry import POLICIES
from .rollouts import COLUMNS, CORE, Judge, rollout

PART = 100  # incidents that one process plays at a time
AUDITED = ("random", "loudest", "novice", "trace", "belief")


def _play(
    policy: str, task: str, split: str, first: int, count: int, judge: Judge | None
) -> pd.DataFrame:
    """The episodes of a policy on a part of a task's incidents, without what differs each time."""
    rows = rollout(make_policy(policy, first), [task], split, count, first, judge=judge)
    # Seconds mean nothing when processes share cores, and are never the same twice.
    return rows.drop(columns=["seconds", *(name for name in COLUMNS if name not in CORE)])


def run_benchmark(
    policies: Iterable[str],
    splits: Iterable[str],
    incidents: int,
    processes: int,
    part: int = PART,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """Play `incidents` incidents of every task and split by every policy: one row per episode, with
    the columns that `judge` adds. Policies are seeded anew for each `part` incidents.
    """
    calls = [
        delayed(_play)(policy, task, split, first, min(part, incidents - first), judge)
        for policy, task, split, first in product(
            policies, TASKS, splits, range(0, incidents, part)
        )
    ]
    played = Parallel(n_jobs=processes, return_as="generator")(calls)
    bar = tqdm(played, "benchmark", len(calls), mininterval=2.0)
    return pd.concat(bar, ignore_index=True)


def make_report(results: str | Path, incidents: int = 500, processes: int = 2) -> None:
    """Play `incidents` incidents per policy, task and split, and audit two fifths of those of
    `test`. Write the episodes of both to the folder `results`.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    frame = run_benchmark(POLICIES, SPLITS, incidents, processes)
    some = max(2, incidents * 2 // 5)
    audited = run_benchmark(AUDITED, ["test"], some, processes, part=some, judge=judge_result)
    for name, played in {"episodes": frame, "audit": audited}.items():
        played.to_parquet(results / f"{name}.parquet", index=False)


def read_table(results: str | Path, name: str) -> pd.DataFrame:
    """A table of a finished study, from the same folder."""
    return pd.DataFrame(json.loads((Path(results) / f"{name}.json").read_text())["rows"])
