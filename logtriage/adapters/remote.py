"""Incidents played on a server as if they were here: `Server.open` in place of `Episode.open`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openenv.core.sync_client import SyncEnvClient
from pydantic import ValidationError
from websockets.exceptions import WebSocketException

from ..client import LogtriageEnv
from ..models import TriageAction, TriageObservation
from ..play.actions import Action
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..play.scoring import Score
from ..real.catalogue import check_coordinates, tasks_on
from ..world.call_graph import CallGraph
from ..world.tasks import Task
from ..world.topology import Topology

# What the server is sent for a step that was no valid action: there is no such action.
REFUSED = TriageAction(action_type="refused")


@dataclass(frozen=True)
class IncidentView:
    """What is known of an incident that is played elsewhere: nothing of the truth."""

    task_name: str
    split: str
    index: int
    topology: CallGraph
    task: Task | None  # None for a real incident


class RemoteEpisode(BaseEpisode):
    """An incident on a server, made by `Server.open`.

    `record` has the answers as they were given; whether the fault is gone, the server alone knows.
    """

    def __init__(
        self, server: Server, session: SyncEnvClient, incident: IncidentView, opening: Observation
    ) -> None:
        self._server, self._session = server, session
        super().__init__(incident, opening)

    def abandon(self) -> None:
        """See `BaseEpisode.abandon`: there is no message for it, so the steps left are wasted."""
        if not self.done:
            while not self._send(REFUSED).done:
                pass
            super().abandon()

    def leave(self) -> None:
        """Give the session back, done or not: another episode may be opened in it."""
        if not self.done:
            self.done = True
            self._server.release(self._session)

    def _take(self, action: Action) -> Observation:
        shown = self._send(
            TriageAction(action_type=action.type, value=action.value, confidence=action.confidence)
        )
        if action.type != "request_more_logs":
            self.record.note(action)
        return shown

    def _waste(self) -> None:
        self._send(REFUSED)

    def _judge(self) -> Score:
        state = self._server.ask(self._session.state)
        self._server.release(self._session)
        return Score(**state.score)

    def _send(self, action: TriageAction) -> Observation:
        return _observation(self._server.ask(self._session.step, action).observation)


class Server:
    """A LogTriage server, and the sessions on it: each is used again once its episode is done.

        with Server("http://127.0.0.1:8000") as server:
            rollout(TracePolicy(), ["cascading_failure"], open_episode=server.open)

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
            ValueError: as `sample_incident`, and for a custom task, which no server knows.
            ConnectionError: no server there any more, or no room on it.
        """
        if isinstance(task, Task):
            raise ValueError(
                f"a server plays its own tasks; choose one of {', '.join(tasks_on(None))}"
            )
        settings = check_coordinates(task, split, index)
        session = self._idle.pop() if self._idle else self.ask(self._client.new_session)
        try:
            opening = self.ask(session.reset, task=task, split=split, index=index).observation
        except BaseException:
            self.release(session)  # it connects again when it is used again
            raise
        graph = (CallGraph if settings is None else Topology)(tuple(opening.services))
        incident = IncidentView(task, split, index, graph, settings)
        return RemoteEpisode(self, session, incident, _observation(opening))

    def release(self, session: SyncEnvClient) -> None:
        """Take back a session whose episode is done."""
        self._idle.append(session)

    def ask(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a client's call returns; whatever goes wrong with the server is one ConnectionError
        that names it.
        """
        try:
            return call(*args, **kwargs)
        except RuntimeError as error:  # the server's own words
            raise ConnectionError(f"{self.url}: {error}") from None
        except (OSError, WebSocketException, TypeError) as error:
            # A TypeError is all that OpenEnv 0.10 says when it cannot connect again.
            reason = "it cannot be reached again" if isinstance(error, TypeError) else error
            raise ConnectionError(
                f"no LogTriage server answers at {self.url} ({reason}); start it there with"
                " `python -m logtriage serve`, and run the same command again"
            ) from None
        except (ValidationError, KeyError):
            raise ConnectionError(
                f"{self.url} does not answer as a LogTriage server of this version; install the"
                " same version on both sides"
            ) from None


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
