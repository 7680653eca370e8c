"""Write LEADERBOARD.md from results/leaderboard/*.json: `make leaderboard`. A test holds it fresh.

Every entry is played again before the table is written, and nothing is written while one of them
tells a score that its actions do not earn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from logtriage.bench.leaderboard import CEILING, FEWEST, Entry, check_entry, read_entry, table_row
from logtriage.world.tasks import BENCHMARK_VERSION

ROOT = Path(__file__).resolve().parents[1]
ENTRIES = ROOT / "results" / "leaderboard"
PAGE = ROOT / "LEADERBOARD.md"

HOW_TO_READ = f"""\
Mean scores of `test` with 95 % bootstrap intervals over incidents, by
[these rules](docs/benchmark.md). *Share of `{CEILING}`*: of its mean score on the same incidents.
*Solved*: root cause right, fault gone or false alarm dismissed, gate passed; of several attempts,
also whether one of them did, and whether all. *Grounded*: right, and likelier than not by what had
been seen; an exact posterior is the judge, and judges again when this page is made. An episode that
ended in an *error* counts as 0 here. *Tokens* are what the agent's side told: nobody can confirm
those.\
"""

HOW_TO_SUBMIT = f"""\
## How to submit

1. Play incidents 0 to {FEWEST - 1} or more of each task of `test`, having tuned on `train` only:
   `python -m logtriage evaluate --model NAME --split test --trajectories mine.jsonl`
2. Have it confirmed, and an entry made of it; `--name` and `--about` say what it is:
   `python -m logtriage replay mine.jsonl --entry results/leaderboard/mine.json`
3. `make leaderboard` plays every entry of this version again and writes this page. Open a pull
   request with both, and say where `mine.jsonl` can be had; the entry has its digest.
4. Replay proves the arithmetic: these actions, on these incidents, earn this score, to the bit.
5. It does not prove the author: who chose the actions, on which try, and knowing what, it cannot
   tell.\
"""


def entries() -> list[Entry]:
    """All entries, those of this version of the benchmark first, then by mean score.

    Raises:
        ValueError: for two entries of one name, and for a `CEILING` that is not in its own file.
    """
    found: list[Entry] = []
    for path in sorted(ENTRIES.glob("*.json")):
        entry = read_entry(path)
        if (entry.name == CEILING) != (path.stem == CEILING):
            raise ValueError(f"{path}: the entry of {CEILING} is {CEILING}.json; rename one")
        if any((entry.benchmark, entry.name) == (one.benchmark, one.name) for one in found):
            raise ValueError(f"{path}: there is an entry {entry.name} already; rename one")
        found.append(entry)
    return sorted(
        found, key=lambda one: (one.benchmark != BENCHMARK_VERSION, -one.frame["score"].mean())
    )


def page(found: Sequence[Entry]) -> str:
    """LEADERBOARD.md; a table a version of the benchmark, as numbers of two do not compare.

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
        told = [f"- **{cell(one.name)}**: {cell(one.about)}" for one in own if one.about]
        parts += [f"## Benchmark {version}", "\n".join(lines), "\n".join(told)]
    return "\n\n".join([*parts, HOW_TO_SUBMIT]) + "\n"


def cell(text: str) -> str:
    """What somebody wrote, so that it stays in its cell: no markup but links."""
    plain = " ".join(text.split())
    for mark in ("\\", "|", "<", ">", "*", "_", "`", "!"):
        plain = plain.replace(mark, "\\" + mark)
    return plain


def write_page() -> None:
    """Play every entry of this version again, and write the page; `SystemExit` for a forged one."""
    found = entries()
    current = [one for one in found if one.benchmark == BENCHMARK_VERSION]
    wrong = [told for one in current for told in check_entry(one)]
    if wrong:
        raise SystemExit("\n".join([*wrong[:20], f"{len(wrong)} episodes are forged"]))
    PAGE.write_text(page(found))
    print(f"{sum(len(one.episodes) for one in current)} episodes of {len(current)} entries match")


if __name__ == "__main__":
    write_page()
