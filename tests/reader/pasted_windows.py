"""What `triage` makes of windows of 5 to 50 lines, cut from one incident in many formats, as people
paste them: from inside the trouble, and as many from before it.

    PYTHONPATH=.:tests/reader:tests/reader/corpus python -m pasted_windows other

Formats are split in halves. The rules were made with `first` in sight; `other` is for the end.
"""

import sys
from collections import Counter
from hashlib import sha256
from random import Random

from corpus import FORMATS, ROOT, in_format

from logreader.answer import LIKELY, answer_of
from logreader.log import read_named

EACH = 4  # windows of a kind and format
LEAST = 500  # lines of a file that windows are cut from
NEWEST_FIRST = ("kibana-csv",)


def formats(half: str) -> list[str]:
    """Formats that write one file of lines in order of time, of the half `first` or `other`."""
    parity = {"first": 0, "other": 1}[half]
    kept = [name for name in FORMATS if sha256(name.encode()).digest()[0] % 2 == parity]
    return [name for name in kept if name not in NEWEST_FIRST and len(in_format(name)) == 1]


def measure(half: str) -> Counter[str]:
    """Count windows by kind, and what was right or wrong about the answers."""
    counts: Counter[str] = Counter()
    for name in formats(half):
        ((file, body),) = in_format(name).items()
        lines, random = body.splitlines(keepends=True), Random(f"windows/{name}")
        for kind in ("sick", "calm") * EACH if len(lines) >= LEAST else ():
            size = random.randrange(5, 51)
            reach = (0.85, 1.0) if kind == "sick" else (0.0, 0.6)
            start = random.randrange(*(int(share * len(lines)) - size * (share == 1.0)
                                       for share in reach))  # fmt: skip
            window = b"".join(lines[start : start + size])
            if kind == "sick" and ROOT.encode() not in window:
                counts["not answerable"] += 1
                continue
            answer = answer_of(read_named({file: window}))
            counts[kind] += 1
            counts[f"{kind}, named"] += bool(answer.root)
            counts[f"{kind}, named rightly"] += answer.root.startswith(ROOT)
            first = answer.suspects[0] if answer.suspects else None
            counts[f"{kind}, first suspect right"] += bool(first and first.service.startswith(ROOT))
            wrong = kind == "calm" or not answer.root.startswith(ROOT)
            counts["likely and wrong"] += wrong and answer.sure == LIKELY
            causes = answer.root.startswith(ROOT) and first is not None and bool(first.cause)
            counts[f"{kind}, cause shown"] += causes
    return counts


if __name__ == "__main__":
    for row, count in sorted(measure(sys.argv[1]).items()):
        print(f"{row}: {count}")
