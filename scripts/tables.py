"""The tables and numbers of README, docs and results; `pages.py` writes them there.

Tables are Markdown, and numbers have names. All are made from results/ alone.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from triagelab.bench.intervals import (
    KEYS,
    Interval,
    compare_recipes,
    holm,
    seed_scores,
    two_way_mean,
)
from triagelab.bench.plots import words
from triagelab.bench.recorded_results import (
    HALVES,
    OURS,
    RANKED,
    TITLES,
    production_table,
    real_table,
)
from triagelab.bench.score_tables import CAREFUL, CEILING, cell_text, markdown, summarise
from triagelab.bench.strata import describe_falls, stratum_changes
from triagelab.real.cases import SOURCES
from triagelab.realistic.production_policies import CEILING as POSTERIOR
from triagelab.realistic.production_policies import RANKER
from triagelab.train.settings import make_config

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
# Maps a track, named as its preset, to what it is called.
TRACKS = {"novice": "novice, then GRPO", "expert": "expert, then GRPO"}
# Settings of `TrainingConfig` in the recipe; the others are TRL's, or are for larger models.
RECIPE = (
    *("steps", "incidents", "group", "learning_rate", "warmup", "max_grad_norm", "temperature"),
    *("credit", "shares", "completion_tokens", "varied", "constrained"),
)
# Numbers of services, and depths of roots, by which results on other call graphs are split.
SIZES, DEEPEST = (4, 8, 14, 20, 30), 4
# Columns of the README's table.
FRONT = {
    "base": "base",
    "trained": "after GRPO",
    CAREFUL: f"`{CAREFUL}`, a careful script",
    CEILING: f"`{CEILING}`, near the ceiling",
}
# What is new in each split.
NEW = {
    "test": "the incidents",
    "unseen_faults": "(service, fault) pairs",
    "unseen_wording": "log lines",
    "unseen_topology": "call graph and names",
}
# Rules for real incidents: those that are not ours, and those whose code is gone.
OTHER_RULES = tuple(name for name in RANKED if name != OURS)
GONE_RULES = ("commonest", "largest_ratio", "deepest", "random_walk")

Rows = Sequence[dict[str, Any]]


def table(rows: Rows, *lines: str) -> str:
    """Rows as a Markdown table, with two decimals in numbers and the `lines` below."""
    cells = [{head: cell_text(value) for head, value in row.items()} for row in rows]
    return "\n".join([markdown(cells), *([""] if lines else []), *lines])


@cache
def read(file: str | Path) -> Any:
    """A file of results/, as a frame or as JSON's objects. It is read once, so do not change it."""
    path = RESULTS / file
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    return readers[path.suffix](path) if path.suffix in readers else json.loads(path.read_text())


# -- tracks --------------------------------------------------------------------------------------


def seeds_of(track: str | Path) -> list[Path]:
    """The published runs of a track, by seed."""
    found = (RESULTS / track).glob("seed-*")
    return sorted(found, key=lambda run: int(run.name.removeprefix("seed-")))


def played_in(track: str, file: str) -> list[pd.DataFrame]:
    """The episodes of each run of a track, from one of its files."""
    return [read(run / f"{file}.parquet") for run in seeds_of(track)]


def played_by(track: str) -> list[pd.DataFrame]:
    """All held-out episodes of each run of a track, on every split."""
    parts = zip(played_in(track, "evaluation"), played_in(track, "splits"), strict=True)
    return [pd.concat(part) for part in parts]


def on_test(track: str) -> list[pd.DataFrame]:
    """The episodes of each run on `test`."""
    return [frame[frame["split"] == "test"] for frame in played_in(track, "evaluation")]


def gain(frames: Sequence[pd.DataFrame], tasks: Iterable[str], before: str) -> Interval:
    """How much higher `trained` scores than `before`, the mean over tasks; one frame per seed."""
    return two_way_mean(
        [seed_scores(frames, task, "trained") - seed_scores(frames, task, before) for task in tasks]
    )


