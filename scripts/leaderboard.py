"""Write LEADERBOARD.md from results/leaderboard/*.json, and what of them the page at /web shows; a
test keeps both fresh.

Every entry is replayed before the table is written, and nothing is written while one of them claims
a score that its actions do not earn.
"""

import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tables import RESULTS, ROOT

from logtriage.bench.intervals import (
    KEYS,
    matched,
    mean_interval,
    share_of_ceiling,
    stratified_mean,
)
from logtriage.bench.leaderboard import (
    FEWEST,
    MAIN,
    PRODUCTION_ALONE,
    Entry,
    check_entry,
    read_entry,
)
from logtriage.bench.plots import words
from logtriage.bench.score_tables import CEILING, cell_text, markdown, pass_all, pass_at
from logtriage.production.production_episode import PRODUCTION
from logtriage.production.production_policies import CEILING as PRODUCTION_CEILING
from logtriage.server.comparison import RECORDED
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS

ENTRIES = RESULTS / "leaderboard"
PAGE = ROOT / "LEADERBOARD.md"
# What the page at /web calls those whose entries it shows, and the names of their files.
SHOWN = {"belief": "belief", "trained agent": "novice-grpo", "base model": "novice-base"}

# What the entries of a table are measured by; each in a file of its name.
TOPS = {MAIN: CEILING, PRODUCTION_ALONE: PRODUCTION_CEILING}

HOW_TO_READ = f"""\
Mean scores of `test` with 95 % bootstrap intervals over incidents, by
[these rules](docs/benchmark.md). *Share of `{CEILING}`*: of its mean score on the same incidents.
*Solved*: root cause right, fault gone or false alarm dismissed, gate passed; of several attempts,
also whether one of them did, and whether all. *Grounded*: right, and likelier than not by what had
been seen, as an exact posterior judges again whenever this page is made. An episode that ended in
an *error* counts as 0 here. *Tokens* are as the agent's side reports them: nobody can confirm
them.\
"""

PRODUCTION_INTRO = f"""\
### Production

[`{PRODUCTION}`](docs/production.md): the root blamed first is all that counts, or `ignore` where
nothing is wrong. `{TOPS[PRODUCTION_ALONE]}` is the exact posterior, which knows the clusters;
shares are of its mean.\
"""

HOW_TO_SUBMIT = f"""\
## How to submit

1. Play incidents 0 to {FEWEST - 1} or more of each task of `test`, having tuned on `train` only:
   `python -m logtriage evaluate --model NAME --split test --trajectories mine.jsonl`
   (of `{PRODUCTION}` by `--task {PRODUCTION} --episodes {FEWEST}`, into another file and entry).
2. Replay the file and make an entry of it; `--name` and `--about` say what it is:
   `python -m logtriage replay mine.jsonl --entry results/leaderboard/mine.json`
3. `make results` replays every entry of this version and writes this page. Open a pull request
   with both, and say where `mine.jsonl` is; the entry has its digest.
4. Replay proves the arithmetic: these actions, on these incidents, earn this score, to the bit.
5. It does not prove the author: who chose the actions, on which try, and knowing what.\
"""


def entries() -> list[Entry]:
    """All entries, those of this version of the benchmark first, then by mean score.

    Raises:
        ValueError: for two entries of one name, or of names that read alike, and for one of `TOPS`
            that is not in its own file.
    """
    found: list[Entry] = []
    seen: dict[tuple[Any, ...], str] = {}
    for path in sorted(ENTRIES.glob("*.json")):
        entry = read_entry(path)
        name, top = entry.name, TOPS[entry.tasks]
        if (name == top) != (path.stem == top):
            raise ValueError(f"{path}: the entry of {top} is {top}.json; rename one")
        plain = "".join(char for char in name.casefold() if char.isalnum())
        key = (entry.benchmark, entry.tasks, plain)
        if key in seen:
            raise ValueError(
                f"there is an entry {seen[key]} already, and {name} reads like it; rename one"
            )
        seen[key] = name
        found.append(entry)
    return sorted(
        found, key=lambda one: (one.benchmark != BENCHMARK_VERSION, -one.frame["score"].mean())
    )


def page(found: Sequence[Entry]) -> str:
    """LEADERBOARD.md; two tables per version of the benchmark, as numbers of two do not compare.

    Raises:
        ValueError: where a table has no entry of its `TOPS`.
    """
    parts = ["# Leaderboard", HOW_TO_READ]
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
            cells = [{head: cell(cell_text(text)) for head, text in row.items()} for row in rows]
            about = [f"- **{cell(one.name)}**: {cell(one.about)}" for one in own if one.about]
            intro = [PRODUCTION_INTRO] if tasks == PRODUCTION_ALONE else []
            parts += [*intro, markdown(cells), "\n".join(about)]
    return "\n\n".join([*parts, HOW_TO_SUBMIT]) + "\n"


def table_row(entry: Entry, ceiling: Entry) -> dict[str, Any]:
    """An entry as a row of the page, head to value; the `ceiling` holds at least its incidents."""
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
        both = mean(pass_at, attempts), mean(pass_all, attempts)
        row["solved"] += "; of {} one {}, all {}".format(attempts, *both)
    row["grounded"] = entry.grounded
    row["attempts"] = attempts
    row["tokens per episode"] = "-" if entry.tokens is None else f"{entry.tokens:,.0f}"
    row["errors"] = sum(score is None for _, _, _, score, *_ in entry.episodes)
    row["version"] = entry.benchmark
    # The score of `production`, a single task, says all of these.
    left_out = () if entry.tasks == MAIN else ("mean", "solved", "grounded")
    return {head: value for head, value in row.items() if head not in left_out}


def cell(text: str) -> str:
    """What somebody wrote, so that it stays in its cell: no markup but links."""
    plain = " ".join(text.split())
    for mark in ("\\", "|", "<", ">", "*", "_", "`", "!"):
        plain = plain.replace(mark, "\\" + mark)
    return plain


def recorded() -> dict[str, dict[str, list[str]]]:
    """What `server.comparison` reads: the first attempts of those of this version in `SHOWN`, with
    the actions as the page's address holds them.
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


def write_page() -> None:
    """Replay every entry of this version, and write the page and what is recorded; `SystemExit` for
    a forged one.
    """
    found = entries()
    current = [one for one in found if one.benchmark == BENCHMARK_VERSION]
    wrong = [line for one in current for line in check_entry(one)]
    if wrong:
        raise SystemExit("\n".join([*wrong[:20], f"{len(wrong)} episodes are forged"]))
    PAGE.write_text(page(found))
    RECORDED.write_bytes(gzip.compress(json.dumps(recorded()).encode(), mtime=0))
    print(f"{sum(len(one.episodes) for one in current)} episodes of {len(current)} entries match")
