"""Write the tables of README and docs from results/: `make tables`. A test holds them fresh."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.measure.audit import VERDICTS
from logtriage.measure.strata import describe_falls, stratum_changes
from logtriage.training.summaries import CEILING, TEACHER, summarise_seeds
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]
# From reward alone; and fine-tuned on `trace`, then rewarded.
TRACKS = ("demo", "taught")


def seeds_of(track: str) -> list[Path]:
    """The published runs of a track, by seed."""
    found = (ROOT / "results" / track).glob("seed-*")
    return sorted(found, key=lambda run: int(run.name.removeprefix("seed-")))


def track_table(track: str) -> str:
    """The README's results of a track, over every training seed in `results/`, and what got
    worse.
    """
    runs = seeds_of(track)
    table = summarise_seeds(runs).to_dict("records")
    rows = [_cells(row, taught=track == "taught") for row in table]
    lines = [f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0])]
    lines += [f"| {' | '.join(cells.values())} |" for cells in rows]
    base = json.loads((runs[0].parent / "base.json").read_text())
    machine = json.loads((runs[0] / "config.json").read_text())["machine"]
    metrics = [(run / "metrics.jsonl").read_text().splitlines() for run in runs]
    seconds = sum(json.loads(steps[-1])["seconds"] for steps in metrics) / len(runs)
    played = sum(len(pd.read_parquet(run / "episodes.parquet")) for run in runs) / len(runs)
    several = len(runs) > 1
    made = (
        f"{base['parameters'] / 1e6:.2f} M parameters; the base took {base['seconds']:.0f} s, GRPO"
        f" ({played:,.0f} episodes) {seconds:.0f} s{' a seed' if several else ''} on"
        f" {machine['threads']} of {machine['cores']} cores."
    )
    method = (
        f"Benchmark {table[0]['benchmark']}, {table[0]['episodes']} held-out incidents (`test`)"
        " a task, greedy, 95 % bootstrap intervals over"
        f" {'incidents and seeds' if several else 'incidents'}, gains paired."
        f" {f'**{len(runs)} training seeds.**' if several else '**One training seed.**'}"
        " Faults / false alarms, base → trained: share of real faults whose root was blamed"
        " first, and of false alarms dismissed."
    )
    how = f"{method} {made}" if track == TRACKS[0] else f"As above. {made}"
    known = f"{grounded_line(runs)} {splits_line(runs)}"
    return "\n".join([*lines, "", how, falls_line(runs), known])


def _cells(row: dict[str, Any], taught: bool) -> dict[str, str]:
    """One task's row of `summarise_seeds` as head to cell, beside the teacher if there was one."""
    cells = {"task": row["task"].replace("_", " ")}
    cells |= {
        name: "{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in ("base", "trained", "gain")
    }
    if row["seeds"] > 1:
        cells["least gain of a seed"] = f"{row['smallest_gain']:.2f}"
    if row[f"share_of_{CEILING}"] is not None:
        cells[f"share of `{CEILING}`"] = f"{row[f'share_of_{CEILING}'].mean:.2f}"
    cells["faults / false alarms"] = f"{_detection(row, 'base')} → {_detection(row, 'trained')}"
    if taught:
        return cells | {
            f"over `{TEACHER}`": "{:.2f} [{:.2f}, {:.2f}]".format(*row[f"over_{TEACHER}"])
        }
    return cells | {f"`{name}`": f"{row[name]:.2f}" for name in ("loudest", "trace")}


def falls_line(runs: Sequence[Path]) -> str:
    """A sentence that names every stratum which training made worse by more than its interval."""
    frames = [pd.read_parquet(run / "evaluation.parquet") for run in runs]
    base, trained = ([one[one.policy == name] for one in frames] for name in ("base", "trained"))
    falls = describe_falls(stratum_changes(base, trained))
    if not falls:
        return "No stratum got worse by more than its interval."
    return (
        f"**What got worse by more than its interval** (of so many incidents): {'; '.join(falls)}."
    )


def splits_line(runs: Sequence[Path]) -> str:
    """A sentence on the splits that hold something new: shares of `belief`'s score on the same
    incidents, base to trained, the mean over tasks and seeds.
    """
    played = pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")
    coordinates = ["task", "split", "index"]
    ceiling = played[played.policy == "belief"].set_index(coordinates)["score"]
    frame = pd.concat([pd.read_parquet(run / "splits.parquet") for run in runs])
    versions = {*frame["benchmark"], *played["benchmark"]}
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {sorted(versions)} are never put together; "
            "run `make benchmark` and `make seeds` again"
        )
    frame["ceiling"] = ceiling.loc[pd.MultiIndex.from_frame(frame[coordinates])].to_numpy()
    sums = frame.groupby(["split", "task", "policy"])[["score", "ceiling"]].sum()
    shares = (sums["score"] / sums["ceiling"]).groupby(["split", "policy"]).mean().unstack()
    told = [
        f"`{split}` {row['base']:.2f} → {row['trained']:.2f}" for split, row in shares.iterrows()
    ]
    return f"Share of `{CEILING}` where something is new, base → trained: {', '.join(told)}."


