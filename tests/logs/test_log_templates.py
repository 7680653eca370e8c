"""Templates: what stays of lines when what varies is taken out."""

from logtriage.logs import templates
from logtriage.logs.templates import OTHER, Templates


def test_lines_that_differ_in_what_varies_have_one_template():
    known = Templates()
    first = known.of("connection to 10.0.0.7:5432 timed out after 30 ms")
    assert known.of("connection to 10.0.0.9:5432 timed out after 3000 ms") == first
    assert known.text(first) == "connection to <*> timed out after <*> ms"
    assert known.of("connection to 10.0.0.9:5432 was closed by the peer") != first


def test_words_in_which_lines_of_a_template_differ_become_gaps():
    known = Templates()
    first = known.of("user alice logged in from the office")
    assert known.of("user bob logged in from the office") == first
    assert known.text(first) == "user <*> logged in from the office"


def test_beyond_the_bound_lines_are_others(monkeypatch):
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 3)
    known = Templates()
    words = ("alpha", "beta words", "gamma and words", "delta and some words")
    assert [known.of(one) for one in words] == [1, 2, OTHER, OTHER]
