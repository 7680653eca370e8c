"""Write the tables of README and docs from results/: `make tables`. A test holds them fresh."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logtriage.bench.crossed import crossed_mean
from logtriage.bench.intervals import matched
from logtriage.bench.real_results import (
    COMMONEST,
    HALVES,
    OURS,
    RANKED,
    read_published,
    read_real_table,
)
from logtriage.bench.strata import describe_falls, gains, stratum_changes
from logtriage.real.cases import SOURCES
from logtriage.train.cost import A100, L4, T4, KnownGpu, estimate
from logtriage.train.presets import PRESETS, make_config
from logtriage.train.settings import TrainingConfig
from logtriage.train.summaries import CEILING, TEACHER, summarise_seeds
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]


class Track(NamedTuple):
    """What a track is called, and its preset."""

    called: str
    preset: str


TRACKS = {
    "novice": Track("novice, then GRPO", "novice"),
    "expert": Track("expert, then GRPO", "expert"),
    "general": Track("general", "general"),
}
SCRIPTS = ("novice", "trace")  # beside the first track: whom its base imitates, and a careful one
# Settings of `TrainingConfig` that make the recipe; the others are TRL's, or of larger models.
RECIPE = (
    "steps",
    "incidents",
    "group",
    "learning_rate",
    "warmup",
    "max_grad_norm",
    "temperature",
    "credit",
    "shares",
    "completion_tokens",
    "varied",
)
# What docs/t4.md tells the cost of, preset and GPU, with so many held-out incidents a task before
# and after, as notebook 08 has them.
COSTED: tuple[tuple[str, KnownGpu], ...] = (
    ("recommended", T4),
    ("l4", L4),
    ("a100", A100),
    ("t4_starter", T4),
    ("model_card", T4),
)
HELD_OUT = 40
# Split to what is new in it.
NEW = {
    "test": "the incidents",
    "unseen_faults": "(service, fault) pairs",
    "unseen_wording": "log lines",
    "unseen_topology": "call graph and names",
}


def seeds_of(track: str) -> list[Path]:
    """The published runs of a track, by seed."""
    found = (ROOT / "results" / track).glob("seed-*")
    return sorted(found, key=lambda run: int(run.name.removeprefix("seed-")))


def rows_of(runs: Sequence[Path], file: str, policies: Sequence[str]) -> list[list[pd.DataFrame]]:
    """The rows that a file of the runs holds of each policy, a frame a run."""
    frames = [pd.read_parquet(run / f"{file}.parquet") for run in runs]
    return [[one[one.policy == name] for one in frames] for name in policies]


def track_table(track: str) -> str:
    """The results of a track over every training seed in `results/`, and what got worse."""
    runs = seeds_of(track)
    table = summarise_seeds(runs).to_dict("records")
    rows = [_cells(row, taught=track == "expert") for row in table]
    lines = [f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0])]
    lines += [f"| {' | '.join(cells.values())} |" for cells in rows]
    several = len(runs) > 1
    seeds = f"**{len(runs)} training seeds**" if several else "**one training seed**"
    method = (
        f"Benchmark {table[0]['benchmark']}, {table[0]['episodes']} held-out incidents (`test`)"
        f" a task, greedy, {seeds} of GRPO from one base model; 95 % bootstrap intervals over"
        f" {'incidents and seeds' if several else 'incidents'}, gains paired. Faults found: the"
        " service of a real fault was the first one blamed. Arrows: base → trained."
    )
    beyond = [beyond_line(runs)] if track == "expert" else []
    return "\n".join([*lines, "", method, *beyond, falls_line(runs), grounded_line(runs)])


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
    cells["faults found"] = _before_and_after(row, "faults_detected")
    cells["false alarms dismissed"] = _before_and_after(row, "false_alarms_dismissed")
    if taught:
        return cells | {
            f"over `{TEACHER}`": "{:.2f} [{:.2f}, {:.2f}]".format(*row[f"over_{TEACHER}"])
        }
    return cells | {f"`{name}`": f"{row[name]:.2f}" for name in SCRIPTS}


def beyond_line(runs: Sequence[Path]) -> str:
    """A sentence on how far beyond its teacher a track is, the mean over the tasks."""
    teacher, trained = rows_of(runs, "evaluation", (TEACHER, "trained"))
    gained = []
    for task in TASKS:
        pairs = [
            matched(*(one[one.task == task] for one in pair))
            for pair in zip(teacher, trained, strict=True)
        ]
        gained.append(np.stack([after - before for before, after in pairs]))
    mean = "{:.3f} [{:.3f}, {:.3f}]".format(*crossed_mean(gained))
    return f"Over `{TEACHER}`, the mean over tasks: {mean}."


def _before_and_after(row: dict[str, Any], stratum: str) -> str:
    """Shares of a stratum, base to trained; empty where a task has none of it."""
    base, trained = row[f"{stratum}_base"], row[f"{stratum}_trained"]
    return "" if math.isnan(base) else f"{base:.2f} → {trained:.2f}"


def cost_line(track: str) -> str:
    """What the base and the runs of a track took, and where."""
    runs = seeds_of(track)
    base = json.loads((runs[0].parent / "base.json").read_text())
    machine = json.loads((runs[0] / "config.json").read_text())["machine"]
    metrics = [(run / "metrics.jsonl").read_text().splitlines() for run in runs]
    seconds = sum(json.loads(steps[-1])["seconds"] for steps in metrics) / len(runs)
    played = sum(len(pd.read_parquet(run / "episodes.parquet")) for run in runs) / len(runs)
    return (
        f"{base['parameters'] / 1e6:.2f} M parameters; the base took {base['seconds']:.0f} s, GRPO"
        f" ({played:,.0f} episodes) {seconds:.0f} s a seed, on {machine['threads']} of"
        f" {machine['cores']} cores."
    )


def recipe_table() -> str:
    """The settings of the tracks' presets that make the recipe, and what the tracks took."""
    presets = [
        TrainingConfig(**{"model": "", **PRESETS[track.preset]}) for track in TRACKS.values()
    ]
    heads = [f"{track.called} (`{track.preset}`)" for track in TRACKS.values()]
    lines = [f"| setting | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for setting in RECIPE:
        values = [getattr(preset, setting) for preset in presets]
        cells = [
            ", ".join(f"{task} {share}" for task, share in value.items())
            if isinstance(value, dict)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
            for value in values
        ]
        lines.append(f"| `{setting}` | {' | '.join(cells)} |")
    costs = [f"- {track.called}: {cost_line(name)}" for name, track in TRACKS.items()]
    return "\n".join([*lines, "", *costs])


def falls_line(runs: Sequence[Path]) -> str:
    """A sentence that names every stratum which training made worse by more than its interval."""
    base, trained = rows_of(runs, "evaluation", ("base", "trained"))
    falls = describe_falls(stratum_changes(base, trained))
    if not falls:
        return "No stratum got worse by more than its interval."
    return (
        f"**What got worse by more than its interval** (of so many incidents): {'; '.join(falls)}."
    )


def splits_table() -> str:
    """The tracks and two scripts on each split: shares of `belief`'s score on the same incidents,
    the mean over tasks and seeds.
    """
    scripts = pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")
    coordinates = ["task", "split", "index"]
    ceiling = scripts[scripts.policy == CEILING].set_index(coordinates)["score"]
    tracks = {
        name: pd.concat(
            pd.read_parquet(run / f"{file}.parquet")
            for run in seeds_of(name)
            for file in ("evaluation", "splits")
        )
        for name in TRACKS
    }
    versions = {one for frame in (scripts, *tracks.values()) for one in frame["benchmark"].unique()}
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {sorted(versions)} are never put together; "
            "run `make benchmark` and `make seeds` again"
        )
    first = next(iter(tracks.values()))
    counts = first.groupby("split")["index"].nunique()
    same = pd.MultiIndex.from_frame(first[first.policy == "base"][coordinates].drop_duplicates())
    columns = {}
    for name, rows in tracks.items():
        called, seeds = TRACKS[name].called, len(seeds_of(name))
        if name != "expert":  # its base has been taught already
            columns["base" if name == "novice" else f"{called} base"] = rows[rows.policy == "base"]
        columns[f"{called} ({seeds})"] = rows[rows.policy == "trained"]
    for policy in ("constant", TEACHER):
        own = scripts[scripts.policy == policy]
        columns[f"`{policy}`"] = own[pd.MultiIndex.from_frame(own[coordinates]).isin(same)]
    lines = [f"| split | what is new | {' | '.join(columns)} |", "|" + "---|" * (2 + len(columns))]
    shares = []
    for frame in columns.values():
        best = ceiling.loc[pd.MultiIndex.from_frame(frame[coordinates])].to_numpy()
        sums = frame.assign(best=best).groupby(["split", "task"])[["score", "best"]].sum()
        shares.append((sums["score"] / sums["best"]).groupby("split").mean())
    for split, new in NEW.items():
        cells = " | ".join(f"{share[split]:.2f}" for share in shares)
        lines.append(f"| `{split}` | {new} | {cells} |")
    caption = (
        f"Shares of `{CEILING}`'s score on the same incidents ({counts['test']} a task of `test`,"
        f" {counts['unseen_faults']} of the others), the mean over tasks and seeds (how many)."
        " `constant` is the best script that reads nothing. Scripts can parse all wording, so"
        " `unseen_wording` is no test of them."
    )
    return "\n".join([*lines, "", caption, losses_line()])


