"""Convert times as logs write them to seconds since 1970. A time without a zone is taken as UTC."""

import re
from calendar import isleap
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain, compress, groupby
from operator import itemgetter
from typing import NamedTuple

from .words import WORDS

LOOK = 160  # how many bytes of a line are searched for its time
MOST_KNOWN = 50_000  # times of a file that are cached
LEAST = 0.05  # share of lines that a form needs
DAY = 86_400
MOST_STRAYS = 50  # lines of a block with their time elsewhere, beyond which all are searched
BLANK_ZONE = 4  # bytes after a blank that tell a zone, such as ` +0500`, from other words
MISSING = -2  # the second of a line without a time
STRAY = -3  # the same while it is not known whether it has one elsewhere
ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
END = 7_258_118_400  # the year 2200: no time is later
ENGLISH, *OTHERS = (names.split() for names in WORDS["times"]["months"])
OTHER = "|".join(dict.fromkeys(chain.from_iterable(OTHERS)))
SHORT = rf"(?:{'|'.join(ENGLISH)}|(?:{OTHER})\.?)"  # of a month's name
MONTH = rf"{SHORT}(?:[a-z]{{1,6}})?"
MONTH_NUMBERS = {
    name.encode(): number
    for names in (ENGLISH, *OTHERS)
    for number, name in enumerate(names, start=1)
}
CLOCK = r"\d\d:\d\d:\d\d"
ZONES: dict[str, int] = WORDS["times"]["zones"]  # to hours from UTC
ZONE = rf"( ?(?:[+-]\d\d:?\d\d|{'|'.join(ZONES)})(?![\w:]))?"
# The parts of a time; fractions of a second are left out.
PART = re.compile(rf"(?<!:\d\d\.)(?<!\d)\d+|{SHORT}|\b[AP]M\b".encode())

Groups = tuple[bytes, bytes | None]  # of a form's pattern: the time to the second, and its zone


class Form(NamedTuple):
    """A way to write a time."""

    pattern: re.Pattern[bytes]  # group 1 is the time to the second, group 2 the zone
    order: str  # of its parts, in the letters of `words.toml`; empty for a number since 1970
    period: int = 0  # seconds after which such a time recurs; 0 if the date is complete


def _form(pattern: str, order: str, period: int = 0) -> Form:
    for name, part in (("MONTH", MONTH), ("CLOCK", CLOCK), ("ZONE", ZONE)):
        pattern = pattern.replace(name, part)
    return Form(re.compile(pattern.encode()), order, period)


FORMS = tuple(_form(**row) for row in WORDS["times"]["forms"])
DAY_FIRST = next(form for form in FORMS if form.order == "dmYHMSp")
MONTH_FIRST = FORMS[FORMS.index(DAY_FIRST) - 1]  # taken if both read lines alike: `find_forms`


def _parsed(order: str, year: int, time: bytes, zone: bytes | None) -> int:
    """Return the second of a time by the order of its parts, -1 for none; `year` is the default."""
    if not order:
        return number_to_second(float(time))
    parts = dict(zip(order, PART.findall(time), strict=False))
    half = parts.pop("p", None)
    try:
        numbers = {
            key: MONTH_NUMBERS.get(part.rstrip(b".")) or int(part) for key, part in parts.items()
        }
        if "k" in numbers:
            numbers["m"], numbers["d"] = divmod(numbers["k"], 100)
        for key, names in (("D", "Ymd"), ("b", "ymd"), ("h", "HMS")):
            if key in numbers:
                rest, last = divmod(numbers[key], 100)
                numbers |= dict(zip(names, (*divmod(rest, 100), last), strict=True))
        year = numbers["y"] + 2000 if "y" in numbers else numbers.get("Y", year)
        hour = numbers["H"] if half is None else numbers["H"] % 12 + 12 * (half == b"PM")
        date = datetime(
            year, numbers.get("m", 1), numbers.get("d", 1), hour, numbers["M"], numbers["S"]
        )
    except (ValueError, KeyError):
        return -1
    second = int(date.replace(tzinfo=UTC).timestamp())
    return second - _zone_seconds(zone or b"") if 0 <= second < END else -1


