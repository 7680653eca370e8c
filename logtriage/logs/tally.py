"""Records counted, in memory that does not grow with the log: how many lines of which shape each
service printed when, with an example of each shape.

A shape is what lines share that differ in digits only (trouble), or in digits and in the letters of
hexadecimal numbers (calm lines, of which there are many more); `templates` groups shapes. What is
worked out of a text is worked out once a shape.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .levels import FAILED, LEVELS, NAMES, SERVED, WARN, level_of
from .lines import SHOWN, defused, visible
from .names import service_name
from .records import Record
from .templates import OTHER, Templates

HEAD = 240  # bytes of a text by which its shape is told
MOST_SHAPES = 20_000  # beyond them, lines are counted by level and service alone
MOST_SERVICES = 500
MOST_SPELLINGS = 50_000  # of services, as records write them
SPELLING = 240  # of one, which tells it: more than a name may have
MOST_CELLS = 200_000  # counts kept; beyond them buckets are made wider, and then rare lines others
WIDTHS = (1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400, 604_800, 31_536_000)  # seconds a bucket
LAST = 20  # lines kept of the end of each service's log
KEPT = 4 * SHOWN  # bytes of each: what `visible` reads
HEXADECIMAL, DIGITS = b"0123456789abcdefABCDEF", b"0123456789"
# A level with which a text begins, and those of them that the simulator's lines have.
STATED = re.compile(r"[\s\[(<|-]{0,5}([A-Z]{3,8})(?:\b[\s\])>|:-]+)(?=\S)")
SIMULATED = ("LOG", "INFO", "WARN", "ERROR", "CRIT", "FATAL", "PANIC")
OTHERS = "others"  # the service of lines that come when there are too many


@dataclass(slots=True)
class Shape:
    """Lines that differ in numbers only.

    Attributes:
        level: of them.
        template: in `Templates`.
        speaker: who speaks by the text; empty for nobody.
        example: one of them, safe to show.
        at: (number of the file, line) of the example; both from 0.
    """

    level: int
    template: int
    speaker: str
    example: str
    at: tuple[int, int]


# A line that is kept: (its place in the order of reading, second or -1, shape, text).
Kept = tuple[int, int, int, bytes]


@dataclass
class Tally:
    """The counts of a log.

    Args:
        speaker: who speaks in a text, where the record does not say; empty for nobody.
        named: the name of a service from what a record says.
        blurred: bytes that do not tell calm lines apart.

    Attributes:
        counts: (bucket, service, shape) to lines. A bucket is seconds since 1970 in units of
            `width`, or -1 for lines without a time.
        services: names, by number.
        shapes: by number.
        examples: (service, shape) of trouble to a line of that service and where it is, as in
            `Shape`; of the first `MOST_SHAPES` of them.
        last: of each service the last lines.
        records: lines counted.
    """

    speaker: Callable[[bytes], str]
    named: Callable[[bytes | str], str] = service_name
    blurred: bytes = HEXADECIMAL
    counts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    services: list[str] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    templates: Templates = field(default_factory=Templates)
    examples: dict[tuple[int, int], tuple[str, tuple[int, int]]] = field(default_factory=dict)
    last: list[deque[Kept]] = field(default_factory=list)
    width: int = 1
    records: int = 0

    def __post_init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of services by name
        self._spelled: dict[bytes | str, int] = {}  # and by what records write
        self._calm: dict[tuple[int | None, bytes], int] = {}  # -1: trouble, to be told apart finer
        self._trouble: dict[tuple[int | None, bytes], int] = {}
        # Lines of access logs, whose digits say how they were answered.
        self._access: set[tuple[int | None, bytes]] = set()
        self._others: dict[int, int] = {}

    def add(
        self,
        records: Iterable[Record],
        file_service: str,
        file: int,
        first_line: int,
        of_file: bool = False,
    ) -> None:
        """Count records.

        Args:
            file_service: whose they are where neither they nor their text say.
            file: its number.
            first_line: number of its line at place 0.
            of_file: whether they are of the file's service whoever their text names.
        """
        # Local names, for this loop is where the time of reading a log goes.
        counts, shapes, calm, last = self.counts, self.shapes, self._calm, self.last
        spelled, numbers = self._spelled, self._numbers
        width, blurred = self.width, self.blurred
        order = self.records
        for second, raw, level, text, place in records:
            head = text[:HEAD]
            shape = calm.get((level, head.translate(None, blurred)), -1)
            if shape < 0:
                shape = self._shape(level, head, (file, first_line + place))
            if raw is not None:
                raw = raw[:SPELLING]
                service = spelled.get(raw, -1)
                if service < 0:
                    service = self._spell(raw)
            else:
                name = file_service if of_file else shapes[shape].speaker or file_service
                service = numbers.get(name, -1)
                if service < 0:
                    service = self._number(name)
            key = (second // width if second >= 0 else -1, service, shape)
            lines = counts.get(key, 0)
            if not lines and shapes[shape].level >= WARN:
                self._keep(service, shape, head, (file, first_line + place))
            counts[key] = lines + 1
            last[service].append((order, second, shape, text[:KEPT]))
            order += 1
        self.records = order
        while len(self.counts) > MOST_CELLS and self.width < WIDTHS[-1]:
            self._widen()
        if len(self.counts) > MOST_CELLS:
            self._thin_out()

    def example(self, service: int, shape: int) -> tuple[str, tuple[int, int]]:
        """A line of a shape, one of that service where it is known, and where it is."""
        one = self.shapes[shape]
        return self.examples.get((service, shape), (one.example, one.at))

    def _keep(self, service: int, shape: int, head: bytes, at: tuple[int, int]) -> None:
        if (service, shape) not in self.examples and len(self.examples) < MOST_SHAPES:
            self.examples[service, shape] = visible(head), at

    def kept(self, service: int | None = None) -> list[tuple[int, Kept]]:
        """The last lines of a service, or of the whole log, in the order of reading, each with the
        number of its service.
        """
        numbers = range(len(self.last)) if service is None else (service,)
        lines = [(number, one) for number in numbers for one in self.last[number]]
        return sorted(lines, key=lambda line: line[1][0])[-LAST:]

    def told(self, service: str, level: int, text: bytes | str) -> str:
        """A line as the simulator writes them, `LEVEL service text`, safe to show to a model."""
        shown, named = visible(text), NAMES[level]
        stated = STATED.match(shown)
        if stated and stated[1].lower() in LEVELS:
            shown = shown[stated.end() :]
            named = stated[1] if stated[1] in SIMULATED else named
        shown = shown.removeprefix(service).lstrip(" :-|")
        return defused(f"{named} {service} {shown}".rstrip())

    def _number(self, name: str) -> int:
        number = self._numbers.get(name, -1)
        if number < 0:
            if len(self.services) >= MOST_SERVICES and name != OTHERS:
                return self._number(OTHERS)
            number = self._numbers[name] = len(self.services)
            self.services.append(name)
            self.last.append(deque(maxlen=LAST))
        return number

    def _spell(self, raw: bytes | str) -> int:
        if len(self._spelled) >= MOST_SPELLINGS:
            self._spelled.clear()
        number = self._spelled[raw] = self._number(self.named(raw))
        return number

    def _shape(self, level: int | None, head: bytes, at: tuple[int, int]) -> int:
        """The shape of a text that is not known as calm."""
        finely = (level, head.translate(None, DIGITS))
        if finely in self._access:
            finely = (level_of(head), finely[1])
        known = self._trouble.get(finely)
        if known is not None:
            return known
        really = level_of(head) if level is None else level
        if len(self.shapes) >= MOST_SHAPES:
            return self._other(really, visible(head), at)
        number, text = len(self.shapes), visible(head)
        access = level is None and really in (SERVED, FAILED)
        if access:
            self._access.add(finely)
            finely = (really, finely[1])
        self.shapes.append(Shape(really, self.templates.of(text), self.speaker(head), text, at))
        if really >= WARN or access:
            self._trouble[finely] = number
        else:
            self._calm[level, head.translate(None, self.blurred)] = number
        return number

    def _other(self, level: int, example: str, at: tuple[int, int]) -> int:
        """The shape of lines of a level that come when there are too many."""
        if level not in self._others:
            self._others[level] = len(self.shapes)
            self.shapes.append(Shape(level, OTHER, "", example, at))
        return self._others[level]

    def _thin_out(self) -> None:
        """Count the rarest lines as others, by bucket and level alone."""
        most = sorted(self.counts, key=lambda key: -self.counts[key])
        others = self._number(OTHERS)
        for bucket, service, shape in most[MOST_CELLS // 2 :]:
            lines, told = self.counts.pop((bucket, service, shape)), self.shapes[shape]
            key = (bucket, others, self._other(told.level, told.example, told.at))
            self.counts[key] = self.counts.get(key, 0) + lines

    def _widen(self) -> None:
        """Count by the next wider bucket."""
        wider = WIDTHS[WIDTHS.index(self.width) + 1]
        counts: dict[tuple[int, int, int], int] = {}
        for (bucket, service, shape), lines in self.counts.items():
            key = (bucket * self.width // wider if bucket >= 0 else -1, service, shape)
            counts[key] = counts.get(key, 0) + lines
        self.counts, self.width = counts, wider