def track_table(track: str) -> str:
    """The results of a track over its training seeds, and what got worse."""
    frames, seeds = on_test(track), [run.name[5:] for run in seeds_of(track)]
    summary, rows = summarise(frames), []
    for row in summary:
        cells = {"task": words(row["task"])}
        cells |= {name: row[name] for name in ("base", "trained", "gain")}
        cells["least gain of a seed"] = row["smallest_gain"]
        cells[f"share of `{CEILING}`"] = row[f"share_of_{CEILING}"].mean
        cells["faults found"] = row["faults_detected"]
        cells["false alarms dismissed"] = row.get("false_alarms_dismissed", "")
        if track == "expert":
            cells[f"over `{CAREFUL}`"] = row[f"over_{CAREFUL}"]
        rows.append(cells)
    method = (
        f"Benchmark {summary[0]['benchmark']}, {summary[0]['episodes']} held-out incidents (`test`)"
        f" a task, greedy, **{len(seeds)} training seeds** ({', '.join(seeds)}) of GRPO from one"
        " base model; 95 % bootstrap intervals over incidents and seeds, gains paired. Faults"
        " found: the service of a real fault was the first one blamed. Arrows: base → trained."
    )
    lines = [method]
    if track == "expert":
        lines.append(f"Over `{CAREFUL}`, the mean over tasks: {gain(frames, TASKS, CAREFUL)}.")
    falls = "; ".join(describe_falls(stratum_changes(frames)))
    lines.append(
        f"**What got worse by more than its interval** (of so many incidents): {falls or 'none'}."
    )
    return table(rows, *lines, grounded_line(track))


def grounded_line(track: str) -> str:
    """A sentence on grounded answers (see `bench.audit`): their share of all answers, and of the
    right ones on the task where luck shows, from base to trained, over all seeds.
    """
    frame = pd.concat(played_in(track, "audit"))
    right = frame["verdict"].isin(("grounded", "lucky")) & (frame["task"] == "silent_degradation")
    cells = [
        cell_text((part["verdict"] == "grounded").groupby(part["policy"]).mean())
        for part in (frame, frame[right])
    ]
    return (
        "Grounded answers (right, and likelier than not by what had been seen):"
        f" {cells[0]} of all, {cells[1]} of the right ones on silent degradation."
    )


def front_table() -> str:
    """The novice's track in short: mean scores of the base, after GRPO, and of two scripts on the
    same incidents, for each task of `test` and for each other split.
    """
    seeds, scripts = played_by("novice"), read("benchmark/episodes.parquet")
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
            rows[-1][head] = mean if frames is own else mean.mean
    counts = seeds[0].groupby("split")["index"].nunique()
    return table(
        rows,
        f"Mean scores, greedy, {len(seeds)} seeds of GRPO from one base, 95 % bootstrap intervals;"
        f" {counts['test']} incidents a task of `test`, {counts['unseen_faults']} of the others."
        " Training varies words and graphs, too: those of the last two rows are new.",
    )


def cost_line(track: str) -> str:
    """How long the base and the runs of a track took, and on what."""
    runs, base = seeds_of(track), read(f"{track}/base.json")
    machine = read(runs[0] / "config.json")["machine"]
    metrics = [(run / "metrics.jsonl").read_text().splitlines() for run in runs]
    seconds = sum(json.loads(steps[-1])["seconds"] for steps in metrics) / len(runs)
    played = sum(map(len, played_in(track, "episodes"))) / len(runs)
    lessons = base["settings"]
    learned = (
        f"that of the novice, then {lessons['shown']:,} episodes of `{CEILING}`, "
        f"{lessons['own']:,} of its own that `{CEILING}` corrects, {lessons['dialects']:,} more "
        f"with lexical augmentation, and {lessons['greedy']:,} that are also played greedily"
        if "base" in lessons
        else f"{lessons['drills']:,} SFT tasks, then {lessons['novices']:,} episodes of the novice"
    )
    return (
        f"{base['parameters'] / 1e6:.2f} M parameters. Base: {learned}, {base['seconds']:.0f} s on"
        f" {named_machine(base['machine'])}. GRPO ({played:,.0f} episodes): {seconds:.0f} s a seed,"
        f" on {named_machine(machine)}."
    )


def named_machine(machine: dict[str, Any]) -> str:
    """The GPU of a machine in a record, or how many of its cores were used."""
    return machine["gpu"] or f"{machine['threads']} of {machine['cores']} cores"


def recipe_table() -> str:
    """The settings in the recipe of each track, and what the tracks took."""
    presets = {f"{called} (`{name}`)": make_config(name) for name, called in TRACKS.items()}

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
    return table(rows, f"- Both: {', '.join(alike)}.", *costs)


# -- other splits --------------------------------------------------------------------------------


def with_ceiling(frame: pd.DataFrame) -> pd.DataFrame:
    """Add a column `best` to rollouts: `belief`'s score on the same incident. `ValueError` if their
    version of the benchmark is not that of the scripts.
    """
    scripts = read("benchmark/episodes.parquet")
    versions = {*frame["benchmark"], *scripts["benchmark"]}
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {sorted(versions)} are never put together; "
            "run `make benchmark` and `make seeds` again"
        )
    ceiling = scripts[scripts["policy"] == CEILING].set_index(KEYS)["score"]
    return frame.assign(best=ceiling.loc[pd.MultiIndex.from_frame(frame[KEYS])].to_numpy())


