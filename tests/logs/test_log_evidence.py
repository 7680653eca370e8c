"""What a window shows of each service."""

from datetime import UTC, datetime

import pytest

from logtriage.logs.answer import answer_of
from logtriage.logs.evidence import TARGETS, weigh
from logtriage.logs.log import read_text
from logtriage.logs.window import Window

AT = int(datetime(2026, 11, 22, 3, 0, 0, tzinfo=UTC).timestamp())


def log_of(rows, services=()):
    """A log from (second, text) rows."""
    lines = [
        f"{datetime.fromtimestamp(AT + second, UTC):%Y-%m-%d %H:%M:%S} {text}"
        for second, text in sorted(rows)
    ]
    return read_text("\n".join(lines), services)


def window(start, end, after=False):
    usual = (AT + end, AT + 600) if after else (AT, AT + start)
    return Window(AT + start, AT + end, usual, False, 20.0)


def test_counts_are_a_minute_and_against_the_earlier_part():
    rows = [(second, "INFO web-app: ok") for second in range(0, 600, 6)]
    rows += [(second, "ERROR web-app: failed 7") for second in range(300, 360, 5)]
    rows += [(10, "ERROR web-app: failed 3"), (20, "WARN web-app: slow")]
    web = weigh(log_of(rows).tally, window(300, 360))["web-app"]
    assert (web.lines, web.errors, web.warnings) == (22.0, 12.0, 0.0)
    usual = (web.usual_lines, web.usual_errors, web.usual_warnings)
    assert usual == pytest.approx((10.4, 0.2, 0.2))
    (trouble,) = web.troubles
    assert trouble.lines == 12 and trouble.usual == 0.2
    assert trouble.first == AT + 300


def test_who_is_named_is_told_by_the_share_of_lines():
    rows = [(300 + i, "ERROR web-app: call to cart-db failed") for i in range(30)]
    rows += [(300 + i, "ERROR web-app: template missing, sorry") for i in range(10)]
    found = weigh(log_of(rows).tally, window(300, 360))
    assert found["web-app"].names == {"cart-db": pytest.approx(0.75)}
    # It has no line of its own, and is known all the same.
    assert found["cart-db"].mass == 0.0 and found["cart-db"].troubles == []


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("dial tcp: lookup cart-db on 10.0.0.1:53: no such host", "cart-db"),
        ('upstream: "http://basket:8080/x"', "basket"),
        ("refused: jdbc:postgresql://app:secret@orders-db:5432/x", "orders-db"),
        ("could not reach redis.shop.svc.cluster.local:6379", "redis.shop.svc.cluster.local"),
        ("calling price-service timed out", "price-service"),
    ],
)
def test_hosts_in_addresses_are_somebody(text, host):
    assert host in [one for groups in TARGETS.findall(text) for one in groups]


@pytest.mark.parametrize("text", ["at Cart.java:123", "main.py:12", "10.0.0.1:53", "time 03:04:05"])
def test_files_and_numbers_are_nobody(text):
    assert TARGETS.findall(text) == []


def test_who_goes_silent_is_seen():
    rows = [(second, "INFO web-app: ok") for second in range(0, 600, 2)]
    rows += [(second, "INFO cart-db: ok") for second in range(0, 300, 2)]
    found = weigh(log_of(rows).tally, window(300, 600))
    assert found["cart-db"].silent and found["cart-db"].mass > 0.0
    assert not found["web-app"].silent


def test_what_came_after_tells_what_is_usual_where_nothing_came_before():
    rows = [(second, "ERROR web-app: failed") for second in range(0, 60)]
    rows += [(second, "INFO web-app: ok") for second in range(60, 600)]
    web = weigh(log_of(rows).tally, window(0, 60, after=True))["web-app"]
    assert web.errors == 60.0 and web.usual_errors == 0.0 and web.usual_lines == 60.0


def test_causes_weigh_more_than_symptoms():
    rows = [(300 + i, "FATAL cart-db: out of memory") for i in range(20)]
    rows += [(300 + i, "ERROR web-app: upstream timed out") for i in range(20)]
    rows += [(300 + i, "ERROR mail-app: bounced") for i in range(20)]
    found = weigh(log_of(rows).tally, window(300, 360))
    assert found["cart-db"].mass > found["mail-app"].mass > found["web-app"].mass


@pytest.mark.parametrize("level", ["ERROR", "FATAL"])
def test_a_steady_line_is_as_usual_whatever_its_level(level):
    rows = [(second, f"{level} web-app: cannot connect to cart-db") for second in range(0, 600, 6)]
    found = weigh(log_of(rows).tally, window(300, 360))
    assert found["web-app"].troubles == [] and found["web-app"].names == {}


def test_a_steady_fatal_line_beside_an_outage_is_not_blamed():
    rows = [(60 * i, "FATAL a-pod: cannot connect to beta-db") for i in range(60)]
    rows += [(60 * i, "INFO b-pod: ok") for i in range(60)]
    rows += [(60 * i + j, "ERROR b-pod: disk full") for i in range(30, 50) for j in range(10)]
    answer = answer_of(log_of(rows))
    assert answer.root == "b-pod" and answer.suspects[0].share > 0.9
