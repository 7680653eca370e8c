"""Write LEADERBOARD.md from results/leaderboard/*.json; a test keeps it fresh.

Every entry is replayed before the table is written, and nothing is written while one of them claims
a score that its actions do not earn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from logtriage.bench.leaderboard import (
    CEILING,
    FEWEST,
    Entry,
    check_entry,
    check_names,
    read_entry,
    table_row,
)
from logtriage.world.tasks import BENCHMARK_VERSION

ROOT = Path(__file__).resolve().parents[1]
ENTRIES = ROOT / "results" / "leaderboard"
PAGE = ROOT / "LEADERBOARD.md"

HOW_TO_READ = f"""\
Mean scores of `test` with 95 % bootstrap intervals over incidents, by
[these rules](docs/benchmark.md). *Share of `{CEILING}`*: of its mean score on the same incidents.
*Solved*: root cause right, fault gone or false alarm dismissed, gate passed; of several attempts,
also whether one of them did, and whether all. *Grounded*: right, and likelier than not by what had
been seen, as an exact posterior judges again whenever this page is made. An episode that ended in
an *error* counts as 0 here. *Tokens* are as the agent's side reports them: nobody can confirm
them.\
"""

HOW_TO_SUBMIT = f"""\
## How to submit

1. Play incidents 0 to {FEWEST - 1} or more of each task of `test`, having tuned on `train` only:
   `python -m logtriage evaluate --model NAME --split test --trajectories mine.jsonl`
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
        ValueError: for two entries of one name, or of names that read alike, and for a `CEILING`
            that is not in its own file.
    """
    found: list[Entry] = []
    for path in sorted(ENTRIES.glob("*.json")):
        entry = read_entry(path)
        if (entry.name == CEILING) != (path.stem == CEILING):
            raise ValueError(f"{path}: the entry of {CEILING} is {CEILING}.json; rename one")
        found.append(entry)
    for version in {one.benchmark for one in found}:
        check_names([one.name for one in found if one.benchmark == version])
    return sorted(
        found, key=lambda one: (one.benchmark != BENCHMARK_VERSION, -one.frame["score"].mean())
    )


def page(found: Sequence[Entry]) -> str:
    """LEADERBOARD.md; one table per version of the benchmark, as numbers of two do not compare.

    Raises:
        ValueError: where a version has no entry of `CEILING`.
    """
    parts = ["# Leaderboard", HOW_TO_READ]
    for version in dict.fromkeys(one.benchmark for one in found):
        own = [one for one in found if one.benchmark == version]
        ceiling = next((one for one in own if one.name == CEILING), None)
        if ceiling is None:
            raise ValueError(f"benchmark {version} has no entry of {CEILING}; add one")
        rows = [table_row(one, ceiling) for one in own]
        lines = [f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0])]
        lines += [f"| {' | '.join(map(cell, row.values()))} |" for row in rows]
        about = [f"- **{cell(one.name)}**: {cell(one.about)}" for one in own if one.about]
        parts += [f"## Benchmark {version}", "\n".join(lines), "\n".join(about)]
    return "\n\n".join([*parts, HOW_TO_SUBMIT]) + "\n"


def cell(text: str) -> str:
    """What somebody wrote, so that it stays in its cell: no markup but links."""
    plain = " ".join(text.split())
    for mark in ("\\", "|", "<", ">", "*", "_", "`", "!"):
        plain = plain.replace(mark, "\\" + mark)
    return plain


def write_page() -> None:
    """Replay every entry of this version, and write the page; `SystemExit` for a forged one."""
    found = entries()
    current = [one for one in found if one.benchmark == BENCHMARK_VERSION]
    wrong = [line for one in current for line in check_entry(one)]
    if wrong:
        raise SystemExit("\n".join([*wrong[:20], f"{len(wrong)} episodes are forged"]))
    PAGE.write_text(page(found))
    print(f"{sum(len(one.episodes) for one in current)} episodes of {len(current)} entries match")


if __name__ == "__main__":
    write_page()