@cache
def split_shares() -> dict[str, pd.Series]:
    """Shares of `belief`'s score on the same incidents, by split, the mean over tasks and seeds.
    They are of the novice's base, of each track, and of two scripts.
    """
    scripts = read("benchmark/episodes.parquet")
    tracks = {name: pd.concat(played_by(name)) for name in TRACKS}
    # The expert's base is left out: it is an imitation of an expert already.
    frames = {"base": tracks["novice"][tracks["novice"]["policy"] == "base"]}
    frames |= {name: rows[rows["policy"] == "trained"] for name, rows in tracks.items()}
    same = frames["base"][KEYS].drop_duplicates()
    for policy in ("constant", CAREFUL):
        frames[policy] = scripts[scripts["policy"] == policy].merge(same, on=KEYS)
    shares = {}
    for name, frame in frames.items():
        sums = with_ceiling(frame).groupby(["split", "task"])[["score", "best"]].sum()
        shares[name] = (sums["score"] / sums["best"]).groupby("split").mean()
    return shares


def splits_table() -> str:
    """The tracks, the base and two scripts on each split, from `split_shares`."""
    heads = {name: f"{called} ({len(seeds_of(name))})" for name, called in TRACKS.items()}
    heads |= {"base": "base", "constant": "`constant`", CAREFUL: f"`{CAREFUL}`"}
    counts = played_by("novice")[0].groupby("split")["index"].nunique()
    rows = [
        {"split": f"`{split}`", "what is new": new}
        | {heads[name]: share[split] for name, share in split_shares().items()}
        for split, new in NEW.items()
    ]
    return table(
        rows,
        f"Shares of `{CEILING}`'s score on the same incidents ({counts['test']} a task of `test`,"
        f" {counts['unseen_faults']} of the others), the mean over tasks and seeds (how many)."
        " `constant` is the best script that reads nothing. Scripts can parse all wording, so"
        " `unseen_wording` is no test of them.",
        losses_line(),
    )


def losses_line() -> str:
    """A sentence on where training lowered the mean score by more than the interval: every such
    task of the splits that hold something new.
    """
    gained = {}
    for name, called in TRACKS.items():
        frames = played_in(name, "splits")
        for split in sorted(frames[0]["split"].unique()):
            own = [one[one["split"] == split] for one in frames]
            gained |= {
                f"{called}, `{split}`, {words(task)}": gain(own, [task], "base") for task in TASKS
            }
    lost = [f"{where}: {found.mean:+.2f}" for where, found in gained.items() if found.high < 0.0]
    return (
        f"**Worse than its base by more than the interval**, of {len(gained)} scores on the splits"
        f" that hold something new: {'; '.join(lost) or 'none'}."
    )


def topology_table() -> str:
    """What makes `unseen_topology` hard: the tracks' shares of `belief`'s score by size of the
    graph and by depth of the root, over all tasks and seeds.
    """
    tracks = {}
    for name, called in TRACKS.items():
        played = pd.concat(played_by(name))
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
        rows.append({"incidents": group, "number": within.sum()})
        for head, frame in tracks.items():
            own = frame.merge(incidents[within], on=KEYS)
            rows[-1][head] = own["score"].sum() / own["best"].sum()
    return table(rows)


# -- the benchmark and own logs --------------------------------------------------------------


def benchmark_table() -> str:
    """Scores of scripted policies on `test`, and the adversary's best, from `results/benchmark`."""
    scores, audit = read("benchmark/scores.json"), read("benchmark/audit.parquet")
    grounded = (audit["verdict"] == "grounded").groupby(audit["policy"]).mean()
    rules = pd.DataFrame(read("benchmark/exploits.json")["rows"]).groupby("task")["test"].max()
    rows = [
        {
            "policy": f"`{row['policy']}`",
            **{words(name): row[name] for name in (*TASKS, "mean")},
            "share of `belief`": row["share_of_ceiling"][0],
            "grounded": grounded.get(row["policy"], ""),
        }
        for row in scores["rows"]
        if row["split"] == "test"
    ]
    best = {words(task): rules[task] for task in TASKS} | {"mean": rules.mean()}
    rest = {"share of `belief`": "", "grounded": ""}
    return table(
        [*rows, {"policy": "best rule without diagnosis", **best, **rest}],
        f"Benchmark {scores['benchmark']}, {scores['incidents']} incidents of `test` a task, 95"
        f" % bootstrap intervals. Grounded: share of {audit['index'].nunique()} of them whose"
        " answer is right and, by what had been seen, likelier than not; empty where it was not"
        " asked.",
    )


