"""Work out from the beginning of a file how to read its lines, or its records of JSON or CSV."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from .levels import CALM, LEVELS, WARN, level_of_status, named_level, tells_cause
from .lines import Reading, blocks
from .names import TOLD, Namer, service_name, subject
from .objects import (
    FIELDS,
    MOST_TEXT,
    KeyPath,
    at,
    csv_rows,
    flat,
    flattened,
    objects_in,
    objects_of,
    records_in,
    short,
)
from .speakers import Headed, best_key, place_of
from .tally import HEAD, HEXADECIMAL, TIMED, Batch, Record
from .times import FORMS, LOOK, MISSING, Clock, Stamps, find_forms, find_stamp, states_zone, time_of

SAMPLE = 1_000  # lines or records that are sampled to understand a file
SOME = 200  # how many values of a field, and fields of a file, are looked at
MAJORITY = 0.5
FILE_NAME_LEAD = 2.0  # by how much a place must score better to be preferred to the file's name
BOM = b"\xef\xbb\xbf"
PAYLOAD = re.compile(rb"[^{]{0,300}(?=\{ ?\")")  # the text before JSON in a line
JSON_FIELD = re.compile(rb'\s{1,80}"[\w@.$/-]{1,80}": ')  # a line of a document that is indented
ERRORS = frozenset(FIELDS["error"])
PREFIX = "(before the object)"  # the field that this text becomes
# The lines of a stack trace that name a place in the code.
FRAME = re.compile(rb"\s*(?:at |\.\.\. |File \"|goroutine |$)|\t\S+:\d+|\s+[\w/.-]+:\d+")
DELIMITERS = ",;\t|"
TITLE = re.compile(r"\s{0,9}\"?[A-Za-z_@][\w .@()[\]-]{0,80}\"?\s{0,9}")  # of a column

Row = tuple[int, bytes, int]  # the second of a line, the line, and its number
Records = Iterator[tuple[dict[str, Any], int]]  # each with its line number
Items = Callable[[Iterable[bytes], Reading], Records]  # reads the parts of a file


class TextLayout:
    """How to read lines of text: where their time stands, and who speaks."""

    def __init__(
        self, sample: Sequence[bytes], services: Sequence[str], least: float = 0.0
    ) -> None:
        self.kind, self.forms = "text", find_forms(sample)
        self.periods = [form.period for form in self.forms]  # see `times.Form`; commonest first
        self.zoned = states_zone(sample, self.forms)  # whether its times state a zone
        self._services, self._namer = frozenset(services), Namer(services)
        dated = [Clock(form) for form in self.forms if not form.period]
        seconds = (clock.read(line) for clock in dated for line in sample)
        self.begins = next((second for second in seconds if second >= 0), -1)  # first whole date
        headed = [self.headed(line) for line in sample]
        timed = [line for line in headed if line.begin >= 0] if self.forms else headed
        self.place = place_of(headed, timed, services, least)
        self.speaker = "its lines" if self.place else ""  # what tells who speaks
        self.proven = bool(self.place and self.place.proven)  # whether they are surely services
        names = {self.speaker_in(line.text) or b"" for line in timed}
        names |= {name.encode() for name in services}
        # Names that differ only in digits must be read in every line, as keys leave out digits.
        self._numbered = len({name.translate(None, HEXADECIMAL) for name in names}) < len(names)

    def headed(self, line: bytes) -> Headed:
        """Return a line without its time, and where the time stood; -1 if it has none."""
        stamp = find_stamp(line, self.forms)
        if not stamp:
            return Headed(line, -1)
        return Headed(line[: stamp.start()] + line[stamp.end() :], stamp.start())

    def batches(
        self, parts: Iterable[bytes], reading: Reading, near: int | None, ordered: bool
    ) -> Iterator[Batch]:
        """Yield the records of a file that comes in unpacked parts, and keep `reading` up to date.
        A line that lacks the time and the speaker of other lines continues the line before it.
        `near` is a time near the first one; `ordered` has the numbers of lines stand for times.
        """
        stamps, last = Stamps(self.forms, near), -1
        for lines in blocks(parts, reading):
            numbers: Sequence[int] = range(reading.lines - len(lines), reading.lines)
            owners: Mapping[int, bytes] = {}
            if not self.forms:
                seconds = [*numbers] if ordered else [-1] * len(lines)
            else:
                seconds = stamps.seconds(lines)
                if MISSING in seconds:
                    rows, owners = self._joined(zip(seconds, lines, numbers, strict=True), last)
                    seconds = [second for second, _, _ in rows]
                    lines = [line for _, line, _ in rows]
                    numbers = [number for _, _, number in rows]
            if lines:
                last = seconds[-1]
                yield self._batch(seconds, lines, numbers, owners, stamps)

    def _joined(self, rows: Iterable[Row], last: int) -> tuple[list[Row], dict[int, bytes]]:
        """Join lines with their continuations; `last` is the second of the line before `rows`. A
        line that tells a cause after a calm record is a record of its own, by the same speaker; one
        that tells who ended has none (empty). Return these speakers by line.
        """
        owners: dict[int, bytes] = {}
        headed = self.place if self.place and self.place.before_time else None
        joined: list[Row] = []
        for second, line, number in rows:
            if second != MISSING or not number or (headed and headed.pattern.match(line)):
                last = last if second == MISSING else second
                joined.append((last, line, number))
            elif subject(line[:MOST_TEXT].decode("utf-8", "replace"), TOLD):
                owners[number] = b""
                joined.append((last, line, number))
            elif joined and len(joined[-1][1]) <= MOST_TEXT and not FRAME.match(line):
                second, text, begun = joined[-1]
                if tells_cause(line[:MOST_TEXT], text[:MOST_TEXT]):
                    owners[number] = self.speaker_in(self.headed(text).text) or b""
                    joined.append((second, line, number))
                else:
                    joined[-1] = second, text + b" " + line.strip(), begun
        return joined, owners

    def _batch(
        self,
        seconds: Sequence[int],
        lines: Sequence[bytes],
        numbers: Sequence[int],
        owners: Mapping[int, bytes],
        stamps: Stamps,
    ) -> Batch:
        """Make a batch of lines, which `stamps` have just read."""
        short = max(map(len, lines)) <= TIMED
        heads = b"\n".join(lines if short else [line[:TIMED] for line in lines])
        keys: list[Hashable] = [*heads.translate(None, HEXADECIMAL).split(b"\n")]
        if self._numbered:
            begin, end = stamps.span or (0, 0)  # with it, lines are read twice as fast
            cut = [line[:begin] + line[end:] for line in lines]
            texts = cut if stamps.span else [self.headed(line).text for line in lines]
            keys = [*zip(map(self.speaker_in, texts), keys, strict=True)]
        if owners:
            keys = [*zip(map(owners.get, numbers), keys, strict=True)]

        def record(i: int) -> Record:
            text, owner = self.headed(lines[i]).text, owners.get(numbers[i])
            speaker = self.speaker_in(text) if owner is None else owner
            return Record(speaker, None, text, numbers[i])

        return Batch(seconds, keys, lines, record)

    def speaker_in(self, text: bytes) -> bytes | None:
        """Return who speaks in a line without its time; a service of the call graph if possible."""
        match = self.place.pattern.match(text) if self.place else None
        name = match[1] if match else None
        if self._services and (name is None or service_name(name) not in self._services):
            return self._namer.first(text[:LOOK].decode("utf-8", "replace")).encode() or name
        return name


class ObjectLayout:
    """How to read records: by the paths of each part. Its attributes are those of `TextLayout`."""

    def __init__(
        self, kind: str, sample: Sequence[dict[str, Any]], services: Sequence[str], items: Items
    ) -> None:
        self.kind, self._items, self._text = kind, items, None
        rows = [dict(flattened(record)) for record in sample]
        self._find_parts(rows)
        texts = [self._message_of(record) for record in sample]
        fields = [{path: flat(value) for path, value in row.items()} for row in rows]
        self._service, self.proven = best_key(fields, texts, services)
        self.speaker = ".".join(self._service[0]) if self._service else ""
        if not self._service:
            lines = [_line(record, text) for record, text in zip(sample, texts, strict=True)]
            self._text = TextLayout(lines, services)
            self.proven = self._text.proven
            self.speaker = "its text" if self._text.place else ""
        self.begins = next((second for second in map(self._second_of, sample) if second >= 0), -1)
        self.periods = [0] if self.begins >= 0 else []
        times = (str(at(record, self._time) or "").encode("utf-8", "replace") for record in sample)
        self.zoned = states_zone(times, [clock.form for clock in self._clocks])

    def _find_parts(self, rows: Sequence[Mapping[KeyPath, Any]]) -> None:
        """Find where records have their parts, except the speaker, by the values at each path."""
        values: dict[KeyPath, list[Any]] = defaultdict(list)
        for row in rows:
            for path, value in row.items():
                values[path].append(value)
        common = sorted(values, key=lambda path: -len(values[path]))[:SOME]

        def named(part: str) -> list[KeyPath]:
            """The paths that have one of the names of a part, the most telling name first."""
            ranks = {name: rank for rank, name in enumerate(FIELDS[part])}
            ranked = [(path, name) for path in common for name in _names(path) if name in ranks]
            ranked.sort(key=lambda entry: (ranks[entry[1]], len(entry[0])))
            return list(dict.fromkeys(path for path, _ in ranked))

        def share(path: KeyPath, holds: Callable[[Any], bool]) -> float:
            """The share of the values at a path for which `holds` is true."""
            some = values[path][:SOME]
            return sum(map(holds, some)) / len(some)

        def timed(path: KeyPath) -> bool:
            clocks = [Clock(form) for form in FORMS]
            return share(path, lambda value: time_of(value, clocks) >= 0) > 0.8

        def levelled(path: KeyPath) -> bool:
            return share(path, lambda value: named_level(value, short(path[-1])) is not None) > 0.8

        def worded(path: KeyPath) -> bool:
            named = short(path[-1]) not in ("type", "kind", "event")  # `log` is a type, too
            return named and share(path, lambda value: str(value).strip().lower() in LEVELS) > 0.95

        times = [*filter(timed, common)]
        self._time = [path for path in named("time") if path in times] or times[:1]
        written = [str(value) for path in self._time[:1] for value in values[path][:SOME]]
        forms = find_forms([value.encode("utf-8", "replace") for value in written])
        self._clocks = [Clock(form) for form in forms]  # for times written as text
        self._level = [*filter(levelled, named("level"))] or [*filter(worded, common)]
        self._message = [
            path
            for path in named("message")
            if isinstance(values[path][0], str) and _names(path)[1] not in FIELDS["error"]
        ]
        self._error = [path for path in named("error") if path not in self._message][:2]
        requests = any(_names(path)[0] in FIELDS["request"] for path in common)
        self._status = named("status") if requests or not self._message else []

    def batches(
        self, parts: Iterable[bytes], reading: Reading, near: int | None, ordered: bool
    ) -> Iterator[Batch]:
        """Yield the records of a file; see `TextLayout.batches`."""
        timed = self._records(parts, reading, ordered)
        while some := [*islice(timed, SAMPLE)]:
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
        """Yield records with their times; a record without one takes that of the record before."""
        last = -1
        for record, line in self._items(parts, reading):
            second = self._second_of(record)
            if second < 0 and self._time and self._message and at(record, self._message) is None:
                continue  # not a record, but something else in the document
            last = second if second >= 0 else line if ordered else last
            text = self._message_of(record)
            service: bytes | str | None = flat(at(record, self._service)) or None
            if service is None and self._text:
                service = self._text.speaker_in(self._text.headed(_line(record, text)).text)
            level = self._level_of(record)
            yield last, Record(service, level, text.encode("utf-8", "replace"), line)

    def _second_of(self, record: Any) -> int:
        """Return the second at which a record was made; -1 if it does not say."""
        return time_of(at(record, self._time), self._clocks)

    def _level_of(self, record: Any) -> int | None:
        """Return the level that a record states, or that its HTTP status gives; None if neither."""
        level = None
        for path in self._level:
            name = short(path[-1])
            level = named_level(at(record, (path,)), name)
            if name == "priority" and level == CALM:
                level = None  # for what a program prints, the text may say more
            if level is not None:
                break
        tags = record.get("tags") if level is None else None
        if isinstance(tags, list):  # of Kibana, the level among them
            levels = (named_level(tag) for tag in tags if isinstance(tag, str))
            level = max((stated for stated in levels if stated is not None), default=None)
        status = str(at(record, self._status) or "") if self._status else ""
        if len(status) == 3 and status.isdecimal() and (level is None or level < WARN):
            return level_of_status(status.encode())
        return level

    def _message_of(self, record: Any) -> str:
        """Return the message of a record (all of it if there is none), followed by its errors."""
        value = at(record, self._message)
        text = flat(record if value is None else value)
        paths = self._error
        if not paths and not ERRORS.isdisjoint(record):  # errors may begin after the sample
            paths = [(name,) for name in FIELDS["error"] if name in record]
        for path in paths:
            error = at(record, (path,))
            text += f" {flat(error)}" if error is not None and error != value else ""
        return text[:MOST_TEXT]


def _names(path: KeyPath) -> tuple[str, str]:
    """The names by which a path may be known: its last key, and its last two keys joined."""
    return short(path[-1]), short("".join(path[-2:]))


def _line(record: dict[str, Any], text: str) -> bytes:
    """The text of a record, after what stands before the record in its line."""
    return f"{record.get(PREFIX, '')}{text}".encode("utf-8", "replace")


def json_lines(parts: Iterable[bytes], reading: Reading) -> Records:
    """Yield the records in lines of JSON; text before or without an object becomes a field."""
    for lines in blocks(parts, reading):
        for number, line in enumerate(lines, reading.lines - len(lines)):
            head = PAYLOAD.match(line)
            begin = head.end() if head else 0
            values = objects_of(line[begin:].decode("utf-8", "replace").strip())
            records = [record for value in values for record in records_in(value)]
            if not records and line.strip():
                records = [{"message": line.decode("utf-8", "replace")}]
            for record in records:
                if begin and values:
                    record[PREFIX] = line[:begin].decode("utf-8", "replace")
                yield record, number


def json_document(parts: Iterable[bytes], reading: Reading) -> Records:
    """Yield the records of a JSON document, each with its line number."""
    for value, line in objects_in(parts, reading):
        for record in records_in(value):
            yield record, line


def layout_of(head: bytes, services: Sequence[str], named: bool) -> TextLayout | ObjectLayout:
    """Work out how to read a file that begins with `head`; `named` if its name is a service's."""
    lines = list(chain.from_iterable(blocks([head], Reading())))
    lines = [line.removeprefix(BOM) for line in (lines[:-1] or lines) if line.strip()]
    sampled = lines[:: max(1, len(lines) // SAMPLE)][:SAMPLE]
    kind, items = _items(head.removeprefix(BOM).lstrip(), sampled)
    layout: TextLayout | ObjectLayout
    if items is None:
        layout = TextLayout(sampled, services, FILE_NAME_LEAD if named else 0.0)
    else:
        sample = [record for record, _ in islice(items([head], Reading()), SAMPLE)]
        layout = ObjectLayout(kind, sample, services, items)
    if named and not layout.speaker:
        layout.speaker, layout.proven = "its name", True
    return layout


def _items(head: bytes, lines: Sequence[bytes]) -> tuple[str, Items | None]:
    """Return the kind of a file, and the function that reads its records; None for plain text."""
    some = [(line, PAYLOAD.match(line)) for line in lines[:100]]
    parsed = [
        bool(prefix and objects_of(line[prefix.end() :].decode("utf-8", "replace")))
        for line, prefix in some
    ]
    if some and sum(parsed) >= MAJORITY * len(some):
        return ("json" if lines[0].lstrip()[:1] == b"{" else "text with json"), json_lines
    fields = sum(bool(JSON_FIELD.match(line)) for line, _ in some)
    cut = 2 < fields >= MAJORITY * len(some)  # out of the middle of a document
    if cut or re.match(rb"\[\s*[\[{]|\{\s*\"", head):
        return "json document", json_document
    texts = [line.decode("utf-8", "replace") for line, _ in some[:20]]
    for delimiter in DELIMITERS if texts else "":
        titles, *rest = [text.split(delimiter) for text in texts]
        whole = sum(len(row) >= len(titles) for row in rest) > MAJORITY * len(rest)
        if len(titles) > 2 and whole and all(map(TITLE.fullmatch, titles)):
            return "csv", partial(csv_rows, delimiter)
    return "text", None
