"""One incident being played: the lean core under every interface. No OpenEnv types, no text."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from ..world.call_graph import CallGraph
from ..world.cluster import Cluster
from ..world.incidents import Incident, sample_incident
from ..world.tasks import Task
from ..world.telemetry import Telemetry
from ..world.topology import Topology
from .actions import ALL_SERVICES, Action, check_action
from .observation import Observation
from .scoring import Record, Score, score

ENDED = "Incident closed. No further action is possible; reset to open another."
TIMEOUT = "timeout"


class Step(NamedTuple):
    """What an agent did (None if invalid, see `observation.error`), and what it was shown."""

    action: Action | None
    observation: Observation


@dataclass(frozen=True)
class IncidentView:
    """What may be known about an incident while it is played; the truth is no part of it."""

    task_name: str
    split: str
    index: int
    topology: CallGraph = field(repr=False)
    task: Task | None = None  # None for one that was recorded


VisibleIncident: TypeAlias = IncidentView | Incident


class BaseEpisode:
    """An incident being played, whether simulated, recorded or on a server. A subclass defines what
    an action shows (`_take`, or only `_ask` if nothing reacts), and the score (`_judge`).
    """

    def __init__(self, incident: VisibleIncident, opening: Observation) -> None:
        self.incident, self.opening = incident, opening  # and what is shown first
        self.max_steps = opening.max_steps  # the last possible step, which closes the incident
        self.history: list[Step] = []  # what was done and shown after the opening, in order
        self.record, self.done = Record(), False  # what scoring needs of it; whether it is closed
        self.score: Score | None = None  # None until done, or if the truth is not known

    def act(self, action: Action) -> Observation:
        """Take one step, which an invalid action wastes; `ValueError` if the incident is closed."""
        if self.done:
            raise ValueError(ENDED)
        try:
            check_action(action, self.incident.topology)
        except ValueError as error:
            return self.refuse(str(error))
        return self._step(action, self._take(action))

    def refuse(self, error: str) -> Observation:
        """Spend a step on an invalid action; `error` tells the agent what was wrong."""
        if self.done:
            raise ValueError(ENDED)
        self._waste()
        return self._step(None, Observation(error=error))

    def abandon(self) -> None:
        """Close an open incident as timed out: the agent walked away."""
        if not self.done:
            self._close(TIMEOUT)

    def leave(self) -> None:
        """Release the episode, which is not used again. Remote episodes hold a session."""

    def _take(self, action: Action) -> Observation:
        """Do what a valid action asks, and return what it shows."""
        if action.type == "request_more_logs":
            return self._ask(action.args[0])
        return Observation(notice=self.record.note(action))

    def _ask(self, service: str) -> Observation:
        """Return what a request for more logs of a service, or of all, shows."""
        raise NotImplementedError

    def _waste(self) -> None:
        """Let a step without a valid action pass."""

    def _judge(self) -> Score | None:
        """Return the score of the closed incident; None if the truth is not known."""
        return None

    def _step(self, action: Action | None, observation: Observation) -> Observation:
        self.record.steps += 1
        if action is not None and action.type in ("resolve", "ignore"):
            self._close(action.type)
        elif self.record.steps >= self.max_steps:
            self._close(TIMEOUT)
        observation = observation._replace(
            step=self.record.steps, max_steps=self.max_steps, done=self.done
        )
        self.history.append(Step(action, observation))
        return observation

    def _close(self, closed_by: str) -> None:
        self.record.closed_by = closed_by
        self.score = self._judge()
        self.done = True


def final_score(episode: BaseEpisode) -> Score:
    """The score of a closed episode; `ValueError` while it is open."""
    if episode.score is None:
        raise ValueError("the incident is open and has no score yet; close it, or abandon it first")
    return episode.score


# Opens a task, split and index: `Episode.open` in this process, `remote.Server.open` on a server.
OpenEpisode = Callable[[str | Task, str, int], BaseEpisode]


class Answer(NamedTuple):
    """An answer beside the truth, for whoever looks at a closed incident."""

    name: str  # of what was asked
    answer: str | None
    truth: str | None
    value: float  # in [0, 1]
    weight: float = 0.0  # in the score


class RecordedEpisode(BaseEpisode):
    """An incident that was recorded, or looks like it: nothing reacts to actions, and each incident
    has a call graph of its own. Other packages add such tasks (`logtriage.registry`).
    """

    task_name: ClassVar[str]
    splits: ClassVar[tuple[str, ...]]  # which the task chooses itself

    @classmethod
    def open(cls, split: str, index: int) -> Self:
        """Open the incident with that number, from 0; `ValueError` if there is none."""
        raise NotImplementedError

    @classmethod
    def last_index(cls, split: str) -> int:
        """The highest number of an incident in a split; `ValueError` for an unknown split."""
        raise NotImplementedError

    def answers(self) -> list[Answer]:
        """The answers that were given in the closed incident, beside the truth."""
        raise NotImplementedError

    @property
    def cause(self) -> str:
        """What was wrong, in words; asked for only when the incident is closed."""
        raise NotImplementedError


class Episode(BaseEpisode):
    """A simulated incident being played; each step lets one tick pass."""

    incident: Incident

    def __init__(self, incident: Incident) -> None:
        self.cluster = Cluster(
            incident.topology, incident.injection, incident.untreated, incident.arrival
        )
        self.telemetry = Telemetry(incident, self.cluster, incident.stream("telemetry"))
        opening = Observation(
            max_steps=incident.task.max_steps,
            alerts=self.telemetry.alerts(),
            metrics=self.telemetry.metrics(),
            lines=self.telemetry.opening_lines(),
        )
        super().__init__(incident, opening)

    @classmethod
    def open(
        cls, task: str | Task, split: str, index: int, topology: Topology | None = None
    ) -> Self:
        """Open the incident at these coordinates (see `sample_incident`)."""
        return cls(sample_incident(task, split, index, topology))

    def _take(self, action: Action) -> Observation:
        if action.type != "remediate":
            self.cluster.advance()
            return super()._take(action)
        remedy, service = action.args
        self.cluster.remediate(remedy, self.incident.topology.position[service])
        self.cluster.advance()
        return Observation(notice=self.record.note(action), alerts=self.telemetry.alerts())

    def _ask(self, service: str) -> Observation:
        telemetry = self.telemetry
        if service == ALL_SERVICES:
            return Observation(
                alerts=telemetry.alerts(), metrics=telemetry.metrics(), lines=telemetry.sample()
            )
        position = self.incident.topology.position[service]
        return Observation(metrics=[telemetry.metric(position)], lines=telemetry.detail(position))

    def _waste(self) -> None:
        self.cluster.advance()

    def _judge(self) -> Score:
        return score(self.record, self.incident)


def incident_id(episode: BaseEpisode) -> str:
    """An incident's coordinates as one word."""
    incident = episode.incident
    return f"{incident.task_name}/{incident.split}/{incident.index}"


def closing_report(episode: Episode) -> dict[str, Any]:
    """What an agent may know of a closed incident; without a fault, much of it is None."""
    incident = episode.incident
    return {
        "incident": incident_id(episode),
        "closed_by": episode.record.closed_by,
        "blamed": list(dict.fromkeys(episode.record.root_causes)),
        "score": final_score(episode)._asdict(),
        "root_cause": incident.root,
        "fault": incident.injection and incident.injection.fault.name,
        "remedy": incident.remedy,
        "team": incident.team,
        "severity": incident.severity,
    }