def own_logs_table() -> str:
    """Answers of `triage` to logs of simulated incidents, without a call graph (docs/logs.md)."""
    counts = read("own-logs/simulated.json")["without_graph"]
    came = {"right": "right", "wrong": "wrong", "a false alarm": "false alarm"}
    return table(
        [
            {"answer": sure}
            | {head: counts.get(f"{sure}, {name}", 0) for head, name in came.items()}
            for sure in ("likely", "possible")
        ]
    )


def confidence_table() -> str:
    """How often these answers are right, by the confidence that they state."""
    return table(
        [
            {
                "confidence": f"{row['from']:.0%} or more",
                "answers": row["answers"],
                "said, mean": f"{row['said']:.0%}",
                "right": f"{row['right']:.0%}",
            }
            for row in read("own-logs/simulated.json")["confidence"]["bins"]
        ]
    )


# -- real incidents and production -----------------------------------------------------------------


@cache
def real_shares() -> pd.DataFrame:
    """The published `real_table`, by policy, source and part of the cases."""
    shares = real_table(read("real/cases.parquet"))
    return shares.set_index(["policy", "source", "part"])


def by_source(policy: str, column: str = "top1", part: str = "all") -> dict[str, Any]:
    """A policy's shares on each source; "-" where it has not played."""
    found = real_shares()[column]
    return {source: found.get((policy, source, part), "-") for source in SOURCES}


def best_rule(source: str, rules: Sequence[str] = OTHER_RULES) -> str:
    """The one of `rules` that finds most of a source's roots; by default, ours is left out."""
    found = real_shares()["top1"]
    known = [name for name in rules if (name, source, "all") in found]
    return max(known, key=lambda name: found[name, source, "all"].mean)


def best_cells(rules: Sequence[str] = OTHER_RULES) -> dict[str, str]:
    """`best_rule` on each source, with its share."""
    best = {source: best_rule(source, rules) for source in SOURCES}
    return {at: f"{by_source(name)[at]:.2f} (`{name}`)" for at, name in best.items()}


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: our rule by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    published = read("real/published.csv").sort_values("top1").groupby("source").last()
    rows = {f"`{OURS}`, cases {half}": by_source(OURS, part=half) for half in HALVES}
    rows["best other rule, all cases"] = best_cells((*OTHER_RULES, *GONE_RULES))
    rows |= {f"`{name}`, all cases": by_source(name) for name in ("trace", "belief")}
    rows["published, all cases of the source"] = {
        source: f"{published['top1'][source]:.2f} ({published['method'][source].partition(',')[0]})"
        for source in SOURCES
    }
    return table([{"root named first": name, **row} for name, row in rows.items()])


def transfer_table() -> str:
    """Who names the root of real incidents first: the ranker, or rules that know no fault."""
    cases = read("real/cases.parquet")
    pairs = cases.groupby(["policy", "source", "root", "fault"])["top1"].mean()
    found = []
    for at in SOURCES:
        theirs, ours = (pairs[name, at].to_numpy() for name in (best_rule(at), RANKER))
        found.append(compare_recipes(theirs, ours, paired=True))
    adjusted = holm([p for _, p in found])
    over = [f"{less:.2f}, p = {p:.2f}" for (less, _), p in zip(found, adjusted, strict=True)]
    rows = {
        "`ranker`, five seeds": by_source(RANKER),
        "the same, by pairs of root and fault": by_source(RANKER, "by_group"),
        "`ranker`, among three": by_source(RANKER, "top3"),
        "best other rule": best_cells(),
        "`ranker` less that, by pairs": dict(zip(SOURCES, over, strict=True)),
        f"`{OURS}`": by_source(OURS),
    }
    return table(
        [
            {"root named first": name} | {TITLES[source]: row[source] for source in SOURCES}
            for name, row in rows.items()
        ]
    )


@cache
def production_shares() -> pd.DataFrame:
    """The published `recorded_results.production_table`."""
    return production_table(read("production/episodes.parquet"))


