"""Your own log as an episode: a policy or a model can be asked about it as about an incident.

The opening has counts of error lines, and the most unusual trouble in the simulator's format,
`LEVEL service text`. Asking about a service gives its trouble and its calm lines. It has no score.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from logtriage.play.actions import ALL_SERVICES, visible
from logtriage.play.episode import BaseEpisode, IncidentView
from logtriage.play.observation import LineCount, Observation
from logtriage.world.call_graph import MOST_OBSERVED, UNKNOWN_KIND, CallGraph, Service

from .levels import LEVEL_NAMES, LEVELS, WARN
from .lines import defused
from .log import Log
from .suspects import Findings, findings_of
from .tally import OTHERS, speakers_of

MAX_STEPS = 12
OPENING_LINES = 20  # lines of an opening, at most
ANSWER_LINES = 12  # lines in answer to a question, at most
INFERRED = "calls are inferred from who names whom in trouble; there may be others"
NO_CALLS = "no calls are known"
# A level at the beginning of a text.
STATED_LEVEL = re.compile(r"[\s\[(<|-]{0,5}([A-Z]{3,8})(?:\b[\s\])>|:-]+)(?=\S)")
COUNTED = attrgetter(*LineCount._fields[1:])  # the counts in a service's evidence
SIMULATED = ("LOG", "INFO", "WARN", "ERROR", "CRIT", "FATAL", "PANIC")  # the simulator's levels


class LogEpisode(BaseEpisode):
    """An episode that answers questions about a log that was read with the names of `graph` (None
    to infer one). `findings` are those of both, if known. `ValueError` if no line is of a service.
    """

    def __init__(
        self, log: Log, graph: CallGraph | None = None, findings: Findings | None = None
    ) -> None:
        if not log.tally.records:
            raise ValueError("there is no line to triage; give some log lines")
        if graph is not None and not set(graph.names) & speakers_of(log.tally):
            raise ValueError(
                f"none of the {log.tally.records} lines names a service of the call graph "
                f"({', '.join(graph.names)}); give the one that they come from"
            )
        self._tally, self._findings = log.tally, findings or findings_of(log.tally, graph)
        notice = ""
        if graph is None:
            graph = inferred_graph(self._findings)
            notice = INFERRED if graph.call_graph_text else NO_CALLS
        unusual = sorted(
            (-trouble.gain, trouble.first, name, trouble.level, trouble.example)
            for name, evidence in self._findings.evidence.items()
            for trouble in evidence.troubles
        )[:OPENING_LINES]
        lines = [format_line(*line[2:]) for line in sorted(unusual, key=lambda line: line[1])]
        counts = self._counts(graph.names)
        super().__init__(
            IncidentView("log", "log", 0, graph),  # a log has no coordinates
            Observation(max_steps=MAX_STEPS, notice=notice, counts=counts, lines=lines),
        )

    def _ask(self, service: str) -> Observation:
        """Return the counts and lines of a service, or a few lines of every service."""
        names = self.incident.topology.names if service == ALL_SERVICES else (service,)
        most = ANSWER_LINES // len(names) or 1
        lines = [line for name in names for line in self._lines_of(name)[:most]]
        notice = "" if lines else f"no lines of {service}"
        return Observation(notice=notice, lines=lines[:ANSWER_LINES], counts=self._counts(names))

    def _counts(self, names: Iterable[str]) -> list[LineCount] | None:
        """Return lines a minute of services with errors; None if no window or no error is known."""
        evidence = self._findings.evidence if self._findings.window else {}
        services = [evidence[name] for name in names if name in evidence]
        erring = [service for service in services if service.errors or service.usual_errors]
        return [LineCount(service.name, *COUNTED(service)) for service in erring] or None

    def _lines_of(self, name: str) -> list[str]:
        """Return a service's lines of trouble, the most unusual first, then its calm lines."""
        evidence, services = self._findings.evidence, self._tally.services
        troubles = evidence[name].troubles if name in evidence else []
        lines = [(trouble.level, trouble.example) for trouble in troubles]
        lines += [
            (shape.level, shape.example)
            for shape in self._tally.shapes
            if services[shape.service] == name and shape.level < WARN
        ]
        return list(dict.fromkeys(format_line(name, *line) for line in lines))


def format_line(service: str, level: int, text: str) -> str:
    """Format a line as the simulator does, `LEVEL service text`, safe to show to a model."""
    rest, named = visible(text), LEVEL_NAMES[level]
    stated = STATED_LEVEL.match(rest)
    if stated and stated[1].lower() in LEVELS:
        rest = rest[stated.end() :]
        named = stated[1] if stated[1] in SIMULATED else named
    rest = rest.removeprefix(service).lstrip(" :-|")
    return defused(f"{named} {service} {rest}".rstrip())


def inferred_graph(findings: Findings) -> CallGraph:
    """Infer who calls whom: a service calls those that it complains of. Of a circle, the weakest
    call is left out; of too many services, the least suspected, then those with few lines.
    """
    shares = {suspect.service: suspect.share for suspect in findings.suspects}
    names = [name for name in findings.evidence if name != OTHERS] or [*findings.evidence]
    names.sort(key=lambda name: (-shares.get(name, 0.0), -findings.evidence[name].lines))
    kept = names[:MOST_OBSERVED]
    weights = {
        (name, other): share * findings.evidence[name].mass
        for name in kept
        for other, share in findings.evidence[name].names.items()
        if other in kept
    }
    calls: dict[str, list[str]] = {name: [] for name in kept}
    for name, other in sorted(weights, key=lambda call: (-weights[call], call)):
        if not leads(calls, other, name):
            calls[name].append(other)
    return CallGraph(
        tuple(Service(name, UNKNOWN_KIND, tuple(callees)) for name, callees in calls.items())
    )


def leads(calls: Mapping[str, Sequence[str]], start: str, goal: str) -> bool:
    """Whether calls lead from `start` to `goal` in any number of hops, including none."""
    seen, reached = {start}, [start]
    for name in reached:  # grows during the loop: breadth-first search
        if name == goal:
            return True
        fresh = [callee for callee in calls[name] if callee not in seen]
        seen.update(fresh)
        reached += fresh
    return False
