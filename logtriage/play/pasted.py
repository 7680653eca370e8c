"""An incident of which there is only text: lines that somebody pasted.

Nothing is simulated, and nothing scored. A line is taken for one of the service that it names
first, and questions for more logs are answered by those; remedies and pages are noted, and nobody
acts on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..world.tasks import TASKS, Task
from ..world.topology import DEFAULT_TOPOLOGY, Topology
from .actions import ALL_SERVICES, check_action
from .episode import ENDED, Observation
from .rewards import Record, Score

SHOWN = 20  # of the last lines, in the opening; about what an incident of the simulator opens with
TOLD = 12  # of a service's last lines, in answer to a question
HEADERS = ("step ", "calls: ")  # lines of the simulator's own text that every opening has anyway


@dataclass(frozen=True)
class PastedIncident:
    """What is known of it: the call graph that it is read by. The rest stands in for what a
    simulated incident has.
    """

    topology: Topology
    task: Task = field(default=TASKS["cascading_failure"])
    split: str = "pasted"
    index: int = 0


class PastedEpisode:
    """A `PlayableEpisode` over pasted lines, without a score.

    Args:
        text: the lines, in order of time.
        topology: the call graph of the cluster that they come from.

    Raises:
        ValueError: when there is no line, or none that names a service.
    """

    def __init__(self, text: str, topology: Topology = DEFAULT_TOPOLOGY) -> None:
        self.incident = PastedIncident(topology)
        self._lines = [
            line.rstrip()
            for line in text.splitlines()
            if line.strip() and not line.startswith(HEADERS)
        ]
        if not self._lines:
            raise ValueError("there is no line to triage; paste some log lines")
        if not any(map(self._service_of, self._lines)):
            raise ValueError(
                f"none of the {len(self._lines)} lines names a service of the call graph "
                f"({', '.join(topology.names)}); give the one that they come from"
            )
        most = self.incident.task.max_steps
        self.opening = Observation(0, most, lines=self._lines[-SHOWN:])
        self.record, self.done = Record(), False
        self.score: Score | None = None

    def act(
        self, action_type: str, value: str = "", confidence: float | None = None
    ) -> Observation:
        """See `Episode.act`."""
        if self.done:
            raise ValueError(ENDED)
        try:
            check_action(action_type, value, self.incident.topology)
        except ValueError as error:
            return self.refuse(str(error))
        record, notice, lines = self.record, "", None
        if action_type == "request_more_logs":
            lines = [
                line for line in self._lines if value in (ALL_SERVICES, self._service_of(line))
            ][-TOLD:]
            notice = "" if lines else f"no lines of {value}"
        elif action_type == "classify_severity":
            record.severity = record.severity or value
            notice = f"severity noted: {value}"
        elif action_type == "identify_root_cause":
            record.root_causes.append(value)
            record.confidence = confidence if record.confidence is None else record.confidence
            notice = f"root cause noted: {value}"
        elif action_type == "escalate":
            record.teams.append(value)
            notice = f"paged {value}"
        elif action_type == "remediate":
            remedy, _, service = value.partition(":")
            record.remediations.append((remedy, service))
            notice = f"did {remedy} on {service}"
        else:
            record.closed_by, notice = action_type, f"closed by {action_type}"
        return self._stepped(notice=notice, lines=lines)

    def _service_of(self, line: str) -> str:
        """The service that a line names first; empty for none. Of two names at one place, which
        begin alike, it is the longer.
        """
        places = {name: line.find(name) for name in self.incident.topology.names}
        named = [name for name, place in places.items() if place >= 0]
        return min(named, key=lambda name: (places[name], -len(name)), default="")

    def refuse(self, error: str) -> Observation:
        """See `Episode.refuse`."""
        if self.done:
            raise ValueError(ENDED)
        return self._stepped(error=error)

    def abandon(self) -> None:
        """See `Episode.abandon`."""
        if not self.done:
            self.done, self.record.closed_by = True, "timeout"

    def leave(self) -> None:
        """See `Episode.leave`."""

    def _stepped(
        self, notice: str = "", error: str = "", lines: list[str] | None = None
    ) -> Observation:
        self.record.steps += 1
        if self.record.closed_by is None and self.record.steps >= self.opening.max_steps:
            self.record.closed_by = "timeout"
        self.done = self.record.closed_by is not None
        return Observation(
            self.record.steps,
            self.opening.max_steps,
            notice=notice,
            error=error,
            lines=lines,
            done=self.done,
        )
