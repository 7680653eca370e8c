"""Times as logs write them."""

from datetime import UTC, datetime

import pytest

from logtriage.logs import times
from logtriage.logs.times import Clock, find_stamp, number_to_second, told

AT = int(datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC).timestamp())
NO_YEAR = int(datetime(2000, 11, 22, 3, 4, 5, tzinfo=UTC).timestamp())


def second(line):
    stamp = find_stamp([line])
    found = stamp.pattern.search(line)
    return Clock(stamp).at(found[1], found[2], found[3])


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-22T03:04:05Z x",
        b"2026-11-22 03:04:05,123 INFO x",
        b"2026-11-22T05:04:05.123456+02:00 x",
        b"2026-11-22 03:04:05.123 UTC [42] ERROR: x",
        b"[2026-11-21T22:04:05-0500] x",
        b"2026/11/22 03:04:05 [error] 3#3: x",
        b'10.0.0.1 - - [22/Nov/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 1',
        b"[Sun Nov 22 03:04:05.123456 2026] [core:error] x",
        b"20261122-03:04:05:123|Step|x",
        b"261122 030405 148 INFO dfs.DataNode: x",
        b"26/11/22 03:04:05 INFO executor.Executor: x",
        b"nova.log.1.2026-11-21_13:53:08 2026-11-22 03:04:05.008 INFO x",
    ],
)
def test_a_time_is_read_in_its_zone(line):
    assert second(line) == AT


@pytest.mark.parametrize(
    "line",
    [
        b"Nov 22 03:04:05 host app[1]: x",
        b"E1122 03:04:05.123456       1 server.go:12] x",
        b"11-22 03:04:05.123  1702  2395 D WindowManager: x",
    ],
)
def test_a_time_without_a_year_counts_from_2000(line):
    assert second(line) == NO_YEAR


def test_a_time_of_day_passes_midnight():
    lines = [b"23:59:58.100 INFO x", b"00:00:01.200 INFO y", b"00:00:03 INFO z"]
    stamp = find_stamp(lines)
    clock = Clock(stamp)
    seconds = [clock.at(*stamp.pattern.search(line).groups()) for line in lines]
    assert seconds == [86_398, 86_401, 86_403] and told(seconds[1], stamp.dated) == "00:00:01"


def times_of_day(*lines):
    """Hour, minute and second of each from midnight, as one clock reads them."""
    stamp = find_stamp([b"00:00:00 INFO x"])
    clock = Clock(stamp)
    return [clock.at(*stamp.pattern.search(line).groups()) for line in lines]


def test_one_stray_time_moves_nothing():
    # All of the log after it was read as of the next day.
    lines = [b"13:%02d:00" % minute for minute in range(60)]
    lines.insert(30, b"00:00:07")
    seconds = times_of_day(*lines)
    assert seconds[-1] == 13 * 3600 + 59 * 60 and max(seconds) - min(seconds) < 3600


def test_one_that_strays_shortly_before_midnight_moves_nothing():
    assert times_of_day(b"23:30:00", b"00:00:07", b"23:31:00")[-1] == 23 * 3600 + 31 * 60


def test_lines_that_come_late_over_midnight_are_of_the_day_before():
    lines = (b"23:59:59", b"00:00:01", b"23:59:58", b"00:00:02")
    assert times_of_day(*lines) == [86_399, 86_401, 86_398, 86_402]


def test_after_a_long_pause_the_day_turns_when_the_next_line_agrees():
    seconds = times_of_day(b"18:00:00", b"03:00:00", b"03:00:05", b"16:00:00")
    assert seconds[2:] == [86_400 + 10_805, 86_400 + 57_600]


def test_a_year_that_is_not_written_turns():
    lines = [b"Dec 31 23:59:59 h a: x", b"Jan  1 00:00:00 h a: y"]
    clock = Clock(find_stamp(lines))
    first, next_one = (clock.at(*clock.stamp.pattern.search(line).groups()) for line in lines)
    assert next_one == first + 1


@pytest.mark.parametrize("line", [b"2026-13-45T99:99:99Z x", b"no time at all", b"1:2:3", b""])
def test_what_is_no_time_is_none(line):
    assert find_stamp([line]) is None


def test_minutes_are_parsed_once(monkeypatch):
    # It is what makes reading fast.
    parsed = []
    stamp = times.STAMPS[0]
    counting = times.Stamp(
        stamp.pattern, lambda *groups: parsed.append(groups) or stamp.parse(*groups)
    )
    clock = Clock(counting)
    assert [clock.at(b"2026-11-22T03:04", b"%02d" % i, b"Z") for i in range(60)][5] == AT
    assert len(parsed) == 1


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_seconds_or_finer(unit):
    assert number_to_second(AT * unit) == AT
    assert number_to_second(-5) == number_to_second(0) == number_to_second(42) == -1
