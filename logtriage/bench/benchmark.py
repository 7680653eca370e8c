"""The benchmark: every policy on every task and split, and what it means.

`run_benchmark` plays 7 policies x 3 tasks x 5 splits in parts of `PART` incidents, over processes,
and keeps every finished part, so the same command continues what was interrupted. Everything else
here is a table made from those episodes.

Two studies are finished: their tables and figure in `results/benchmark` stay, and their code is in
commit 264b8c9. `exploits.json` holds the best rules that hill climbing found without diagnosis
(`measure/exploits.py`); `dials.parquet` and `dials.png` show scores against each setting of a task
(`measure/dials.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..ceiling.posterior import Posterior
from ..ceiling.prior import cached_prior
from ..play.episode import Episode
from ..world.incidents import Incident, sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from ..world.topology import DEFAULT_TOPOLOGY
from .audit import audit_policies
from .benchmark_plots import plot_audit, plot_hops, plot_policies, plot_reliability, plot_splits
from .intervals import brier, calibration_error, episodes_needed, matched, power_of
from .registry import POLICIES, code_digest, make_policy
from .rollouts import episode_row
from .runs import write_text
from .score_tables import policy_comparisons, policy_scores

PART = 100  # incidents played by one process at a time
GAINS = (0.015, 0.05, 0.1, 0.3)  # of the table of power


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


def play_part(policy: str, task: str, split: str, first: int, count: int, folder: Path) -> Path:
    """Play `count` incidents from `first` on and keep the rows; a part that is there is left alone.
    Returns its file.
    """
    path = folder / f"{policy}-{task}-{split}-{first}-{count}.jsonl"
    if path.exists():
        return path
    played = [Episode(sample_incident(task, split, index)) for index in range(first, first + count)]
    make_policy(policy, first).play(played)
    rows = []
    for episode in played:
        row = episode_row(episode, policy, 0.0)
        del row["seconds"]  # meaningless when processes share cores, and never the same twice
        incident = episode.incident
        row |= {"root": incident.root, "blamed": episode.record.root_cause}
        rows.append({**row, "hops": hops(incident, episode)})
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return path


def source_digest() -> str:
    """A digest of the code that decides the rows: those of other code are not taken for these."""
    return code_digest(Path(__file__), Path(__file__).with_name("rollouts.py"))


def run_benchmark(
    folder: str | Path, incidents: int = 500, processes: int = 2, progress: bool = True
) -> pd.DataFrame:
    """Play everything that `folder` lacks; one row per episode, in a fixed order.

    Args:
        folder: where the parts are kept, in a subfolder for each state of the code behind them.
        incidents: per policy, task and split.
        processes: played at once.
        progress: whether to show a bar.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    folder = Path(folder) / source_digest()
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        (policy, task, split, first, min(PART, incidents - first), folder)
        for policy in POLICIES
        for task in TASKS
        for split in SPLITS
        for first in range(0, incidents, PART)
    ]
    slow_first = sorted(parts, key=lambda part: part[0] != "belief")
    done = Parallel(n_jobs=processes, return_as="generator_unordered")(
        delayed(play_part)(*part) for part in slow_first
    )
    for _ in tqdm(done, total=len(parts), desc="benchmark", disable=not progress, mininterval=2.0):
        pass
    types = {"confidence": float, "benchmark": str}
    frames = [pd.read_json(play_part(*part), lines=True, dtype=types) for part in parts]
    return pd.concat(frames, ignore_index=True).astype(types)


