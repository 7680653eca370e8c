"""How the lines and records of a file are read: what is found out from its beginning.

A file is lines of text, or records: of JSON (a line each, or one document), of JSON within lines of
text, or of CSV.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from .levels import CALM, LEVELS, WARN, level_of_status, named_level
from .lines import Reading, blocks
from .names import Namer, service_name
from .objects import (
    MOST_TEXT,
    NAMES,
    Path,
    at,
    flat,
    flattened,
    objects_in,
    objects_of,
    records_in,
    rows_in,
    short,
)
from .speakers import Headed, best_key, best_place
from .tally import HEAD, HEXADECIMAL, TIMED, Batch, Record
from .times import FORMS, LOOK, MISSING, Clock, Stamps, find_forms, find_stamp, say_zones, time_of

SAMPLE = 1_000  # lines or records by which a file is understood
SOME = 200  # values of a field, and fields of a file, that are looked at
HALF = 0.5
OF_FILE = 2.0  # what a place must be better by, to count for more than the name of a file
BOM = b"\xef\xbb\xbf"
PAYLOAD = re.compile(rb"[^{]{0,300}(?=\{ ?\")")  # what stands before JSON in a line
PREFIX = "(before the object)"  # the field that it becomes
# Of a stack trace, the lines that say where in the code it came about.
FRAME = re.compile(rb"\s*(?:at |\.\.\. |File \"|goroutine |$)|\t\S+:\d+|\s+[\w/.-]+:\d+")
DELIMITERS = ",;\t|"
TITLE = re.compile(r"\s{0,9}\"?[A-Za-z_@][\w .@()[\]-]{0,80}\"?\s{0,9}")  # of a column

Row = tuple[int, bytes, int]  # the second of a line, the line, and its number
Records = Iterator[tuple[dict[str, Any], int]]  # each with its line
Items = Callable[[Iterable[bytes], Reading], Records]  # of the parts of a file


class TextLayout:
    """How lines of text are read: where they have their time, and who speaks.

    Attributes:
        kind: what the file is.
        speaker: what tells who speaks; empty for nothing.
        proven: whether what it tells are services for certain.
        periods: of the forms of its times, see `times.Form`; that of most lines first.
        begins: the first time of a whole date in the sample; -1 for none.
        zoned: whether its times have a zone.
    """

    def __init__(
        self, sample: Sequence[bytes], services: Sequence[str], least: float = 0.0
    ) -> None:
        self.kind, self.forms = "text", find_forms(sample)
        self.periods = [form.period for form in self.forms]
        self.zoned = say_zones(sample, self.forms)
        self._services, self._namer = frozenset(services), Namer(services)
        dated = [Clock(form) for form in self.forms if not form.period]
        seconds = (clock.read(line) for clock in dated for line in sample)
        self.begins = next((second for second in seconds if second >= 0), -1)
        headed = [self.headed(line) for line in sample]
        timed = [one for one in headed if one.begin >= 0] if self.forms else headed
        self.place = best_place(timed, services, least) if timed else None
        self.speaker = "its lines" if self.place else ""
        self.proven = bool(self.place and self.place.proven)
        names = {self.speaker_in(one.text) or b"" for one in timed}
        names |= {name.encode() for name in services}
        # Names that differ in digits alone are read in each line: `Tally.add` blurs digits.
        self._numbered = len({name.translate(None, HEXADECIMAL) for name in names}) < len(names)

    def headed(self, line: bytes) -> Headed:
        """A line without its time."""
        found = find_stamp(line, self.forms)
        if not found:
            return Headed(line, -1)
        return Headed(line[: found.start()] + line[found.end() :], found.start())

    def batches(
        self, parts: Iterable[bytes], reading: Reading, near: int | None, ordered: bool
    ) -> Iterator[Batch]:
        """The records of a file that comes in parts, unpacked; `reading` is kept up to date. A line
        without a time and a speaker, where others have them, goes on with the one before.

        Args:
            near: a time near the first one; None where none is known.
            ordered: whether the order of lines stands for their times.
        """
        stamps, last = Stamps(self.forms, near), -1
        for lines in blocks(parts, reading):
            numbers: Sequence[int] = range(reading.lines - len(lines), reading.lines)
            if not self.forms:
                seconds = [*numbers] if ordered else [-1] * len(lines)
            else:
                seconds = stamps.seconds(lines)
                if MISSING in seconds:
                    rows = self._joined(zip(seconds, lines, numbers, strict=True), last)
                    seconds = [second for second, _, _ in rows]
                    lines = [line for _, line, _ in rows]
                    numbers = [number for _, _, number in rows]
            if lines:
                last = seconds[-1]
                yield self._batch(seconds, lines, numbers, stamps.span)

    def _joined(self, rows: Iterable[Row], last: int) -> list[Row]:
        """Lines with those that go on with them; `last` is the second of the line before them."""
        headed = self.place if self.place and self.place.before_time else None
        joined: list[Row] = []
        for second, line, number in rows:
            if second != MISSING or not number or (headed and headed.pattern.match(line)):
                last = last if second == MISSING else second
                joined.append((last, line, number))
            elif joined and len(joined[-1][1]) <= MOST_TEXT and not FRAME.match(line):
                second, text, number = joined[-1]
                joined[-1] = second, text + b" " + line.strip(), number
        return joined

    def _batch(
        self,
        seconds: Sequence[int],
        lines: Sequence[bytes],
        numbers: Sequence[int],
        span: tuple[int, int] | None,
    ) -> Batch:
        """Some records; `span` tells where all of them have their time, if at one place."""
        heads = b"\n".join([line[:TIMED] for line in lines])
        keys: list[Hashable] = [*heads.translate(None, HEXADECIMAL).split(b"\n")]
        if self._numbered:
            begin, end = span or (0, 0)
            texts = [
                line[:begin] + line[end:] if span else self.headed(line).text for line in lines
            ]
            keys = [*zip(map(self.speaker_in, texts), keys, strict=True)]

        def record(i: int) -> Record:
            text = self.headed(lines[i]).text
            return Record(self.speaker_in(text), None, text, numbers[i])

        return Batch(seconds, keys, lines, record)

    def speaker_in(self, text: bytes) -> bytes | None:
        """Who speaks in a line without its time; with a call graph, one of it where it can be."""
        found = self.place.pattern.match(text) if self.place else None
        name = found[1] if found else None
        if self._services and (name is None or service_name(name) not in self._services):
            return self._namer.first(text[:LOOK].decode("utf-8", "replace")).encode() or name
        return name


class ObjectLayout:
    """How records are read: each part by the paths to try in turn, found in a sample of them;
    attributes as of `TextLayout`.
    """

    def __init__(
        self, kind: str, sample: Sequence[dict[str, Any]], services: Sequence[str], items: Items
    ) -> None:
        self.kind, self._items, self._text = kind, items, None
        rows = [dict(flattened(one)) for one in sample]
        self._find_parts(rows)
        texts = [self._message_of(one) for one in sample]
        shown = [{path: flat(value) for path, value in row.items()} for row in rows]
        self._service, self.proven = best_key(shown, texts, services)
        self.speaker = ".".join(self._service[0]) if self._service else ""
        if not self._service:
            lines = [_line(one, text) for one, text in zip(sample, texts, strict=True)]
            self._text = TextLayout(lines, services)
            self.proven = self._text.proven
            self.speaker = "its text" if self._text.place else ""
        self.begins = next((one for one in map(self._second_of, sample) if one >= 0), -1)
        self.periods = [0] if self.begins >= 0 else []
        times = (str(at(one, self._time) or "").encode("utf-8", "replace") for one in sample)
        self.zoned = say_zones(times, [clock.form for clock in self._clocks])

    def _find_parts(self, rows: Sequence[Mapping[Path, Any]]) -> None:
        """Where records have their parts but for the speaker, by the values at each path."""
        values: dict[Path, list[Any]] = defaultdict(list)
        for row in rows:
            for path, value in row.items():
                values[path].append(value)
        common = sorted(values, key=lambda path: -len(values[path]))[:SOME]

        def named(part: str) -> list[Path]:
            """The paths with one of the names of a part, the more telling first."""
            ranks = {name: rank for rank, name in enumerate(NAMES[part])}
            found = [(path, name) for path in common for name in _names(path) if name in ranks]
            found.sort(key=lambda one: (ranks[one[1]], len(one[0])))
            return list(dict.fromkeys(path for path, _ in found))

        def share(path: Path, told: Callable[[Any], bool]) -> float:
            """The share of the values at a path of which something is told."""
            some = values[path][:SOME]
            return sum(map(told, some)) / len(some)

        def timed(path: Path) -> bool:
            clocks = [Clock(form) for form in FORMS]
            return share(path, lambda value: time_of(value, clocks) >= 0) > 0.8

        def levelled(path: Path) -> bool:
            return share(path, lambda one: named_level(one, short(path[-1])) is not None) > 0.8

        def worded(path: Path) -> bool:
            return share(path, lambda value: str(value).strip().lower() in LEVELS) > 0.95

        times = [*filter(timed, common)]
        self._time = [path for path in named("time") if path in times] or times[:1]
        written = [str(one) for path in self._time[:1] for one in values[path][:SOME]]
        forms = find_forms([one.encode("utf-8", "replace") for one in written])
        self._clocks = [Clock(form) for form in forms]  # of times as text
        self._level = [*filter(levelled, named("level"))] or [*filter(worded, common)]
        self._message = [path for path in named("message") if isinstance(values[path][0], str)]
        self._error = [path for path in named("error") if path not in self._message][:2]
        requests = any(_names(path)[0] in NAMES["request"] for path in common)
        self._status = named("status") if requests or not self._message else []

    def batches(
        self, parts: Iterable[bytes], reading: Reading, near: int | None, ordered: bool
    ) -> Iterator[Batch]:
        """The records of a file, see `TextLayout`."""
        found = self._records(parts, reading, ordered)
        while some := [*islice(found, SAMPLE)]:
            records = [record for _, record in some]
            keys = [
                (service, level, text[:HEAD].translate(None, HEXADECIMAL))
                for service, level, text, _ in records
            ]
            lines = [record.text for record in records]
            yield Batch([second for second, _ in some], keys, lines, records.__getitem__)

    def _records(
        self, parts: Iterable[bytes], reading: Reading, ordered: bool
    ) -> Iterator[tuple[int, Record]]:
        """Records with their times; one without a time is of the time of the one before."""
        last = -1
        for one, line in self._items(parts, reading):
            second = self._second_of(one)
            if second < 0 and self._time and self._message and at(one, self._message) is None:
                continue  # no record, but something else in the document
            last = second if second >= 0 else line if ordered else last
            text = self._message_of(one)
            service: bytes | str | None = flat(at(one, self._service)) or None
            if service is None and self._text:
                service = self._text.speaker_in(self._text.headed(_line(one, text)).text)
            yield last, Record(service, self._level_of(one), text.encode("utf-8", "replace"), line)

    def _second_of(self, one: Any) -> int:
        """When a record was made; -1 where it does not say."""
        return time_of(at(one, self._time), self._clocks)

    def _level_of(self, one: Any) -> int | None:
        """The level that a record states, of a request by its status; None where it states none."""
        level = None
        for path in self._level:
            name = short(path[-1])
            level = named_level(at(one, (path,)), name)
            if name == "priority" and level == CALM:
                level = None  # of what a program prints, its text may say more
            if level is not None:
                break
        status = str(at(one, self._status) or "") if self._status else ""
        if len(status) == 3 and status.isdecimal() and (level is None or level < WARN):
            return level_of_status(status.encode())
        return level

    def _message_of(self, one: Any) -> str:
        """What a record says, with the error that it tells of."""
        value = at(one, self._message)
        if isinstance(value, list) and all(type(byte) is int for byte in value):  # of the journal
            value = bytes(byte & 255 for byte in value).decode("utf-8", "replace")
        text = flat(one if value is None else value)
        for path in self._error:
            error = at(one, (path,))
            text += f" {flat(error)}" if error is not None and error != value else ""
        return text[:MOST_TEXT]


def _names(path: Path) -> tuple[str, str]:
    """What a path may be known by: its last key, and its last two."""
    return short(path[-1]), short("".join(path[-2:]))


def _line(record: dict[str, Any], text: str) -> bytes:
    """What a record says, with what stands before it in its line."""
    return f"{record.get(PREFIX, '')}{text}".encode("utf-8", "replace")


def json_lines(parts: Iterable[bytes], reading: Reading) -> Records:
    """The records of lines of JSON; what stands before an object is a field, as is other text."""
    for lines in blocks(parts, reading):
        for number, line in enumerate(lines, reading.lines - len(lines)):
            head = PAYLOAD.match(line)
            begin = head.end() if head else 0
            values = objects_of(line[begin:].decode("utf-8", "replace").strip())
            records = [one for value in values for one in records_in(value)]
            if not records and line.strip():
                records = [{"message": line.decode("utf-8", "replace")}]
            for record in records:
                if begin and values:
                    record[PREFIX] = line[:begin].decode("utf-8", "replace")
                yield record, number


def json_document(parts: Iterable[bytes], reading: Reading) -> Records:
    """The records of a document of JSON, each with its line."""
    for value, line in objects_in(parts, reading):
        for record in records_in(value):
            yield record, line


def _csv_rows(delimiter: str, parts: Iterable[bytes], reading: Reading) -> Records:
    return rows_in(chain.from_iterable(blocks(parts, reading)), delimiter)


def layout_of(head: bytes, services: Sequence[str], named: bool) -> TextLayout | ObjectLayout:
    """How a file is read, by its beginning. `services` are names that a call graph tells; `named`
    says whether the file's name tells a service, too.
    """
    lines = list(chain.from_iterable(blocks([head], Reading())))
    lines = [line.removeprefix(BOM) for line in (lines[:-1] or lines) if line.strip()]
    sampled = lines[:: max(1, len(lines) // SAMPLE)][:SAMPLE]
    kind, items = _items(head.removeprefix(BOM).lstrip(), sampled)
    layout: TextLayout | ObjectLayout
    if items is None:
        layout = TextLayout(sampled, services, OF_FILE if named else 0.0)
    else:
        sample = [one for one, _ in islice(items([head], Reading()), SAMPLE)]
        layout = ObjectLayout(kind, sample, services, items)
    if named and not layout.speaker:
        layout.speaker, layout.proven = "its name", True
    return layout


def _items(head: bytes, lines: Sequence[bytes]) -> tuple[str, Items | None]:
    """What a file of records is, and what takes it apart; None for one of text."""
    some = [(line, PAYLOAD.match(line)) for line in lines[:100]]
    parsed = [
        bool(found and objects_of(line[found.end() :].decode("utf-8", "replace")))
        for line, found in some
    ]
    if some and sum(parsed) >= HALF * len(some):
        return ("json" if lines[0].lstrip()[:1] == b"{" else "text with json"), json_lines
    if re.match(rb"\[\s*[\[{]|\{\s*\"", head):
        return "json document", json_document
    texts = [line.decode("utf-8", "replace") for line, _ in some[:20]]
    for delimiter in DELIMITERS if texts else "":
        titles, *rest = [text.split(delimiter) for text in texts]
        whole = sum(len(row) >= len(titles) for row in rest) > HALF * len(rest)
        if len(titles) > 2 and whole and all(map(TITLE.fullmatch, titles)):
            return "csv", partial(_csv_rows, delimiter)
    return "text", None
