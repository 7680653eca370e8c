"""The tables of README and docs, from results/; `pages.py` writes them there."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logtriage.bench.intervals import KEYS, Interval, seed_scores, two_way_mean
from logtriage.bench.plots import words
from logtriage.bench.real_results import HALVES, OURS, RANKED, real_table
from logtriage.bench.score_tables import CAREFUL, CEILING, markdown, summarise
from logtriage.bench.strata import describe_falls, stratum_changes
from logtriage.real.cases import SOURCES
from logtriage.train.cost import T4, KnownGpu, estimate
from logtriage.train.settings import PRESETS, TrainingConfig, make_config
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]


# A track, which has the name of its preset, and what it is called.
TRACKS = {"novice": "novice, then GRPO", "expert": "expert, then GRPO"}
# Settings of `TrainingConfig` that make the recipe; the others are TRL's, or of larger models.
RECIPE = (
    *("steps", "incidents", "group", "learning_rate", "warmup", "max_grad_norm", "temperature"),
    *("credit", "shares", "completion_tokens", "varied", "constrained"),
)
# Preset and GPU of the costs in docs/t4.md, with so many held-out incidents a task before and
# after, as notebook 08 has them.
COSTED: tuple[tuple[str, KnownGpu], ...] = (
    ("t4_starter", T4),
    ("recommended", T4),
    ("t4_qwen3", T4),
    ("model_card", T4),
)
HELD_OUT = 40
# Numbers of services, and depths of roots, by which results on other call graphs are split.
SIZES, DEEPEST = (4, 8, 14, 20, 30), 4
# Columns of the README's table.
FRONT = {
    "base": "base",
    "trained": "after GRPO",
    CAREFUL: f"`{CAREFUL}`, a careful script",
    CEILING: f"`{CEILING}`, near the ceiling",
}
# Split to what is new in it.
NEW = {
    "test": "the incidents",
    "unseen_faults": "(service, fault) pairs",
    "unseen_wording": "log lines",
    "unseen_topology": "call graph and names",
}


# -- tracks --------------------------------------------------------------------------------------


def seeds_of(track: str) -> list[Path]:
    """The published runs of a track, by seed."""
    found = (ROOT / "results" / track).glob("seed-*")
    return sorted(found, key=lambda run: int(run.name.removeprefix("seed-")))


def played_in(runs: Sequence[Path], file: str) -> list[pd.DataFrame]:
    """The episodes in a file of each run."""
    return [pd.read_parquet(run / f"{file}.parquet") for run in runs]


def played_on_test(runs: Sequence[Path]) -> list[pd.DataFrame]:
    """The episodes of each run on `test`."""
    return [one[one["split"] == "test"] for one in played_in(runs, "evaluation")]


def track_table(track: str) -> str:
    """The results of a track over its training seeds, and what got worse."""
    runs = seeds_of(track)
    frames = played_on_test(runs)
    table = summarise(frames)
    several = len(runs) > 1
    seeds = "**one training seed**"
    if several:
        seeds = f"**{len(runs)} training seeds** ({', '.join(run.name[5:] for run in runs)})"
    method = (
        f"Benchmark {table[0]['benchmark']}, {table[0]['episodes']} held-out incidents (`test`)"
        f" a task, greedy, {seeds} of GRPO from one base model; 95 % bootstrap intervals over"
        f" {'incidents and seeds' if several else 'incidents'}, gains paired. Faults found: the"
        " service of a real fault was the first one blamed. Arrows: base → trained."
    )
    lines = [markdown([_cells(row, expert=track == "expert") for row in table]), "", method]
    if track == "expert":
        beyond = gain(frames, TASKS, CAREFUL)
        lines.append(f"Over `{CAREFUL}`, the mean over tasks: {beyond}.")
    return "\n".join([*lines, falls_line(frames), grounded_line(runs)])


def front_table() -> str:
    """The novice's track in short: mean scores of the base, after GRPO, and of two scripts on the
    same incidents, by task of `test`, and on each other split.
    """
    runs = seeds_of("novice")
    seeds = [played_by("novice", [run]) for run in runs]
    scripts = scripted_episodes()
    parts = {words(task): ("test", [task]) for task in TASKS}
    parts |= {f"{words(split)}, all tasks": (split, [*TASKS]) for split in NEW if split != "test"}
    rows = []
    for part, (split, tasks) in parts.items():
        own = [frame[frame["split"] == split] for frame in seeds]
        played = scripts[(scripts["split"] == split) & scripts["index"].isin(own[0]["index"])]
        rows.append({"held-out incidents": part})
        for name, head in FRONT.items():
            frames = own if name in ("base", "trained") else [played]
            mean = two_way_mean([seed_scores(frames, task, name) for task in tasks])
            rows[-1][head] = f"{mean:.2f}" if frames is own else f"{mean.mean:.2f}"
    counts = seeds[0].groupby("split")["index"].nunique()
    caption = (
        f"Mean scores, greedy, {len(runs)} seeds of GRPO from one base, 95 % bootstrap intervals;"
        f" {counts['test']} incidents a task of `test`, {counts['unseen_faults']} of the others."
        " Training varies words and graphs, too: those of the last two rows are new."
    )
    return "\n".join([markdown(rows), "", caption])


def _cells(row: dict[str, Any], expert: bool) -> dict[str, str]:
    """One task's row of `summarise` as head to cell."""
    cells = {"task": words(row["task"])}
    cells |= {name: f"{Interval(*row[name]):.2f}" for name in ("base", "trained", "gain")}
    if row["seeds"] > 1:
        cells["least gain of a seed"] = f"{row['smallest_gain']:.2f}"
    if f"share_of_{CEILING}" in row:
        cells[f"share of `{CEILING}`"] = f"{row[f'share_of_{CEILING}'].mean:.2f}"
    cells["faults found"] = _before_and_after(row, "faults_detected")
    cells["false alarms dismissed"] = _before_and_after(row, "false_alarms_dismissed")
    if expert:
        cells[f"over `{CAREFUL}`"] = f"{Interval(*row[f'over_{CAREFUL}']):.2f}"
    return cells


