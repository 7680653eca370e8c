"""Times as logs write them."""

from datetime import UTC, datetime
from itertools import product

import pytest

from logreader import times
from logreader.log import read_named
from logreader.times import DAY, FORMS, Clock, Stamps, find_forms, number_to_second, time_of

AT = int(datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC).timestamp())
NO_YEAR = int(datetime(2000, 11, 22, 3, 4, 5, tzinfo=UTC).timestamp())
NO_DAY = 3 * 3600 + 4 * 60 + 5
CLOCKS = [Clock(form) for form in FORMS]


# Lines, by the number of the form that reads them.
WHOLE = """
0 2026-11-22T03:04:05Z x ~ 2026-11-22 03:04:05,123 INFO x ~ 2026-11-22T05:04:05.123456+02:00 x
0 2026-11-22 03:04:05.123 UTC [42] x ~ 2026-11-21 22:04:05 EST x ~ [2026-11-21T22:04:05-0500] x
0 2026/11/22 03:04:05 [error] 3#3: x
1 10.0.0.1 - - [22/Nov/2026:04:04:05 +0100] "GET / HTTP/1.1" 200 1 ~ 22-Nov-2026 03:04:05.123 x
1 4711:M 22 Nov 2026 03:04:05.123 * Ready
2 [Sun Nov 22 03:04:05 2026] [error] x ~ Sun Nov 22 03:04:05 UTC 2026 x
3 Nov 22, 2026 3:04:05 AM x ~ Nov 22, 2026 @ 03:04:05.123 x
3 nov. 22, 2026 3:04:05 AM x
4 11/22/2026 3:04:05 AM x
5 22/11/2026 03:04:05 x
7 26/11/22 03:04:05 INFO executor.Executor: x
11 1795316645.123 x ~ ts=1795316645123 x ~ 1795316645123456789 x
0 nova.log.1.2026-11-21_13:53:08 2026-11-22 03:04:05.008 INFO x
2 [Sun Nov 22 03:04:05.123456 2026] [core:error] x
6 22.11.2026 03:04:05,123 x
12 20261122-03:04:05:380|store| begun at 1513958400000 ~ 20261122 03:04:05 x
13 261122 030405 148 INFO dfs.DataNode: x
14 2026-11-22_03:04:05.11 FATAL: x"""
PARTS = """
8 Nov 22 03:04:05 host app[1]: x
9 E1122 03:04:05.123456       1 server.go:12] x
10 03:04:05.123 INFO x"""


def cases(text):
    rows = [row.split(" ", 1) for row in text.strip().split("\n")]
    return [pytest.param(int(row[0]), line) for row in rows for line in row[1].split(" ~ ")]


def test_every_form_has_an_example():
    assert {case.values[0] for case in cases(WHOLE + PARTS)} == set(range(len(FORMS)))


@pytest.mark.parametrize(("number", "line"), cases(WHOLE))
def test_a_time_is_read_in_its_zone(number, line):
    (form,) = find_forms([line.encode()])
    assert FORMS.index(form) == number and form.period == 0
    assert Clock(form).read(line.encode()) == AT


@pytest.mark.parametrize(("number", "line"), cases(PARTS))
def test_a_time_without_a_date_counts_from_2000(number, line):
    (form,) = find_forms([line.encode()])
    assert FORMS.index(form) == number
    started = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp())
    expected = started + NO_DAY if form.period == DAY else NO_YEAR
    assert Clock(form).read(line.encode()) == expected


@pytest.mark.parametrize(
    "line",
    ["2026-13-45T99:99:99Z x", "no time at all", "1:2:3", "", "id 17953166451", "v1.1795316645"],
)
def test_what_is_no_time_is_none(line):
    assert find_forms([line.encode()]) == []


def test_a_minute_in_another_zone_is_another_minute():
    clock = Clock(FORMS[0])
    zones = (b"+00:00", b"+01:00", b"-05:30", b" PST", b"Z", b"")
    shifts = [clock.read(b"2026-11-22T03:04:05" + zone) - AT for zone in zones]
    assert shifts == [0, -3600, 19_800, 28_800, 0, 0]


def seconds(form, lines, near=None):
    clock = Clock(form, near)
    return [clock.read(line.encode()) for line in lines]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("23:59:58.100", "00:00:01.200", "00:00:03"), (86_398, 86_401, 86_403)),
        # A line that comes late is of the day before.
        (("23:59:59", "00:00:01", "23:59:58", "00:00:02"), (86_399, 86_401, 86_398, 86_402)),
        # One that strays leaves the clock alone.
        (("13:00:00", "09:00:07", "13:01:00"), (46_800, 32_407, 46_860)),
        # After a pause the day turns.
        (("18:00:00", "03:00:00", "03:00:05"), (64_800, 97_200, 97_205)),
    ],
)
def test_a_time_of_day_passes_midnight(lines, expected):
    (form,) = find_forms([b"03:04:05 INFO x"])
    first = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp())
    assert [second - first for second in seconds(form, lines)] == list(expected)