@lru_cache(MOST_KNOWN)
def _zone_seconds(zone: bytes) -> int:
    """Return how far a zone is ahead of UTC, in seconds."""
    text = zone.decode().strip().replace(":", "")
    if text[:1] in ("+", "-"):
        return (int(text[1:3]) * 3600 + int(text[3:5]) * 60) * (-1 if text[0] == "-" else 1)
    return ZONES.get(text, 0) * 3600


class Clock:
    """Reads times in one form. A time without a date or a year is taken as the one nearest to the
    last time read; `near` is a time near the first one, such as that of another file.
    """

    def __init__(self, form: Form, near: int | None = None) -> None:
        self.form = form
        self._last = near
        self._year = datetime.fromtimestamp(near, UTC).year if near is not None else 2000
        self._parsed = lru_cache(MOST_KNOWN)(partial(_parsed, form.order, self._year))
        self._ends_in_clock = form.order.endswith("HMS")
        self._period = form.period + DAY * (form.period > DAY and isleap(self._year))

    def read(self, text: bytes) -> int:
        """Return the second of the time in a text; -1 if there is none."""
        match = self.form.pattern.search(text)
        return self.at(match[1], match[2]) if match else -1

    def at(self, time: bytes, zone: bytes | None) -> int:
        """Return the second from the groups of the form's pattern; -1 if they are no time."""
        second = self._second(time, zone)
        if not self._period or second < 0:
            return second
        last = second if self._last is None else self._last
        self._last = max(0, second + round((last - second) / self._period) * self._period)
        return self._last

    def _second(self, time: bytes, zone: bytes | None) -> int:
        """Return the second of a time; dates, which are few, are parsed once."""
        if not self._ends_in_clock:
            return self._parsed(time, zone)
        midnight = self._parsed(time[:-8] + b"00:00:00", zone)
        hour, minute, second = int(time[-8:-6]), int(time[-5:-3]), int(time[-2:])
        if midnight < 0 or hour > 23 or minute > 59 or second > 59:
            return -1
        return midnight + 3600 * hour + 60 * minute + second


class Stamps:
    """Reads the times of a file's lines, at the place where the first of a block has its time."""

    def __init__(self, forms: Sequence[Form], near: int | None) -> None:
        self._clocks = [Clock(form, near if form.period else None) for form in forms]
        self._place = 0, 0, 0, 0, 0  # see `_place_of`
        self.span: tuple[int, int] | None = None  # of the time in lines, if all have it there

    def seconds(self, lines: Sequence[bytes]) -> list[int]:
        """Return the second of each line: `MISSING` without a time, -1 with an invalid one."""
        clock = self._clocks[0]
        match = clock.form.pattern.search(lines[0], 0, LOOK)
        self._place = _place_of(match) if match else self._place
        begin, end, zone, after, _ = self._place
        if zone == end:
            stamps = [line[begin:after] for line in lines]
        else:
            stamps = [line[begin:end] + line[zone:after] for line in lines]
        groups = self._groups(lines, stamps)
        seconds: list[int] = []
        if groups is None:
            return [*map(self._read, lines)]
        if clock.form.period:  # each is near the one before it
            for parts, run in groupby(map(groups.__getitem__, stamps)):
                first, many = len(seconds), len([*run])
                if parts:
                    seconds += [clock.at(*parts)] * many
                else:
                    seconds += map(self._read, lines[first : first + many])
            return seconds
        known = {stamp: clock.at(*parts) if parts else STRAY for stamp, parts in groups.items()}
        seconds += map(known.__getitem__, stamps)
        if self.span is None:
            for i in compress(range(len(lines)), map(STRAY.__eq__, seconds)):
                seconds[i] = self._read(lines[i])
        return seconds

    def _groups(
        self, lines: Sequence[bytes], stamps: Sequence[bytes]
    ) -> dict[bytes, Groups | None] | None:
        """Return the time and zone in the first form by the text at the place, None for a text that
        has none there; None if these are many. Of texts alike but for digits, one is searched.
        """
        form, place = self._clocks[0].form, self._place
        begin, end, zone, _, whole = place
        zoned = slice(end - begin, end - begin + whole - zone)
        known: dict[bytes, Groups | None] = {}
        here: dict[bytes, bool] = {}  # whether texts of this form have their time at the place
        strays, self.span = 0, None
        for stamp, line in dict(zip(stamps, lines, strict=True)).items():
            alike = stamp.translate(ZEROS) if form.order else stamp
            if alike not in here:
                match = form.pattern.search(line, 0, LOOK)
                here[alike] = match is not None and _place_of(match) == place
            known[stamp] = (stamp[: end - begin], stamp[zoned] or None) if here[alike] else None
            strays += not here[alike]
            if strays > MOST_STRAYS:
                return None
        self.span = None if strays else (begin, whole)
        return known

    def _read(self, line: bytes) -> int:
        for clock in self._clocks:
            match = clock.form.pattern.search(line, 0, LOOK)
            if match:
                return clock.at(match[1], match[2])
        return MISSING