def hop_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Root-cause accuracy by policy and distance from alert to root, with the number of episodes:
    all held-out splits and tasks together, without false alarms.
    """
    faults = frame[(frame["hops"] >= 0) & (frame["split"] != "train")]
    groups = faults.groupby(["policy", "hops"], sort=False)["root_cause"]
    table = groups.agg(["mean", "size"]).reset_index()
    return table.sort_values(["policy", "hops"], kind="stable", ignore_index=True)


def opening_beliefs(task: str, split: str, incidents: int) -> pd.DataFrame:
    """What `belief` states before anything is asked: each incident's likeliest root (or none), its
    `confidence`, and whether that is `correct`. For calibration over the whole range.
    """
    rows = []
    for index in range(incidents):
        episode = Episode(sample_incident(task, split, index))
        belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS[task], split))
        belief.see(episode.opening, None)
        roots = belief.roots()
        best = int(roots.argmax())
        correct = (*episode.incident.topology.names, None)[best] == episode.incident.root
        rows.append({"task": task, "confidence": min(1.0, roots[best]), "correct": correct})
    return pd.DataFrame(rows)


def calibration_table(frame: pd.DataFrame, openings: pd.DataFrame) -> pd.DataFrame:
    """Calibration error and Brier score of `belief`'s root cause, one row per task: when it
    answers, and at the opening.
    """
    stated = frame[(frame["policy"] == "belief") & (frame["split"] == "test")]
    stated = stated[stated["confidence"].notna()]
    rows = []
    for task in dict.fromkeys(frame["task"]):
        end, start = stated[stated["task"] == task], openings[openings["task"] == task]
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


def power_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How many episodes show a gain, from the scores of `loudest` on `test` and the differences of
    `trace` from it: two policies this unlike are the worst case of pairing.

    Returns:
        One row per task and gain: episodes in each average (`unpaired`) and pairs on the same
        incidents (`paired`) for a power of 0.8 in a two-sided test at 5 %, and the power of
        comparing two averages of ten (`power_of_ten`).
    """
    rows = []
    for task in dict.fromkeys(frame["task"]):
        part = frame[(frame["split"] == "test") & (frame["task"] == task)]
        left, right = matched(part[part["policy"] == "loudest"], part[part["policy"] == "trace"])
        deviation, of_differences = (float(np.std(x, ddof=1)) for x in (left, right - left))
        for gain in GAINS:
            rows.append(
                {
                    "gain": gain,
                    "unpaired": episodes_needed(deviation, gain),
                    "paired": episodes_needed(of_differences, gain, paired=True),
                    "power_of_ten": power_of(deviation, gain, 10),
                    "task": task,
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
    folder: str | Path, results: str | Path, incidents: int = 500, processes: int = 2
) -> None:
    """Play the benchmark, and write its episodes, every table as JSON and every figure.

    Args:
        folder: where finished parts are kept between attempts.
        results: where the report goes; files there are replaced.
        incidents: per policy, task and split; the audit uses two fifths of them.
        processes: at once.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    frame = run_benchmark(folder, incidents, processes)
    openings = pd.concat([opening_beliefs(task, "test", incidents) for task in TASKS])
    frame.to_parquet(results / "episodes.parquet", index=False)
    openings.to_parquet(results / "openings.parquet", index=False)
    audited = audit_policies(incidents=max(2, incidents * 2 // 5), processes=processes)
    audited.to_parquet(results / "audit.parquet", index=False)
    write_tables(results)
    draw_report(results)


def write_tables(results: str | Path) -> None:
    """Write every table of a report again, from its episodes."""
    results = Path(results)
    frame = pd.read_parquet(results / "episodes.parquet")
    openings = pd.read_parquet(results / "openings.parquet")
    tables = {
        "scores": policy_scores(frame),
        "hops": hop_table(frame),
        "calibration": calibration_table(frame, openings),
        "comparisons": policy_comparisons(frame),
        "power": power_table(frame),
    }
    incidents = int(frame.groupby(["policy", "task", "split"]).size().max())
    for name, table in tables.items():
        rows = {"benchmark": BENCHMARK_VERSION, "incidents": incidents, "rows": as_records(table)}
        write_text(results / f"{name}.json", json.dumps(rows, indent=1) + "\n")


def draw_report(results: str | Path) -> list[Path]:
    """Draw every figure of a report again, from its tables; returns the files."""
    results = Path(results)
    frame = pd.read_parquet(results / "episodes.parquet")
    test = frame[frame["split"] == "test"]
    incidents = int(test.groupby(["task", "policy"]).size().max())
    figures = {
        "scores": plot_policies(test),
        "splits": plot_splits(frame),
        "hops": plot_hops(read_table(results, "hops"), fewest=min(20, incidents)),
        "reliability": plot_reliability(pd.read_parquet(results / "openings.parquet")),
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
