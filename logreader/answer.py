"""What a log alone tells about an incident: where and when it began, how sure that is, the
evidence, and what to look at next. No model is asked, and nothing is executed.

    answer = answer_of(read_log(["app.log"]))
    print(answer.text())
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.play.actions import visible
from logtriage.world.call_graph import CallGraph

from .levels import LEVEL_NAMES, stated_level
from .lines import quoted
from .log import STDIN, Log, LogFile
from .suspects import (
    ServiceEvidence,
    Suspect,
    Trouble,
    accusers,
    chain_to,
    changes,
    confidence,
    doubts,
    rank,
    weigh,
)
from .tally import speakers_of
from .times import format_time
from .window import Window, find_window

LIKELY, POSSIBLE, UNSURE = "likely", "possible", "not enough evidence"
LIKELY_FROM, POSSIBLE_FROM = 0.8, 0.5  # the probabilities from which an answer is called so
OF_ROOT = 3  # lines of the first suspect that an answer quotes
MOST_SUSPECTS = 3
MOST_UNTIMED = 0.1  # share of a file's records that may lack a time before its clock is in doubt
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
    suspects: list[Suspect]
    read: list[str]  # a line about each file

    def text(self) -> str:
        """Format the answer for a terminal; line 1 says who, since when, how sure and why."""
        since = f", since {self.began}" if self.began else ""
        since += f", over by {self.ended}" if self.ended else ""
        rows = [f"{self.root}{since}: {self.sure} ({self.confidence:.0%}), {self.why}"]
        if not self.root:
            rows = [f"{self.sure}: {self.why}{since}"]
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
        if self.suspects:
            shares = [f"{suspect.service} {suspect.share:.0%}" for suspect in self.suspects]
            rows.append(f"suspects: {', '.join(shares)}")
        return "\n".join([*rows, *(f"read {line}" for line in self.read)])

    def sureness_of(self, service: str) -> str:
        """Return how sure an answer that names `service` may be, given this evidence."""
        if service == self.root:
            return self.sure
        named = any(suspect.service == service for suspect in self.suspects)
        return POSSIBLE if named and self.sure == POSSIBLE else UNSURE


@dataclass(frozen=True)
class Findings:
    """What was found in a log, before it is put into words."""

    window: Window | None  # None if no stretch is unlike the rest
    evidence: Mapping[str, ServiceEvidence]  # by service
    suspects: Sequence[Suspect]  # the most suspect first


def findings_of(log: Log, graph: CallGraph | None = None) -> Findings:
    """Find the window of a log, the evidence in it and the suspects, by the call graph if given."""
    tally = log.tally
    window = find_window(tally)
    if tally.merge_replicas(*(window[:2] if window else (0, 0))):
        window = find_window(tally)
    evidence = weigh(tally, window, graph.names if graph else ())
    calls = {service.name: service.downstream for service in graph.services} if graph else {}
    return Findings(window, evidence, rank(evidence, calls))


def answer_of(log: Log, graph: CallGraph | None = None, findings: Findings | None = None) -> Answer:
    """Put the `findings` of a log with that call graph into words; None to work them out."""
    findings = findings or findings_of(log, graph)
    sure, chance, why = _sureness(log, findings)
    first = findings.suspects[0].service if findings.suspects else ""
    window = findings.window
    chain = chain_to(first, findings.evidence) if first and sure != UNSURE else []
    return Answer(
        "" if sure == UNSURE else first,
        sure,
        round(chance, 2),
        _time(log, window.start) if window else "",
        _time(log, window.end) if window and not window.open else "",
        why,
        chain,
        _evidence(log, findings, chain),
        _next(log, window, first, findings.evidence[first].troubles) if first and window else "",
        list(findings.suspects[:MOST_SUSPECTS]),
        [_read_line(file) for file in log.files],
    )


def _time(log: Log, second: int) -> str:
    """Format a time by the log's own clock, or in UTC, marked `Z`, if the log states zones."""
    if log.ordered:
        return f"line {second + 1}"
    periods = [period for file in log.files for period in file.layout.periods]
    zoned = all(file.layout.zoned for file in log.files)
    return format_time(second, min(periods, default=0), "Z" * zoned)


