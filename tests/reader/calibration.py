"""How answers fare on logs of simulated incidents, and whether their confidence is earned (some
minutes). It prints the tables of results/own-logs.md, and writes results/own-logs/simulated.json.

    PYTHONPATH=.:tests/reader:tests/reader/corpus python -m calibration

With the word `train` it prints only how often answers are right on that split, which is what the
constants of `logreader.sureness` say.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from corpus import FORMATS, Entry, Files, formatted

from logreader.answer import Answer, answer_of
from logreader.levels import WARN
from logreader.log import read_named, read_text
from logreader.sureness import LIKELY
from logreader.tally import Tally
from logtriage.play.episode import Episode
from logtriage.world.tasks import TASKS

FILE = Path(__file__).parents[2] / "results" / "own-logs" / "simulated.json"
SPLITS = ("test", "unseen_wording", "unseen_topology")
START, TICK = datetime(2026, 11, 22, 3, tzinfo=UTC), 30  # seconds
QUIET = 60  # ticks of calm lines before the incident
CALM, STREAMS = 12, 3  # lines, and batches of what reaches the shared log, a tick
LEVELS = {"CRIT": "FATAL", "PANIC": "FATAL", "LOG": "INFO"}


def entries_of(episode: Episode, random: Random, quiet: int = QUIET) -> list[Entry]:
    """What an incident prints, after so many ticks of quiet, in order."""
    telemetry, size = episode.telemetry, len(episode.incident.topology.names)
    entries = []
    for tick in range(quiet + episode.incident.task.max_steps):
        if tick < quiet:
            kinds = random.choices(("benign", "normal"), k=CALM)
            lines = [telemetry._render(kind, random.randrange(size)) for kind in kinds]
        else:
            lines = [line for _ in range(STREAMS) for line in telemetry.opening_lines()]
            episode.cluster.advance()
        for line in lines:
            level, service, text = line.split(" ", 2)
            at = START + timedelta(seconds=TICK * tick + random.uniform(0, TICK))
            entries.append(Entry(at, service, LEVELS.get(level, level), text))
    return sorted(entries)


def plain(split: str, incidents: int, with_graph: bool) -> Counter[tuple[str, str]]:
    """Count answers to logs in one format by how sure they are, and by whether they are right. In
    `counting` are those of a rule: the service with most warnings and errors began it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for task, index in product(TASKS, range(incidents)):
        episode = Episode.open(task, split, index)
        entries = entries_of(episode, Random(f"logs/{task}/{split}/{index}"))
        text = "\n".join(
            f"{e.at:%Y-%m-%d %H:%M:%S} {e.level} {e.service} {e.text}" for e in entries
        )
        graph, root = episode.incident.topology if with_graph else None, episode.incident.root
        log = read_text(text, graph.names if graph else ())
        answer = answer_of(log, graph)
        right = "right" if answer.root == root else "wrong" if answer.root else "unsaid"
        counts[answer.sure, right if root else "false alarm"] += 1
        rule = "right" if loudest(log.tally) == root else "wrong"
        counts["counting", rule if root else "false alarm"] += 1
    return counts


def loudest(tally: Tally) -> str:
    """The service with most warnings and errors."""
    lines = Counter[str]()
    for _, shape, count in tally.lines():
        lines[tally.services[shape.service]] += count * (shape.level >= WARN)
    return max(lines, key=lambda name: lines[name])


def varied(split: str, task: str, index: int, random: Random) -> tuple[Files, Episode]:
    """The log of an incident in some format, some services having none, and its episode."""
    episode = Episode.open(task, split, index)
    names, root = episode.incident.topology.names, episode.incident.root or ""
    absent = random.choice([(), (), (), (root,), random.sample(names, 2)])
    entries = entries_of(episode, random, random.choice((20, 40, 60, 100)))
    kept = [entry for entry in entries if entry.service not in absent]
    return formatted(FORMATS[random.choice([*FORMATS])], kept), episode


def answers(split: str, incidents: int) -> Iterator[tuple[Answer, str]]:
    """Yield answers to varied logs that name somebody, each with the root."""
    for index in range(incidents):
        random = Random(f"own logs/{split}/{index}")
        files, episode = varied(split, random.choice([*TASKS]), index, random)
        answer = answer_of(read_named(files))
        if answer.root:
            yield answer, episode.incident.root or ""


def reliability(named: Iterable[tuple[Answer, str]]) -> dict[str, Any]:
    """Return, by tenths of confidence, the answers, their mean confidence and the share of them
    that is right; the expected calibration error; the same of the suspects after the first; and how
    often *likely* is right.
    """
    named = [*named]
    firsts = [(answer.confidence, answer.root == root) for answer, root in named]
    likely = [answer.root == root for answer, root in named if answer.sure == LIKELY]
    others = [
        (suspect.confidence, suspect.service == root)
        for answer, root in named
        for suspect in answer.suspects[1:]
    ]
    return {
        **by_tenths(firsts),
        "others": by_tenths(others),
        "likely": len(likely),
        "likely_right": sum(likely),
    }


def by_tenths(said: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the bins of confidences and whether each was right, and the calibration error."""
    parts: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in said:
        parts[min(9, int(10 * confidence))].append((confidence, right))
    bins, error = [], 0.0
    for tenth, part in sorted(parts.items()):
        mean, right = (sum(column) / len(part) for column in zip(*part, strict=True))
        error += abs(mean - right) * len(part) / len(said)
        bins.append({"from": tenth / 10, "answers": len(part), "said": mean, "right": right})
    return {"bins": bins, "error": error}


def rows_of(earned: dict[str, Any]) -> list[str]:
    """The rows of a table of what `reliability` returns."""
    return [
        f"| {row['from']:.0%} or more | {row['answers']} | {row['said']:.0%} | {row['right']:.0%} |"
        for row in earned["bins"]
    ]


def show(earned: dict[str, Any]) -> None:
    """Print what `reliability` returns."""
    print("\n".join(rows_of(earned)))
    total = sum(row["answers"] for row in earned["bins"])
    print(f"expected calibration error {earned['error']:.3f} over {total} answers")
    print("suspects after the first", *rows_of(earned["others"]), sep="\n")
    print(f"likely: right {earned['likely_right']} times of {earned['likely']}")


def publish() -> None:
    """Print all tables, and write them."""
    tables: dict[str, Any] = {}
    for name, with_graph in (("without_graph", False), ("with_graph", True)):
        counts = sorted(plain("test", 60, with_graph).items())
        tables[name] = {", ".join(row): count for row, count in counts}
        print(name, tables[name])
    by_split = {split: [*answers(split, 200)] for split in SPLITS}
    tables["confidence"] = reliability(row for rows in by_split.values() for row in rows)
    show(tables["confidence"])
    errors = {split: reliability(rows)["error"] for split, rows in by_split.items()}
    tables["error_by_split"] = errors
    print("error by split", errors)
    FILE.write_text(json.dumps(tables, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        show(reliability(answers("train", 600)))
    else:
        publish()
