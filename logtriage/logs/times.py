"""Times as logs write them, to seconds since 1970.

A time without a zone is taken as UTC, so that lines of one clock keep their distances. One without
a date or a year takes it from its neighbours: see `Clock`.
"""

import re
from calendar import isleap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

LOOK = 160  # bytes of a line in which its time is looked for
MOST_KNOWN = 50_000  # times remembered of a file
LEAST = 0.05  # share of lines that a form needs
DAY = 86_400
NEAR = 24  # a time within this part of its period before the last one may be late
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
CLOCK = r"\d\d:\d\d:\d\d"
# Names that mean one zone; CST, IST and BST mean several.
ZONES = {"EST": -5, "EDT": -4, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CDT": -5, "CET": 1}
ZONES |= {"CEST": 2, "EET": 2, "EEST": 3, "JST": 9, "Z": 0, "UTC": 0, "GMT": 0}
ZONE = rf"( ?(?:[+-]\d\d:?\d\d|{'|'.join(ZONES)})(?![\w:]))?"


class Form(NamedTuple):
    """A way to write a time."""

    pattern: re.Pattern[bytes]  # its first group is the time to the second, its second the zone
    parse: Callable[[str], datetime]  # of the first group
    period: int = 0  # seconds after which such a time comes again; 0 where the date is whole


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("/", "-"))


def _epoch(text: str) -> datetime:
    return datetime.fromtimestamp(number_to_second(float(text)), UTC).replace(tzinfo=None)


def _by(*forms: str) -> Callable[[str], datetime]:
    """A parser by the first of these forms of `strptime` that fits, signs between parts aside."""

    def parse(text: str) -> datetime:
        text = re.sub(
            r" [A-Z]{3,4}(?= \d{4}$)|\.\d+(?= (?:[AP]M|(?:[A-Z]{3,4} )?\d{4}$))", "", text
        )
        text = re.sub(r"[-/:,. @T]+", " ", text)
        for form in forms[:-1]:
            try:
                return datetime.strptime(text, form)
            except ValueError:
                continue
        return datetime.strptime(text, forms[-1])

    return parse


def _form(pattern: str, parse: Callable[[str], datetime], period: int = 0) -> Form:
    return Form(re.compile(pattern.encode()), parse, period)


# The first where both read the lines alike, see `find_forms`.
MONTH_FIRST = _form(
    r"(?<!\d)(\d\d?/\d\d?/\d{4},? \d\d?:\d\d:\d\d(?:\.\d+)?(?: [AP]M)?)()",
    _by("%m %d %Y %I %M %S %p", "%m %d %Y %H %M %S"),
)
DAY_FIRST = MONTH_FIRST._replace(parse=_by("%d %m %Y %I %M %S %p", "%d %m %Y %H %M %S"))
# The more exact before what is a part of it.
FORMS = (
    _form(rf"(\d{{4}}[-/]\d\d[-/]\d\d[T ]{CLOCK})(?:[.,]\d+)?{ZONE}", _iso),
    _form(
        rf"(?<!\d)(\d\d?[-/ ]{MONTH}[-/ ]\d{{4}}[: ]{CLOCK})(?:[.,]\d+)?{ZONE}",
        _by("%d %b %Y %H %M %S"),
    ),
    _form(
        rf"({MONTH} [ \d]\d {CLOCK}(?:\.\d+)?(?: [A-Z]{{3,4}})? \d{{4}})(?!\d)()",
        _by("%b %d %H %M %S %Y"),
    ),
    _form(
        rf"({MONTH} \d\d?, \d{{4}},?(?: @)? \d\d?:\d\d:\d\d(?: [AP]M)?)(?:[.,]\d+)?{ZONE}",
        _by("%b %d %Y %I %M %S %p", "%b %d %Y %H %M %S"),
    ),
    MONTH_FIRST,
    DAY_FIRST,
    _form(rf"(?<!\d)(\d\d\.\d\d\.\d{{4}} {CLOCK})(?:[.,]\d+)?{ZONE}", _by("%d %m %Y %H %M %S")),
    _form(rf"(?<!\d)(\d\d/\d\d/\d\d {CLOCK})()", _by("%y %m %d %H %M %S")),
    _form(rf"({MONTH} [ \d]\d {CLOCK})()", _by("%Y %b %d %H %M %S"), 365 * DAY),
    _form(rf"(?<=\b[IWEF])(\d{{4}} {CLOCK})()(?:\.\d+)?", _by("%Y %m%d %H %M %S"), 365 * DAY),
    _form(rf"(?<![\d:._])({CLOCK})()(?:[.,]\d+)?(?![\d:])", _by("%Y %H %M %S"), DAY),
    _form(r"(?<![\w.:-])(1\d{9}(?:\d{3}|\d{6}|\d{9})?)(?:\.\d+)?()(?![\w:])", _epoch),
)


