"""A log of one's own as an episode, so that a policy or a model can be asked about it through the
door that simulated incidents have.

| question | answer |
|---|---|
| the opening | alerts and the table where there are metrics, counts of error lines, and lines |
| logs of a service | its further metrics, its counts, its trouble and its last lines |
| logs of all | the same of everybody, shorter |

Its lines are those most unlike the usual; where no stretch is unlike the rest, the last ones. They
are shown as the simulator writes them, `LEVEL service text`. Nobody knows the truth, so there is no
score; nothing is executed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..play.actions import ALL_SERVICES
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..real.observed import LineCount
from ..world.call_graph import MOST_OBSERVED, CallGraph, Service, leads
from .answer import Findings, findings_of, guessed_kind
from .evidence import ServiceEvidence
from .log import Log
from .measures import alerts, is_unusual, table
from .tally import OTHERS

MAX_STEPS = 12
SHOWN = 20  # lines of an opening, at most
TOLD = 12  # in answer to a question
INFERRED = "calls are inferred from who names whom in trouble; there may be others"
NOBODY = "no calls are known"


@dataclass(frozen=True)
class LogIncident:
    """What is known of it: the call graph that it is read by; it has no other coordinates."""

    topology: CallGraph
    task_name: str = field(default="log", init=False)
    task: None = field(default=None, init=False)
    split: str = field(default="log", init=False)
    index: int = field(default=0, init=False)


class LogEpisode(BaseEpisode):
    """A log being asked about.

    Args:
        log: from `read_log` or `read_text`, which were given the names of the graph.
        graph: the call graph of the cluster that it comes from; None to infer one.
        found: what was found in it, with that graph; its lines, counts and metrics are shown, and
            no suspicion.

    Raises:
        ValueError: when there is no line, or none that names a service of the graph.
    """

    def __init__(
        self, log: Log, graph: CallGraph | None = None, found: Findings | None = None
    ) -> None:
        tally = log.tally
        if not tally.records:
            raise ValueError("there is no line to triage; paste some log lines")
        if graph is not None and not set(graph.names) & set(tally.services):
            raise ValueError(
                f"none of the {tally.records} lines names a service of the call graph "
                f"({', '.join(graph.names)}); give the one that they come from"
            )
        self.log, self.found = log, found or findings_of(log, graph)
        notice = ""
        if graph is None:
            graph = inferred_graph(self.found)
            notice = INFERRED if graph.call_graph_text else NOBODY
        self._numbers = {name: number for number, name in enumerate(tally.services)}
        rows = table(self.found.measures) if self.found.measures else None
        opening = Observation(
            max_steps=MAX_STEPS,
            notice=notice,
            alerts=None if rows is None else alerts(rows),
            metrics=rows,
            counts=self._counts(one for one in graph.names if self._has_errors(one)) or None,
            lines=self._opening_lines(),
        )
        super().__init__(LogIncident(graph), opening)

    def _ask(self, service: str) -> Observation:
        """See the table at the head of this file."""
        measures = [one for one in self.found.measures if service in (ALL_SERVICES, one.service)]
        if service == ALL_SERVICES:
            lines = self._last_lines()[-TOLD:]
            measures = [one for one in measures if is_unusual(one)]
            names = [one for one in self.incident.topology.names if self._has_errors(one)]
        else:
            lines, names = self._lines_of(service), [service]
        return Observation(
            notice="" if lines or measures else f"no lines of {service}",
            lines=lines,
            measures=measures or None,
            counts=self._counts(names) or None,
        )

    def _has_errors(self, name: str) -> bool:
        one = self.found.evidence.get(name)
        return one is not None and bool(one.errors or one.usual_errors)

    def _counts(self, names: Iterable[str]) -> list[LineCount]:
        """Lines a minute; none where no window tells minutes apart."""
        if self.found.window is None:
            return []
        return [
            _count(one)
            for one in map(self.found.evidence.get, names)
            if one is not None and (one.lines or one.usual_lines)
        ]

    def _opening_lines(self) -> list[str]:
        """The trouble that is most unlike the usual, in order of time; else the last lines."""
        if self.found.window is None:
            return self._last_lines()
        troubles = [
            (one, name)
            for name, evidence in self.found.evidence.items()
            for one in evidence.troubles
            if name in self._numbers
        ]
        troubles.sort(key=lambda pair: -pair[0].gain)
        shown = sorted(troubles[:SHOWN], key=lambda pair: pair[0].first)
        return [self.log.tally.told(name, one.level, one.example) for one, name in shown]

    def _last_lines(self) -> list[str]:
        tally = self.log.tally
        return [
            tally.told(tally.services[service], tally.shapes[shape].level, text)
            for service, (_, _, shape, text) in tally.kept()
        ]

    def _lines_of(self, name: str) -> list[str]:
        """A service's trouble in the window, then its last lines in it; of the whole log where
        there is no window.
        """
        if name not in self._numbers:
            return []
        tally, window = self.log.tally, self.found.window
        troubles = self.found.evidence[name].troubles if window else []
        lines = {
            tally.told(name, one.level, one.example): one.first for one in troubles[: TOLD // 2]
        }
        for _, (_, second, shape, text) in tally.kept(self._numbers[name]):
            if window is None or window.start <= second < window.end:
                lines.setdefault(tally.told(name, tally.shapes[shape].level, text), second)
        kept = list(lines)[:TOLD] if window else list(lines)[-TOLD:]
        return sorted(kept, key=lambda line: lines[line])


def _count(one: ServiceEvidence) -> LineCount:
    return LineCount(
        one.name,
        one.lines,
        one.usual_lines,
        one.errors,
        one.usual_errors,
        one.warnings,
        one.usual_warnings,
    )


def inferred_graph(found: Findings) -> CallGraph:
    """Who calls whom, as far as lines of trouble name it: of two that would make a circle, the call
    that is complained of less is left out. Kinds are guessed from names.

    Of more services than a graph holds, those that are suspected come first, then those of most
    lines.
    """
    shares = {one.service: one.share for one in found.suspects}
    names = [name for name in found.evidence if name != OTHERS] or [*found.evidence]
    names.sort(key=lambda name: (-shares.get(name, 0.0), -found.evidence[name].lines))
    kept = names[:MOST_OBSERVED]
    weights = {
        (name, other): share * found.evidence[name].mass
        for name in kept
        for other, share in found.evidence[name].names.items()
        if other in kept
    }
    calls: dict[str, list[str]] = {name: [] for name in kept}
    for name, other in sorted(weights, key=lambda call: (-weights[call], call)):
        if not leads(calls, other, name):
            calls[name].append(other)
    return CallGraph(
        tuple(Service(name, guessed_kind(name), tuple(callees)) for name, callees in calls.items())
    )
