"""Times as logs write them."""

from datetime import UTC, datetime

import pytest

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


@pytest.mark.parametrize(
    "lines, expected",
    [
        (("23:59:58.100", "00:00:01.200", "00:00:03"), (86_398, 86_401, 86_403)),
        # One stray time counts as the one before it.
        (("13:00:00", "00:00:07", "13:01:00"), (46_800, 46_800, 46_860)),
        (("23:30:00", "00:00:07", "23:31:00"), (84_600, 86_407, 84_660)),
        # Lines that come late are of the day before.
        (("23:59:59", "00:00:01", "23:59:58", "00:00:02"), (86_399, 86_401, 86_398, 86_402)),
        # After a long pause the day turns when the next line agrees.
        (("18:00:00", "03:00:00", "03:00:05", "16:00:00"), (64_800, 64_800, 97_205, 144_000)),
    ],
)
def test_a_time_of_day_passes_midnight(lines, expected):
    stamp = find_stamp([b"00:00:00 INFO x"])
    clock = Clock(stamp)
    found = [clock.at(*stamp.pattern.search(f"{line} INFO x".encode()).groups()) for line in lines]
    assert found == list(expected)
    assert told(86_401, stamp.dated) == "00:00:01"


def test_a_year_that_is_not_written_turns():
    clock = Clock(find_stamp([b"Dec 31 23:59:59 h a: x"]))
    first, second = (
        clock.at(*clock.stamp.pattern.search(line).groups())
        for line in (b"Dec 31 23:59:59 h a: x", b"Jan  1 00:00:00 h a: y")
    )
    assert second == first + 1


@pytest.mark.parametrize("line", [b"2026-13-45T99:99:99Z x", b"no time at all", b"1:2:3", b""])
def test_what_is_no_time_is_none(line):
    assert find_stamp([line]) is None


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_seconds_or_finer(unit):
    assert number_to_second(AT * unit) == AT
    assert number_to_second(-5) == number_to_second(0) == number_to_second(42) == -1
