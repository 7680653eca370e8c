"""Times as logs write them, to seconds since 1970.

A time without a zone is taken as UTC, so that lines of one clock keep their distances. One without
a year counts from 2000, and one without a date from the first of January 1970: `Stamp.dated` says
how much of it may be shown.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

LOOK = 120  # bytes of a line in which its time is looked for
MOST_KNOWN = 50_000  # minutes remembered; about a month
DAY = 86_400
MONTHS = {
    name: i
    for i, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)
}
MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
ZONE = rb"( ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:]))?"


@dataclass(frozen=True)
class Stamp:
    """A way to write a time.

    Attributes:
        pattern: three groups: all to the minute, the second, and the zone or what else follows.
        parse: seconds since 1970 of the minute, from the first and the last group.
        dated: `date`, `day of the year` (no year) or `time of day` (no date).
    """

    pattern: re.Pattern[bytes]
    parse: Callable[[bytes, bytes], int]
    dated: str = "date"


def _epoch(year: int, month: int, day: int, hour: int, minute: int, zone: bytes = b"") -> int:
    if not 1970 <= year <= 2200 or not 1 <= month <= 12 or day > monthrange(year, month)[1]:
        raise ValueError("no such date")
    at = datetime(year, month, day, hour, minute, tzinfo=_zone(zone))
    return int(at.timestamp())


def _zone(text: bytes) -> timezone:
    text = text.strip().replace(b":", b"")
    if text[:1] not in (b"+", b"-"):
        return UTC
    away = timedelta(hours=int(text[1:3]), minutes=int(text[3:5]))
    return timezone(-away if text[:1] == b"-" else away)


def _numbers(text: bytes) -> list[int]:
    return [int(one) for one in re.findall(rb"\d+", text)]


def _date(minute: bytes, zone: bytes) -> int:
    year, month, day, hour, at = _numbers(minute)
    return _epoch(year, month, day, hour, at, zone)


def _short_year(minute: bytes, zone: bytes) -> int:
    year, month, day, hour, at = _numbers(minute)
    return _epoch(2000 + year, month, day, hour, at, zone)


def _packed(minute: bytes, zone: bytes) -> int:
    """`081109 2036`."""
    return _short_year(b" ".join(minute[i : i + 2] for i in (0, 2, 4, 7, 9)), zone)


def _packed_date(minute: bytes, zone: bytes) -> int:
    """`20171223-22:15`."""
    return _date(b" ".join((minute[:4], minute[4:6], minute[6:8], minute[9:])), zone)


def _named_month(minute: bytes, zone: bytes) -> int:
    """`22/Nov/2026:03:00`."""
    day, year, hour, at = _numbers(minute)
    return _epoch(year, MONTHS[minute[3:6]], day, hour, at, zone)


def _year_last(minute: bytes, year: bytes) -> int:
    """`Sun Dec 04 04:47`, and ` 2005`."""
    day, hour, at = _numbers(minute)
    return _epoch(int(year), MONTHS[minute[4:7]], day, hour, at)


def _no_year(minute: bytes, zone: bytes) -> int:
    """`Nov 22 03:00`."""
    day, hour, at = _numbers(minute)
    return _epoch(2000, MONTHS[minute[:3]], day, hour, at)


def _numbers_no_year(minute: bytes, zone: bytes) -> int:
    """`11-22 03:00`."""
    month, day, hour, at = _numbers(minute)
    return _epoch(2000, month, day, hour, at)


def _klog(minute: bytes, zone: bytes) -> int:
    """`1122 03:00`."""
    return _numbers_no_year(minute[:2] + b"-" + minute[2:], zone)


def _no_date(minute: bytes, zone: bytes) -> int:
    hour, at = _numbers(minute)
    return _epoch(1970, 1, 1, hour, at)


# The more exact before what is a part of it.
STAMPS = tuple(
    Stamp(re.compile(pattern), parse, dated)
    for pattern, parse, dated in (
        (rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):(\d\d)(?:[.,]\d+)?" + ZONE, _date, "date"),
        (rb"(\d{4}/\d\d/\d\d \d\d:\d\d):(\d\d)()(?:\.\d+)?", _date, "date"),
        (rb"(\d\d/" + MONTH + rb"/\d{4}:\d\d:\d\d):(\d\d)" + ZONE, _named_month, "date"),
        (
            rb"([A-Z][a-z][a-z] " + MONTH + rb" [ \d]\d \d\d:\d\d):(\d\d)(?:\.\d+)?( \d{4})",
            _year_last,
            "date",
        ),
        (rb"(\d{8}-\d\d:\d\d):(\d\d)()", _packed_date, "date"),
        (rb"\b(\d{6} \d{4})(\d\d)() ", _packed, "date"),
        (rb"(?<!\d)(\d\d/\d\d/\d\d \d\d:\d\d):(\d\d)()", _short_year, "date"),
        (rb"(" + MONTH + rb" [ \d]\d \d\d:\d\d):(\d\d)()", _no_year, "day of the year"),
        (rb"(?<=\b[IWEF])(\d{4} \d\d:\d\d):(\d\d)()(?:\.\d+)?", _klog, "day of the year"),
        (rb"(?<!\d)(\d\d-\d\d \d\d:\d\d):(\d\d)()(?:\.\d+)?", _numbers_no_year, "day of the year"),
        (rb"(?<![\d:.])(\d\d:\d\d):(\d\d)()(?:[.,]\d+)?(?![\d:])", _no_date, "time of day"),
    )
)
PERIODS = {"time of day": DAY, "day of the year": 366 * DAY}
NEAR = 24  # a time within this part of its period of the last one is of the same stretch


class Clock:
    """Reads the times of one stream in one way.

    Where the date or the year is not written, a time that falls back by more than half of that is
    of the next, if that brings it near the last one or the line after falls back, too. One that
    strays by itself is taken for the last one, and one that comes late over the turn for what it
    says.

    Attributes:
        minutes: (first, last group of the pattern) to seconds since 1970, of minutes that are
            known; nothing is kept where a time may be of the next day or year.
    """

    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.minutes: dict[tuple[bytes, bytes], int] = {}
        self._period = PERIODS.get(stamp.dated, 0)
        self._starts: dict[tuple[bytes, bytes], int] = {}
        self._offset = self._last = 0
        self._strayed = False  # whether the last time fell back, near to nothing

    def at(self, minute: bytes, second: bytes, zone: bytes) -> int:
        """Seconds since 1970 from the groups of the stamp's pattern; -1 for what is no time."""
        starts = self._starts if self._period else self.minutes
        start = starts.get((minute, zone))
        if start is None:
            if len(starts) >= MOST_KNOWN:
                starts.clear()
            try:
                start = self.stamp.parse(minute, zone or b"")
            except (ValueError, KeyError, OverflowError):
                return -1
            starts[minute, zone] = start
        if not self._period:
            return start + int(second)
        return self._turned(start + int(second) + self._offset)

    def _turned(self, at: int) -> int:
        """A time by the period of the last one, in its own."""
        half, near = self._period // 2, self._period // NEAR
        fell = at < self._last - half
        turn = self._period if fell else 0
        if self._offset and at > self._last + half and abs(at - self._period - self._last) <= near:
            turn = -self._period
        if fell and not self._strayed and at + turn > self._last + near:
            self._strayed = True
            return self._last
        self._strayed = False
        self._offset += turn
        self._last = at + turn
        return self._last