def grounded_line(runs: Sequence[Path]) -> str:
    """A sentence on what the model knew: its grounded answers (see `measure.audit`), of all and of
    the right ones, base to trained, the mean over tasks and seeds.
    """
    frame = pd.concat([pd.read_parquet(run / "audit.parquet") for run in runs])
    told = []
    for of in (VERDICTS, ("grounded", "lucky")):
        part = frame[frame["verdict"].isin(of)]
        shares = (part["verdict"] == "grounded").groupby(part["policy"]).mean()
        told.append(f"{shares['base']:.2f} → {shares['trained']:.2f}")
    return f"Grounded answers, base → trained: {told[0]} of all, {told[1]} of the right ones."


def _detection(row: dict[str, Any], policy: str) -> str:
    """Faults detected / false alarms dismissed, the latter where a task has any."""
    shares = [row[f"{name}_{policy}"] for name in ("faults_detected", "false_alarms_dismissed")]
    return " / ".join(f"{share:.2f}" for share in shares if not math.isnan(share))


def benchmark_table() -> str:
    """The README's scores of scripted policies on `test`, and the adversary's best, from
    `results/benchmark`.
    """
    results = ROOT / "results" / "benchmark"
    scores = json.loads((results / "scores.json").read_text())
    found = json.loads((results / "exploits.json").read_text())["rows"]
    exploits = {row["task"]: row["test"] for row in found if not row["blind"]}
    audit = pd.read_parquet(results / "audit.parquet")
    grounded = (audit["verdict"] == "grounded").groupby(audit["policy"]).mean()
    lines = [
        (
            f"| policy | {' | '.join(task.replace('_', ' ') for task in TASKS)} | mean | share of"
            " ceiling | grounded |"
        ),
        "|" + "---|" * 7,
    ]
    for row in scores["rows"]:
        if row["split"] == "test":
            cells = ["{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in (*TASKS, "mean")]
            cells.append(f"{row['share_of_ceiling'][0]:.2f}")
            known = row["policy"] in grounded
            cells.append(f"{grounded[row['policy']]:.2f}" if known else "")
            lines.append(f"| `{row['policy']}` | {' | '.join(cells)} |")
    best = [exploits[task] for task in TASKS]
    cells = [f"{score:.2f}" for score in (*best, sum(best) / len(best))]
    lines.append(f"| best rule without diagnosis | {' | '.join(cells)} | | |")
    lines += [
        "",
        (
            f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95"
            " % bootstrap intervals. Grounded: share of answers that are right, and that what was"
            " seen made likelier than not."
        ),
    ]
    return "\n".join(lines)


def load_table() -> str:
    """The load on the server, from `results/serving`."""
    figures = json.loads((ROOT / "results" / "serving" / "load.json").read_text())
    names = {"logtriage": "LogTriage", "echo": "echo template"}
    lines = ["| WebSocket sessions | server | steps/s | p50 | p99 |", "|---|---|---|---|---|"]
    for row in figures["rows"]:
        lines.append(
            f"| {row['sessions']} | {names[row['server']]} | {row['steps_per_second']:,.0f} |"
            f" {row['p50_ms']:.0f} ms | {row['p99_ms']:.0f} ms |"
        )
    ours = [row for row in figures["rows"] if row["server"] == "logtriage"]
    lines += [
        "",
        (
            f"Whole episodes on loopback, client and server sharing {figures['machine']['cores']}"
            " cores, beside the echo environment of `openenv init`. Of"
            f" {sum(row['steps'] for row in ours):,} steps of ours, and their openings,"
            f" {sum(row['wrong'] for row in ours)} differed by a byte from the same episodes played"
            " in process."
        ),
    ]
    return "\n".join(lines)


# File to the tables it holds, each between `<!-- name -->` and `<!-- /name -->`.
TABLES = {
    "README.md": {
        **{track: partial(track_table, track) for track in TRACKS},
        "benchmark": benchmark_table,
    },
    "docs/serving.md": {"load": load_table},
}


def with_tables(file: str, text: str) -> str:
    """`text` of that file with its tables written anew; `ValueError` when it does not hold each
    once.
    """
    for name, table in TABLES[file].items():
        block = f"<!-- {name} -->\n{table()}\n<!-- /{name} -->"
        text, count = re.subn(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"{file} must hold the block <!-- {name} --> once, found {count}")
    return text


def write_tables() -> None:
    """Write the tables of README and docs from `results/`."""
    for file in TABLES:
        path = ROOT / file
        path.write_text(with_tables(file, path.read_text()))


if __name__ == "__main__":
    write_tables()