def _before_and_after(row: dict[str, Any], stratum: str) -> str:
    """Shares of a stratum, base to trained; empty where a task has none of it."""
    if stratum not in row:
        return ""
    return f"{row[stratum]['base']:.2f} → {row[stratum]['trained']:.2f}"


def gain(frames: Sequence[pd.DataFrame], tasks: Iterable[str], before: str) -> Interval:
    """How much higher `trained` scores than another policy, the mean over tasks; a frame a seed."""
    return two_way_mean(
        [seed_scores(frames, task, "trained") - seed_scores(frames, task, before) for task in tasks]
    )


def falls_line(frames: Sequence[pd.DataFrame]) -> str:
    """A sentence that names every stratum which training made worse by more than its interval."""
    sides = [[one[one["policy"] == name] for one in frames] for name in ("base", "trained")]
    falls = describe_falls(stratum_changes(*sides))
    if not falls:
        return "No stratum got worse by more than its interval."
    return (
        f"**What got worse by more than its interval** (of so many incidents): {'; '.join(falls)}."
    )


def grounded_line(runs: Sequence[Path]) -> str:
    """A sentence on grounded answers (see `bench.audit`), of all and, on the task where luck shows,
    of the right ones; base to trained, the mean over seeds.
    """
    frame = pd.concat(played_in(runs, "audit"))
    right = frame["verdict"].isin(("grounded", "lucky")) & (frame["task"] == "silent_degradation")
    cells = []
    for part in (frame, frame[right]):
        shares = (part["verdict"] == "grounded").groupby(part["policy"]).mean()
        cells.append(f"{shares['base']:.2f} → {shares['trained']:.2f}")
    return (
        "Grounded answers (right, and likelier than not by what had been seen):"
        f" {cells[0]} of all, {cells[1]} of the right ones on silent degradation."
    )


