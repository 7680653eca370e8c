"""What `triage` makes of windows of 5 to 50 lines, cut from incidents of a shop in many formats, as
people paste them: from inside the trouble, and as many from before it.

    PYTHONPATH=.:tests/reader:tests/reader/corpus python -m pasted_windows other

Formats, causes and names of the root are split in halves. The rules were made with `first` in
sight; `other` is for the end.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from hashlib import sha256
from random import Random

from corpus import FORMATS, ROOT, SHOP, Entry, drawn, formatted, table

from logreader.answer import answer_of
from logreader.causes import CAUSES
from logreader.log import read_named
from logreader.sureness import LIKELY

EACH = 8  # windows of a kind and format
ONSET = 45  # the minute before which all is well
MINUTES = {"sick": (47, 55), "calm": (0, ONSET)}
STARTS = SHOP["locked"]["starts"]
EXAMPLES = table("causes.yaml")
OWN = [cause.name for _, cause in CAUSES if cause.own]
NAMES = {
    "first": ("orders-db", "postgres", "stock-api"),
    "other": ("ledger", "redis-main", "mysql"),
}


def half_of(half: str, names: list[str]) -> list[str]:
    """The names that belong to the half `first` or `other`."""
    parity = {"first": 0, "other": 1}[half]
    return [name for name in names if sha256(name.encode()).digest()[0] % 2 == parity]


@cache
def incident(cause: str, root: str) -> list[Entry]:
    """The shop's incident, with this cause in its database, which has this name."""
    flows = [
        [part.replace(": too many clients", "") if isinstance(part, str) else part for part in flow]
        for flow in SHOP["locked"]["flows"]
        if flow[0] != ROOT or flow[2] < ONSET
    ]
    flows.append([ROOT, "ERROR", ONSET, 55, 20, *EXAMPLES[cause]["bad"][:3]])
    return [
        entry._replace(
            service=entry.service.replace(ROOT, root), text=entry.text.replace(ROOT, root)
        )
        for entry in drawn(flows, STARTS, Random(f"incident/{cause}"))
    ]


def windows(half: str) -> Iterator[tuple[str, str, list[Entry], str]]:
    """Yield windows of a half: `sick` or `calm`, the format, the entries, and the root."""
    names = [name for name in FORMATS if "{" not in FORMATS[name]["file"]]
    for name in half_of(half, names):
        random = Random(f"windows/{name}")
        for kind in ("sick", "calm") * EACH:
            cause, root = random.choice(half_of(half, OWN)), random.choice(NAMES[half])
            begin, end = (STARTS + timedelta(minutes=minute) for minute in MINUTES[kind])
            entries = [entry for entry in incident(cause, root) if begin <= entry.at < end]
            first, most = random.randrange(len(entries) - 10), random.randrange(5, 51)
            lines, cut = 0, []
            for entry in entries[first:]:
                lines += entry.text.count("\n") + 1
                if lines > most:
                    break
                cut.append(entry)
            yield kind, name, cut, root


def is_answerable(entries: list[Entry], root: str) -> bool:
    """Whether the root tells what has happened to it, or somebody who complains names it."""
    texts = {text for lines in EXAMPLES.values() for text in lines["bad"]}
    return any(
        entry.text in texts if entry.service == root else root in entry.text
        for entry in entries
        if entry.level != "INFO"
    )


def measure(half: str) -> Counter[str]:
    """Count windows by kind, and what was right or wrong about the answers."""
    counts: Counter[str] = Counter()
    for kind, name, entries, root in windows(half):
        if kind == "sick" and not is_answerable(entries, root):
            counts["not answerable"] += 1
            continue
        answer = answer_of(read_named(formatted(FORMATS[name], entries)))
        first = answer.suspects[0] if answer.suspects else None
        right = kind == "sick" and is_root(answer.root, root)
        counts[kind] += 1
        counts[f"{kind}, named"] += bool(answer.root)
        counts["likely and wrong"] += answer.sure == LIKELY and not right
        if kind == "sick":
            counts["sick, named rightly"] += right
            counts["sick, first suspect right"] += bool(first and is_root(first.service, root))
            counts["sick, cause shown"] += right and bool(first and first.cause)
    return counts


def is_root(name: str, root: str) -> bool:
    """Whether this is the root's name, or that of its only replica."""
    return name in (root, f"{root}-1", f"{root}_1")


if __name__ == "__main__":
    for row, count in sorted(measure(sys.argv[1]).items()):
        print(f"{row}: {count}")
