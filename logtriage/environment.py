"""`TriageEnvironment`: the OpenEnv face of an episode."""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.interfaces import Environment

from .episode import Episode, Sight
from .incidents import sample_incident
from .models import TriageAction, TriageObservation, TriageState
from .prompts import render
from .rewards import Score, TriageRubric


class TriageEnvironment(Environment[TriageAction, TriageObservation, TriageState]):
    """Incidents in a microservice cluster, to be traced to their root, fixed, and handed to the right team.

    | | |
    |---|---|
    | actions | seven, see `TriageAction`; one step is one tick of 30 s |
    | observation | logs, alerts, metrics: partial and noisy, see `TriageObservation` |
    | reward | 0, and at the end the score in [0, 1], see `rewards` |
    | end | `resolve`, `ignore`, or the task's last step |
    | incidents | `task`, `split`, `index`: the same coordinates give the same bytes |

        env = TriageEnvironment()
        observation = env.reset(task="cascading_failure", split="test", index=7)
        observation = env.step(TriageAction(action_type="request_more_logs", value="user-db"))
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(rubric=TriageRubric())
        self._episode: Episode | None = None
        self._episode_id: str | None = None
        self._next_index = 0

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        task: str = "cascading_failure",
        split: str = "train",
        index: int | None = None,
        **kwargs: Any,
    ) -> TriageObservation:
        """Open an incident. Without `index`, `seed` is the index; without either, indices count up from 0.

        Raises:
            ValueError: unknown task, split, index or argument; an incident that was open stays open.
        """
        if kwargs:
            raise ValueError(f"unknown argument {next(iter(kwargs))!r}; reset takes seed, episode_id, task, split, index")
        if index is None:
            index = self._next_index if seed is None else seed
        incident = sample_incident(task, split, index)
        self._next_index = index + 1
        self._reset_rubric()
        self._episode, self._episode_id = Episode(incident, self.rubric), episode_id
        return self._observe(self._episode.first, opening=True)

    def step(self, action: TriageAction, timeout_s: float | None = None, **kwargs: Any) -> TriageObservation:
        """Take one action. An invalid one costs the step, and the observation's `error` names the allowed values.

        Raises:
            ValueError: before `reset`, and after the incident is closed.
        """
        if self._episode is None:
            raise ValueError("no incident is open; call reset first")
        return self._observe(self._episode.act(action.action_type, action.value, action.confidence))

    @property
    def score(self) -> Score | None:
        """The parts, gate and total once the incident is closed; None before."""
        return None if self._episode is None else self._episode.score

    @property
    def state(self) -> TriageState:
        """Where the episode stands; nothing of the truth before the end."""
        if self._episode is None:
            return TriageState()
        incident = self._episode.incident
        return TriageState(
            episode_id=self._episode_id,
            step_count=self._episode.record.steps,
            task=incident.task.name,
            split=incident.split,
            index=incident.index,
            max_steps=incident.task.max_steps,
            done=self._episode.done,
            score=self.score._asdict() if self.score else {},
        )

    def _observe(self, sight: Sight, opening: bool = False) -> TriageObservation:
        topology = self._episode.incident.topology
        return TriageObservation(
            done=sight.done,
            reward=self._episode.score.total if sight.done else 0.0,
            text=render(sight, topology if opening else None),
            step=sight.step,
            max_steps=sight.max_steps,
            services=topology.names,
            alerts=[alert.text for alert in sight.alerts or ()],
            metrics=[metric.text for metric in sight.metrics or ()],
            logs=sight.lines or [],
            error=sight.error,
        )
