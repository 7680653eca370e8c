"""What a log alone says of an incident: how bad, where it began, what shows it, whom to page, what
to run next, and how sure. No model is asked, and nothing is executed.

    answer = answer_of(read_log(["app.log"]))
    print(answer.text())
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..real.observed import Measure
from ..world.call_graph import OWNERS, UNKNOWN_KIND, CallGraph
from .commands import next_command
from .evidence import ServiceEvidence, Trouble, weigh
from .levels import ERROR, FATAL, NAMES, stated_level
from .lines import visible
from .log import Log
from .measures import Metrics, compare, is_unusual, table
from .suspects import POSSIBLE, UNSURE, Suspect, how_sure, rank
from .times import told
from .window import Window, find_window, slots_of

MOST_EVIDENCE = 8  # lines that an answer repeats
OF_ONE = 3  # of one service
MOST_SUSPECTS = 3
# The definition of severity (see `play.observation`): share of users' requests that fail.
P1_SHARE, P2_SHARE = 0.05, 0.004
LEAST_REQUESTS = 20  # below them, a share says nothing

# What a name says of the kind of a service, where no call graph does.
KIND_WORDS = {
    "database": r"db|database|postgres\w*|pg|mysql\w*|maria\w*|mongo\w*|redis|cassandra|sql\w*",
    "queue": r"queue|kafka|rabbit\w*|mq|nats|sqs|pulsar|zookeeper",
    "edge": r"gateway|nginx|ingress|envoy|haproxy|traefik|edge|proxy|lb|frontend|web|httpd|apache",
    "app": r"service|svc|api|app|server|worker|backend",
}
ATTACK = re.compile(
    r"(?i)failed password|authentication failure|invalid user|break-?in attempt|injection"
    r"|brute.?force|credential stuffing|unauthorized access|tampered|suspicious login"
)


@dataclass(frozen=True)
class Shown:
    """A line of evidence.

    Attributes:
        service: whose trouble it shows.
        line: its text, safe to show, with its level in front.
        file, number: where it stands, the number from 1.
        time: of the first such line in the window, as the log writes it; empty for none.
        lines: like it in the window.
        usual: in a stretch of that length before; None where nothing tells what is usual.
    """

    service: str
    line: str
    file: str
    number: int
    time: str
    lines: int
    usual: float | None


@dataclass(frozen=True)
class Answer:
    """An answer, in the order in which it is read; empty strings stand for what the log does not
    tell.

    Attributes:
        root: the suspected service; empty where there is not enough evidence.
        sure: `likely`, `possible` or `not enough evidence`.
        began, ended: of the window, as the log writes times; `ended` is empty while it goes on.
        why: what that rests on, or what is missing.
        evidence: lines, those of the first suspect first.
        unusual: metrics, most unusual first.
        next: a command that shows more of the first suspect; empty without a window.
        suspects: service and share of what is wrong.
        severity, team: of the root, with `severity_why` and `team_why`.
        read: a line about each file.
    """

    root: str
    sure: str
    began: str
    ended: str
    why: str
    evidence: list[Shown]
    unusual: list[str]
    next: str
    suspects: list[Suspect]
    severity: str
    severity_why: str
    team: str
    team_why: str
    read: list[str]

    def as_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        return asdict(self)

    def text(self) -> str:
        """The answer as somebody reads it in a terminal: the first line says who, how sure and
        since when.
        """
        since = f", since {self.began}" if self.began else ""
        since += f", over by {self.ended}" if self.ended else ""
        if self.root:
            told = [f"{self.root} ({self.sure}){since}", f"evidence: {self.why}"]
        else:
            told = [f"{self.sure}: {self.why}{since}", *(["evidence:"] if self.evidence else [])]
        for one in self.evidence:
            lines = "1 line" if one.lines == 1 else f"{one.lines:,} lines"
            if one.usual is not None:
                lines += f", usually {one.usual:.2g}" if one.usual else ", new"
            at = f"{one.file}:{one.number}" + (f" {one.time}" if one.time else "")
            told.append(f"  {at} {one.service}, {lines}")
            told.append(f"    {one.line}")
        if self.unusual:
            told += ["unusual metrics:", *(f"  {one}" for one in self.unusual)]
        rest = {
            "next": self.next,
            "suspects": ", ".join(f"{one.service} {one.share:.0%}" for one in self.suspects),
            "severity": f"{self.severity} ({self.severity_why})" if self.severity else "",
            "team": f"{self.team} ({self.team_why})" if self.team else "",
        }
        told += [f"{name}: {value}" for name, value in rest.items() if value]
        return "\n".join([*told, *(f"read {one}" for one in self.read)])


@dataclass(frozen=True)
class Findings:
    """What was found in a log before it is put in words.

    Attributes:
        window: None where no stretch is unlike the rest.
        evidence: by service.
        measures: metrics compared with the usual.
        suspects: the first suspect first.
    """

    window: Window | None
    evidence: Mapping[str, ServiceEvidence]
    measures: Sequence[Measure]
    suspects: Sequence[Suspect]


def findings_of(
    log: Log, graph: CallGraph | None = None, metrics: Metrics | None = None
) -> Findings:
    """Find the window of a log, the evidence in it, and whom to suspect.

    Args:
        graph: the cluster's call graph, where it is known.
        metrics: metrics beside the log.
    """
    slots = slots_of(log.tally)
    window = find_window(log.tally, slots) if slots else None
    evidence = weigh(log.tally, window, graph.names if graph else ())
    measures = compare(metrics, window) if metrics and window else []
    calls = {one.name: one.downstream for one in graph.services} if graph else None
    return Findings(window, evidence, measures, rank(evidence, measures, calls))


def answer_of(log: Log, graph: CallGraph | None = None, metrics: Metrics | None = None) -> Answer:
    """The answer that a log gives by itself.

    Args:
        graph: the cluster's call graph, where it is known.
        metrics: metrics beside the log, see `measures`.
    """
    return told_of(log, findings_of(log, graph, metrics), graph)


def told_of(log: Log, found: Findings, graph: CallGraph | None = None) -> Answer:
    """What was found in a log, in words."""
    sure, why = _sureness(log, found)
    first = found.suspects[0].service if found.suspects else ""
    root = "" if sure == UNSURE else first
    severity, team = ("", ""), ("", "")
    if root:
        severity = _severity(found, graph)
        team = _team(found.evidence.get(root), root, graph)
    window = found.window
    return Answer(
        root,
        sure,
        told(window.start, log.dated) if window else "",
        told(window.end, log.dated) if window and not window.open else "",
        why,
        _evidence(log, found),
        [one.text for one in found.measures[:MOST_EVIDENCE] if is_unusual(one)],
        _next(log, found, first, window) if window and first else "",
        list(found.suspects[:MOST_SUSPECTS]),
        *severity,
        *team,
        [_read_line(log, number) for number in range(len(log.files))],
    )


def _sureness(log: Log, found: Findings) -> tuple[str, str]:
    """How sure the answer is, and what that rests on."""
    if not log.tally.records:
        return UNSURE, "no line could be read"
    if found.window is None:
        timed = any(bucket >= 0 for bucket, _, _ in log.tally.counts)
        if not timed:
            return UNSURE, "no line has a time, so nothing can be told from what is usual"
        if not found.suspects:
            return UNSURE, "no line tells of trouble"
        return UNSURE, (
            "no stretch of the log is unlike the rest of it; give it more of the time before"
        )
    sure = how_sure(found.suspects)
    if sure == UNSURE:
        near = " and ".join(one.service for one in found.suspects[:2])
        return UNSURE, f"{near} are about equally in trouble" if near else "nobody is in trouble"
    first = found.suspects[0]
    why = f"{first.share:.0%} of what is wrong comes down to it"
    if found.window.begins_log:
        return POSSIBLE, f"{why}, but the log begins in the trouble"
    own = found.evidence.get(first.service)
    if own is None or not (own.troubles or own.silent):
        return POSSIBLE, f"{why}, but it has no unusual line of its own"
    return sure, why


def _severity(found: Findings, graph: CallGraph | None) -> tuple[str, str]:
    """How bad it is for users, and how that is known."""
    served = [one for one in found.evidence.values() if one.requests >= LEAST_REQUESTS]
    entered = [graph.names[place] for place in graph.edges] if graph else []
    rows = [one for one in table(found.measures) if one.service in entered]
    felt = [one.errors for one in rows if one.errors is not None]
    if felt:
        share = max(felt) / 100.0
        return _by_share(share), f"{share:.1%} of requests at the edge failed, by its metrics"
    edges = [one for one in served if one.name in entered] or served
    if edges:
        edge = max(edges, key=lambda one: one.requests)
        share = edge.failed / edge.requests
        return _by_share(share), f"{share:.1%} of {edge.requests} requests to {edge.name} failed"
    troubled = [
        one
        for one in found.evidence.values()
        if any(trouble.level >= ERROR for trouble in one.troubles)
    ]
    known = [one for one in found.evidence.values() if one.lines or one.usual_lines]
    guess = "a guess, for no line tells of requests"
    if len(troubled) >= 3 and 2 * len(troubled) >= len(known):
        return "P1", f"{guess}: {len(troubled)} of {len(known)} services have new errors"
    return ("P2", f"{guess}: errors") if troubled else ("P3", f"{guess}: no new errors")


def _by_share(share: float) -> str:
    return "P1" if share > P1_SHARE else "P2" if share > P2_SHARE else "P3"


def guessed_kind(name: str) -> str:
    """The kind of a service by its name; unknown where it tells none."""
    for kind, words in KIND_WORDS.items():
        if re.search(rf"(?i)(?:^|[^a-z])(?:{words})(?:[^a-z]|$)", name):
            return kind
    return UNKNOWN_KIND


def _team(one: ServiceEvidence | None, root: str, graph: CallGraph | None) -> tuple[str, str]:
    """Whom to page, and why."""
    if one is not None and one.troubles and ATTACK.search(one.troubles[0].example):
        return "security", "its lines read like an attack"
    known = graph is not None and root in graph.position
    kind = graph.service(root).kind if graph is not None and known else UNKNOWN_KIND
    if kind in OWNERS:
        return OWNERS[kind], f"owns services of kind {kind}"
    kind = guessed_kind(root)
    if kind in OWNERS:
        return OWNERS[kind], f"by its name it is of kind {kind}"
    return "unknown", "its name tells no kind; give a call graph by --graph"


def _evidence(log: Log, found: Findings) -> list[Shown]:
    """Lines that show what is wrong: a few of each suspect, and before them of none twice."""
    shown = []
    for suspect in found.suspects:
        one = found.evidence.get(suspect.service)
        for trouble in one.troubles[:OF_ONE] if one else ():
            shown.append(_shown(log, suspect.service, trouble, found.window is not None))
    return shown[:MOST_EVIDENCE]


def _shown(log: Log, service: str, trouble: Trouble, compared: bool) -> Shown:
    (number, line), text = trouble.at, trouble.example
    return Shown(
        service,
        text if stated_level(text.encode()) else f"{NAMES[trouble.level]} {text}",
        visible(log.files[number].name, 200),
        line + 1,
        told(trouble.first, log.dated) if trouble.first >= 0 else "",
        trouble.lines,
        round(trouble.usual, 2) if compared else None,
    )


def _next(log: Log, found: Findings, root: str, window: Window) -> str:
    one = found.evidence.get(root)
    troubles = one.troubles if one else []
    # Of a service without lines of its own, as its accuser's log was got.
    accusers = [other.troubles for other in found.evidence.values() if root in other.names]
    telling = troubles or max(accusers, key=len, default=[])
    file = log.files[telling[0].at[0] if telling else 0]
    return next_command(
        root,
        file.format,
        file.name,
        window.start,
        troubles[0].at[1] + 1 if troubles else None,
        bool(one and (one.silent or any(trouble.level == FATAL for trouble in troubles))),
    )


def _read_line(log: Log, number: int) -> str:
    """What was read of a file, and what was left out."""
    file = log.files[number]
    reading = file.reading
    line = (
        f"{visible(file.name, 200)}: {file.format.name}, {reading.lines:,} lines, "
        f"{file.records:,} records"
    )
    if reading.cut:
        line += f"; {reading.cut:,} lines of more than {file.format.most_line:,} bytes were cut"
    return line
