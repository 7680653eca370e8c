"""What the window shows of each service, against the earlier part of the same log: how much it
printed, which trouble is new or more than usual, and whom it complains of.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple

from .dependencies import targets
from .levels import FAILED, FATAL, WARN
from .names import Namer
from .tally import OTHERS, Tally, speakers_of
from .window import FATAL_LINES, Window, gain

# Words by which a line tells of a cause at home, and those by which it suffers from others.
CAUSES = re.compile(
    r"(?i)out ?of ?memory|\boom|segfault|segmentation|sigsegv|core dumped|panic|no space left"
    r"|disk full|read-only file system|too many (?:open files|connections|clients)"
    r"|remaining connection slots|deadlock|corrupt|nullpointer|null pointer|nil pointer|typeerror"
    r"|keyerror|index out of|exit(?:ed)? (?:with )?(?:code|status)|crashloop|back-?off restarting"
    r"|terminated by signal|certificate has expired|permission denied|migration|rollout|release"
    r"|config(?:uration)?\b|heap|garbage|gc overhead|throttl|cache (?:miss|evict)|runaway|lock wait"
    r"|killed|code=(?:exited|killed|dumped)|disk quota|enospc|canceling statement"
    r"|deadlock timeout|shutting down|aborting|assert"
)
SYMPTOMS = re.compile(
    r"(?i)timed? ?out|timeout|refused|unreachable|unavailable|upstream|connection reset"
    r"|reset by peer|broken pipe|\b50[234]\b|circuit ?breaker|retry|retries|no route to host"
    r"|deadline exceeded|(?:failed|unable|cannot|could not|can't) to? ?(?:connect|call|fetch|reach)"
    r"|not responding|downstream|dependency|enotfound|unknownhost|no such host|eai_again|econn"
    r"|name or service not known|name resolution|no servers|not available|closed the connection"
    r"|connection .{0,40}(?:closed|lost|failed)|bad gateway|disconnected|unexpected eof"
    r"|serverselection"
)
# Words that complain of whomever the line mentions.
COMPLAINTS = re.compile(
    r"(?i)fail|\bno (?:\w+ )?(?:answer|reply|response)|not answer|\bslow|\blate\b|stale|missing"
    r"|lost|gave up|reject|\b4\d\d\b|\b5\d\d\b|without|wait"
)
# Words of a line that tells of a change.
CHANGES = re.compile(
    r"(?i)\b(?:releas|deploy|roll(?:ed|ing)?[ -]?(?:out|back)|upgrad|migrat|restart|reload|started"
    r"|starting|reconfigur|feature flag|flag \S+ |switched|enabled|disabled|version \S*\d"
    r"|config\w* (?:changed|updated))"
)
BEFORE = 180  # seconds before the trouble, in which a change may be its cause
CAUSE_WEIGHT, SYMPTOM_WEIGHT = 2.0, 0.5
SILENT = 0.2  # share of its usual lines below which a service has gone silent
SILENT_LINES = 10  # that it should have printed, at least
SILENCE = 8.0  # what that weighs, as lines of trouble do in `Window.gain`
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


def weigh(
    tally: Tally, window: Window | None, services: Sequence[str] = ()
) -> dict[str, ServiceEvidence]:
    """The evidence on every service, by name: those that the log has lines of, those that are
    known, and those that lines of trouble name.

    Args:
        window: without one, the whole log is taken, and nothing is usual.
        services: names that are known of the cluster.
    """
    counts = _counts(tally, window)
    inside, before, _, length, rest = counts
    known = sorted({*speakers_of(tally), *services})
    named = _named(tally, inside, known, find=not services)
    everybody = (*known, *(one for names in named.values() for one in names))
    found = {name: ServiceEvidence(name) for name in dict.fromkeys(everybody)}
    minutes, usual_minutes = (length / 60.0, max(1, rest) / 60.0) if window else (1.0, 1.0)
    kinds: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in {**inside, **before}:
        shape = tally.shapes[number]
        one = found[tally.services[shape.service]]
        now, then = inside[number] / minutes, before[number] / usual_minutes
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
        if any(inside[number] for number in numbers):
            trouble = _trouble(tally, numbers, counts, named)
            died = trouble.level == FATAL and not trouble.usual
            if window is None or died or trouble.gain >= LEAST_GAIN:
                found[name].troubles.append(trouble)
    for one in found.values():
        one.troubles.sort(key=lambda trouble: (-trouble.mass, trouble.example))
        expected = one.usual_lines * minutes
        fell_silent = expected >= SILENT_LINES and one.lines < SILENT * one.usual_lines
        one.silent = rest > 0 and fell_silent
    return found


def changes(tally: Tally, window: Window) -> dict[str, str]:
    """Services to a line about a change of theirs (a release, a restart, a setting) that first came
    shortly before the trouble.
    """
    first: dict[int, int] = {}
    for bucket, number in tally.counts:
        second = bucket * tally.width
        if bucket >= 0 and second < first.get(number, second + 1):
            first[number] = second
    near = range(window.start - BEFORE, window.start + tally.width)
    shapes = [tally.shapes[number] for number, second in first.items() if second in near]
    found = [shape for shape in shapes if CHANGES.search(shape.example)]
    return {tally.services[shape.service]: shape.example for shape in found}


class Counts(NamedTuple):
    """Lines of each shape in the window, and in the stretch that tells what is usual."""

    inside: Counter[int]
    before: Counter[int]
    first: dict[int, int]  # the second of the first line in the window
    length: int  # seconds of the window
    rest: int  # seconds of the other stretch; 0 for none


def _counts(tally: Tally, window: Window | None) -> Counts:
    """The counts of a window; without one, of the whole log."""
    length, usual = (window.end - window.start, window.usual) if window else (1, (0, 0))
    found = Counts(Counter(), Counter(), {}, length, usual[1] - usual[0])
    for (bucket, number), lines in tally.counts.items():
        second = bucket * tally.width if bucket >= 0 else -1
        if window is None or window.start <= second < window.end:
            found.inside[number] += lines
            found.first[number] = min(found.first.get(number, second), second)
        elif usual[0] <= second < usual[1]:
            found.before[number] += lines
    return found


def _trouble(
    tally: Tally, numbers: Sequence[int], counts: Counts, named: Mapping[int, Sequence[str]]
) -> Trouble:
    """One template of trouble of a service, from its shapes."""
    inside, before, first, length, rest = counts

    def weighted(lines: Counter[int]) -> int:
        # Both sides weigh alike: else a steady line of a level like FATAL would be unusual.
        weights = {n: FATAL_LINES if tally.shapes[n].level == FATAL else 1 for n in numbers}
        return sum(lines[number] * weight for number, weight in weights.items())

    now = [number for number in numbers if inside[number]]
    shape = tally.shapes[max(now, key=lambda number: (tally.shapes[number].level, inside[number]))]
    names: dict[str, float] = defaultdict(float)
    for number in now:
        for name in named[number]:
            names[name] += inside[number] / len(named[number])
    usual, lines = weighted(before), weighted(inside)
    return Trouble(
        sum(inside[number] for number in now),
        sum(before[number] for number in numbers) * length / rest if rest else 0.0,
        gain(lines, length, usual, rest) if rest else log2(1.0 + lines),
        shape.example,
        shape.at,
        shape.level,
        min(first[number] for number in now),
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
        complains = suffers and not CAUSES.search(text)
        mentioned = namer.all(text) if complains else ()
        names = [
            one
            for one in dict.fromkeys((*mentioned, *called))
            if one in met or len(met) < MOST_TARGETS
        ]
        met.update(one for one in names if one not in known)
        named[number] = [one for one in names if one != tally.services[shape.service]]
    return named