def cost_line(track: str) -> str:
    """What the base and the runs of a track took, and where."""
    runs = seeds_of(track)
    base = json.loads((runs[0].parent / "base.json").read_text())
    machine = json.loads((runs[0] / "config.json").read_text())["machine"]
    metrics = [(run / "metrics.jsonl").read_text().splitlines() for run in runs]
    seconds = sum(json.loads(steps[-1])["seconds"] for steps in metrics) / len(runs)
    played = sum(map(len, played_in(runs, "episodes"))) / len(runs)
    lessons = base["settings"]
    if "base" in lessons:
        learned = (
            f"that of the novice, then {lessons['shown']:,} episodes of `{CEILING}`, and "
            f"{lessons['own']:,} of its own that `{CEILING}` corrects"
        )
    else:
        learned = (
            f"{lessons['drills']:,} drills, then {lessons['novices']:,} episodes of the novice"
        )
    return (
        f"{base['parameters'] / 1e6:.2f} M parameters. Base: {learned}, {base['seconds']:.0f} s."
        f" GRPO ({played:,.0f} episodes): {seconds:.0f} s a seed, on {machine['threads']} of"
        f" {machine['cores']} cores."
    )


def recipe_table() -> str:
    """The settings of the tracks' presets that make the recipe, and what the tracks took."""
    presets = {
        f"{called} (`{name}`)": TrainingConfig(**{"model": "", **PRESETS[name]})
        for name, called in TRACKS.items()
    }

    def cell(value: Any) -> str:
        if isinstance(value, dict):
            return " / ".join(f"{words(task)} {share:.0%}" for task, share in value.items())
        return f"{value:g}" if isinstance(value, float) else str(value)

    cells = {name: [cell(getattr(one, name)) for one in presets.values()] for name in RECIPE}
    alike = [f"`{name}` {values[0]}" for name, values in cells.items() if len({*values}) == 1]
    rows = [
        {"setting": f"`{name}`", **dict(zip(presets, values, strict=True))}
        for name, values in cells.items()
        if len({*values}) > 1
    ]
    costs = [f"- {called}: {cost_line(name)}" for name, called in TRACKS.items()]
    return "\n".join([markdown(rows), "", f"- Both: {', '.join(alike)}.", *costs])


@cache
def split_shares() -> dict[str, pd.Series]:
    """Shares of `belief`'s score on the same incidents, by split, the mean over tasks and seeds: of
    the novice's base, of each track, and of two scripts.
    """
    scripts = scripted_episodes()
    tracks = {name: played_by(name) for name in TRACKS}
    versions = {one for frame in (scripts, *tracks.values()) for one in frame["benchmark"].unique()}
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {sorted(versions)} are never put together; "
            "run `make benchmark` and `make seeds` again"
        )
    novice = tracks["novice"]
    bases = novice[novice["policy"] == "base"]
    same = pd.MultiIndex.from_frame(bases[KEYS].drop_duplicates())
    # The expert's base is left out: it is an imitation of an expert already.
    frames = {"base": bases}
    frames |= {name: rows[rows["policy"] == "trained"] for name, rows in tracks.items()}
    for policy in ("constant", CAREFUL):
        own = scripts[scripts["policy"] == policy]
        frames[policy] = own[pd.MultiIndex.from_frame(own[KEYS]).isin(same)]
    shares = {}
    for name, frame in frames.items():
        sums = with_ceiling(frame).groupby(["split", "task"])[["score", "best"]].sum()
        shares[name] = (sums["score"] / sums["best"]).groupby("split").mean()
    return shares


def played_by(track: str, runs: Sequence[Path] = ()) -> pd.DataFrame:
    """All held-out episodes of a track's runs, or of some of them, on every split."""
    runs = runs or seeds_of(track)
    return pd.concat(played_in(runs, "evaluation") + played_in(runs, "splits"))


