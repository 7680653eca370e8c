"""How much of the held-out wording could be read by its words alone?

A naive Bayes reader learns which words stand in which section, from the wording of `train` and the
varied one, and reads the held-out last line of every section; kind of service given. `known` is the
share of a line's words that its own section has elsewhere.
"""

import math
import re
from collections import Counter, defaultdict

import numpy as np

from logtriage.world.wording import BOOKS, VARIED_BOOKS, choices

QUIET = ("normal", "benign", "own")  # none of these is evidence of a cause


def words(template):
    return {one.lower() for one in re.findall(r"[A-Za-z]{3,}", re.sub(r"{\w+}", "", template))}


def meaning(section):
    kind, key = section
    return "quiet" if kind in QUIET else (kind, key[0])


learned = defaultdict(Counter)
for kind, book in BOOKS.items():
    for key, templates in book.items():
        for template in templates[:-1]:
            learned[kind, key].update(words(template.partition(" ")[2]))
        for template in VARIED_BOOKS[kind][key]:
            versions = choices(template)[:200]
            for version in versions:
                for word in words(version.partition(" ")[2]):
                    learned[kind, key][word] += 1 / len(versions)
known_words = {word for counts in learned.values() for word in counts}

found = defaultdict(list)
for (kind, key), counts in learned.items():
    line = words(BOOKS[kind][key][-1].partition(" ")[2])
    candidates = [section for section in learned if section[1][-1] == key[-1]]

    def evidence(section):
        own = learned[section]
        total = sum(own.values()) + 0.1 * len(known_words)
        return sum(math.log((own[word] + 0.1) / total) for word in line & known_words)

    read = max(candidates, key=evidence)
    known = len([word for word in line if counts[word]]) / max(1, len(line))
    found[kind].append((meaning(read) == meaning((kind, key)), known))
for kind, rows in found.items():
    right, known = np.mean(rows, axis=0)
    print(f"{kind:7} {len(rows):3} lines, read rightly {right:.2f}, words known {known:.2f}")
