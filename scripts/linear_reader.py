"""How well a linear classifier reads held-out lines that tell of a fault, by how many lines of the
varied wording it learned from. Needs scikit-learn, which the project does not install.

    python scripts/linear_reader.py
"""

import re
from random import Random

from logtriage.world.faults import FAULTS
from logtriage.world.wording import BOOKS, VARIED_BOOKS, Key, choices

LEFT_OUT = 5  # templates of each varied section, to measure on
OF_A_FAULT = ("proof", "hint")
Line = tuple[str, str, str]  # text, what it says, kind of line


def meaning(kind: str, key: Key) -> str:
    if kind == "proof":
        return f"{FAULTS[key[0]].remedy}/{FAULTS[key[0]].team}"
    return key[0] if kind == "hint" else "nothing"


def filled(template: str, random: Random) -> str:
    def figure(field: re.Match[str]) -> str:
        if field[1] == "callee":
            return "billing"
        return str(random.randint(1, 9) if field[1] == "n" else random.randint(10, 99))

    return re.sub(r"{(\w+)}", figure, template)


def lines(of_a_section: int) -> tuple[list[Line], list[Line], list[Line]]:
    """Lines to learn from, of templates left out, and held-out ones."""
    random, learned, left_out, held_out = Random(0), [], [], []
    for kind, book in BOOKS.items():
        for key, templates in book.items():
            says = meaning(kind, key)
            held_out.append((filled(templates[-1], random), says, kind))
            learned += [(filled(t, random), says, kind) for t in templates[:-1] for _ in range(4)]
            varied = list(VARIED_BOOKS[kind][key])
            Random(f"{key}").shuffle(varied)
            parts = (varied[:LEFT_OUT], left_out, 8), (varied[LEFT_OUT:], learned, of_a_section)
            for part, into, count in parts:
                for _ in range(count):
                    text = filled(random.choice(choices(random.choice(part))), random)
                    into.append((text, says, kind))
    return learned, left_out, held_out


def main() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    for of_a_section in (10, 30, 60, 150, 400):
        learned, *others = lines(of_a_section)
        for name, options in (
            ("words", {"ngram_range": (1, 2)}),
            ("parts of words", {"analyzer": "char_wb", "ngram_range": (2, 5)}),
        ):
            vectors = TfidfVectorizer(sublinear_tf=True, **options)
            classifier = LogisticRegression(C=30, max_iter=200)
            classifier.fit(
                vectors.fit_transform([text for text, *_ in learned]),
                [says for _, says, _ in learned],
            )
            shares = []
            for measured in others:
                asked = [line for line in measured if line[2] in OF_A_FAULT]
                answers = classifier.predict(vectors.transform([text for text, *_ in asked]))
                right = [
                    answer == says for answer, (_, says, _) in zip(answers, asked, strict=True)
                ]
                shares.append(round(sum(right) / len(right), 3))
            print(len(learned), name, "templates left out, held-out lines:", *shares, flush=True)


if __name__ == "__main__":
    main()