def test_a_year_that_is_not_written_turns():
    first, last = "Dec 31 23:59:59", "Jan  1 00:00:00"
    december, january, again = seconds(FORMS[8], (first, last, first))
    assert december == january - 1 and again == december


FRENCH = "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."
GERMAN = "Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez"
SPANISH = "ene feb mar abr may jun jul ago sep oct nov dic"
ITALIAN = "gen feb mar apr mag giu lug ago set ott nov dic"


@pytest.mark.parametrize("months", [FRENCH, GERMAN, SPANISH, ITALIAN])
def test_months_of_other_languages_are_months(months):
    for number, month in enumerate(months.split(), start=1):
        whole, short = f"22 {month} 2026 03:04:05 INFO x", f"{month} 22 03:04:05 web cart[7]: x"
        for line, year in ((whole.encode(), 2026), (short.encode(), 2000)):
            (form,) = find_forms([line])
            at = datetime(year, number, 22, 3, 4, 5, tzinfo=UTC)
            assert Clock(form).read(line) == int(at.timestamp())


@pytest.mark.parametrize("hours", [-5, 0, 7])
def test_a_time_of_day_takes_its_date_from_a_time_near_it(hours):
    # Whichever of two files began earlier.
    near = AT + hours * 3600
    assert seconds(FORMS[10], ["03:04:05 x", "03:04:06 x"], near) == [AT, AT + 1]


def test_a_time_of_day_beside_dated_files_is_of_their_day():
    dated = "".join(f"2026-11-22 03:04:{i:02d} INFO up {i}\n" for i in range(20))
    bare = "".join(f"03:04:{i:02d} ERROR no {i}\n" for i in range(20))
    tally = read_named({"web.log": dated.encode(), "cart.log": bare.encode()}).tally
    said = {(tally.services[shape.service], second) for second, shape, _ in tally.lines()}
    assert said == {*product(("cart", "web"), range(AT - 5, AT + 15))}


def test_the_form_of_most_lines_comes_first_and_a_rare_one_is_left_out():
    lines = [b"2026-11-22 03:04:05 x"] * 30 + [b"Nov 22 03:04:05 h y"] * 70
    assert [FORMS.index(form) for form in find_forms(lines)] == [8, 0]
    assert len(find_forms([*lines, b"22.11.2026 03:04:05 rare"])) == 2


@pytest.mark.parametrize(
    ("days", "form"),
    [
        (("11/12/2026", "11/13/2026"), times.MONTH_FIRST),
        (("12/11/2026", "13/11/2026"), times.DAY_FIRST),
        (("10/11/2026", "11/11/2026"), times.DAY_FIRST),  # days, or else months, apart
        (("11/10/2026", "11/11/2026"), times.MONTH_FIRST),
    ],
)
def test_whether_the_month_stands_first_is_told_by_all_lines(days, form):
    assert find_forms([f"{day} 03:04:05 x".encode() for day in days]) == [form]


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_seconds_or_finer(unit):
    assert number_to_second(AT * unit) == AT
    assert time_of(AT * unit, CLOCKS) == time_of(str(AT * unit), CLOCKS) == AT


@pytest.mark.parametrize("value", [-5, 0, 42, float("inf"), float("nan"), 1e300, None, True, []])
def test_other_values_are_no_times(value):
    assert {time_of(form, CLOCKS) for form in (value, str(value), "x" * 500, "²")} == {-1}


@pytest.mark.parametrize(
    ("period", "text"),
    [(0, "2026-11-22 03:04:05"), (DAY, "03:04:05"), (365 * DAY, "Nov 22 03:04:05")],
)
def test_an_answer_tells_no_more_of_a_time_than_the_log(period, text):
    assert times.format_time(AT, period) == text


@pytest.mark.parametrize("moved", ["", "web: "])
def test_a_time_is_read_where_it_stands_and_in_its_own_zone(moved):
    # The place and the zone of the line before are no more than a guess.
    zones = {"+00:00": 0, "+01:00": -3600, "Z": 0, "": 0, "-05:00": 18_000}
    for part in ("", ".123", ".123456"):
        lines = [
            f"{moved * (i % 2)}2026-11-22T03:04:05{part}{zone} x".encode()
            for zone in zones
            for i in range(3)
        ]
        expected = [AT + shift for shift in zones.values() for _ in range(3)]
        assert Stamps([FORMS[0]], None).seconds([*lines, b"\tat x"]) == [*expected, times.MISSING]


def test_a_zone_that_no_table_has_is_no_half_of_a_day():
    lines = [b"Nov 22 03:04:05 AMT 2026 web: hi"] * 5
    forms = find_forms(lines)
    assert Stamps(forms, None).seconds(lines) == [AT] * 5


@pytest.mark.parametrize("zone", ["+0500", "+05:00"])
def test_a_zone_after_a_blank_is_its_own_line_s(zone):
    rows = [b"2026-11-22 03:04:05 INFO a", f"2026-11-22 03:04:05 {zone} INFO a".encode()]
    read = Stamps([FORMS[0]], None).seconds([*rows, rows[0]])
    assert read == [AT, AT - 5 * 3600, AT]
