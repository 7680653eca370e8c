"""How answers fare on logs of simulated incidents, and whether their confidence is earned; prints
the tables of docs/logs.md (some minutes).

    PYTHONPATH=.:tests/reader:tests/reader/corpus python -m calibration
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random

from corpus import FORMATS, Entry, Files, formatted

from logreader.answer import LIKELY, Answer, answer_of
from logreader.log import read_named, read_text
from logtriage.play.episode import Episode
from logtriage.world.tasks import TASKS

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
            lines = [line for _ in range(STREAMS) for line in telemetry.stream()]
            episode.cluster.advance()
        for line in lines:
            level, service, text = line.split(" ", 2)
            at = START + timedelta(seconds=TICK * tick + random.uniform(0, TICK))
            entries.append(Entry(at, service, LEVELS.get(level, level), text))
    return sorted(entries)


def plain(split: str, incidents: int, with_graph: bool) -> Counter[tuple[str, str]]:
    """Count answers to logs in one format by how sure they are, and by whether they are right."""
    counts: Counter[tuple[str, str]] = Counter()
    for task, index in product(TASKS, range(incidents)):
        episode = Episode.open(task, split, index)
        entries = entries_of(episode, Random(f"logs/{task}/{split}/{index}"))
        text = "\n".join(
            f"{e.at:%Y-%m-%d %H:%M:%S} {e.level} {e.service} {e.text}" for e in entries
        )
        graph, root = episode.incident.topology if with_graph else None, episode.incident.root
        answer = answer_of(read_text(text, graph.names if graph else ()), graph)
        right = "right" if answer.root == root else "wrong" if answer.root else "unsaid"
        counts[answer.sure, right if root else "false alarm"] += 1
    return counts


def varied(split: str, task: str, index: int, random: Random) -> tuple[Files, Episode]:
    """The log of an incident in some format, some services having none, and its episode."""
    episode = Episode.open(task, split, index)
    names, root = episode.incident.topology.names, episode.incident.root or ""
    absent = random.choice([(), (), (), (root,), random.sample(names, 2)])
    entries = entries_of(episode, random, random.choice((20, 40, 60, 100)))
    kept = [entry for entry in entries if entry.service not in absent]
    return formatted(FORMATS[random.choice([*FORMATS])], kept), episode


def answers(split: str, incidents: int) -> Iterator[tuple[Answer, bool]]:
    """Yield answers to varied logs that name somebody, and whether each is right."""
    for index in range(incidents):
        random = Random(f"own logs/{split}/{index}")
        files, episode = varied(split, random.choice([*TASKS]), index, random)
        answer = answer_of(read_named(files))
        if answer.root:
            yield answer, answer.root == episode.incident.root


def reliability(
    named: Iterable[tuple[Answer, bool]],
) -> tuple[dict[int, list[tuple[float, bool]]], float]:
    """Return confidence and truth by tenths of confidence, and the expected calibration error."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for answer, right in named:
        bins[min(9, int(10 * answer.confidence))].append((answer.confidence, right))
    total = sum(map(len, bins.values()))
    gaps = (abs(sum(said - right for said, right in part)) for part in bins.values())
    return dict(sorted(bins.items())), sum(gaps) / max(1, total)


if __name__ == "__main__":
    for with_graph in (False, True):
        print("with the call graph" if with_graph else "without a call graph")
        for row, count in sorted(plain("test", 60, with_graph).items()):
            print(f"  {', '.join(row)}: {count}")
    by_split = {split: [*answers(split, 200)] for split in SPLITS}
    pooled = [row for rows in by_split.values() for row in rows]
    bins, error = reliability(pooled)
    for tenth, part in bins.items():
        said, right = (sum(column) / len(part) for column in zip(*part, strict=True))
        print(f"| {tenth}0% or more | {len(part)} | {said:.0%} | {right:.0%} |")
    print(f"expected calibration error {error:.3f} over {len(pooled)} answers;", end=" ")
    print(*(f"{split} {reliability(rows)[1]:.2f}" for split, rows in by_split.items()))
    likely = [right for answer, right in pooled if answer.sure == LIKELY]
    print(f"likely: right {sum(likely)} times of {len(likely)}")
