"""The seven actions as tool methods: what a language model calls, in training and in evaluation
alike.

`TriageTools` is the environment class for TRL's `environment_factory`: its public methods become
the tools, `reset` takes the dataset row, `get_reward` scores. Instances are pooled by the trainer,
so `reset` clears everything.

    GRPOTrainer(..., environment_factory=TriageTools)  # in this process

    with Server("http://127.0.0.1:8000") as server:  # or on a server, see `remote`
        GRPOTrainer(..., environment_factory=partial(TriageTools, server.open)).train()
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .episode import Episode
from .prompts import CLOSED, render

# of training reward, per call that is no valid action; without it training drifts to call spam
MALFORMED_COST = 0.05


class TriageTools:
    """One incident, played by tool calls. Each call is one step.

    Args:
        open_episode: makes the episode from task, split and index; `remote.Server.open` plays it on
            a server.
    """

    def __init__(self, open_episode: Callable[[str, str, int], Episode] = Episode.open) -> None:
        self._open_episode = open_episode
        self._episode: Episode | None = None
        self._malformed = 0
        self._seconds = 0.0  # spent in the simulator since reset
        self._opening = ""

    def reset(self, task: str, split: str, index: int, **row: Any) -> str:
        """Open the incident of a dataset row (its other columns are ignored); returns the opening
        text.
        """
        began = time.perf_counter()
        if self._episode is not None:
            self._episode.leave()
        opening = self._adopt(self._open_episode(task, split, int(index)))
        self._seconds = time.perf_counter() - began
        return opening

    def get_reward(self) -> float:
        """The training reward: the score, less `MALFORMED_COST` a refused call. An open incident
        counts as timed out.
        """
        self._episode.abandon()
        return self._episode.score.total - MALFORMED_COST * self._malformed

    def classify_severity(self, severity: str) -> str:
        """State how bad it is for users.

        Args:
            severity: P1, P2 or P3.
        """
        return self._act("classify_severity", severity)

    def identify_root_cause(self, service: str) -> str:
        """Name the service where the trouble began.

        Args:
            service: Name of the service.
        """
        return self._act("identify_root_cause", service)

    def escalate(self, team: str) -> str:
        """Page a team.

        Args:
            team: sre, backend, dba or security.
        """
        return self._act("escalate", team)

    def remediate(self, remedy: str, service: str) -> str:
        """Apply a remedy to a service.

        Args:
            remedy: restart, rollback, scale, flush-cache or kill-query.
            service: Name of the service.
        """
        return self._act("remediate", f"{remedy}:{service}")

    def request_more_logs(self, service: str) -> str:
        """Read recent lines of a service.

        Args:
            service: Name of the service, or all.
        """
        return self._act("request_more_logs", service)

    def resolve(self) -> str:
        """Close the incident."""
        return self._act("resolve", "")

    def ignore(self) -> str:
        """Close the incident as a false alarm."""
        return self._act("ignore", "")

    def _refuse(self, error: str) -> str:
        """Answer what was no call of a tool at all: it costs a step, like every invalid action."""
        self._malformed += 1
        return render(self._episode.refuse(error))

    def _adopt(self, episode: Episode) -> str:
        self._episode, self._malformed, self._seconds = episode, 0, 0.0
        self._opening = render(episode.opening, episode.incident.topology)
        return self._opening

    def _act(self, action_type: str, value: object) -> str:
        if self._episode.done:
            self._malformed += 1
            raise ValueError(CLOSED)
        began = time.perf_counter()
        observation = self._episode.act(
            action_type, value if isinstance(value, str) else repr(value)
        )
        self._malformed += bool(observation.error)
        text = render(observation)
        self._seconds += time.perf_counter() - began
        return text


TOOL_NAMES = tuple(
    name
    for name in vars(TriageTools)
    if not name.startswith("_") and name not in ("reset", "get_reward")
)
