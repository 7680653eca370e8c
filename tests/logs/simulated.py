"""Logs of simulated incidents, with half an hour of quiet before them, and how answers fare on
them: `python tests/logs/simulated.py [incidents a task]` prints the counts of docs/logs.md.
"""

import sys
from collections import Counter
from datetime import datetime, timedelta
from random import Random

from logtriage.logs.answer import answer_of
from logtriage.logs.log import read_text
from logtriage.play.episode import Episode

TASKS = ("single_crash", "cascading_failure", "silent_degradation")
START, TICK = datetime(2026, 11, 22, 3), 30  # seconds
QUIET = 60  # ticks of calm lines before the incident
CALM, STREAMS = 12, 3  # lines, and batches of what reaches the shared log, a tick


def simulated(task: str, split: str, index: int) -> tuple[str, str, Episode]:
    """The log of an incident, its root (empty for a false alarm), and its episode."""
    episode = Episode.open(task, split, index)
    telemetry, random = episode.telemetry, Random(f"logs/{task}/{split}/{index}")
    size, lines = len(episode.incident.topology.names), []

    def at(tick: int) -> datetime:
        return START + timedelta(seconds=TICK * tick + random.randrange(TICK))

    for tick in range(QUIET):
        for _ in range(CALM):
            kind = random.choice(("benign", "normal"))
            lines.append((at(tick), telemetry._render(kind, random.randrange(size))))
    for tick in range(QUIET, QUIET + episode.incident.task.max_steps):
        for _ in range(STREAMS):
            lines += [(at(tick), line) for line in telemetry.stream()]
        episode.cluster.advance()
    text = "\n".join(f"{time:%Y-%m-%d %H:%M:%S} {line}" for time, line in sorted(lines))
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


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for with_graph in (False, True):
        print("with the call graph" if with_graph else "without a call graph")
        for (sure, came), incidents in sorted(fared("test", count, with_graph).items()):
            print(f"  {sure}, {came}: {incidents}")
