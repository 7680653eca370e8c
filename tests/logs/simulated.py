"""Logs of simulated incidents, with half an hour of quiet before them, and how answers fare on
them. `python tests/logs/simulated.py` writes results/own-logs/simulated.json (5 min), of which
`scripts/pages.py` makes the tables of docs/logs.md:

- incidents of `test` in one format, without and with the call graph;
- how often an answer is right that says how sure it is, on logs that differ in format, call graph,
  length, and in who has no log. Incidents of `train` set the confidence (600 from `FAR_OFF` on),
  those of other splits measure it.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent / "corpus"))

from corpus import FORMATS, Entry

from logtriage.bench.intervals import calibration_error
from logtriage.logs.answer import Answer, answer_of
from logtriage.logs.log import read_named, read_text
from logtriage.logs.suspects import LIKELY
from logtriage.play.episode import Episode
from logtriage.train.drills import open_varied

RESULTS = Path(__file__).parents[2] / "results" / "own-logs" / "simulated.json"
SPLITS = ("test", "unseen_wording", "unseen_topology")
TASKS = ("single_crash", "cascading_failure", "silent_degradation")
START, TICK = datetime(2026, 11, 22, 3, tzinfo=UTC), 30  # seconds
QUIET = 60  # ticks of calm lines before the incident
CALM, STREAMS = 12, 3  # lines, and batches of what reaches the shared log, a tick
ABSENT = ("nobody", "nobody", "nobody", "the root", "some")  # who has no log
FAR_OFF = 900_000  # index of the first incident here, beyond those that anything is trained on


def lines_of(episode: Episode, random: Random, quiet: int = QUIET) -> list[tuple[datetime, str]]:
    """What an incident prints, after so many ticks of quiet, in order."""
    telemetry, lines = episode.telemetry, []
    size = len(episode.incident.topology.names)

    def at(tick: int) -> datetime:
        return START + timedelta(seconds=TICK * tick + random.randrange(TICK))

    for tick in range(quiet):
        for _ in range(CALM):
            kind = random.choice(("benign", "normal"))
            lines.append((at(tick), telemetry._render(kind, random.randrange(size))))
    for tick in range(quiet, quiet + episode.incident.task.max_steps):
        for _ in range(STREAMS):
            lines += [(at(tick), line) for line in telemetry.stream()]
        episode.cluster.advance()
    return sorted(lines)


def simulated(task: str, split: str, index: int) -> tuple[str, str, Episode]:
    """The log of an incident, its root (empty for a false alarm), and its episode."""
    episode = Episode.open(task, split, index)
    lines = lines_of(episode, Random(f"logs/{task}/{split}/{index}"))
    text = "\n".join(f"{time:%Y-%m-%d %H:%M:%S} {line}" for time, line in lines)
    return text, episode.incident.root or "", episode


def fared(split: str, incidents: int, with_graph: bool) -> Counter[tuple[str, str]]:
    """(how sure, `right`, `wrong`, `unsaid` or `false alarm`) to incidents."""
    counts: Counter[tuple[str, str]] = Counter()
    for task in TASKS:
        for index in range(incidents):
            text, root, episode = simulated(task, split, index)
            graph = episode.incident.topology if with_graph else None
            answer = answer_of(read_text(text, graph.names if graph else ()), graph)
            came = "right" if answer.root == root else "wrong" if answer.root else "unsaid"
            counts[answer.sure, came if root else "false alarm"] += 1
    return counts


def varied(first: int, incidents: int, split: str = "train") -> Iterator[tuple[Answer, str]]:
    """Answers to logs that differ in format, call graph, words, length, and in who has no log, each
    with the root.
    """
    for index in range(first, first + incidents):
        random = Random(f"own logs/{split}/{index}")
        task = random.choice(TASKS)
        varies = split == "train"
        episode = open_varied(task, split, index) if varies else Episode.open(task, split, index)
        root, names = episode.incident.root or "", episode.incident.topology.names
        absent = random.choice(ABSENT)
        gone = {root} if absent == "the root" else set()
        if absent == "some":
            gone = {name for name in names if random.random() < 0.4}
        entries = []
        for time, line in lines_of(episode, random, random.choice((20, 40, 60, 100))):
            level, service, text = line.split(" ", 2)
            if service not in gone:
                level = {"CRIT": "FATAL", "PANIC": "FATAL", "LOG": "INFO"}.get(level, level)
                entries.append(Entry(time, service, level, text))
        files = FORMATS[random.choice(sorted(FORMATS))](entries)
        yield answer_of(read_named(files)), root


def reliability(answers: Iterable[tuple[Answer, str]]) -> dict[str, Any]:
    """How often answers that name somebody are right, by the confidence that they say, and the
    expected calibration error.
    """
    named = pd.DataFrame(
        [(one.confidence, one.root == root, one.sure) for one, root in answers if one.root],
        columns=["said", "right", "sure"],
    )
    bins = named.groupby(np.minimum(9, (10 * named["said"]).astype(int)))[["said", "right"]]
    rows = [
        {"from": tenth / 10, "answers": len(part), **part.mean().to_dict()} for tenth, part in bins
    ]
    likely = named["right"][named["sure"] == LIKELY]
    return {
        "bins": rows,
        "error": calibration_error(named["said"], named["right"]),
        "likely": len(likely),
        "likely_right": int(likely.sum()),
    }


if __name__ == "__main__":
    measured = {
        name: {
            f"{sure}, {came}": count
            for (sure, came), count in sorted(fared("test", 60, name == "with_graph").items())
        }
        for name in ("without_graph", "with_graph")
    }
    by_split = {split: list(varied(0, 200, split)) for split in SPLITS}
    pooled = [one for answers in by_split.values() for one in answers]
    errors = {split: reliability(answers)["error"] for split, answers in by_split.items()}
    result = {**measured, "confidence": reliability(pooled), "error_by_split": errors}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(RESULTS.read_text())
