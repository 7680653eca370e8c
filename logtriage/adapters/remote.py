"""Incidents played on a server as if they were here: `Server.open` stands wherever `Episode.open`
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openenv.core.sync_client import SyncEnvClient
from pydantic import ValidationError
from websockets.exceptions import WebSocketException

from ..client import LogtriageEnv
from ..models import TriageAction, TriageObservation
from ..play.actions import Action, check_action
from ..play.episode import ENDED, Observation
from ..play.scoring import Record, Score
from ..real.door import check_coordinates, tasks_on
from ..real.real_episode import REAL
from ..world.call_graph import CallGraph
from ..world.tasks import Task
from ..world.topology import Topology


@dataclass(frozen=True)
class IncidentView:
    """What is known of an incident that is played elsewhere: its coordinates and the call graph,
    nothing of the truth.
    """

    task: Task
    split: str
    index: int
    topology: CallGraph


class RemoteEpisode:
    """An incident on a server, with the interface that policies know from `Episode`.

    Made by `Server.open`.

    Attributes:
        incident: an `IncidentView`.
        opening: what is shown before the first action.
        record: once done, how many steps the agent took, what closed the incident, and the
            confidence stated.
        score: the `Score`, once `done`; None before.
    """

    def __init__(
        self, server: Server, session: SyncEnvClient, task: Task, split: str, index: int
    ) -> None:
        self._server, self._session = server, session
        opening = server.ask(session.reset, task=task.name, split=split, index=index).observation
        graph = CallGraph if task.name == REAL else Topology
        self.incident = IncidentView(task, split, index, graph(tuple(opening.services)))
        self.opening = _observation(opening)
        self.record, self.done = Record(), False
        self.score: Score | None = None

    def act(self, action: Action) -> Observation:
        """See `Episode.act`; raises ConnectionError when the server does not answer."""
        if self.done:
            raise ValueError(ENDED)
        try:
            check_action(action, self.incident.topology)
        except ValueError as error:
            return self.refuse(str(error))
        return self._step(
            TriageAction(action_type=action.type, value=action.value, confidence=action.confidence)
        )

    def refuse(self, error: str) -> Observation:
        """See `Episode.refuse`: the server is sent an action that does not exist, and the agent
        reads `error`.
        """
        if self.done:
            raise ValueError(ENDED)
        return self._step(TriageAction(action_type="refused"))._replace(error=error)

    def abandon(self) -> None:
        """See `Episode.abandon`.

        There is no message for it: the steps left are wasted, and not counted as the agent's.
        """
        steps = self.record.steps
        while not self.done:
            self.refuse("")
            self.record.steps = steps

    def leave(self) -> None:
        """Give the session back, done or not: another episode may be opened in it."""
        if not self.done:
            self.done = True
            self._server.release(self._session)

    def _step(self, action: TriageAction) -> Observation:
        observation = _observation(self._server.ask(self._session.step, action).observation)
        self.record.steps = observation.step
        if observation.done:
            state = self._server.ask(self._session.state)
            self.score, self.done = Score(**state.score), True
            self.record.closed_by, self.record.confidence = state.closed_by, state.confidence
            self._server.release(self._session)
        return observation


class Server:
    """A LogTriage server, and the sessions opened on it: each is used again once its episode is
    done.

        with Server("http://127.0.0.1:8000") as server:
            rollout(TracePolicy(), ["cascading_failure"], open_episode=server.open)

    Args:
        url: where the server is.

    Raises:
        ConnectionError: no server there, no room on it, or not one of ours.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = LogtriageEnv(base_url=url).sync()
        self._idle: list[SyncEnvClient] = []

    def __enter__(self) -> Server:
        try:
            self._idle.append(self.ask(self._client.connect))
        except ConnectionError:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def open(self, task: str | Task, split: str, index: int) -> RemoteEpisode:
        """Open an incident in a session of its own.

        Raises:
            ValueError: as `sample_incident`, and for a task of one's own, which no server knows.
            ConnectionError: no server there any more, or no room on it.
        """
        if isinstance(task, Task):
            raise ValueError(
                f"a server plays its own tasks; choose one of {', '.join(tasks_on(None))}"
            )
        settings = check_coordinates(task, split, index)
        session = self._idle.pop() if self._idle else self.ask(self._client.new_session)
        try:
            return RemoteEpisode(self, session, settings, split, index)
        except BaseException:
            self.release(session)  # it connects again when it is used again
            raise

    def release(self, session: SyncEnvClient) -> None:
        """Take back a session whose episode is done."""
        self._idle.append(session)

    def ask(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a client's call returns; whatever goes wrong with the server is a ConnectionError
        that names it.
        """
        try:
            return call(*args, **kwargs)
        except (OSError, RuntimeError, WebSocketException) as error:
            raise ConnectionError(f"{self.url}: {error}") from error
        except (ValidationError, KeyError) as error:
            raise ConnectionError(
                f"{self.url} does not answer as a LogTriage server of this version"
            ) from error


def _observation(answer: TriageObservation) -> Observation:
    return Observation(
        answer.step,
        answer.max_steps,
        answer.notice,
        answer.error,
        answer.alerts,
        answer.metrics,
        answer.logs,
        answer.done,
        answer.measures,
        answer.calls,
        answer.counts,
    )
