"""What the window shows of each service, against the earlier part of the same log: how much it
printed, which trouble is new or more than usual, and whom it complains of.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from .levels import FAILED, FATAL, WARN
from .names import Namer, targets
from .tally import OTHERS, Tally, speakers_of
from .window import Window, gain, weight
from .words import WORDS, any_of

CAUSES, SYMPTOMS, COMPLAINTS, CHANGES = (
    any_of(words, "(?i)") for words in WORDS["trouble"].values()
)
BEFORE = 180  # seconds before the trouble, in which a change may be its cause
CAUSE_WEIGHT, SYMPTOM_WEIGHT = 2.0, 0.5
SILENT = 0.2  # share of its usual lines below which a service has gone silent
SILENT_LINES = 10  # that it should have printed, at least
SILENCE = 8.0  # what that weighs, as lines of trouble do in `window.gain`
LEAST_GAIN = 4.0  # of trouble in the window, from which it counts as more than usual
MOST_TARGETS = 50  # services that are only named by others


@dataclass(frozen=True)
class Trouble:
    """A template of trouble of one service."""

    lines: int  # in the window
    usual: float  # lines that a stretch of that length had before
    gain: float  # how unlike the usual, see `window.gain`
    example: str  # a line of it, safe to show
    at: tuple[int, int]  # (number of the file, line) of the example, both from 0
    level: int  # see `levels`
    first: int  # second of its first line in the window; -1 where lines have no time
    names: Mapping[str, float]  # services that its examples name, to how many lines

    @property
    def cause(self) -> bool:
        """Whether its words tell of a cause at home."""
        return bool(CAUSES.search(self.example)) and not self.names

    @property
    def symptom(self) -> bool:
        """Whether its words tell what somebody else does."""
        return self.level == FAILED or (bool(SYMPTOMS.search(self.example)) and not self.cause)

    @property
    def mass(self) -> float:
        """How much it tells that something is wrong, by its words, too."""
        return self.gain * (CAUSE_WEIGHT if self.cause else SYMPTOM_WEIGHT if self.symptom else 1.0)


@dataclass
class ServiceEvidence:
    """What the window shows of a service."""

    name: str
    lines: float = 0.0  # a minute, as all counts here
    usual_lines: float = 0.0
    errors: float = 0.0
    usual_errors: float = 0.0
    warnings: float = 0.0
    usual_warnings: float = 0.0
    troubles: list[Trouble] = field(default_factory=list)  # the most unlike the usual first
    silent: bool = False  # whether it all but stopped printing

    @property
    def cause(self) -> bool:
        """Whether its own lines tell of a cause at home."""
        return any(one.cause for one in self.troubles)

    @property
    def own_share(self) -> float:
        """The share of its trouble that tells of more than what others do to it."""
        total = sum(one.mass for one in self.troubles)
        return sum(one.mass for one in self.troubles if not one.symptom) / total if total else 0.0

    @property
    def mass(self) -> float:
        """How much is wrong with it, by its own lines: a logarithm, for ten times the lines are not
        ten times the cause.
        """
        return log2(1.0 + self._total)

    @property
    def _total(self) -> float:
        return sum(one.mass for one in self.troubles) + SILENCE * self.silent

    @property
    def names(self) -> dict[str, float]:
        """Whom it complains of, to the share of its new trouble that does; the shares come to 1 at
        most. Symptoms that name nobody are those of whom its other lines name.
        """
        total = self._total
        named: dict[str, float] = defaultdict(float)
        for one in self.troubles:
            for name, lines in one.names.items():
                named[name] += lines / one.lines * one.mass / total
        unnamed = sum(one.mass for one in self.troubles if one.symptom and not one.names)
        more = 1.0 + unnamed / total / sum(named.values()) if named else 1.0
        return {name: share * more for name, share in named.items()}


class Counts:
    """Lines of each shape in a window (without one, in the whole log) and in the stretch that tells
    what is usual.
    """

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
    """The evidence on every service, by name: those that the log has lines of, those that are
    known (`services`), and those that lines of trouble name. Without a window, the whole log is
    taken, and nothing is usual.
    """
    counts = Counts(tally, window)
    known = sorted({*speakers_of(tally), *services})
    named = _named(tally, counts.inside, known, find=not services)
    everybody = (*known, *(one for names in named.values() for one in names))
    found = {name: ServiceEvidence(name) for name in dict.fromkeys(everybody)}
    minutes = counts.length / 60.0 if window else 1.0
    usual_minutes = max(1, counts.rest) / 60.0 if window else 1.0
    kinds: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in {**counts.inside, **counts.before}:
        shape = tally.shapes[number]
        one = found[tally.services[shape.service]]
        now, then = counts.inside[number] / minutes, counts.before[number] / usual_minutes
        one.lines += now
        one.usual_lines += then
        if shape.level == WARN:
            one.warnings += now
            one.usual_warnings += then
        elif shape.level > WARN:
            one.errors += now
            one.usual_errors += then
        if shape.level >= WARN:
            kinds[one.name, shape.template].append(number)
    for (name, _), numbers in kinds.items():
        if any(counts.inside[number] for number in numbers):
            trouble = _trouble(tally, numbers, counts, named)
            died = trouble.level == FATAL and not trouble.usual
            if window is None or died or trouble.gain >= LEAST_GAIN:
                found[name].troubles.append(trouble)
    for one in found.values():
        one.troubles.sort(key=lambda trouble: (-trouble.mass, trouble.example))
        expected = one.usual_lines * minutes
        fell_silent = expected >= SILENT_LINES and one.lines < SILENT * one.usual_lines
        one.silent = counts.rest > 0 and fell_silent
    return found


def _trouble(
    tally: Tally, numbers: Sequence[int], counts: Counts, named: Mapping[int, Sequence[str]]
) -> Trouble:
    """One template of trouble of a service, from its shapes."""
    inside, before, rest = counts.inside, counts.before, counts.rest
    now = [number for number in numbers if inside[number]]
    shape = tally.shapes[max(now, key=lambda number: (tally.shapes[number].level, inside[number]))]
    names: dict[str, float] = defaultdict(float)
    for number in now:
        for name in named[number]:
            names[name] += inside[number] / len(named[number])
    # Both sides weigh alike: else a steady line of a level like FATAL would be unusual.
    lines, usual = (
        sum(side[number] * weight(tally.shapes[number].level) for number in numbers)
        for side in (inside, before)
    )
    return Trouble(
        sum(inside[number] for number in now),
        sum(before[number] for number in numbers) * counts.length / rest if rest else 0.0,
        gain(lines, counts.length, usual, rest) if rest else log2(1.0 + lines),
        shape.example,
        shape.at,
        shape.level,
        min(counts.first[number] for number in now),
        dict(names),
    )


def _named(
    tally: Tally, inside: Mapping[int, int], known: Sequence[str], find: bool
) -> dict[int, list[str]]:
    """Shape of trouble to the services that its example complains of: those that it calls, and
    those that it mentions where it tells of what others do.
    """
    namer = Namer(name for name in known if name != OTHERS)
    named: dict[int, list[str]] = {}
    met: set[str] = set()
    for number in inside:
        shape = tally.shapes[number]
        if shape.level < WARN:
            continue
        text = shape.example
        called = [one for one in targets(text, known) if find or one in known]
        suffers = shape.level == FAILED or SYMPTOMS.search(text) or COMPLAINTS.search(text)
        mentioned = namer.all(text) if suffers and not CAUSES.search(text) else ()
        everybody = dict.fromkeys((*mentioned, *called))
        names = [one for one in everybody if one in met or len(met) < MOST_TARGETS]
        met.update(one for one in names if one not in known)
        named[number] = [one for one in names if one != tally.services[shape.service]]
    return named


def changes(tally: Tally, window: Window) -> dict[str, str]:
    """Services to a line about a change of theirs (a release, a restart, a setting) that first came
    shortly before the trouble.
    """
    first: dict[int, int] = {}
    for second, number, _ in tally.rows():
        if second >= 0:
            first[number] = min(second, first.get(number, second))
    near = range(window.start - BEFORE, window.start + tally.width)
    shapes = [tally.shapes[number] for number, second in first.items() if second in near]
    found = [shape for shape in shapes if CHANGES.search(shape.example)]
    return {tally.services[shape.service]: shape.example for shape in found}
