"""What `triage` makes of logs as operators paste them: 98 of other software, written by one who
had not seen the reader, each with its root. Every set was scored before anybody looked at it, and
then read to mend what it showed, but for the last.

    PYTHONPATH=.:tests/reader:tests/reader/corpus python -m operators
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from logreader.answer import Answer, answer_of
from logreader.log import read_log
from logreader.sureness import LIKELY

FOLDER = Path(__file__).parent / "corpus" / "operators"
SETS = ("first", "second", "third", "last")
FAULTY = ("named rightly", "named wrongly", "refused, first right", "refused")


def logs(name: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield the logs of a set, each with the names that its root may have; none for a healthy one,
    and for one of which the network is the root.
    """
    labels = yaml.safe_load((FOLDER / name / "labels.yaml").read_text())
    for file, roots in labels.items():
        yield FOLDER / name / file, roots


def is_one_of(service: str, roots: list[str]) -> bool:
    """Whether a service has one of these names, but for the number of a replica."""
    return service.rstrip("-_.0123456789") in {root.rstrip("-_.0123456789") for root in roots}


def outcome(answer: Answer, roots: list[str]) -> str:
    """What an answer is worth."""
    if not roots:
        return "healthy, blamed" if answer.root else "healthy, nobody named"
    if answer.root:
        return "named rightly" if is_one_of(answer.root, roots) else "named wrongly"
    first = [suspect.service for suspect in answer.suspects[:1]]
    return "refused, first right" if any(is_one_of(name, roots) for name in first) else "refused"


def measure(name: str) -> Counter[str]:
    """Count what the answers to a set are worth, and those that are *likely* and wrong."""
    counts: Counter[str] = Counter()
    for path, roots in logs(name):
        answer = answer_of(read_log([path]))
        counts[outcome(answer, roots)] += 1
        counts["likely and wrong"] += answer.sure == LIKELY and not is_one_of(answer.root, roots)
    return counts


def row_of(name: str) -> str:
    """A set's row in the table of results/own-logs.md."""
    counts = measure(name)
    faulty = sum(counts[worth] for worth in FAULTY)
    healthy = counts["healthy, nobody named"] + counts["healthy, blamed"]
    parts = [name, faulty, *(counts[worth] for worth in FAULTY), healthy]
    parts += [counts["healthy, blamed"], counts["likely and wrong"]]
    return f"| {' | '.join(map(str, parts))} |"


if __name__ == "__main__":
    print("\n".join(map(row_of, SETS)))
