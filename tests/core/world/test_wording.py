"""The varied wording: every section has it, never near what is held out, read without doubt."""

import re
from itertools import product

import pytest
from test_telemetry import eyes

from logtriage.world.call_graph import KINDS
from logtriage.world.faults import FAULTS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from logtriage.world.wording import BOOKS, VARIED_BOOKS, Reading, choices, read_line

BOOK, VARIED = (  # (kind, key, template, every line it stands for)
    [
        (kind, key, template, choices(template))
        for kind, book in books.items()
        for key, templates in book.items()
        for template in templates
    ]
    for books in (BOOKS, VARIED_BOOKS)
)
HELD_OUT = {(kind, key): lines[-1] for kind, book in BOOKS.items() for key, lines in book.items()}
CALLEE = "cart-svc"


def test_every_fault_leaves_evidence_wherever_it_can_occur_at():
    for fault in FAULTS.values():
        for kind in fault.kinds:
            for section, subject in (("proof", fault.name), ("hint", fault.remedy)):
                assert (subject, kind) in BOOKS[section], (
                    f"wording.txt lacks a section [{section} {subject} {kind}]"
                )
    # and every entry keeps a template back for `unseen_wording`
    for section, book in BOOKS.items():
        for key, lines in book.items():
            assert len(set(lines)) == len(lines) >= 2, (
                f"wording.txt: [{section} {' '.join(key)}] needs two lines at least, none twice"
            )
    assert set(BOOKS["normal"]) == set(BOOKS["benign"]) == {(kind,) for kind in KINDS}


def words(template):
    """Its words in lower case, a field being one, without the level."""
    text = re.sub(r"\{\w+\}", "{}", template.split(" ", 1)[1])
    return re.findall(r"\{\}|[a-z0-9_]+", text.lower())


def runs(template, length):
    every = words(template)
    return {tuple(every[i : i + length]) for i in range(len(every) - length + 1)}


def telling(template):
    return {word for word in words(template) if len(word) > 2}


def test_every_section_has_varied_lines_of_its_own():
    assert {kind: set(book) for kind, book in VARIED_BOOKS.items()} == {
        kind: set(book) for kind, book in BOOKS.items()
    }
    sections, lines = {}, {template: ("a split",) for _, _, template, _ in BOOK}
    for kind, key, template, every in VARIED:
        assert not set("<|>") & set("".join(every)), f"{template!r}: choices are <a|b>, not nested"
        sections.setdefault((kind, key), []).extend(every)
        for line in every:
            section = lines.setdefault(re.sub(r"{(?!callee)\w+}", "7", line), (kind, key))
            assert section == (kind, key), f"{line!r} is also a line of {section}"
            fields = re.findall(r"{(\w+)}", line)
            assert fields.count("callee") == (kind == "callee"), line
            assert kind == "callee" or not {"wait", "failures"} & set(fields), line
            assert "  " not in line and len(line.split()) <= 17, f"{line!r} is too long, or gapes"
    for section, every in sections.items():
        assert len(set(every)) == len(every) >= 60, f"{section} needs 60 lines, none of them twice"


def test_varied_lines_stay_away_from_what_is_held_out():
    # Or `unseen_wording` would measure what was trained. Lines of one or two words count whole. Nor
    # may a line say the same with the words in another order. No message shows what is held out.
    kept = {n: set() for n in (1, 2, 3)}
    for line in HELD_OUT.values():
        length = min(3, len(words(line)))
        kept[length] |= runs(line, length)
    for kind, key, _, every in VARIED:
        theirs = telling(HELD_OUT[kind, key])
        for line in every:
            near = any(runs(line, length) & kept[length] for length in kept)
            same = len(theirs) > 2 and len(theirs & telling(line)) >= len(theirs) / 2
            assert not (near or same), f"{line!r} is near a held-out line; write other words"


def test_no_line_can_be_read_in_two_ways():
    # Whatever section it is from: every template that could have printed a line says the same.
    def meaning(kind, key):
        return Reading(kind, CALLEE if kind == "callee" else key[0] if len(key) > 1 else "")

    patterns = []
    for kind, key, template, _ in BOOK:
        pattern = re.escape(template).replace(r"\{callee\}", r"\S+")
        patterns.append((re.compile(re.sub(r"\\{\w+\\}", r"[\\d.]+", pattern)), meaning(kind, key)))
    for (kind, key, template, every), number in product(BOOK + VARIED, ("7", "3.4")):
        right = meaning(kind, key)
        for line in every:
            line = line.replace("{callee}", CALLEE).replace("{n}", "7")  # {n} is one digit
            line = re.sub(r"{\w+}", number, line)
            level, _, text = line.partition(" ")
            assert read_line(f"{level} payment-core {text}") == ("payment-core", right), line
        if template in BOOKS[kind][key]:
            said = {reading for pattern, reading in patterns if pattern.fullmatch(line)}
            # fails or slow: `read_line` tells them apart, nobody needs it
            assert said == {right} or {reading.kind for reading in said} == {"own"}, line


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
    with pytest.raises(ValueError, match="training alone; choose split train, not test"):
        sample_incident("single_crash", "test", 0, varied_wording=True)  # nothing is measured on it
