"""The varied wording: every section has it, never near what is held out, read without doubt."""

import re
import string
from itertools import product

import pytest
from test_telemetry import eyes

from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS
from logtriage.world.wording import BOOKS, VARIED_BOOKS, Reading, read_line

TEMPLATES = [  # (kind, key, template, whether it is varied)
    (kind, key, template, books is VARIED_BOOKS)
    for books in (BOOKS, VARIED_BOOKS)
    for kind, book in books.items()
    for key, templates in book.items()
    for template in templates
]
HELD_OUT = {(kind, key): lines[-1] for kind, book in BOOKS.items() for key, lines in book.items()}
CALLEE = "cart-svc"


def words(template):
    """Its words in lower case, a field being one, without the level."""
    text = re.sub(r"\{\w+\}", "{}", template.split(" ", 1)[1])
    return re.findall(r"\{\}|[a-z0-9_]+", text.lower())


def runs(template, length):
    found = words(template)
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def telling(template):
    return {word for word in words(template) if len(word) > 2}


def test_every_section_has_varied_lines_of_its_own():
    assert {kind: set(book) for kind, book in VARIED_BOOKS.items()} == {
        kind: set(book) for kind, book in BOOKS.items()
    }
    ours = {template for _, _, template, varied in TEMPLATES if not varied}
    for kind, book in VARIED_BOOKS.items():
        for key, templates in book.items():
            assert 4 <= len(set(templates)) == len(templates) <= 8, (
                f"wording_varied.txt: [{kind} {' '.join(key)}] needs 4 to 8 different lines"
            )
            assert not ours & set(templates), (kind, key)


def test_varied_lines_stay_away_from_what_is_held_out():
    # Or `unseen_wording` would measure what was trained. Lines of one or two words count whole.
    for held_out in HELD_OUT.values():
        length = min(3, len(words(held_out)))
        kept = runs(held_out, length)
        for _, _, template, varied in TEMPLATES:
            assert not varied or not kept & runs(template, length), (
                f"{template!r} shares {length} words in a row with {held_out!r}; write other words"
            )
    # Nor may a line say the same with the words in another order.
    for kind, key, template, varied in TEMPLATES:
        kept = telling(HELD_OUT[kind, key])
        if varied and len(kept) > 2:
            assert len(kept & telling(template)) < len(kept) / 2, (template, HELD_OUT[kind, key])


def filled(template, number):
    values = {name: number for _, name, _, _ in string.Formatter().parse(template) if name}
    return template.format(**{**values, "callee": CALLEE, "n": "7"})  # {n} is one digit


def test_no_line_can_be_read_in_two_ways():
    # Whatever book it is from: every template that could have printed a line says the same.
    patterns = []
    for kind, key, template, _ in TEMPLATES:
        pattern = "".join(
            re.escape(text) + {None: "", "callee": r"\S+"}.get(field, r"[\d.]+")
            for text, field, _, _ in string.Formatter().parse(template)
        )
        subject = CALLEE if kind == "callee" else key[0] if len(key) > 1 else ""
        patterns.append((re.compile(pattern), Reading(kind, subject)))
    for (_, right), (_, _, template, _) in zip(patterns, TEMPLATES, strict=True):
        for number in ("7", "12", "3.4", "100"):
            line = filled(template, number)
            said = {(one.kind, one.subject) for pattern, one in patterns if pattern.fullmatch(line)}
            if right.kind == "own":  # fails or slow: `read_line` tells them apart, nobody needs it
                said = {(kind, "") for kind, _ in said}
                assert said == {("own", "")}, line
            else:
                assert said == {(right.kind, right.subject)}, line
            level, _, text = line.partition(" ")
            assert read_line(f"{level} payment-core {text}") == ("payment-core", right), line


def test_varied_wording_changes_the_words_alone():
    usual, varied = set(), set()
    for task, index in product(TASKS, range(40)):
        plain, other = (
            sample_incident(task, "train", index, varied_wording=choice) for choice in (False, True)
        )
        assert plain == sample_incident(task, "train", index) and plain != other
        for field in ("injection", "severity", "arrival"):
            assert getattr(plain, field) == getattr(other, field)
        here, there = eyes(plain), eyes(other)
        assert (here.alerts(), here.metrics()) == (there.alerts(), there.metrics())
        for telemetry, seen in ((here, usual), (there, varied)):
            for position in range(len(plain.topology.names)):
                for line in telemetry.detail(position):
                    service, reading = read_line(line)
                    assert service == plain.topology.names[position] and reading.kind != "unknown"
                    seen.add(re.sub(r"[\d.]+|\S+-\S+", "#", line))
    assert not usual & varied
    assert len(varied) > 1.5 * len(usual)


def test_nothing_is_measured_in_varied_wording():
    for split in set(SPLITS) - {"train"}:
        with pytest.raises(ValueError, match=f"training alone; choose split train, not {split}"):
            sample_incident("single_crash", split, 0, varied_wording=True)