def policies_table() -> str:
    """How often policies answer the 500 incidents of `production`'s `test` rightly."""
    rows = []
    for row in production_shares().itertuples():
        stated = pd.notna(row.calibration_error)
        rows.append(
            {
                "policy": f"`{row.policy}`" + (", five seeds" if row.policy == RANKER else ""),
                "right": row.root,
                "remedy": row.remedy if stated else "-",
                "team": row.team if stated else "-",
                "root right, path wrong": row.path_wrong,
                "calibration error": f"{row.calibration_error:.3f}" if stated else "-",
            }
        )
    return table(rows)


def seeds_table() -> str:
    """The ranker's shares by seed, on `production` and on each source of real incidents."""
    real, simulated = (read("real/cases.parquet"), read("production/episodes.parquet"))
    shares = real[real["policy"] == RANKER].groupby(["seed", "source"])["top1"].mean()
    own = simulated[simulated["policy"] == RANKER].groupby("seed")["top1"].mean()
    return table(
        [
            {"seed": f"{seed:.0f}", "`production`": share}
            | {TITLES[source]: shares[seed, source] for source in SOURCES}
            for seed, share in own.items()
        ]
    )


# -- numbers of sentences --------------------------------------------------------------------------


@cache
def facts() -> dict[str, str]:
    """Every number that a sentence may hold, as text, by its name."""
    parts = (track_facts(), recorded_facts(), own_logs_facts())
    return {name: cell_text(value) for part in parts for name, value in part.items()}


def track_facts() -> dict[str, Any]:
    """`novice.test` and the like: the share of `belief`'s score of a track, the `base` or a script,
    on a split. Of the novice's track: `base.dismissed` and `trained.dismissed`, the shares of real
    faults dismissed on silent degradation; `beside`, in how many training `episodes` it healed a
    fault but blamed another service; `beside.paged`, the share of these in which it paged the right
    team.
    """
    numbers: dict[str, Any] = {
        f"{name}.{split}": share[split] for name, share in split_shares().items() for split in NEW
    }
    rows = {row["task"]: row for row in summarise(on_test("novice"))}
    dismissed = rows["silent_degradation"]["faults_dismissed"]
    numbers |= {f"{when}.dismissed": dismissed[when] for when in ("base", "trained")}
    played = pd.concat(played_in("novice", "episodes"))
    beside = played[(played["root_cause"] == 0) & (played["remediation"] > 0)]
    numbers |= {"episodes": f"{len(played):,}", "beside": len(beside)}
    return numbers | {"beside.paged": (beside["escalation"] > 0).mean()}


def recorded_facts() -> dict[str, Any]:
    """Shares of right answers: `production.ranker` and the like; on real cases `transfer.petshop`
    of the ranker, `transfer.rule.petshop` of the best other rule, `real.petshop` of our rule.
    Numbers of cases: `real.found.novice` that a track's agent finds, `real.lots` that drawing lots
    finds on average. `apart.petshop`: the area under a classifier's curve, that source held out.
    """
    shares = production_shares().set_index("policy")
    numbers = {f"production.{name}": one.mean for name, one in shares["root"].items()}
    numbers["production.ece"] = f"{shares['calibration_error'][POSTERIOR]:.3f}"
    for source in SOURCES:
        policies = {"transfer": RANKER, "transfer.rule": best_rule(source), "real": OURS}
        for name, policy in policies.items():
            numbers[f"{name}.{source}"] = by_source(policy)[source].mean
    found = read("real/cases.parquet").groupby("policy")["top1"].sum()
    for name, called in TRACKS.items():
        numbers[f"real.found.{name}"] = f"{found[f'embedded: {called}']:.0f}"
    services = read("real/realism.parquet").set_index("where")["services"]
    numbers["real.lots"] = f"{(1.0 / services.loc[[*SOURCES]]).sum():.0f}"
    apart = read("production/apart.csv").groupby("held_out")
    numbers |= {f"apart.{name}": some["auc"].mean() for name, some in apart}
    return numbers | {"apart.seen": f"{apart['auc_of_seen'].mean().mean():.3f}"}


def own_logs_facts() -> dict[str, Any]:
    """Of `triage`: its expected calibration error, `own_logs.error` (`own_logs.error.test` on one
    split); how many answers that is of, `own_logs.named`; how many were `likely`,
    `own_logs.likely`; and how many of those were right, `own_logs.likely.right`.
    """
    found = read("own-logs/simulated.json")
    confidence = found["confidence"]
    numbers = {f"own_logs.error.{name}": error for name, error in found["error_by_split"].items()}
    return numbers | {
        "own_logs.error": f"{confidence['error']:.3f}",
        "own_logs.named": sum(row["answers"] for row in confidence["bins"]),
        "own_logs.likely": confidence["likely"],
        "own_logs.likely.right": confidence["likely_right"],
    }
