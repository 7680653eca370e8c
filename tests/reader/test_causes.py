"""What a line of trouble says has happened, in the words of three kinds of software each."""

import pytest
from corpus import table

from logreader.causes import CAUSES, cause_of
from logreader.levels import WARN, level_of, status_of

EXAMPLES = table("causes.yaml")
BAD = [(name, line) for name, lines in EXAMPLES.items() for line in lines["bad"]]
WELL = [line for lines in EXAMPLES.values() for line in lines["well"]]


def test_every_cause_has_examples_of_three_kinds_of_software_and_five_healthy_lines():
    assert list(EXAMPLES) == [cause.name for _, cause in CAUSES] and len(CAUSES) >= 30
    assert min(len(lines["bad"]) for lines in EXAMPLES.values()) >= 3
    assert min(len(lines["well"]) for lines in EXAMPLES.values()) >= 5


@pytest.mark.parametrize(("name", "line"), BAD)
def test_a_line_of_trouble_tells_its_cause(name, line):
    assert cause_of(line).name == name


def test_what_happened_to_who_speaks_is_trouble_in_a_line_without_a_level():
    own = {cause.name for _, cause in CAUSES if cause.own}
    lines = [line.encode() for name, line in BAD if name in own]
    assert [line for line in lines if level_of(line, status_of(line)) < WARN] == []


def test_healthy_lines_tell_no_cause_at_all():
    assert [(line, cause_of(line)) for line in WELL if cause_of(line).name] == []


@pytest.mark.parametrize(
    "line",
    [
        "ignoring unknown field colour",
        "SENTRY_DSN is not set, using the default",
        "Directory /data/cache does not exist, creating it",
    ],
)
def test_doubtful_words_name_a_cause_and_make_no_line_trouble(line):
    assert level_of(line.encode(), b"") < WARN
    assert cause_of(line).name
