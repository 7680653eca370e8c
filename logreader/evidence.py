"""What the window of a log shows of each service, compared with the earlier part of the log: how
much it printed, which trouble is new or more than usual, and whom it complains of.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log2

from .causes import UNRESOLVED, Cause, cause_of
from .levels import FAILED, FATAL, WARN
from .names import PLATFORM, RESOLVER, Namer, targets
from .tally import OTHERS, Tally, speakers_of
from .window import Window, gain, weight
from .words import WORDS, any_of

CAUSES, SYMPTOMS, COMPLAINTS, CHANGES = (
    any_of(words, "(?i)") for words in WORDS["trouble"].values()
)
BEFORE = 180  # how many seconds before the trouble a change may be its cause
CAUSE_WEIGHT, END_WEIGHT, SYMPTOM_WEIGHT = 2.0, 1.5, 0.5
WARNING_WEIGHT = 0.5  # where nothing is known of what is usual: a start prints many warnings
SILENT = 0.2  # share of its usual lines below which a service has gone silent
SILENT_LINES = 10  # how many lines it should have printed, at least
SILENCE = 8.0  # what silence weighs, on the scale of `window.gain`
UNUSUAL_GAIN = 4.0  # gain from which trouble in the window is more than usual
MOST_TARGETS = 50  # services known only because others name them


@dataclass(frozen=True)
class Trouble:
    """Lines of trouble of one service that share a template."""

    lines: int  # how many are in the window
    usual: float  # how many a stretch of that length had before
    gain: float  # how unusual that is, see `window.gain`
    example: str  # one of the lines, safe to show
    at: tuple[int, int]  # (number of the file, line) of the example, both from 0
    level: int  # see `levels`
    first: int  # second of its first line in the window; -1 where lines have no time
    names: Mapping[str, float]  # services that its examples name, to numbers of lines

    @property
    def happened(self) -> Cause:
        """What its words say has happened."""
        return cause_of(self.example)

    @property
    def own_error(self) -> bool:
        """Whether it is an error that tells what has happened to the service itself."""
        # What is refused with a warning is somebody's mistake, such as a wrong password.
        own = self.level > WARN and self.happened.own
        return own and not SYMPTOMS.search(self.example)

    @cached_property
    def cause(self) -> bool:
        """Whether its words tell of a cause within the service itself."""
        return (self.own_error or bool(CAUSES.search(self.example))) and not self.names

    @property
    def of_another(self) -> bool:
        """Whether its words say what another service has done."""
        return bool(self.happened.name) and not self.happened.own

    @cached_property
    def symptom(self) -> bool:
        """Whether its level or words tell of what another service does."""
        tells = self.of_another or bool(SYMPTOMS.search(self.example))
        return self.level == FAILED or (tells and not self.cause)

    @cached_property
    def mass(self) -> float:
        """How strongly it tells that something is wrong: its gain, weighted by its words."""
        if self.cause:
            return self.gain * (END_WEIGHT if self.happened.vague else CAUSE_WEIGHT)
        return self.gain * (SYMPTOM_WEIGHT if self.symptom else 1.0)


@dataclass
class ServiceEvidence:
    """What the window shows of a service."""

    name: str
    lines: float = 0.0  # per minute, like all counts here
    usual_lines: float = 0.0
    errors: float = 0.0
    usual_errors: float = 0.0
    warnings: float = 0.0
    usual_warnings: float = 0.0
    troubles: list[Trouble] = field(default_factory=list)  # the most unusual first
    silent: bool = False  # whether it all but stopped printing

    @property
    def cause(self) -> bool:
        """Whether its own lines tell of a cause within the service."""
        return any(trouble.cause for trouble in self.troubles)

    @property
    def died(self) -> bool:
        """Whether its own lines tell what it died of."""
        return any(trouble.cause and trouble.level == FATAL for trouble in self.troubles)

    @property
    def own_share(self) -> float:
        """The share of its trouble that is more than a symptom of what others do."""
        total = sum(trouble.mass for trouble in self.troubles)
        own = sum(trouble.mass for trouble in self.troubles if not trouble.symptom)
        return own / total if total else 0.0

    @property
    def ended_share(self) -> float:
        """The share of its trouble that tells only how it ended; 0 if more tells why."""
        if any(trouble.cause and not trouble.happened.vague for trouble in self.troubles):
            return 0.0
        ended = sum(trouble.mass for trouble in self.troubles if trouble.happened.vague)
        return ended / self._total if ended else 0.0

    @property
    def mass(self) -> float:
        """How much is wrong with it, as a logarithm: ten times the lines are not ten causes."""
        return log2(1.0 + self._total)

    @property
    def _total(self) -> float:
        return sum(trouble.mass for trouble in self.troubles) + SILENCE * self.silent

    @property
    def names(self) -> dict[str, float]:
        """The services that it complains of, with the share of its trouble that names each."""
        total = self._total
        named: dict[str, float] = defaultdict(float)
        for trouble in self.troubles:
            for name, lines in trouble.names.items():
                named[name] += lines / trouble.lines * trouble.mass / total
        symptoms = [trouble for trouble in self.troubles if trouble.symptom]
        # Unnamed symptoms count towards those that other lines name.
        unnamed = sum(symptom.mass for symptom in symptoms if not symptom.names)
        more = 1.0 + unnamed / total / sum(named.values()) if named else 1.0
        return {name: share * more for name, share in named.items()}


Evidence = Mapping[str, ServiceEvidence]  # by service


class Counts:
    """How many lines of each shape are in the window, or the whole log, and in the usual time."""

    def __init__(self, tally: Tally, window: Window | None) -> None:
        self.inside, self.before = Counter[int](), Counter[int]()
        self.first: dict[int, int] = {}  # the second of the first line in the window
        start, end, usual = window[:3] if window else (-1, 1 << 62, (0, 0))
        self.length, self.rest = end - start, usual[1] - usual[0]  # seconds
        for second, number, lines in tally.rows():
            if start <= second < end:
                self.inside[number] += lines
                self.first[number] = min(self.first.get(number, second), second)
            elif usual[0] <= second < usual[1]:
                self.before[number] += lines


def weigh(
    tally: Tally, window: Window | None, services: Sequence[str] = ()
) -> dict[str, ServiceEvidence]:
    """Return the evidence on each service with lines, each known one, and if none are known, each
    that trouble names. Without a window, all lines count, and nothing is usual.
    """
    counts = Counts(tally, window)
    known = sorted({*speakers_of(tally), *services})
    named = _named(tally, counts.inside, known, find=not services)
    everybody = (*known, *(name for names in named.values() for name in names))
    evidence = {name: ServiceEvidence(name) for name in dict.fromkeys(everybody)}
    minutes = counts.length / 60.0 if window else 1.0
    usual_minutes = max(1, counts.rest) / 60.0 if window else 1.0
    kinds: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in {**counts.inside, **counts.before}:
        shape = tally.shapes[number]
        service = evidence[tally.services[shape.service]]
        now, then = counts.inside[number] / minutes, counts.before[number] / usual_minutes
        service.lines += now
        service.usual_lines += then
        if shape.level == WARN:
            service.warnings += now
            service.usual_warnings += then
        elif shape.level > WARN:
            service.errors += now
            service.usual_errors += then
        if shape.level >= WARN:
            kinds[service.name, shape.template].append(number)
    few: dict[str, list[Trouble]] = defaultdict(list)
    for (name, _), numbers in kinds.items():
        if any(counts.inside[number] for number in numbers):
            trouble = _trouble(tally, numbers, counts, named)
            telling = not trouble.usual and (trouble.level == FATAL or trouble.own_error)
            if window is None or telling or trouble.gain >= UNUSUAL_GAIN:
                evidence[name].troubles.append(trouble)
            elif trouble.names and not trouble.usual:
                few[name].append(trouble)
    for service in evidence.values():
        if service.died:  # what it complained of counts, though it were one line
            service.troubles += few[service.name]
        service.troubles.sort(key=lambda trouble: (-trouble.mass, trouble.example))
        expected = service.usual_lines * minutes
        fell_silent = expected >= SILENT_LINES and service.lines < SILENT * service.usual_lines
        service.silent = counts.rest > 0 and fell_silent
    return evidence


def _trouble(
    tally: Tally, numbers: Sequence[int], counts: Counts, named: Mapping[int, Sequence[str]]
) -> Trouble:
    """Sum up the shapes of a service's trouble that share a template."""
    inside, before, rest = counts.inside, counts.before, counts.rest
    now = [number for number in numbers if inside[number]]
    shapes = {number: tally.shapes[number] for number in now}
    most = max(now, key=lambda n: (cause_of(shapes[n].example).own, shapes[n].level, inside[n]))
    shape = shapes[most]
    names: dict[str, float] = defaultdict(float)
    for number in now:
        for name in named[number]:
            names[name] += inside[number] / len(named[number])
    # Both sides are weighted alike, or else a steady FATAL line would seem unusual.
    lines, usual = (
        sum(side[number] * weight(tally.shapes[number].level) for number in numbers)
        for side in (inside, before)
    )
    return Trouble(
        sum(inside[number] for number in now),
        sum(before[number] for number in numbers) * counts.length / rest if rest else 0.0,
        gain(lines, counts.length, usual, rest) if rest else _loudness(lines, shape.level),
        shape.example,
        tally.firsts.get((max(-1, counts.first[most] // tally.width), most), shape.at),
        shape.level,
        min(counts.first[number] for number in now),
        dict(names),
    )


def _loudness(lines: int, level: int) -> float:
    """How strongly lines of trouble tell that something is wrong, without what is usual."""
    return log2(1.0 + lines) * (WARNING_WEIGHT if level == WARN else 1.0)


def _named(
    tally: Tally, inside: Mapping[int, int], known: Sequence[str], find: bool
) -> dict[int, list[str]]:
    """Map shapes of trouble to the services that they call or complain of, all if `find`."""
    namer = Namer(name for name in known if name != OTHERS and not PLATFORM.match(name))
    resolvers = [name for name in known if RESOLVER.match(name)]
    named: dict[int, list[str]] = {}
    met: set[str] = set()
    for number in inside:
        shape = tally.shapes[number]
        if shape.level < WARN:
            continue
        text = shape.example
        called = [name for name in targets(text, known) if find or name in known]
        suffers = shape.level == FAILED or SYMPTOMS.search(text) or COMPLAINTS.search(text)
        mentioned = namer.all(text) if suffers and not CAUSES.search(text) else ()
        everybody = dict.fromkeys((*mentioned, *called))
        if resolvers and cause_of(text) == UNRESOLVED:
            everybody = dict.fromkeys(resolvers)
        names = [name for name in everybody if name in met or len(met) < MOST_TARGETS]
        met.update(name for name in names if name not in known)
        named[number] = [name for name in names if name != tally.services[shape.service]]
    return named


def changes(tally: Tally, window: Window) -> dict[str, str]:
    """Return, by service, a line about a change that first came shortly before the trouble."""
    first: dict[int, int] = {}
    for second, number, _ in tally.rows():
        if second >= 0:
            first[number] = min(second, first.get(number, second))
    near = range(window.start - BEFORE, window.start + tally.width)
    shapes = [tally.shapes[number] for number, second in first.items() if second in near]
    changed = [shape for shape in shapes if CHANGES.search(shape.example)]
    return {tally.services[shape.service]: shape.example for shape in changed}


def accusers(service: str, evidence: Evidence) -> list[ServiceEvidence]:
    """Return the evidence of the services that complain of a service."""
    return [accuser for accuser in evidence.values() if accuser.names.get(service, 0.0) > 0.0]
