"""What keeps the repository true to itself: its address, the gallery, the published results."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd

from . import REPOSITORY
from .play.episode import Episode
from .play.prompts import render
from .world.incidents import SPLITS, TASKS, sample_incident

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = (
    "01_explore_the_environment.ipynb",
    "02_zero_shot_baselines.ipynb",
    "03_grpo_training.ipynb",
    "04_learning_curves.ipynb",
    "05_benchmark.ipynb",
)
# This project's own links: whatever owner, the name is `logtriage`.
ADDRESS = re.compile(
    r"(?:github\.com|com/github)/(?P<repository>[\w.-]+/logtriage)(?=[/\s\")#.]|$)", re.MULTILINE
)
LIGHT_FILES = (
    "config.json",
    "metrics.jsonl",
    "evaluation.parquet",
    "checkpoints.parquet",
    "summary.json",
    "transcripts.json",
    "gain.png",
    "learning.png",
    "parts.png",
)


def with_address(text: str, old: str, new: str) -> str:
    """`text` with every link to the repository `old` pointing to `new`."""
    return re.sub(
        rf"((?:github\.com|com/github)/){re.escape(old)}(?=[/\s\")#.]|$)",
        rf"\g<1>{new}",
        text,
        flags=re.MULTILINE,
    )


def write_address() -> list[Path]:
    """Write `REPOSITORY` into README, Space card and notebooks; returns the files that changed."""
    changed = []
    for path in (
        ROOT / "README.md",
        ROOT / "logtriage" / "README.md",
        *(ROOT / "notebooks" / name for name in NOTEBOOKS),
    ):
        text = path.read_text()
        new = text
        for found in {match["repository"] for match in ADDRESS.finditer(text)}:
            new = with_address(new, found, REPOSITORY)
        if new != text:
            path.write_text(new)
            changed.append(path)
    return changed


def gallery_text() -> str:
    """GALLERY.md: one opening of each task, a detail of its root, the truth, and the same task in
    the other splits.
    """
    parts = [
        "# Gallery",
        "Real samples of the generator, written by `make gallery`; a test holds them fresh. "
        "Each block is all that an agent sees.",
    ]
    for name, task in TASKS.items():
        parts.append(f"## {name.replace('_', ' ')}")
        parts.append(
            f"{task.max_steps} steps; at least {task.noise:.0%} of the streamed lines are noise."
        )
        for index in (0, 1):
            episode = Episode(sample_incident(name, "train", index))
            incident = episode.incident
            parts.append(
                f"`train/{index}`\n\n```text\n{render(episode.opening, incident.topology)}\n```"
            )
            if incident.injection is None:
                parts.append("Truth: a false alarm; P3, and `ignore`.")
                continue
            detail = render(episode.act("request_more_logs", incident.root))
            parts.append(f"Asking `{incident.root}`:\n\n```text\n{detail}\n```")
            parts.append(
                f"Truth: {incident.severity}, {incident.injection.fault.name} at `{incident.root}`; "
                f"{incident.remedy}, page {incident.team}."
            )
    parts.append("## The other splits")
    for split, meaning in SPLITS.items():
        if split.startswith("unseen"):
            incident = sample_incident("cascading_failure", split, 0)
            lines = "\n".join(Episode(incident).opening.lines)
            parts.append(
                f"`{split}`: {meaning}. Lines of `cascading_failure/{split}/0`:\n\n```text\n{lines}\n```"
            )
    return "\n\n".join(parts) + "\n"


def write_episodes(log: Path, table: Path) -> None:
    """Write a run's training episodes, a JSON row a line, as parquet: the same data in a tenth."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    pd.DataFrame(rows).to_parquet(table, index=False)


def publish(run: str | Path, name: str) -> Path:
    """Copy the light files of a finished run to `results/<name>`, its training episodes as parquet;
    `FileNotFoundError` when it is not finished.
    """
    run, target = Path(run), ROOT / "results" / name
    missing = [file for file in (*LIGHT_FILES, "episodes.jsonl") if not (run / file).exists()]
    if missing:
        raise FileNotFoundError(
            f"{run} lacks {', '.join(missing)}; run `make demo` to its end first"
        )
    target.mkdir(parents=True, exist_ok=True)
    for file in LIGHT_FILES:
        shutil.copyfile(run / file, target / file)
    write_episodes(run / "episodes.jsonl", target / "episodes.parquet")
    shutil.copyfile(run.parent / "base" / "base.json", target / "base.json")
    return target


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
            f"| {row['task'].replace('_', ' ')} | {' | '.join(cells)} | {row['loudest']:.2f} | {row['trace']:.2f} |"
        )
    lines += [
        "",
        f"{rows[0]['episodes']} held-out incidents (`test`) a task, greedy, 95 % bootstrap intervals over incidents, "
        f"gains paired. **One training seed.** {base['parameters'] / 1e6:.2f} M parameters; the base took "
        f"{base['seconds']:.0f} s, GRPO ({played:,} episodes) {grpo['seconds']:.0f} s on {cores} cores.",
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
        f"| policy | {' | '.join(task.replace('_', ' ') for task in TASKS)} | mean | share of ceiling |",
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
        f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95 % bootstrap intervals.",
    ]
    return "\n".join(lines)


def load_table() -> str:
    """The README's load on the server, from `results/serving`."""
    figures = json.loads((ROOT / "results" / "serving" / "load.json").read_text())
    names = {"logtriage": "LogTriage", "echo": "echo template"}
    lines = ["| WebSocket sessions | server | steps/s | p50 | p99 |", "|---|---|---|---|---|"]
    for row in figures["rows"]:
        lines.append(
            f"| {row['sessions']} | {names[row['server']]} | {row['steps_per_second']:,.0f} | {row['p50_ms']:.0f} ms "
            f"| {row['p99_ms']:.0f} ms |"
        )
    ours = [row for row in figures["rows"] if row["server"] == "logtriage"]
    lines += [
        "",
        f"Whole episodes on loopback, client and server sharing {figures['machine']['cores']} cores, beside the echo "
        f"environment of `openenv init`. Of {sum(row['steps'] for row in ours):,} steps of ours, and their openings, "
        f"{sum(row['wrong'] for row in ours)} differed by a byte from the same episodes played in process.",
    ]
    return "\n".join(lines)


TABLES = {"demo": demo_table, "benchmark": benchmark_table, "load": load_table}


def with_tables(text: str) -> str:
    """`text` with every block between `<!-- name -->` and `<!-- /name -->` of `TABLES` written
    anew.
    """
    for name, table in TABLES.items():
        block = f"<!-- {name} -->\n{table()}\n<!-- /{name} -->"
        text, count = re.subn(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"README.md must hold the block <!-- {name} --> once, found {count}")
    return text


def write_tables() -> None:
    """Write the README's tables from `results/`."""
    readme = ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text()))
