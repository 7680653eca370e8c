"""Incidents played on a server as if they were here: `Server.open` in place of `Episode.open`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from websockets.exceptions import WebSocketException

from ..catalogue import check_coordinates
from ..client import LogtriageEnv
from ..models import TriageAction, TriageObservation
from ..openenv_base import SyncEnvClient
from ..play.actions import Action
from ..play.episode import BaseEpisode, IncidentView
from ..play.observation import Observation
from ..play.scoring import Score
from ..world.call_graph import CallGraph
from ..world.tasks import Task
from ..world.topology import Topology

# What the server is sent for a step that was an invalid action: no action has this name.
REFUSED = TriageAction(action_type="refused")


class RemoteEpisode(BaseEpisode):
    """An incident on a server. Only the server knows whether the fault is gone."""

    def __init__(
        self, server: Server, session: SyncEnvClient, incident: IncidentView, opening: Observation
    ) -> None:
        self._server, self._session = server, session
        super().__init__(incident, opening)

    def abandon(self) -> None:
        """Waste the steps that are left, since there is no message to abandon an episode."""
        if not self.done:
            while not self._send(REFUSED).done:
                pass
            super().abandon()

    def leave(self) -> None:
        """Give the session back if the episode is open; another one may be opened in it."""
        if not self.done:
            self.done = True
            self._server.idle.append(self._session)

    def _take(self, action: Action) -> Observation:
        observation = self._send(
            TriageAction(action_type=action.type, value=action.value, confidence=action.confidence)
        )
        if action.type != "request_more_logs":
            self.record.note(action)
        return observation

    def _waste(self) -> None:
        self._send(REFUSED)

    def _judge(self) -> Score:
        state = self._server.ask(self._session.state)
        self._server.idle.append(self._session)
        return Score(**state.score)

    def _send(self, action: TriageAction) -> Observation:
        return _observation(self._server.ask(self._session.step, action).observation)


class Server:
    """A LogTriage server and its sessions: `with Server(url) as server`. A session is used again
    after its episode. `ConnectionError` if there is no server, or it has no room, or is not ours.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = LogtriageEnv(base_url=url).sync()
        self.idle: list[SyncEnvClient] = []  # sessions without an open episode

    def __enter__(self) -> Server:
        try:
            self.idle.append(self.ask(self._client.connect))
        except ConnectionError:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def open(self, task: str | Task, split: str, index: int) -> RemoteEpisode:
        """Open an incident in a session of its own; `ValueError` if there is none."""
        task = str(task)  # a server knows only its own tasks, by name
        settings = check_coordinates(task, split, index)
        session = self.idle.pop() if self.idle else self.ask(self._client.new_session)
        try:
            opening = self.ask(session.reset, task=task, split=split, index=index).observation
        except BaseException:
            self.idle.append(session)  # it connects again when it is used again
            raise
        graph = (CallGraph if settings is None else Topology)(tuple(opening.services))
        incident = IncidentView(task, split, index, graph, settings)
        return RemoteEpisode(self, session, incident, _observation(opening))

    def ask(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return a call's result. If it fails, raise a `ConnectionError` that names the server."""
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
            reason = "does not answer as a LogTriage server of this version; install the same there"
            raise ConnectionError(f"{self.url} {reason}") from None


def _observation(answer: TriageObservation) -> Observation:
    same = {name: getattr(answer, name) for name in Observation._fields if name != "lines"}
    return Observation(lines=answer.logs, **same)
