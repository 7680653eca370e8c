"""What a window shows of each service."""

import pytest
from shop_log import START, calm, log_of, trouble

from logreader.evidence import MOST_TARGETS, changes, weigh
from logreader.window import Window


def weighed(rows, start=300, end=360, usual=None, known=()):
    """The evidence of a window of a log of ten minutes."""
    first, last = usual or (0, start)
    window = Window(START + start, START + end, (START + first, START + last), False, 20.0)
    return weigh(log_of(rows + calm(("mail",), end=600), known).tally, window, known)


def wrong(service, text, level="ERROR", start=300, end=360):
    return trouble(service, text, level, start, end)


def test_counts_are_a_minute_and_against_the_earlier_part():
    rows = calm(("web-app",), end=600, step=6) + wrong("web-app", "failed {n}")
    rows += [(10, "ERROR", "web-app", "failed 3"), (20, "WARN", "web-app", "slow")]
    web = weighed(rows)["web-app"]
    assert (web.lines, web.errors, web.warnings) == (22.0, 12.0, 0.0)
    usual = (web.usual_lines, web.usual_errors, web.usual_warnings)
    assert usual == pytest.approx((10.4, 0.2, 0.2))
    (trouble,) = web.troubles
    assert (trouble.lines, trouble.usual, trouble.first) == (12, 0.2, START + 300)


def test_who_is_named_is_told_by_the_share_of_what_is_wrong():
    rows = wrong("web-app", "call to cart-db failed") + wrong("web-app", "no template", end=320)
    evidence = weighed(rows)
    named, other = evidence["web-app"].troubles
    share = named.mass / (named.mass + other.mass)
    assert evidence["web-app"].names == {"cart-db": pytest.approx(share)}
    # It has no line of its own, and is known all the same.
    assert evidence["cart-db"].mass == 0.0 and evidence["cart-db"].troubles == []


def test_a_symptom_that_names_nobody_is_of_whom_the_other_lines_name():
    rows = wrong("web-app", "cart-db:5432 refused it") + wrong("web-app", "request timed out")
    assert weighed(rows)["web-app"].names == {"cart-db": pytest.approx(1.0)}


@pytest.mark.parametrize(
    "text",
    [
        "out of memory while answering mail",
        "Apparent connection leak detected, mail late",
        "memory resource limit alarm set, mail rejected",
        "flood stage disk watermark exceeded, mail rejected",
        "rabbit node down, mail lost",
        "Could not resolve placeholder, mail fails",
        "jar signature of mail invalid, it fails",
        "evicts entries before first read, mail slow",
    ],
)
def test_a_cause_at_home_blames_nobody_in_its_words(text):
    (trouble,) = weighed(wrong("cart", text))["cart"].troubles
    assert trouble.cause and not trouble.symptom and not trouble.names


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cart failed", ["cart"]),
        ("no answer of cart", ["cart"]),
        ("the order of cart is stored", []),  # which is no complaint
        ("cannot reach http://cart:80/x, out of memory", ["cart"]),  # a call, whatever else
    ],
)
def test_whom_a_line_complains_of(text, named):
    evidence = weighed(wrong("web", text) + calm(("cart",), end=600))
    assert list(evidence["web"].names) == named


@pytest.mark.parametrize(
    ("second", "text", "expected"),
    [(290, "flag new-prices on", 1), (100, "flag new-prices on", 0), (290, "{n} sent", 0)],
)
def test_a_change_shortly_before_is_told(second, text, expected):
    rows = [*calm(end=600), (second, "INFO", "web", text)]
    window = Window(START + 300, START + 360, (START, START + 300), False, 20.0)
    changed = changes(log_of(rows).tally, window)
    assert changed == ({"web": f"INFO web: {text}"} if expected else {})


def test_who_is_only_named_is_bounded():
    hosts = [f"{first}{second}-host" for first in "abcdefghij" for second in "abcdefghij"]
    rows = [row for host in hosts for row in wrong("web", f"connection to {host}:5432 refused")]
    assert 50 < len(weighed(rows)) <= MOST_TARGETS + 2


@pytest.mark.parametrize(("step", "silent"), [(2, True), (60, False)])
def test_who_goes_silent_is_seen_if_it_used_to_say_much(step, silent):
    evidence = weighed(calm(("cart-db",), end=300, step=step), end=600)
    assert evidence["cart-db"].silent == silent == (evidence["cart-db"].mass > 0.0)
    assert not evidence["mail"].silent


def test_what_came_after_tells_what_is_usual_where_nothing_came_before():
    rows = wrong("web", "failed", start=0, end=60) + calm(("web",), 60, 600, 1)
    web = weighed(rows, 0, 60, usual=(60, 600))["web"]
    assert (web.errors, web.usual_errors, web.usual_lines) == (12.0, 0.0, 60.0)


def test_causes_weigh_more_than_symptoms():
    rows = wrong("cart-db", "out of memory") + wrong("web", "upstream timed out")
    evidence = weighed(rows + wrong("feed", "bounced"))
    assert evidence["cart-db"].mass > evidence["feed"].mass > evidence["web"].mass


@pytest.mark.parametrize("level", ["WARN", "ERROR", "FATAL"])
def test_a_steady_line_is_as_usual_whatever_its_level(level):
    evidence = weighed(wrong("web", "cannot connect to cart-db", level, 0, 600))["web"]
    assert evidence.troubles == [] and evidence.names == {}
