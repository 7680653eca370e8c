"""What a log alone tells about an incident: where and when it began, how sure that is, the
evidence, and what to look at next. No model is asked, and nothing is executed.

    answer = answer_of(read_log(["app.log"]))
    print(answer.text())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from logtriage.play.actions import visible
from logtriage.world.call_graph import CallGraph

from .evidence import Evidence, Trouble, accusers
from .levels import LEVEL_NAMES, stated_level
from .lines import quoted
from .log import STDIN, Log, LogFile
from .sureness import POSSIBLE, UNSURE, sureness_of, tied
from .suspects import Findings, Suspect, chain_to, findings_of
from .tally import UNNAMED, Tally
from .window import SLOTS, Window

OF_ROOT = 3  # lines of the first suspect that an answer quotes
MOST_SUSPECTS = 3
SOMEBODY = "somebody"  # shown for who speaks in lines that do not say
MOST_SHOWN = 160  # characters of a suspect's line
MOST_UNNAMED = 0.25  # share of lines without a speaker from which it is said
VERSION = 5  # of the fields of an answer
LEAD = 60  # how many seconds before the trouble to start reading
AROUND = 10  # lines to read on either side of the first line of trouble


@dataclass(frozen=True)
class EvidenceLine:
    """A line of evidence."""

    service: str  # the service whose trouble it shows
    line: str  # safe to show, with its level in front
    file: str
    number: int  # line number, from 1
    time: str  # of the first such line in the window, as the log writes it; empty if it has none
    lines: int  # how many such lines the window has
    usual: float | None  # how many are usual in that much time; None if unknown


@dataclass(frozen=True)
class SuspectLine:
    """A suspect, and one line of evidence; empty where it has none."""

    service: str
    confidence: float  # the probability that it is the root, 0 to 1; 0 if nobody can tell
    share: float  # of all that is wrong, 0 to 1
    cause: str = ""  # what has happened to it, by the words of its line
    line: str = ""
    file: str = ""
    number: int = 0  # of the line, from 1; 0 for none
    says: str = ""  # who says so, if it is another service

    def text(self) -> str:
        """Format the suspect for a terminal."""
        at = f'("{self.line}", {self.file}:{self.number})' if self.line else ""
        says = f", says {self.says}" if self.says else ""
        words = f"{self.cause}{says} {at}".strip(" ,") or "it fell silent"
        chance = f" {self.confidence:.0%}" if self.confidence else ""
        return f"{self.service}{chance}: {words}"


@dataclass(frozen=True)
class Answer:
    """An answer, its fields in reading order. A field is empty if the log does not tell."""

    root: str  # the suspected service; empty if there is not enough evidence
    sure: str  # `likely`, `possible` or `not enough evidence`
    confidence: float  # the probability that the first suspect is right, 0 to 1
    began: str  # start of the window, as the log writes times
    ended: str  # end of the window; empty if the trouble goes on
    why: str  # what the answer rests on, or what is missing
    chain: list[str]  # who made whom fail, from the root to the last service that complains
    evidence: list[EvidenceLine]  # lines of the first suspect, then one of each further service
    next: str  # what to look at; a command if possible
    suspects: list[SuspectLine]  # the likeliest first
    read: list[str]  # a line about each file
    others: list[Answer] = field(default_factory=list)  # to another incident in the log
    version: int = VERSION

    def text(self) -> str:
        """Format the answer for a terminal: the suspects, then the verdict, with who, since when,
        how sure and why. A verdict that the log is not enough comes before the suspects.
        """
        rows = [suspect.text() for suspect in self.suspects]
        since = _between(self.began, self.ended)
        if self.root:
            rows.append(f"{self.root}{since}: {self.sure}, {self.why}")
        else:
            rows.insert(0, f"{self.sure}: {self.why}{since}")
        for other in self.others:
            since = _between(other.began, other.ended)
            rows.append(f"also {other.root}{since}: {other.sure} ({other.confidence:.0%})")
        if len(self.chain) > 1:
            rows.append("chain: " + " -> ".join(reversed(self.chain)))
        for row in self.evidence:
            lines = _counted(row.lines, "line")
            if row.usual is not None:
                lines += f", usually {row.usual:.2g}" if row.usual else ", new"
            at = f"{row.file}:{row.number}" + (f" {row.time}" if row.time else "")
            rows += [f"  {at} {row.service}, {lines}", f"    {row.line}"]
        if self.next:
            rows.append(f"next: {self.next}")
        return "\n".join([*rows, *(f"read {line}" for line in self.read)])

    def sureness_of(self, service: str) -> str:
        """Return how sure an answer that names `service` may be, given this evidence."""
        if service == self.root:
            return self.sure
        named = any(suspect.service == service for suspect in self.suspects)
        return POSSIBLE if named and self.sure == POSSIBLE else UNSURE


def _between(began: str, ended: str) -> str:
    return (f", since {began}" if began else "") + (f", over by {ended}" if ended else "")


def answer_of(log: Log, graph: CallGraph | None = None, findings: Findings | None = None) -> Answer:
    """Put the `findings` of a log with that call graph into words; None to work them out."""
    findings = findings or findings_of(log.tally, graph)
    answer = _answer_of(log, findings)
    return replace(answer, others=_others(log, findings, graph))


def _others(log: Log, findings: Findings, graph: CallGraph | None) -> list[Answer]:
    """Return the answer to the incident that the log shows apart from the first window, if any."""
    if (window := findings.window) is None:
        return []
    rest = replace(log, tally=log.tally.without(window.start, window.end))
    more = findings_of(rest.tally, graph)
    seconds = [second for second, _, _ in log.tally.rows() if second >= 0]
    apart = 2 * (max(seconds) - min(seconds)) // SLOTS
    later = more.window
    if not later or max(later.start - window.end, window.start - later.end) < apart:
        return []
    answer = _answer_of(rest, more)
    return [answer] if answer.root else []


def _answer_of(log: Log, findings: Findings) -> Answer:
    """Return the answer to one incident."""
    sure, chance, why = sureness_of(log, findings)
    first = findings.suspects[0].service if findings.suspects else ""
    if sure != UNSURE and tied(findings.suspects) > 1:
        why += f"; it is nearly a tie with {findings.suspects[1].service}"
    window = findings.window
    chain = chain_to(first, findings.evidence) if first and sure != UNSURE else []
    chain = [name for name in chain if name != UNNAMED]
    return Answer(
        "" if sure == UNSURE else first,
        sure,
        round(chance, 2),
        log.time(window.start) if window else "",
        log.time(window.end) if window and not window.open else "",
        why,
        chain,
        _evidence(log, findings, chain),
        _next(log, window, findings.evidence[first].troubles, first) if first else "",
        _suspect_lines(log, findings, chance),
        [*map(_read_line, log.files), *_unnamed(log.tally)],
    )


def _suspect_lines(log: Log, findings: Findings, chance: float) -> list[SuspectLine]:
    """Return the likeliest suspects, each with its most telling line; if nobody may be named, the
    cause in lines that do not say who speaks. `chance` is the probability of the first.
    """
    suspects = [*findings.suspects[:MOST_SUSPECTS]]
    if not suspects and UNNAMED in findings.evidence and findings.evidence[UNNAMED].troubles:
        suspects = [Suspect(UNNAMED, 1.0)]
    # What the first one's probability leaves is divided as what is wrong is.
    rest = sum(suspect.share for suspect in findings.suspects[1:])
    others = [min(chance, (1.0 - chance) * suspect.share / rest) for suspect in suspects[1:]]
    return [
        _suspect_line(log, suspect, round(probability, 2), findings.evidence)
        for suspect, probability in zip(suspects, [chance, *others], strict=False)
    ]


def _suspect_line(log: Log, suspect: Suspect, chance: float, evidence: Evidence) -> SuspectLine:
    """Return a suspect with the line of its own that tells most, or else with a complaint."""
    troubles, says = evidence[suspect.service].troubles, ""
    if not troubles and (complaining := accusers(suspect.service, evidence)):
        most = max(complaining, key=lambda accuser: accuser.names[suspect.service] * accuser.mass)
        troubles = [trouble for trouble in most.troubles if suspect.service in trouble.names]
        says = SOMEBODY if most.name == UNNAMED else most.name
    name = SOMEBODY if suspect.service == UNNAMED else suspect.service
    if not troubles:
        return SuspectLine(name, chance, suspect.share)
    trouble = min(troubles, key=_telling)
    text, file = visible(trouble.example, MOST_SHOWN), log.files[trouble.at[0]].name
    number = trouble.at[1] + 1
    cause = trouble.happened.name
    return SuspectLine(name, chance, suspect.share, cause, text, visible(file, 200), number, says)


def _telling(trouble: Trouble) -> tuple[int, float, int]:
    """Sort key: first lines that tell a service's own cause, then how it ended, then complaints,
    then the rest; of these the heaviest first, and of equally heavy ones the earliest.
    """
    happened = trouble.happened
    kind = 3 if not happened.name else 2 if not happened.own else int(happened.vague)
    return kind, -trouble.mass, trouble.first


def _unnamed(tally: Tally) -> list[str]:
    """Say what share of the lines does not tell who speaks, if it is large."""
    lines = Counter[str]()
    for _, shape, count in tally.lines():
        lines[tally.services[shape.service]] += count
    share = lines[UNNAMED] / max(1, tally.records)
    text = f"{share:.0%} of the lines do not say who speaks; --services names them"
    return [text] if share > MOST_UNNAMED else []


def _evidence(log: Log, findings: Findings, chain: Sequence[str]) -> list[EvidenceLine]:
    """Return lines of the root, then of each in the chain one that names the service before it."""
    names = chain or [suspect.service for suspect in findings.suspects[:MOST_SUSPECTS]]
    rows: list[EvidenceLine] = []
    for before, name in pairwise(["", *names]):
        troubles = findings.evidence[name].troubles
        if chain:
            troubles = sorted(troubles, key=lambda trouble: -trouble.names.get(before, 0.0))
        for trouble in troubles[: 1 if before else OF_ROOT]:
            (number, line), text = trouble.at, visible(trouble.example)
            if stated_level(text.encode()) is None:
                text = f"{LEVEL_NAMES[trouble.level]} {text}"
            file, timed = visible(log.files[number].name, 200), trouble.first >= 0
            time = log.time(trouble.first) if timed and not log.ordered else ""
            usual = round(trouble.usual, 2) if findings.window else None
            rows.append(EvidenceLine(name, text, file, line + 1, time, trouble.lines, usual))
    return rows


def _next(log: Log, window: Window | None, troubles: Sequence[Trouble], first: str) -> str:
    """Say what to look at: the first suspect's earliest trouble, or its log if it shows none."""
    if not troubles:
        start = "before the first line"
        if window:
            start = log.time(max(0, window.start - (0 if log.ordered else LEAD)))
        return f"read the log of {visible(first, 60)} from {start} on"
    number, line = min(troubles, key=lambda trouble: trouble.first).at
    file, first_line, last_line = log.files[number], max(1, line + 1 - AROUND), line + 1 + AROUND
    if file.layout.kind != "json document":  # of which only the ends of lines are counted
        last_line = min(last_line, file.reading.lines)
    in_lines = file.layout.kind in ("text", "json", "text with json") and not file.packed
    if in_lines and file.name != STDIN and quoted(file.name):
        return f"sed -n '{first_line},{last_line}p' {quoted(file.name)} | cat -v"
    return f"lines {first_line} to {last_line} of {visible(file.name, 200)}"


def _read_line(file: LogFile) -> str:
    """Say what was read of a file, what tells who speaks in it, and what was left out."""
    lines, records = _counted(file.reading.lines, "line"), _counted(file.records, "record")
    line = f"{visible(file.name, 200)}: {file.layout.kind}, {lines}, {records}; "
    line += f"who speaks is told by {visible(file.layout.speaker or 'nothing', 60)}"
    line += f"; {file.untimed:,} without a time" if file.untimed else ""
    return line + (f"; {file.reading.cut:,} lines were cut" if file.reading.cut else "")


def _counted(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number:,} {word}s"