def _place_of(match: re.Match[bytes]) -> tuple[int, int, int, int, int]:
    """Return where a time begins and ends, where its zone begins, the end of the text that tells it
    from other times (including what shows that it has no zone), and the end of the whole match.
    """
    zone = match.start(2) if match[2] else match.end()
    after = max(match.end(), zone + 1)
    if not match[2] and match.string[zone:after] == b" ":
        after += BLANK_ZONE
    return *match.span(1), zone, after, match.end()


def find_forms(sample: Sequence[bytes]) -> list[Form]:
    """Return the forms in which lines write their time, the commonest first. A line counts for the
    form that starts first in it. Day or month first: whichever fits the lines better is taken.
    """
    lines: Counter[Form] = Counter()
    for line in sample:
        searched = ((form, form.pattern.search(line, 0, LOOK)) for form in FORMS)
        matches = [(match.start(), form, match) for form, match in searched if match]
        for _, form, match in sorted(matches, key=itemgetter(0)):
            if _parsed(form.order, 2000, match[1], match[2]) >= 0:
                lines[form] += 1
                break
    kept = [form for form, count in lines.most_common() if count >= LEAST * len(sample)]
    if MONTH_FIRST in kept:
        better = min((MONTH_FIRST, DAY_FIRST), key=lambda form: _misfit(form, sample))
        kept[kept.index(MONTH_FIRST)] = better
    return list(dict.fromkeys(kept))


def _misfit(form: Form, sample: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines a form cannot read, and how many seconds the others span."""
    clock = Clock(form)
    read = [second for second in map(clock.read, sample) if second >= 0]
    return len(sample) - len(read), max(read, default=0) - min(read, default=0)


def find_stamp(text: bytes, forms: Sequence[Form]) -> re.Match[bytes] | None:
    """Return the match of the first of these forms that a text has; None if it has none."""
    matches = (form.pattern.search(text, 0, LOOK) for form in forms)
    return next(filter(None, matches), None)


def states_zone(texts: Iterable[bytes], forms: Sequence[Form]) -> bool:
    """Whether any text states a zone, as numbers do: they count from 1970 in UTC."""
    matches = (find_stamp(text, forms) for text in texts)
    return any(match[2] or match[1].isdigit() for match in matches if match)


def time_of(value: object, clocks: Sequence[Clock]) -> int:
    """Return the second of a field's value, by the first clock that reads it; -1 if none does."""
    if isinstance(value, str):
        text = value[:LOOK].encode("ascii", "replace")
        return next((second for clock in clocks if (second := clock.read(text)) >= 0), -1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_to_second(value)
    return -1


def number_to_second(value: float) -> int:
    """Convert seconds, milli-, micro- or nanoseconds since 1970 to seconds; -1 if out of range."""
    if not abs(value) < 1e20:  # an integer of JSON may have hundreds of digits
        return -1
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        if 100_000_000 <= value / unit < END:  # from 1973 on
            return int(value / unit)
    return -1


def format_time(second: int, period: int = 0, zone: str = "") -> str:
    """Format a time for an answer, with only as much of the date as the log has."""
    form = "%Y-%m-%d %H:%M:%S" if not period else "%H:%M:%S" if period == DAY else "%b %d %H:%M:%S"
    return datetime.fromtimestamp(second, UTC).strftime(form) + zone