def splits_table() -> str:
    """The tracks and two scripts on each split, as `split_shares`."""
    heads = {name: f"{called} ({len(seeds_of(name))})" for name, called in TRACKS.items()}
    heads |= {"base": "base", "constant": "`constant`", CAREFUL: f"`{CAREFUL}`"}
    counts = played_by("novice").groupby("split")["index"].nunique()
    rows = [
        {"split": f"`{split}`", "what is new": new}
        | {heads[name]: f"{share[split]:.2f}" for name, share in split_shares().items()}
        for split, new in NEW.items()
    ]
    caption = (
        f"Shares of `{CEILING}`'s score on the same incidents ({counts['test']} a task of `test`,"
        f" {counts['unseen_faults']} of the others), the mean over tasks and seeds (how many)."
        " `constant` is the best script that reads nothing. Scripts can parse all wording, so"
        " `unseen_wording` is no test of them."
    )
    return "\n".join([markdown(rows), "", caption, losses_line()])


def topology_table() -> str:
    """What makes `unseen_topology` hard: the tracks' shares by size of the graph and depth of the
    root, over all tasks and seeds.
    """
    tracks = {}
    for name, called in TRACKS.items():
        played = played_by(name)
        trained = (played["policy"] == "trained") & (played["split"] == "unseen_topology")
        tracks[called] = with_ceiling(played[trained])
    incidents = next(iter(tracks.values()))[KEYS].drop_duplicates()
    drawn = [sample_incident(*one) for one in incidents.itertuples(index=False, name=None)]
    sizes = np.array([len(one.topology.names) for one in drawn])
    depths = np.array([one.topology.depth[one.root] if one.root else -1 for one in drawn])
    groups = {
        f"{low + 1} to {high} services": (low < sizes) & (sizes <= high)
        for low, high in pairwise(SIZES)
    }
    groups |= {f"root at depth {depth}": depths == depth for depth in range(DEEPEST)}
    groups[f"root at depth {DEEPEST} and more"] = depths >= DEEPEST
    rows = []
    for group, within in groups.items():
        rows.append({"incidents": group, "number": str(within.sum())})
        for head, frame in tracks.items():
            own = frame.merge(incidents[within], on=KEYS)
            rows[-1][head] = f"{own['score'].sum() / own['best'].sum():.2f}"
    return markdown(rows)


@cache
def scripted_episodes() -> pd.DataFrame:
    """What the scripts played of every task and split; read once, and not to be changed."""
    return pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")


def with_ceiling(frame: pd.DataFrame) -> pd.DataFrame:
    """Rollouts with a column `best`, of `belief`'s score on the same incident."""
    scripts = scripted_episodes()
    ceiling = scripts[scripts["policy"] == CEILING].set_index(KEYS)["score"]
    return frame.assign(best=ceiling.loc[pd.MultiIndex.from_frame(frame[KEYS])].to_numpy())


def losses_line() -> str:
    """A sentence that names every task of the splits that hold something new on which training
    lowered the mean score by more than the interval.
    """
    lost, compared = [], 0
    for name, called in TRACKS.items():
        frames = played_in(seeds_of(name), "splits")
        for split in sorted(frames[0]["split"].unique()):
            own = [one[one["split"] == split] for one in frames]
            gained = {task: gain(own, [task], "base") for task in TASKS}
            compared += len(gained)
            lost += [
                f"{called}, `{split}`, {words(task)}: {found.mean:+.2f}"
                for task, found in gained.items()
                if found.high < 0.0
            ]
    return (
        "**Worse than its base by more than the interval**, of"
        f" {compared} scores on the splits that hold something new: {'; '.join(lost) or 'none'}."
    )


# -- benchmark -----------------------------------------------------------------------------------


