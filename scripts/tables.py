"""Write the tables of README and docs from results/: `make tables`. A test holds them fresh."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]


def demo_table() -> str:
    """The README's results of the demo, from `results/demo/seed-0`."""
    run = ROOT / "results" / "demo" / "seed-0"
    rows = json.loads((run / "summary.json").read_text())
    base = json.loads((run / "base.json").read_text())
    cores = json.loads((run / "config.json").read_text())["machine"]["cores"]
    grpo = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])

    def cell(value: list[float]) -> str:
        return "{:.2f} [{:.2f}, {:.2f}]".format(*value)

    played = len(pd.read_parquet(run / "episodes.parquet"))
    lines = ["| task | base | trained | gain | `loudest` | `trace` |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [cell(row[name]) for name in ("base", "trained", "gain")]
        lines.append(
            f"| {row['task'].replace('_', ' ')} | {' | '.join(cells)} | {row['loudest']:.2f} |"
            f" {row['trace']:.2f} |"
        )
    lines += [
        "",
        (
            f"{rows[0]['episodes']} held-out incidents (`test`) a task, greedy, 95 % bootstrap"
            " intervals over incidents, gains paired. **One training seed.**"
            f" {base['parameters'] / 1e6:.2f} M parameters; the base took {base['seconds']:.0f} s,"
            f" GRPO ({played:,} episodes) {grpo['seconds']:.0f} s on {cores} cores."
        ),
    ]
    return "\n".join(lines)


def benchmark_table() -> str:
    """The README's scores of scripted policies on `test`, and the adversary's best, from
    `results/benchmark`.
    """
    results = ROOT / "results" / "benchmark"
    scores = json.loads((results / "scores.json").read_text())
    found = json.loads((results / "exploits.json").read_text())["rows"]
    exploits = {row["task"]: row["test"] for row in found if not row["blind"]}
    lines = [
        (
            f"| policy | {' | '.join(task.replace('_', ' ') for task in TASKS)} | mean | share of"
            " ceiling |"
        ),
        "|" + "---|" * 6,
    ]
    for row in scores["rows"]:
        if row["split"] == "test":
            cells = ["{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in (*TASKS, "mean")]
            lines.append(
                f"| `{row['policy']}` | {' | '.join(cells)} | {row['share_of_ceiling'][0]:.2f} |"
            )
    best = [exploits[task] for task in TASKS]
    cells = [f"{score:.2f}" for score in (*best, sum(best) / len(best))]
    lines.append(f"| best rule without diagnosis | {' | '.join(cells)} | |")
    lines += [
        "",
        (
            f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95"
            " % bootstrap intervals."
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
    "README.md": {"demo": demo_table, "benchmark": benchmark_table},
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