def _sureness(log: Log, findings: Findings) -> tuple[str, float, str]:
    """Return how sure the answer is, in words and as a probability, and why."""
    if not log.tally.records:
        return UNSURE, 0.0, "no line could be read"
    if not findings.suspects:
        return UNSURE, 0.0, "no line tells of trouble"
    if findings.window is None:
        why = "no stretch of the log is unlike the rest of it; give it more of the time before"
        return UNSURE, 0.0, why
    first = findings.suspects[0]
    chance = confidence(findings.suspects, findings.evidence, findings.window.gain)
    if chance < POSSIBLE_FROM:
        near = " or ".join(suspect.service for suspect in findings.suspects[:2])
        return UNSURE, chance, f"too little tells that it began at {near}"
    why = f"{first.share:.0%} of what is wrong comes down to it"
    if findings.evidence[first.service].silent:
        why += ", and it fell silent"
    against = [*limits(log), *doubts(findings.suspects, findings.evidence)]
    proven = all(file.layout.proven for file in log.files if file.records)
    if not (proven or log.tally.known or accusers(first.service, findings.evidence)):
        against.append("its names may be no services")
    against += [
        f"{service} changed shortly before: {visible(line, 60)}"
        for service, line in changes(log.tally, findings.window).items()
        if service != first.service
    ]
    if against:
        return POSSIBLE, min(chance, LIKELY_FROM), f"{why}, but {against[0]}"
    return LIKELY if chance >= LIKELY_FROM else POSSIBLE, chance, why


def limits(log: Log) -> list[str]:
    """List the flaws of a log that make every suspect uncertain."""
    flaws = ["only one service speaks"] if len(speakers_of(log.tally)) < 2 else []
    read = [file for file in log.files if file.records]
    clocks = {(file.layout.zoned, *file.layout.periods[:1]) for file in read}
    if len(clocks) > 1 or any(file.untimed > MOST_UNTIMED * file.records for file in read):
        flaws.append("some of its times have no date or no zone")
    return flaws


def _evidence(log: Log, findings: Findings, chain: Sequence[str]) -> list[EvidenceLine]:
    """Return lines of the root, then of each in the chain one that names the service before it."""
    names = chain or [suspect.service for suspect in findings.suspects[:MOST_SUSPECTS]]
    rows: list[EvidenceLine] = []
    for before, name in pairwise(["", *names]):
        troubles = findings.evidence[name].troubles
        if chain:
            troubles = sorted(troubles, key=lambda trouble: -trouble.names.get(before, 0.0))
        most = 1 if before else OF_ROOT
        rows += [_evidence_line(log, findings, name, trouble) for trouble in troubles[:most]]
    return rows


def _evidence_line(log: Log, findings: Findings, service: str, trouble: Trouble) -> EvidenceLine:
    (number, line), text = trouble.at, visible(trouble.example)
    return EvidenceLine(
        service,
        text if stated_level(text.encode()) is not None else f"{LEVEL_NAMES[trouble.level]} {text}",
        visible(log.files[number].name, 200),
        line + 1,
        _time(log, trouble.first) if trouble.first >= 0 and not log.ordered else "",
        trouble.lines,
        round(trouble.usual, 2) if findings.window else None,
    )


def _next(log: Log, window: Window, first: str, troubles: Sequence[Trouble]) -> str:
    """Say what to look at: the first suspect's earliest trouble, or its log if it shows none."""
    if not troubles:
        start = _time(log, max(0, window.start - (0 if log.ordered else LEAD)))
        return f"read the log of {visible(first, 60)} from {start} on"
    number, line = min(troubles, key=lambda trouble: trouble.first).at
    file, first_line, last_line = log.files[number], max(1, line + 1 - AROUND), line + 1 + AROUND
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