def losses_line() -> str:
    """A sentence that names every task of the splits that hold something new on which training
    lowered the mean score by more than the interval.
    """
    lost, compared = [], 0
    for name, track in TRACKS.items():
        sides = rows_of(seeds_of(name), "splits", ("base", "trained"))
        for split in sorted(sides[0][0]["split"].unique()):
            gained = gains(*([one[one.split == split] for one in side] for side in sides))
            compared += len(gained)
            lost += [
                f"{track.called}, `{split}`, {task.replace('_', ' ')}: {gain.mean:+.2f}"
                for task, gain in gained.items()
                if gain.high < 0.0
            ]
    told = "; ".join(lost) or "none"
    return (
        "**Worse than its base by more than the interval**, of"
        f" {compared} scores on the splits that hold something new: {told}."
    )


def grounded_line(runs: Sequence[Path]) -> str:
    """A sentence on what was seen by the time of the answer: grounded answers (see
    `measure.audit`), of all and, where luck can be told, of the right ones; base to trained, the
    mean over seeds.
    """
    frame = pd.concat([pd.read_parquet(run / "audit.parquet") for run in runs])
    right = frame["verdict"].isin(("grounded", "lucky")) & (frame["task"] == "silent_degradation")
    told = []
    for part in (frame, frame[right]):
        shares = (part["verdict"] == "grounded").groupby(part["policy"]).mean()
        told.append(f"{shares['base']:.2f} → {shares['trained']:.2f}")
    return (
        "Grounded answers (right, and likelier than not by what had been seen):"
        f" {told[0]} of all, {told[1]} of the right ones on silent degradation."
    )