def find_stamp(sample: Sequence[bytes], least: float = 0.2) -> Stamp | None:
    """The way in which most of these lines write their time, or None where fewer than `least` of
    them have one. Between equals one that is whole, then the one that is written first.
    """
    best, score = None, (max(1, int(least * len(sample))), False, -LOOK * len(sample))
    for stamp in STAMPS:
        found = [stamp.pattern.search(line, 0, LOOK) for line in sample]
        places = [one.start() for one in found if one and _is_time(stamp, one)]
        # A time of day may be a part of something else, unless lines begin with it.
        whole = stamp.dated != "time of day" or sum(places) <= 2 * len(places)
        this = (len(places), whole, -sum(places))
        if this > score:
            best, score = stamp, this
    return best


def _is_time(stamp: Stamp, found: re.Match[bytes]) -> bool:
    return Clock(stamp).at(found[1], found[2], found[3]) >= 0


def number_to_second(value: float) -> int:
    """A number that stands for a time, in seconds, milli-, micro- or nanoseconds since 1970, to
    seconds; -1 for what is none.
    """
    if (
        not abs(value) < 1e20
    ):  # nanoseconds until 2200 have 19 digits, an integer may have thousands
        return -1
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        if 0 < value / unit < 7_258_118_400:  # until 2200
            return int(value / unit) if value / unit >= 100_000_000 or unit > 1 else -1
    return -1


def told(second: int, dated: str = "date") -> str:
    """A time as an answer shows it, in the log's own clock, with as much as the log says of it."""
    try:
        at = datetime.fromtimestamp(second, UTC)
    except (OverflowError, OSError, ValueError):
        return "?"
    form = {"time of day": "%H:%M:%S", "day of the year": "%b %d %H:%M:%S"}
    return at.strftime(form.get(dated, "%Y-%m-%d %H:%M:%S"))
