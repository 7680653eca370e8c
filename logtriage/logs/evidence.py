"""What the window shows of each service, against the earlier part of the same log: how much it
printed, which trouble is new or more than usual, and whom it complains of.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from .levels import FAILED, FATAL, SERVED, WARN
from .names import Namer, service_name
from .tally import OTHERS, Tally
from .window import FATAL_LINES, Window, gain

# Words by which a line tells of a cause at home, and those by which it suffers from others.
CAUSES = re.compile(
    r"(?i)out ?of ?memory|oom|segfault|segmentation|sigsegv|core dumped|panic|no space left"
    r"|disk full|read-only file system|too many (?:open files|connections|clients)"
    r"|remaining connection slots"
    r"|deadlock|corrupt|nullpointer|null pointer|nil pointer|typeerror|keyerror|index out of"
    r"|exit(?:ed)? (?:with )?(?:code|status)|crashloop|back-?off restarting|terminated by signal"
    r"|certificate has expired|permission denied|migration|rollout|release|config(?:uration)?\b"
    r"|heap|garbage|gc overhead|throttl|cache (?:miss|evict)|runaway|lock wait|killed"
)
SYMPTOMS = re.compile(
    r"(?i)timed? ?out|timeout|refused|unreachable|unavailable|upstream|connection reset"
    r"|reset by peer|broken pipe|50[234]\b|circuit ?breaker|retry|retries|no route to host"
    r"|deadline exceeded|failed to (?:connect|call|fetch)|not responding|downstream|dependency"
)
CAUSE_WEIGHT, SYMPTOM_WEIGHT = 2.0, 0.5
SILENT = 0.2  # share of its usual lines below which a service has gone silent
SILENT_LINES = 10  # that it should have printed, at least
SILENCE = 8.0  # what that weighs, as lines of trouble do in `Window.gain`
LEAST_GAIN = 4.0  # of trouble in the window, from which it counts as more than usual

# Somebody whom a line of trouble names though it may have no lines of its own: in an address, or
# after a word of calling.
_FILES = r"(?!(?:java|py|go|js|ts|rb|c|cc|cpp|h|rs|php|scala|kt|cs|ex|erl|sql|xml|ya?ml|json)\b)"
TARGETS = re.compile(
    r"://(?:[^@/\s]{1,60}@)?([a-z][a-z0-9-]{1,62}(?:\.[a-z][a-z0-9-]{0,62})*)"
    rf"|(?<![\w./@-])([a-z][a-z0-9-]{{1,62}}(?:\.{_FILES}[a-z][a-z0-9-]{{0,62}})*)"
    r":\d{2,5}(?![\w:.])"
    r"|\b(?:calling|call to|calls to|connect to|connecting to|connection to|request to|upstream"
    r"|lookup|talking to|response from|reach|contact)\s+[\"']?([a-z][a-z0-9]*(?:-[a-z0-9]+)+)"
)
_NOBODY = {
    "localhost",
    "localhost.localdomain",
    "example.com",
    "line",
    "port",
    "pid",
    "http",
    "https",
}
MOST_TARGETS = 50


@dataclass(frozen=True)
class Trouble:
    """A template of trouble of one service.

    Attributes:
        lines: in the window.
        usual: lines that a stretch of that length had before.
        gain: how unlike the usual, see `window.gain`.
        example: a line of it, safe to show.
        at: (number of the file, line) of the example, both from 0.
        level: see `levels`.
        first: second of its first line in the window; -1 where lines have no time.
        names: services named in the example lines, to how many lines.
    """

    lines: int
    usual: float
    gain: float
    example: str
    at: tuple[int, int]
    level: int
    first: int
    names: Mapping[str, float]

    @property
    def beyond(self) -> float:
        """Lines beyond the usual."""
        return max(0.0, self.lines - self.usual)

    @property
    def weight(self) -> float:
        """By its words: a cause at home, or what somebody else does."""
        if CAUSES.search(self.example):
            return CAUSE_WEIGHT
        return SYMPTOM_WEIGHT if SYMPTOMS.search(self.example) else 1.0


@dataclass
class ServiceEvidence:
    """What the window shows of a service; counts are lines a minute.

    Attributes:
        troubles: more than usual, the most unlike first.
        silent: whether it all but stopped printing.
        requests, failed: that it answered in the window, by its access log.
    """

    name: str
    lines: float = 0.0
    usual_lines: float = 0.0
    errors: float = 0.0
    usual_errors: float = 0.0
    warnings: float = 0.0
    usual_warnings: float = 0.0
    troubles: list[Trouble] = field(default_factory=list)
    silent: bool = False
    requests: int = 0
    failed: int = 0

    @property
    def mass(self) -> float:
        """How much is wrong with it, by its own lines: a logarithm, for ten times the lines are not
        ten times the cause.
        """
        total = sum(one.gain * one.weight for one in self.troubles)
        return log2(1.0 + total + (SILENCE if self.silent else 0.0))

    @property
    def names(self) -> dict[str, float]:
        """Whom it complains of, to the share of its new trouble that does; the shares come to 1 at
        most.
        """
        total = sum(one.beyond for one in self.troubles)
        named: dict[str, float] = defaultdict(float)
        for one in self.troubles if total > 0.0 else ():
            for name, lines in one.names.items():
                named[name] += lines / max(1, one.lines) * one.beyond / total
        return dict(named)


def weigh(
    tally: Tally, window: Window | None, services: Sequence[str] = ()
) -> dict[str, ServiceEvidence]:
    """The evidence on every service, by name: those that the log has lines of, those that are
    known, and those that lines of trouble name.

    Args:
        window: without one, the whole log is taken, and nothing is usual.
        services: names that are known of the cluster.
    """
    inside, before = _counts(tally, window)
    known = [*dict.fromkeys((*tally.services, *services))]
    named = _named(tally, inside, known, find=not services)
    found = {
        name: ServiceEvidence(name)
        for name in dict.fromkeys((*known, *(one for names in named.values() for one in names)))
        if name != OTHERS or name in tally.services
    }
    length = window.end - window.start if window else 1
    rest = window.usual[1] - window.usual[0] if window else 0
    minutes, usual_minutes = (window.minutes, max(1, rest) / 60.0) if window else (1.0, 1.0)
    kinds: dict[tuple[int, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    usual: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for (service, shape), lines in inside.items():
        if tally.shapes[shape].level >= WARN:
            kinds[service, tally.shapes[shape].template][shape] = lines
    for (service, shape), count in before.items():
        if tally.shapes[shape].level >= WARN:
            usual[service, tally.shapes[shape].template][shape] = count
    for service, shape in {**inside, **before}:
        one, level = found[tally.services[service]], tally.shapes[shape].level
        now = inside.get((service, shape), (0, -1))[0]
        then = before.get((service, shape), 0)
        one.lines += now / minutes
        one.usual_lines += then / usual_minutes
        if level == WARN:
            one.warnings += now / minutes
            one.usual_warnings += then / usual_minutes
        elif level > WARN:
            one.errors += now / minutes
            one.usual_errors += then / usual_minutes
        if level in (SERVED, FAILED):
            one.requests += now
            one.failed += now if level == FAILED else 0
    for (service, template), shapes in kinds.items():
        trouble = _trouble(tally, service, shapes, usual[service, template], length, rest, named)
        if window is None or trouble.gain >= LEAST_GAIN:
            found[tally.services[service]].troubles.append(trouble)
    for evidence in found.values():
        evidence.troubles.sort(key=lambda one: (-one.gain * one.weight, one.example))
        expected = evidence.usual_lines * minutes
        evidence.silent = (
            window is not None
            and rest > 0
            and expected >= SILENT_LINES
            and evidence.lines < SILENT * evidence.usual_lines
        )
    return found


def _trouble(
    tally: Tally,
    service: int,
    lines: Mapping[int, tuple[int, int]],
    before: Mapping[int, int],
    length: int,
    rest: int,
    named: Mapping[int, Sequence[str]],
) -> Trouble:
    """One template of trouble of a service, from its shapes: (lines, first second) by shape in the
    window, and lines by shape before.
    """
    most = max(lines, key=lambda shape: (tally.shapes[shape].level, lines[shape][0]))
    example, at = tally.example(service, most)
    total = sum(count for count, _ in lines.values())
    # Both sides weigh alike: else a steady line of a level like FATAL would be more than usual.
    weighted = _weighted(tally, {number: count for number, (count, _) in lines.items()})
    usual = _weighted(tally, before)
    names: dict[str, float] = defaultdict(float)
    for number, (count, _) in lines.items():
        others = [name for name in named[number] if name != tally.services[service]]
        for name in others:
            names[name] += count / len(others)
    return Trouble(
        total,
        sum(before.values()) * length / rest if rest else 0.0,
        gain(weighted, length, usual, rest) if rest else log2(1.0 + weighted),
        example,
        at,
        tally.shapes[most].level,
        min(first for _, first in lines.values()),
        dict(names),
    )


def _weighted(tally: Tally, lines: Mapping[int, int]) -> int:
    """Lines by shape, those of a level like FATAL for `FATAL_LINES` each."""
    return sum(
        count * (FATAL_LINES if tally.shapes[number].level == FATAL else 1)
        for number, count in lines.items()
    )


def _counts(
    tally: Tally, window: Window | None
) -> tuple[dict[tuple[int, int], tuple[int, int]], dict[tuple[int, int], int]]:
    """By service and shape: lines in the window and the second of the first, and lines in the
    stretch that tells what is usual.
    """
    inside: dict[tuple[int, int], tuple[int, int]] = {}
    before: dict[tuple[int, int], int] = {}
    for (bucket, service, shape), lines in tally.counts.items():
        second = bucket * tally.width if bucket >= 0 else -1
        key = (service, shape)
        if window is None or (second >= 0 and window.start <= second < window.end):
            count, first = inside.get(key, (0, second))
            inside[key] = (count + lines, min(first, second))
        elif window.usual[0] <= second < window.usual[1]:
            before[key] = before.get(key, 0) + lines
    return inside, before


def _named(
    tally: Tally, inside: Iterable[tuple[int, int]], known: Sequence[str], find: bool
) -> dict[int, list[str]]:
    """Shape of trouble to the services that its example names."""
    namer = Namer(name for name in known if name != OTHERS)
    named: dict[int, list[str]] = {}
    met: set[str] = set()
    for _, number in inside:
        shape = tally.shapes[number]
        if shape.level < WARN or number in named:
            continue
        names = namer.all(shape.example)
        if find:
            for one in _targets(shape.example):
                if one not in names and (one in met or len(met) < MOST_TARGETS):
                    met.add(one)
                    names = [*names, one]
        named[number] = [name for name in names if name != shape.speaker]
    return named


def _targets(text: str) -> list[str]:
    """Whom a line names as called, in addresses and after words of calling."""
    found = []
    for groups in TARGETS.findall(text):
        host = next(one for one in groups if one)
        if ".svc" in host or host.count(".") > 2:
            host = host.split(".")[0]  # a name within a cluster
        if host not in _NOBODY:
            found.append(service_name(host.encode()))
    return found
