"""One incident being played: the lean core under every interface. No OpenEnv types, no text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..world.call_graph import CallGraph
from ..world.cluster import Cluster
from ..world.incidents import Incident, sample_incident
from ..world.rows import Alert, CallTime, LineCount, Measure, Metric
from ..world.tasks import Task
from ..world.telemetry import Telemetry
from ..world.topology import Topology
from .actions import ALL_SERVICES, Action, check_action
from .scoring import Record, Score, score

ENDED = "Incident closed. No further action is possible; reset to open another."


class Observation(NamedTuple):
    """What the agent is shown after a step; parts that the step did not bring are None.

    `notice` repeats what was done, never whether it was right. `error` explains an invalid action.
    `measures`, `calls` and `counts` are of observed incidents; simulated ones have none.
    """

    step: int
    max_steps: int
    notice: str = ""
    error: str = ""
    alerts: list[Alert] | None = None
    metrics: list[Metric] | None = None
    lines: list[str] | None = None
    done: bool = False
    measures: list[Measure] | None = None
    calls: list[CallTime] | None = None
    counts: list[LineCount] | None = None


class VisibleIncident(Protocol):
    """What may be known of an incident while it is played: its coordinates and its call graph."""

    @property
    def task(self) -> Task: ...
    @property
    def split(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def topology(self) -> CallGraph: ...


class PlayableEpisode(Protocol):
    """What episodes here and on a server share (`Episode`, `remote.RemoteEpisode`), and so all that
    policies, tools and rollouts may rely on. `Episode` says what each member does.
    """

    @property
    def incident(self) -> VisibleIncident: ...
    @property
    def opening(self) -> Observation: ...
    @property
    def done(self) -> bool: ...
    @property
    def score(self) -> Score | None: ...
    @property
    def record(self) -> Record: ...

    def act(self, action: Action) -> Observation: ...
    def refuse(self, error: str) -> Observation: ...
    def abandon(self) -> None: ...
    def leave(self) -> None: ...


def final_score(episode: PlayableEpisode) -> Score:
    """The score of a closed episode.

    Raises:
        ValueError: while it is open.
    """
    if episode.score is None:
        raise ValueError("the incident is open and has no score yet; close it, or abandon it first")
    return episode.score


# Makes the episode of an incident from its task, split and index: `Episode.open` in this process,
# `remote.Server.open` on a server.
OpenEpisode = Callable[[str | Task, str, int], PlayableEpisode]


class Episode:
    """Plays one incident.

    Args:
        incident: from `sample_incident`.

    Attributes:
        record: what was done so far.
        score: the `Score`, once `done`; None before.
    """

    def __init__(self, incident: Incident) -> None:
        self.incident = incident
        self.cluster = Cluster(
            incident.topology,
            incident.injections,
            incident.untreated,
            incident.arrival,
            incident.task.lag,
        )
        self.telemetry = Telemetry(incident, self.cluster, incident.stream("telemetry"))
        self.record = Record(fault_active=bool(incident.injections))
        self.score: Score | None = None
        self.done = False
        faults = incident.task.faults
        notice = (
            f"{faults} services are at fault; name, fix and page for each" if faults > 1 else ""
        )
        self.opening = Observation(
            0,
            incident.task.max_steps,
            notice,
            "",
            self.telemetry.alerts(),
            self.telemetry.metrics(),
            self.telemetry.stream(),
        )

    @classmethod
    def open(
        cls, task: str | Task, split: str, index: int, topology: Topology | None = None
    ) -> Episode:
        """The episode of the incident at these coordinates (see `sample_incident`).

        `functools.partial(Episode.open, topology=...)` opens episodes on a call graph of one's own
        wherever a function of task, split and index is asked for.
        """
        return cls(sample_incident(task, split, index, topology))

    def act(self, action: Action) -> Observation:
        """Take one step.

        An invalid action costs it and changes nothing else; the observation's `error` says why. The
        confidence is kept for the first service blamed, and for `ignore`.

        Raises:
            ValueError: when the incident is closed already.
        """
        if self.done:
            raise ValueError(ENDED)
        incident, record, cluster = self.incident, self.record, self.cluster
        topology, most = incident.topology, incident.task.max_steps
        try:
            check_action(action, topology)
        except ValueError as error:
            return self.refuse(str(error))
        action_type, args, confidence = action
        value = args[0] if args else ""

        notice, alerts, metrics, lines, closing = "", None, None, None, None
        if action_type == "request_more_logs":
            cluster.advance()
            if value == ALL_SERVICES:
                alerts = self.telemetry.alerts()
                metrics = self.telemetry.metrics()
                lines = self.telemetry.sample()
            else:
                position = topology.position[value]
                metrics, lines = [self.telemetry.metric(position)], self.telemetry.detail(position)
        elif action_type == "classify_severity":
            record.repeats += record.severity is not None
            record.severity = record.severity or value
            notice = f"severity noted: {value}"
        elif action_type == "identify_root_cause":
            record.repeats += len(record.root_causes) >= incident.task.faults
            if not record.root_causes:
                record.confidence = confidence
            record.root_causes.append(value)
            notice = f"root cause noted: {value}"
        elif action_type == "escalate":
            record.repeats += len(record.teams) >= incident.task.faults
            record.teams.append(value)
            notice = f"paged {value}"
        elif action_type == "remediate":
            remedy, service = args
            record.repeats += len(record.remediations) >= incident.task.faults
            record.remediations.append((remedy, service))
            cluster.remediate(remedy, topology.position[service])
            cluster.advance()
            notice, alerts = f"did {remedy} on {service}", self.telemetry.alerts()
        else:
            closing, notice = action_type, f"closed by {action_type}"
            if action_type == "ignore":
                record.confidence = confidence
        if alerts is None and metrics is None:
            cluster.advance()
        record.steps += 1
        self._close_if_over(closing)
        return Observation(record.steps, most, notice, "", alerts, metrics, lines, self.done)

    def refuse(self, error: str) -> Observation:
        """Spend a step on something that was no valid action; `error` tells the agent why.

        Raises:
            ValueError: when the incident is closed already.
        """
        if self.done:
            raise ValueError(ENDED)
        self.cluster.advance()
        self.record.steps += 1
        self._close_if_over(None)
        return Observation(
            self.record.steps, self.incident.task.max_steps, error=error, done=self.done
        )

    def abandon(self) -> None:
        """Close an open incident as timed out: the agent walked away.

        Nothing happens to a closed one.
        """
        if not self.done:
            self._close_if_over("timeout")

    def leave(self) -> None:
        """Nothing more will be asked of it.

        Only an episode on a server has something to give back (see `remote`).
        """

    def _close_if_over(self, closing: str | None) -> None:
        record = self.record
        if closing is None and record.steps < self.incident.task.max_steps:
            return
        self.done = True
        record.closed_by, record.fault_active = closing or "timeout", bool(self.cluster.active)
        self.score = score(record, self.incident)
