"""Make the tables of docs/LEADERBOARD.md, and what the page at /web shows, from the entries in
results/leaderboard. A test checks that both are up to date.

`make results` first replays every entry, and writes nothing if one of them claims a score that its
actions do not earn.
"""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tables import RESULTS

from logtriage.server.comparison import RECORDED
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS
from triagelab.bench.intervals import (
    KEYS,
    matched,
    mean_interval,
    share_of_ceiling,
    stratified_mean,
)
from triagelab.bench.leaderboard import MAIN, PRODUCTION_ALONE, Entry, check_entry, read_entry
from triagelab.bench.plots import words
from triagelab.bench.score_tables import CEILING, cell_text, markdown, pass_all, pass_at
from triagelab.realistic.production_episode import PRODUCTION
from triagelab.realistic.production_policies import CEILING as PRODUCTION_CEILING

ENTRIES = RESULTS / "leaderboard"
# The entries that the page at /web shows: the name there, and the name of the file.
SHOWN = {"belief": "belief", "trained agent": "novice-grpo", "base model": "novice-base"}

# The entry by which those of a table are measured; its file has its name.
TOPS = {MAIN: CEILING, PRODUCTION_ALONE: PRODUCTION_CEILING}

PRODUCTION_INTRO = f"""\
### Production

[`{PRODUCTION}`](production.md): the root blamed first is all that counts, or `ignore` where
nothing is wrong. `{TOPS[PRODUCTION_ALONE]}` is the exact posterior, which knows the clusters (a
finished study, commit `fd8ccaf`); shares are of its mean.\
"""


def entries() -> list[Entry]:
    """All entries, those of this version of the benchmark first, then by mean score.

    Raises:
        ValueError: if two entries have one name, or names that read alike, or if one of `TOPS` is
            not in its own file.
    """
    found: list[Entry] = []
    seen: dict[tuple[Any, ...], str] = {}
    for path in sorted(ENTRIES.glob("*.json")):
        entry = read_entry(path)
        name, top = entry.name, TOPS[entry.tasks]
        if (name == top) != (path.stem == top):
            raise ValueError(f"{path}: the entry of {top} is {top}.json; rename one")
        letters = "".join(char for char in name.casefold() if char.isalnum())
        key = (entry.benchmark, entry.tasks, letters)
        if key in seen:
            raise ValueError(
                f"there is an entry {seen[key]} already, and {name} reads like it; rename one"
            )
        seen[key] = name
        found.append(entry)
    return sorted(
        found, key=lambda one: (one.benchmark != BENCHMARK_VERSION, -one.frame["score"].mean())
    )


def entry_tables(found: Sequence[Entry] | None = None) -> str:
    """The entries as Markdown, with two tables per version of the benchmark, since scores of two
    versions do not compare. `ValueError` if a table lacks its entry of `TOPS`.
    """
    found, parts = entries() if found is None else found, []
    for version in dict.fromkeys(one.benchmark for one in found):
        parts.append(f"## Benchmark {version}")
        for tasks, top in TOPS.items():
            own = [one for one in found if one.benchmark == version and one.tasks == tasks]
            if not own:
                continue
            ceiling = next((one for one in own if one.name == top), None)
            if ceiling is None:
                raise ValueError(f"benchmark {version} has no entry of {top}; add one")
            rows = [table_row(one, ceiling) for one in own]
            cells = [{head: plain(cell_text(text)) for head, text in row.items()} for row in rows]
            about = [f"- **{plain(one.name)}**: {plain(one.about)}" for one in own if one.about]
            intro = [PRODUCTION_INTRO] if tasks == PRODUCTION_ALONE else []
            parts += [*intro, markdown(cells), "\n".join(about)]
    return "\n\n".join(parts)


def table_row(entry: Entry, ceiling: Entry) -> dict[str, Any]:
    """An entry as a row of the page, by heading; `ceiling` must hold at least its incidents."""
    frame, attempts = entry.frame, entry.attempts
    scores = [group["score"].to_numpy() for _, group in frame.groupby("task", sort=False)]
    best = ceiling.frame.merge(frame[KEYS], on=KEYS)

    def mean(estimate: Callable[[int, int, int], float], k: int) -> str:
        """pass@k or pass^k, the mean over incidents."""
        return f"{np.mean([estimate(k, attempts, won) for won in frame['solved']]):.2f}"

    row: dict[str, Any] = {"policy": entry.name}
    row |= {words(task): mean_interval(x) for task, x in zip(entry.tasks, scores, strict=True)}
    row["mean"] = stratified_mean(scores)
    row[f"share of `{ceiling.name}`"] = share_of_ceiling(*matched(frame, best)).mean
    row["solved"] = mean(pass_at, 1)
    if attempts > 1:
        one, every = mean(pass_at, attempts), mean(pass_all, attempts)
        row["solved"] += f"; of {attempts} one {one}, all {every}"
    row["grounded"] = entry.grounded
    row["attempts"] = attempts
    row["tokens per episode"] = "-" if entry.tokens is None else f"{entry.tokens:,.0f}"
    row["errors"] = sum(score is None for _, _, _, score, *_ in entry.episodes)
    row["version"] = entry.benchmark
    # `production` is a single task, whose score says all of these.
    left_out = () if entry.tasks == MAIN else ("mean", "solved", "grounded")
    return {head: value for head, value in row.items() if head not in left_out}


def plain(text: str) -> str:
    """Escape what somebody wrote, so that it stays in its cell: no markup but links."""
    return re.sub(r"([\\|<>*_`!])", r"\\\1", " ".join(text.split()))


def recorded() -> dict[str, dict[str, list[str]]]:
    """What `server.comparison` reads: the first attempts of the entries of this version in `SHOWN`,
    with the actions as in the address of the page.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name, stem in SHOWN.items():
        entry = read_entry(ENTRIES / f"{stem}.json")
        if entry.benchmark != BENCHMARK_VERSION:
            continue
        found[name] = {task: [] for task in TASKS}
        for task, _, attempt, _, _, did in sorted(entry.episodes):
            if attempt == 0:
                wire = [action.replace(" ", ":") for action in did.split(", ")]
                found[name][task].append(" ".join(wire))
    return found


def check_and_record() -> None:
    """Replay every entry of this version, and write what the page at /web shows; `SystemExit` if
    one is forged.
    """
    current = [one for one in entries() if one.benchmark == BENCHMARK_VERSION]
    wrong = [line for one in current for line in check_entry(one)]
    if wrong:
        raise SystemExit("\n".join([*wrong[:20], f"{len(wrong)} episodes are forged"]))
    RECORDED.write_bytes(gzip.compress(json.dumps(recorded()).encode(), mtime=0))
    print(f"{sum(len(one.episodes) for one in current)} episodes of {len(current)} entries match")