def benchmark_table() -> str:
    """The README's scores of scripted policies on `test`, and the adversary's best, from
    `results/benchmark`.
    """
    results = ROOT / "results" / "benchmark"
    scores = json.loads((results / "scores.json").read_text())
    found = json.loads((results / "exploits.json").read_text())["rows"]
    audit = pd.read_parquet(results / "audit.parquet")
    grounded = (audit["verdict"] == "grounded").groupby(audit["policy"]).mean()
    audited = audit["index"].nunique()
    lines = [
        (
            f"| policy | {' | '.join(task.replace('_', ' ') for task in TASKS)} | mean | share of"
            " `belief` | grounded |"
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
    best = [max(row["test"] for row in found if row["task"] == task) for task in TASKS]
    cells = [f"{score:.2f}" for score in (*best, sum(best) / len(best))]
    lines.append(f"| best rule without diagnosis | {' | '.join(cells)} | | |")
    lines += [
        "",
        (
            f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95"
            f" % bootstrap intervals. Grounded: share of {audited} of them whose answer is"
            " right and, by what had been seen, likelier than not; empty where it was not asked."
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


def tokens_table() -> str:
    """What an episode costs in Qwen2.5's tokens, from `results/tokens`."""
    frame = pd.read_csv(ROOT / "results" / "tokens" / "tokens.csv").set_index("what")
    lines = ["| what | tokens | least | most |", "|---|---|---|---|"]
    for what, row in frame.iterrows():
        mean = f"{row['mean']:,.0f}" if row["mean"] >= 20 else f"{row['mean']:.1f}"
        lines.append(f"| {what} | {mean} | {row['least']:,.0f} | {row['most']:,.0f} |")
    return "\n".join(lines)


def cost_table() -> str:
    """Hours and memory of runs on a GPU, as `train.cost` computes them."""
    lines = ["| preset | GPU | steps x episodes | hours | GiB |", "|" + "---|" * 5]
    for preset, gpu in COSTED:
        config = make_config(preset)
        run = estimate(config, gpu, HELD_OUT)
        sizes = f"{config.steps} x {config.episodes}"
        hours, memory = run.seconds * (1 / 3600), f"{run.gib} of {gpu.gib:g}"
        lines.append(f"| `{preset}` | {gpu.name} | {sizes} | {hours} | {memory} |")
    return "\n".join(lines)


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: ours by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    table = read_real_table(ROOT / "results/real").set_index(["policy", "part", "source"])["top1"]
    published = read_published(ROOT / "results/real")

    def cells(policy: str, part: str) -> list[str]:
        found = [table.get((policy, part, source)) for source in SOURCES]
        return ["-" if one is None else "{:.2f} [{:.2f}, {:.2f}]".format(*one) for one in found]

    others, best, reported = [name for name in (COMMONEST, *RANKED) if name != OURS], [], []
    for source in SOURCES:
        rules = {name: table.get((name, "all", source)) for name in others}
        name = max(rules, key=lambda one: rules[one].mean if rules[one] else 0.0)
        best.append("{:.2f} [{:.2f}, {:.2f}]".format(*rules[name]) + f" (`{name}`)")
        most = published[published["source"] == source].sort_values("top1").iloc[-1]
        reported.append(f"{most['top1']:.2f} ({most['method'].partition(',')[0]})")
    rows = {
        **{f"`{OURS}`, cases {half}": cells(OURS, half) for half in HALVES},
        "best other rule, all cases": best,
        **{f"`{name}`, all cases": cells(name, "all") for name in ("trace", "belief")},
        "published, all cases of the source": reported,
    }
    lines = [f"| root named first | {' | '.join(SOURCES)} |", "|---" * (1 + len(SOURCES)) + "|"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(row)} |" for name, row in rows.items())])


# File to the tables it holds, each between `<!-- name -->` and `<!-- /name -->`.
TABLES = {
    "README.md": {
        "novice": partial(track_table, "novice"),
        "splits": splits_table,
        "benchmark": benchmark_table,
    },
    "docs/training.md": {
        "recipe": recipe_table,
        "expert": partial(track_table, "expert"),
        "general": partial(track_table, "general"),
    },
    "docs/real.md": {"real": real_incidents_table},
    "docs/serving.md": {"load": load_table},
    "docs/t4.md": {"tokens": tokens_table, "cost": cost_table},
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