class Clock:
    """Reads the times of one file in one form.

    Where the date or the year is not written, a time is the first such one that is not much before
    the last. One that strays by itself leaves the clock alone. `near` is a time near the first one,
    such as that of another file.
    """

    def __init__(self, form: Form, near: int | None = None) -> None:
        self.form = form
        # Seconds by the groups of the pattern; of a form with a period, of its first one.
        self.known: dict[tuple[bytes, bytes | None], int] = {}
        self._last = near
        self._far = near is not None  # whether the next time may be far from the last
        self._year = datetime.fromtimestamp(near, UTC).year if near is not None else 2000

    def read(self, text: bytes) -> int:
        """The second in a text that is a time; -1 for what is none."""
        found = self.form.pattern.search(text)
        return self.at(found[1], found[2]) if found else -1

    def at(self, time: bytes, zone: bytes | None) -> int:
        """The second from the groups of the form's pattern; -1 for what is no time."""
        second = self.known.get((time, zone))
        if second is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            second = self.known[time, zone] = self._parsed(time.decode(), zone)
        return self._turned(second) if self.form.period and second >= 0 else second

    def _parsed(self, time: str, zone: bytes | None) -> int:
        prefix = f"{self._year} " if self.form.period else ""
        try:
            second = int(self.form.parse(prefix + time).replace(tzinfo=UTC).timestamp())
        except (ValueError, OverflowError, OSError):
            return -1
        return second - zone_seconds(zone) if 0 <= second < 7_258_118_400 else -1  # until 2200

    def _turned(self, second: int) -> int:
        """A time of day or of the year, in the day or year that the last time tells."""
        period = self.form.period + DAY * (self.form.period > DAY and isleap(self._year))
        if self._last is None:
            self._last = second
        early = period // (2 if self._far else NEAR)  # what may come before the last time
        second += -((second - self._last + early) // period) * period
        if abs(second - self._last) <= period // NEAR or self._far:
            self._last, self._far = second, False
        else:
            self._far = True
        return second


def zone_seconds(zone: bytes | None) -> int:
    """How far a zone is ahead of UTC."""
    text = (zone or b"").decode().strip().replace(":", "")
    if text[:1] in ("+", "-"):
        return (int(text[1:3]) * 3600 + int(text[3:5]) * 60) * (-1 if text[0] == "-" else 1)
    return ZONES.get(text, 0) * 3600


def find_forms(sample: Sequence[bytes]) -> list[Form]:
    """The forms in which lines write their time, those of most lines first; a line counts for the
    form that stands first in it. Of days and months, that stands first which puts lines closer.
    """
    lines: Counter[Form] = Counter()
    for line in sample:
        stamps = [(form, form.pattern.search(line, 0, LOOK)) for form in FORMS]
        starts = {
            form: found.start()
            for form, found in stamps
            if found and Clock(form).at(found[1], found[2]) >= 0
        }
        if starts:
            lines[min(starts, key=lambda form: starts[form])] += 1
    kept = [form for form, count in lines.most_common() if count >= LEAST * len(sample)]
    if MONTH_FIRST in kept:
        better = min((MONTH_FIRST, DAY_FIRST), key=lambda form: _misfit(form, sample))
        kept[kept.index(MONTH_FIRST)] = better
    return list(dict.fromkeys(kept))


def _misfit(form: Form, sample: Sequence[bytes]) -> tuple[int, int]:
    """How many lines a form does not read, and how far apart it puts the others, in seconds."""
    seconds = [Clock(form).read(line) for line in sample]
    read = [second for second in seconds if second >= 0]
    return len(seconds) - len(read), max(read, default=0) - min(read, default=0)


def find_stamp(text: bytes, forms: Sequence[Form]) -> re.Match[bytes] | None:
    """Where a text has its time, in the first of these forms that it has; None where in none."""
    found = (form.pattern.search(text, 0, LOOK) for form in forms)
    return next(filter(None, found), None)


def say_zones(texts: Iterable[bytes], forms: Sequence[Form]) -> bool:
    """Whether texts say the zones of their times, as numbers do: they count from 1970 in UTC."""
    found = (find_stamp(text, forms) for text in texts)
    return any(one[2] or one[1].isdigit() for one in found if one)


def time_of(value: object, clocks: Sequence[Clock]) -> int:
    """The second that a value of a field tells, by one of some clocks; -1 for what is no time."""
    if isinstance(value, str):
        text = value[:LOOK].encode("ascii", "replace")
        for clock in clocks:
            second = clock.read(text)
            if second >= 0:
                return second
        return -1
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_to_second(value)
    return -1


def number_to_second(value: float) -> int:
    """A number that stands for a time, in seconds, milli-, micro- or nanoseconds since 1970, to
    seconds; -1 for what is none.
    """
    if not abs(value) < 1e20:  # an integer of JSON may have hundreds of digits
        return -1
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        if 100_000_000 <= value / unit < 7_258_118_400:  # 1973 to 2200
            return int(value / unit)
    return -1


def told(second: int, period: int = 0, zone: str = "") -> str:
    """A time as an answer shows it, with as much as the log says of it."""
    form = "%Y-%m-%d %H:%M:%S" if not period else "%H:%M:%S" if period == DAY else "%b %d %H:%M:%S"
    return datetime.fromtimestamp(second, UTC).strftime(form) + zone