def benchmark_table() -> str:
    """Scores of scripted policies on `test`, and the adversary's best, from `results/benchmark`."""
    results = ROOT / "results" / "benchmark"
    scores = json.loads((results / "scores.json").read_text())
    found = json.loads((results / "exploits.json").read_text())["rows"]
    audit = pd.read_parquet(results / "audit.parquet")
    grounded = (audit["verdict"] == "grounded").groupby(audit["policy"]).mean()
    rows = []
    for row in scores["rows"]:
        if row["split"] == "test":
            cells = {"policy": f"`{row['policy']}`"}
            cells |= {words(name): f"{Interval(*row[name]):.2f}" for name in (*TASKS, "mean")}
            cells["share of `belief`"] = f"{row['share_of_ceiling'][0]:.2f}"
            known = row["policy"] in grounded
            rows.append({**cells, "grounded": f"{grounded[row['policy']]:.2f}" if known else ""})
    best = {task: max(row["test"] for row in found if row["task"] == task) for task in TASKS}
    last = {words(task): f"{score:.2f}" for task, score in best.items()}
    last |= {"policy": "best rule without diagnosis", "mean": f"{np.mean([*best.values()]):.2f}"}
    caption = (
        f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95"
        f" % bootstrap intervals. Grounded: share of {audit['index'].nunique()} of them whose"
        " answer is right and, by what had been seen, likelier than not; empty where it was not"
        " asked."
    )
    return "\n".join(
        [markdown([*rows, {head: last.get(head, "") for head in rows[0]}]), "", caption]
    )


# -- cost and real incidents ----------------------------------------------------------------------


def own_logs() -> dict[str, Any]:
    """How `triage` fared on logs of simulated incidents, see `tests/logs/simulated.py`."""
    found: dict[str, Any] = json.loads((ROOT / "results/own-logs/simulated.json").read_text())
    return found


def own_logs_table() -> str:
    """Answers to logs of simulated incidents, read without a call graph."""
    counts = own_logs()["without_graph"]
    return markdown(
        [
            {"answer": sure}
            | {came: str(counts.get(f"{sure}, {came}", 0)) for came in ("right", "wrong")}
            | {"a false alarm": str(counts.get(f"{sure}, false alarm", 0))}
            for sure in ("likely", "possible")
        ]
    )


def confidence_table() -> str:
    """How often answers are right, by the confidence that they say."""
    return markdown(
        [
            {
                "confidence": f"{row['from']:.0%} or more",
                "answers": str(row["answers"]),
                "said, mean": f"{row['said']:.0%}",
                "right": f"{row['right']:.0%}",
            }
            for row in own_logs()["confidence"]["bins"]
        ]
    )


def cost_table() -> str:
    """Hours and memory of runs on a GPU, as `train.cost` computes them."""
    rows = []
    for preset, gpu in COSTED:
        config = make_config(preset)
        run = estimate(config, gpu, HELD_OUT)
        rows.append(
            {
                "preset": f"`{preset}`",
                "GPU": gpu.name,
                "steps x episodes": f"{config.steps} x {config.episodes}",
                "hours": str(run.hours),
                "GiB": f"{run.gib} of {gpu.gib:g}",
            }
        )
    return markdown(rows)


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: ours by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    table = real_table(pd.read_parquet(ROOT / "results/real/cases.parquet"))
    table = table.set_index(["policy", "part", "source"])["top1"]
    published = pd.read_csv(ROOT / "results/real/published.csv")

    def cells(policy: str, part: str) -> list[str]:
        found = [table.get((policy, part, source)) for source in SOURCES]
        return ["-" if one is None else f"{one:.2f}" for one in found]

    gone = ("commonest", "largest_ratio", "deepest", "random_walk")  # rules whose numbers stay
    others = [name for name in (*RANKED, *gone) if name != OURS]
    best, reported = [], []
    for source in SOURCES:
        rules = {name: table.get((name, "all", source)) for name in others}
        name = max(rules, key=lambda one: rules[one].mean if rules[one] else 0.0)
        best.append(f"{rules[name]:.2f} (`{name}`)")
        most = published[published["source"] == source].sort_values("top1").iloc[-1]
        reported.append(f"{most['top1']:.2f} ({most['method'].partition(',')[0]})")
    rows = {
        **{f"`{OURS}`, cases {half}": cells(OURS, half) for half in HALVES},
        "best other rule, all cases": best,
        **{f"`{name}`, all cases": cells(name, "all") for name in ("trace", "belief")},
        "published, all cases of the source": reported,
    }
    return markdown(
        [
            {"root named first": name, **dict(zip(SOURCES, row, strict=True))}
            for name, row in rows.items()
        ]
    )
