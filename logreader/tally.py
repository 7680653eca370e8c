"""Count records in memory that does not grow with the log: how many lines of each shape a service
printed, and when, with an example of each shape.

Lines have one shape if they differ only in digits (trouble), or in hexadecimal digits (calm lines,
of which there are more). Shapes whose first words agree share a template. Each is analysed once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import NamedTuple

from logtriage.play.actions import visible

from .causes import cause_of
from .levels import ERROR, FATAL, WARN, level_of, status_of
from .names import (
    DESCRIBED,
    EVENT,
    PLATFORM,
    REPLICA,
    TOLD,
    Namer,
    program,
    service_name,
    shared_prefix,
    subject,
)
from .speakers import no_name


class Record(NamedTuple):
    """A line, or an object, of a log."""

    speaker: bytes | str | None  # None if it is the file's
    level: int | None  # None if the text has to tell it
    text: bytes
    line: int  # its number, from 0


class Batch(NamedTuple):
    """Some records of a file; those that differ only in numbers have equal `keys`."""

    seconds: Sequence[int]  # -1 for one without a time
    keys: Sequence[Hashable]
    lines: Sequence[bytes]  # their texts
    record: Callable[[int], Record]  # the record at an index


# Used in place of a shape if lines with one key have several shapes: lines of trouble differ in the
# letters of hexadecimal numbers, and requests differ in status.
BY_DIGITS, BY_STATUS = -1, -2

HEAD = 240  # bytes of a text that tell its shape
TIMED = HEAD + 32  # the same for a text with its time
EXAMPLE = 1_000  # characters kept of a line
MOST_SHAPES = 20_000  # beyond them, lines are counted only by level and service
REST = b"(others)"  # the text of such lines
MOST_KNOWN = 50_000  # keys that are cached
MOST_SERVICES = 500
SPELLING = 240  # bytes of a service's name
MOST_CELLS = 200_000  # counts kept; beyond them, buckets are made wider
WIDTHS = (1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400, 604_800, 31_536_000)  # seconds a bucket
HEXADECIMAL, DIGITS = b"0123456789abcdefABCDEF", b"0123456789"
NUMBER = re.compile(rb"[0-9a-f]{8}(?:-?[0-9a-f]{4,})*")  # in hexadecimal, as of a trace or a UUID
UNNAMED = "log"  # the service of lines that do not say who speaks
OTHERS = "others"  # the service of lines beyond `MOST_SERVICES`
TEMPLATE_WORDS = 12
VARIES = re.compile(r"\d|^[0-9a-fA-F]{8,}$|^/.*/|@")  # a word that is a number, a path, an address
SPLIT = re.compile(r"[\s=,;()\[\]{}]+|\"[^\"]*\"|'[^']*'")
ONE_REPLICA = 0.8  # share of all replicas' trouble at which one is told apart


@dataclass(slots=True)
class Shape:
    """Lines of a service that differ in numbers only."""

    service: int  # its number in `Tally.services`
    level: int
    template: int  # a number that shapes with the same first words share
    example: str  # one of them, safe to show
    at: tuple[int, int]  # (number of the file, line) of the example; both from 0


@dataclass
class Tally:
    """The counts of a log."""

    known: Sequence[str] = ()  # names of services in the call graph
    # From (bucket, shape) to lines. A bucket is a time in units of `width`, or -1 for no time.
    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    # From such cells of trouble to (number of the file, line) of their first line.
    firsts: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    width: int = 1
    services: list[str] = field(default_factory=list)  # names, by number
    shapes: list[Shape] = field(default_factory=list)  # by number
    records: int = 0  # lines counted

    def __post_init__(self) -> None:
        self._namer = Namer(self.known)
        self._numbers = {name: number for number, name in enumerate(self.services)}
        self._exact: dict[tuple[int, int, bytes], int] = {}  # shapes by service, level and text
        self._templates: dict[tuple[str, ...], int] = {}

    def add(self, batches: Iterable[Batch], file: int, service: str) -> tuple[int, int]:
        """Count a file's records, by default `service`'s; return how many, and how many untimed."""
        # Shapes by key, or by key and what tells its shapes apart if it has several.
        known: dict[Hashable, int] = {}
        read = untimed = 0
        for seconds, keys, lines, record in batches:
            if len(known) > MOST_KNOWN:
                known.clear()
            read += len(keys)
            untimed += seconds.count(-1)
            if not known.keys() >= set(keys):
                for i, key in enumerate(keys):
                    if key not in known:
                        known[key] = self._shape(record(i), service, file)
            shapes = [*map(known.__getitem__, keys)]
            for i in _places_of({BY_DIGITS, BY_STATUS}, shapes):
                if shapes[i] == BY_STATUS:
                    apart = keys[i], status_of(lines[i][:EXAMPLE])
                else:
                    apart = keys[i], NUMBER.sub(b"", lines[i][:TIMED]).translate(None, DIGITS)
                if apart not in known:
                    known[apart] = self._shape(record(i), service, file, exact=True)
                shapes[i] = known[apart]
            self._note_firsts(seconds, shapes, file, record)
            self._count(seconds, shapes)
        self.records += read
        return read, untimed

    def _note_firsts(
        self,
        seconds: Sequence[int],
        shapes: Sequence[int],
        file: int,
        record: Callable[[int], Record],
    ) -> None:
        """Note where the first line of each new count of trouble is."""
        bad = {shape for shape in {*shapes} if self.shapes[shape].level >= WARN}
        if not bad:
            return
        for i in _places_of(bad, shapes):
            cell = seconds[i] // self.width, shapes[i]
            if cell not in self.firsts:
                self.firsts[cell] = file, record(i).line

    def _count(self, seconds: Iterable[int], shapes: Iterable[int]) -> None:
        """Add a line of each shape at its second; widen buckets if there are too many counts."""
        if self.width > 1:
            seconds = map(self.width.__rfloordiv__, seconds)
        self.counts.update(zip(seconds, shapes, strict=True))
        while len(self.counts) > MOST_CELLS and self.width < WIDTHS[-1]:
            width = WIDTHS[WIDTHS.index(self.width) + 1]
            wider = Counter[tuple[int, int]]()
            for second, shape, lines in self.rows():
                wider[second // width, shape] += lines
            self.counts = wider
            firsts: dict[tuple[int, int], tuple[int, int]] = {}
            for (bucket, shape), at in self.firsts.items():
                firsts.setdefault((max(-1, bucket * self.width // width), shape), at)
            self.firsts, self.width = firsts, width

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield each count: first second of its bucket (-1 if without time), shape, and lines."""
        for (bucket, shape), lines in self.counts.items():
            yield bucket * self.width if bucket >= 0 else -1, shape, lines

    def lines(self) -> Iterator[tuple[int, Shape, int]]:
        """Yield the rows with the shapes themselves."""
        for second, number, lines in self.rows():
            yield second, self.shapes[number], lines

    def _shape(self, record: Record, file_service: str, file: int, exact: bool = False) -> int:
        """Return the shape of a record, or, if its key has several shapes and `exact` is not set,
        what tells them apart. Beyond `MOST_SHAPES`, new lines of a service share one per level.
        """
        level, status = record.level, b""
        if level is None:
            text = record.text[:EXAMPLE]
            status = status_of(text)
            level = level_of(text, status)
        trouble = level >= WARN
        if not exact and (status or trouble):
            return BY_STATUS if status else BY_DIGITS
        varying = DIGITS if trouble and not status else HEXADECIMAL
        head = NUMBER.sub(b"", record.text[:HEAD]).translate(None, varying)
        owner = self._number(self._speaker(record.speaker, file_service))
        shape = owner, level, head
        if shape not in self._exact and len(self.shapes) >= MOST_SHAPES:
            shape = owner, level, REST
        if shape not in self._exact:
            self._exact[shape] = len(self.shapes)
            example = visible(record.text if trouble else record.text[:HEAD], EXAMPLE)
            template = self._template(example if shape[2] != REST else "")
            self.shapes.append(Shape(owner, level, template, example, (file, record.line)))
        return self._exact[shape]

    def _template(self, text: str) -> int:
        """Return the number of a text's template: its first words, with numbers and such masked."""
        said = [word for word in SPLIT.split(text) if word][:TEMPLATE_WORDS]
        words = tuple("*" if VARIES.search(word) else word for word in said)
        return self._templates.setdefault(words, len(self._templates))

    def _speaker(self, raw: bytes | str | None, file_service: str) -> str:
        """Return the name of the service that speaks in a line."""
        if not raw or raw.isdigit() or file_service in self.known:
            return file_service
        name = service_name(raw[:SPELLING])
        return self._namer.first(name) or name if self.known and name not in self.known else name

    def _number(self, name: str) -> int:
        """Return the number of a service; a new service gets a new one."""
        if name not in self._numbers and len(self.services) >= MOST_SERVICES and name != OTHERS:
            return self._number(OTHERS)
        if name not in self._numbers:
            self._numbers[name] = len(self.services)
            self.services.append(name)
        return self._numbers[name]

    def settle(self) -> None:
        """Once all is read, give the platform's trouble to whom it is about, and shorten names. A
        service of whom the platform tells a cause has died, whatever the line's level. Where
        nothing says who speaks, the program does that prints such lines.
        """
        known = [name for name in self.services if not PLATFORM.match(name)]
        namer = Namer(REPLICA.sub("", name) for name in known)
        pod = ""  # that is described
        for shape in self.shapes:
            pod = subject(shape.example, DESCRIBED) or pod
            if pod and EVENT.search(shape.example):
                shape.service = self._number(pod)
            if shape.level < WARN:
                continue
            speaker = self.services[shape.service]
            if PLATFORM.match(speaker):
                about = namer.first(shape.example) or subject(shape.example)
            else:
                about = speaker if speaker == pod else subject(shape.example, TOLD)
                if speaker not in (UNNAMED, about) and not (about and no_name(speaker)):
                    continue
            process = about.removesuffix("-server")
            if about:
                shape.service = self._number(process if process in known else about)
                shape.level = FATAL if cause_of(shape.example).own else shape.level
            elif name := program(shape.example):
                shape.service = self._number(name)
        self._shorten()

    def _shorten(self) -> None:
        """Remove the prefix that all names share, if lines name services without it."""
        used = sorted(speakers_of(self) - {OTHERS})
        prefix = shared_prefix(used)
        if not prefix or any(name in self.known for name in used):
            return
        texts = [shape.example for shape in self.shapes if shape.level >= WARN]
        long, brief = Namer(used), Namer(name.removeprefix(prefix) for name in used)
        if any(len(brief.all(text)) > len(long.all(text)) for text in texts):
            self.services = [name.removeprefix(prefix) for name in self.services]

    def merge_replicas(self, start: int, end: int) -> bool:
        """Give the lines of replicas to their service, and return whether any changed hands. They
        keep them if one has most of their errors between two times; a single replica does so unless
        others name its service and never this replica.
        """
        errors: Counter[int] = Counter()
        for second, shape, lines in self.lines():
            if shape.level >= ERROR and start <= second < end:
                errors[shape.service] += lines
        replicas: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self.services):
            if name not in self.known:
                replicas[REPLICA.sub("", name)].append(number)
        namer, said = Namer({*self.services, *replicas}), set[str]()
        for shape in self.shapes:
            said |= set(namer.all(shape.example)) - {self.services[shape.service]}
        into: dict[int, int] = {}
        for base, numbers in replicas.items():
            troubles = [errors[replica] for replica in numbers]
            if len(numbers) > 1:
                apart = max(troubles) >= ONE_REPLICA * sum(troubles) > 0
            else:
                apart = base not in said or self.services[numbers[0]] in said
            if not apart:
                owner = self._number(base)
                into |= {number: owner for number in numbers if number != owner}
        moved = [shape for shape in self.shapes if shape.service in into]
        for shape in moved:
            shape.service = into[shape.service]
        return bool(moved)

    def without(self, start: int, end: int) -> "Tally":
        """Return a tally of its own, without the counts between two times."""
        kept = {
            cell: lines
            for cell, lines in self.counts.items()
            if not start <= cell[0] * self.width < end
        }
        return replace(
            self,
            counts=Counter(kept),
            services=[*self.services],
            shapes=[replace(shape) for shape in self.shapes],
        )


def _places_of(wanted: Set[int], shapes: Sequence[int]) -> Iterator[int]:
    """Return the indices in `shapes` of those that are wanted, at the speed of C."""
    return compress(range(len(shapes)), map(wanted.__contains__, shapes))


def speakers_of(tally: Tally) -> set[str]:
    """The services that have lines."""
    return {tally.services[tally.shapes[shape].service] for _, shape in tally.counts}
