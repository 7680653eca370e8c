"""The tables of docs and results/README.md, as Markdown.

All are made from results/ alone; `bench.results_pages` writes them.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.world.tasks import BENCHMARK_VERSION, TASKS

from ..real.cases import SOURCES
from .intervals import KEYS, Interval, seed_scores, two_way_mean
from .plots import words
from .published import RESULTS, TRACKS, played_by, played_in, read, seeds_of
from .recorded_results import HALVES, OURS, RANKED, real_table
from .score_tables import CAREFUL, REFERENCE, cell_text, markdown, summarise
from .strata import check_one_version, describe_falls, stratum_changes

# What is new in each split.
NEW = {
    "test": "the incidents",
    "unseen_faults": "(service, fault) pairs",
    "unseen_wording": "log lines",
    "unseen_topology": "call graph and names",
}
LISTED = 200  # incidents of each task of `test` that a row of the leaderboard is of
# Rules for real incidents that are not ours; the code of the second line's is gone.
OTHER_RULES = (
    *(name for name in RANKED if name != OURS),
    *("commonest", "largest_ratio", "deepest", "random_walk", "error_lines", "worst_callee"),
)


def table(rows: Sequence[dict[str, Any]], *lines: str) -> str:
    """Rows as a Markdown table, with two decimals in numbers and the `lines` below."""
    cells = [{head: cell_text(value) for head, value in row.items()} for row in rows]
    return "\n".join([markdown(cells), *([""] if lines else []), *lines])


# -- tracks --------------------------------------------------------------------------------------


def on_test(track: str) -> list[pd.DataFrame]:
    """The episodes of each run of a track on `test`."""
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
        cells[f"share of `{REFERENCE}`"] = row[f"share_of_{REFERENCE}"].mean
        cells["roots found"] = row["faults_detected"]
        cells["false alarms dismissed"] = row.get("false_alarms_dismissed", "")
        if track == "expert":
            cells[f"over `{CAREFUL}`"] = row[f"over_{CAREFUL}"]
        rows.append(cells)
    method = (
        f"Benchmark {summary[0]['benchmark']}, {summary[0]['episodes']} held-out incidents (`test`)"
        f" a task, greedy, **{len(seeds)} training seeds** ({', '.join(seeds)}) of GRPO from one"
        " base model; 95 % bootstrap intervals over incidents and seeds, gains paired. Roots"
        " found: the service of a real fault was the first one blamed. Arrows: base → trained."
    )
    lines = [method]
    if track == "expert":
        lines.append(f"Over `{CAREFUL}`, the mean over tasks: {gain(frames, TASKS, CAREFUL)}.")
    falls = "; ".join(describe_falls(stratum_changes(frames)))
    lines.append(
        f"**What got worse by more than its interval** (of so many incidents): {falls or 'none'}."
    )
    return table(rows, *lines)


# -- other splits --------------------------------------------------------------------------------


def shares_of(frame: pd.DataFrame) -> pd.Series:
    """The share of `belief`'s score on the same incidents, by split, the mean over tasks.
    `ValueError` if the version of the benchmark is not that of the scripts.
    """
    scripts = read("benchmark/episodes.parquet")
    check_one_version([frame, scripts])
    best = scripts[scripts["policy"] == REFERENCE].set_index(KEYS)["score"]
    frame = frame.assign(best=best.loc[pd.MultiIndex.from_frame(frame[KEYS])].to_numpy())
    sums = frame.groupby(["split", "task"])[["score", "best"]].sum()
    return (sums["score"] / sums["best"]).groupby("split").mean()


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
    return {name: shares_of(frame) for name, frame in frames.items()}


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
        f"Shares of `{REFERENCE}`'s score on the same incidents ({counts['test']} a task of `test`,"
        f" {counts['unseen_faults']} of the others), the mean over tasks and seeds (how many)."
        " `constant` is the best script that reads nothing. Scripts can parse all wording, so"
        " `unseen_wording` is no test of them.",
    )


# -- the leaderboard -----------------------------------------------------------------------------


def leaderboard_table(models: dict[str, list[pd.DataFrame]]) -> str:
    """Mean scores of everybody on incidents of `test`: first language models (`models` by name, the
    embedded agents over their seeds, and rows that others have added to results/leaderboard), then
    scripts, the best of each first.
    """
    scripts = read("benchmark/episodes.parquet")
    scripts = scripts[(scripts["split"] == "test") & (scripts["index"] < LISTED)]
    players = {f"`{name}`": [own] for name, own in scripts.groupby("policy")}
    novices = on_test("novice")  # all from one base
    players["embedded agent: base"] = [frame[frame["policy"] == "base"] for frame in novices]
    for track, called in TRACKS.items():
        frames = [frame[frame["policy"] == "trained"] for frame in on_test(track)]
        players[f"embedded agent: {called}, {len(frames)} seeds"] = frames
    added = sorted((RESULTS / "leaderboard").glob("*.json"))
    players |= {path.stem: [added_row(path)] for path in added}
    players |= models
    rows: list[dict[str, Any]] = []
    for name, frames in players.items():
        policy = frames[0]["policy"].iloc[0]
        scores = {words(task): seed_scores(frames, task, policy) for task in TASKS}
        rows.append({"policy": name} | {task: two_way_mean([own]) for task, own in scores.items()})
        rows[-1]["mean"] = two_way_mean([*scores.values()])
        rows[-1] |= {f"share of `{REFERENCE}`": shares_of(pd.concat(frames))["test"]}
    rows.sort(key=lambda row: (row["policy"].startswith("`"), -row["mean"].mean))
    return table(
        rows,
        f"Benchmark {BENCHMARK_VERSION}, incidents 0 to {LISTED - 1} of each task of `test`, or as"
        " many of the first as are named, 95 % bootstrap intervals over incidents, and seeds where"
        " there are several. SmolLM2 is held by a grammar. Names of scripts are in `code`.",
    )


def added_row(path: Path) -> pd.DataFrame:
    """The scores by incident of a file that `verify --json` wrote; an episode that ended in an
    error counts as 0, and several attempts as their mean. `ValueError` unless it is of one policy,
    of this version of the benchmark, and of the incidents that all rows are of.
    """
    frame = pd.read_json(path, dtype={"policy": str, "benchmark": str})
    frame = frame[frame["index"].isin(range(LISTED)) & frame["task"].isin([*TASKS])]
    kinds = [{*frame[name]} for name in ("split", "benchmark")]
    complete = frame.groupby(["task", "index"]).ngroups == LISTED * len(TASKS)
    if kinds != [{"test"}, {BENCHMARK_VERSION}] or frame["policy"].nunique() != 1 or not complete:
        raise ValueError(
            f"{path} is no row of the leaderboard: that is one policy on incidents 0 to "
            f"{LISTED - 1} of each task of test, in benchmark {BENCHMARK_VERSION}"
        )
    frame = frame.assign(score=frame["score"].fillna(0.0))
    same = [*KEYS, "policy", "benchmark"]
    return frame.groupby(same, sort=False, as_index=False)["score"].mean()


# -- real incidents --------------------------------------------------------------------------------


@cache
def real_shares() -> pd.Series:
    """The published shares of roots named first, by policy, source and part of the cases."""
    shares = real_table(read("real/cases.parquet"))
    return shares.set_index(["policy", "source", "part"])["top1"]


def by_source(policy: str, part: str = "all") -> dict[str, Any]:
    """A policy's shares of roots named first on each source; "-" where it has not played."""
    return {source: real_shares().get((policy, source, part), "-") for source in SOURCES}


def best_other_rule(source: str) -> str:
    """The share of the one of `OTHER_RULES` that finds most of a source's roots, and its name."""
    shares = real_shares().xs((source, "all"), level=("source", "part"))
    best = max((name for name in OTHER_RULES if name in shares), key=shares.__getitem__)
    return f"{shares[best]:.2f} (`{best}`)"


def real_incidents_table() -> str:
    """Who finds the root of real incidents, from `results/real`: our rule by half, the best of the
    other rules, `trace`, `belief`, and the best that others report.
    """
    published = read("real/published.csv").sort_values("top1").groupby("source").last()
    rows = {f"`{OURS}`, cases {half}": by_source(OURS, half) for half in HALVES}
    rows["best other rule, all cases"] = {source: best_other_rule(source) for source in SOURCES}
    rows |= {f"`{name}`, all cases": by_source(name) for name in ("trace", "belief")}
    rows["published, best result reported"] = {
        source: f"{published['top1'][source]:.2f} ({published['method'][source].partition(',')[0]})"
        for source in SOURCES
    }
    return table([{"root named first": name, **row} for name, row in rows.items()])
