"""Templates of log lines: what stays when what varies is taken out.

A tree of fixed depth, after Drain (He et al., ICWS 2017): lines of one length in words and with one
first word are compared, and one that agrees with a template in enough words joins it; where they
differ, the template has a gap. Its best known implementation, drain3, has had no release since July
2022; of it we would use this one idea, which is shorter than the code that would call it.
"""

import re

GAP = "<*>"
ALIKE = 0.6  # share of words that agree, from which two lines have one template
WORDS = 30  # of a line, that are looked at
MOST_TEMPLATES = 3_000
MOST_COMPARED = 50  # templates of one length and first word
OTHER = 0  # the template of all lines that come when there are too many
# A word that varies: a number, an address, an identifier, a path with a number in it.
VARIES = re.compile(r"\d|^[0-9a-fA-F]{8,}$|^/.*/|@")
SPLIT = re.compile(r"[\s=,;()\[\]{}\"']+")


class Templates:
    """Lines to templates, which are numbered in the order in which they were met.

    Attributes:
        words: of each template, `GAP` for what varies.
    """

    def __init__(self) -> None:
        self.words: list[list[str]] = [["(other", "lines)"]]
        self._alike: dict[tuple[int, str], list[int]] = {}

    def of(self, text: str) -> int:
        """The template of a line; a new one, when it resembles none that is known. `OTHER` once
        there are `MOST_TEMPLATES`.
        """
        words = [GAP if VARIES.search(word) else word for word in SPLIT.split(text.strip())[:WORDS]]
        first = next((word for word in words if word != GAP), GAP)
        group = self._alike.setdefault((len(words), first), [])
        best, agreed = OTHER, ALIKE * len(words)
        for number in group:
            same = sum(map(str.__eq__, self.words[number], words))
            if same >= agreed:
                best, agreed = number, same + 0.5
        if best != OTHER:
            known = self.words[best]
            for i, word in enumerate(words):
                if known[i] != word:
                    known[i] = GAP
            return best
        if len(self.words) >= MOST_TEMPLATES or len(group) >= MOST_COMPARED:
            return OTHER
        self.words.append(words)
        group.append(len(self.words) - 1)
        return group[-1]

    def text(self, number: int) -> str:
        """A template in words."""
        return " ".join(self.words[number])
