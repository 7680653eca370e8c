"""An episode that keeps what was done and seen: to be judged, stored and played again."""

from __future__ import annotations

from typing import NamedTuple

from .actions import Action
from .episode import Observation, PlayableEpisode
from .scoring import Record, Score


class Step(NamedTuple):
    """What was done, and what it brought.

    Attributes:
        action_type: empty for what was no action at all, and then `value` is why.
        value: see `actions`.
        observation: what the agent was shown; its `error` says so where the action was not valid.
        confidence: stated with it.
    """

    action_type: str
    value: str
    observation: Observation
    confidence: float | None = None


class RecordedEpisode:
    """An episode that keeps its steps; else it is the episode that it wraps.

    Args:
        episode: just opened.

    Attributes:
        steps: all that was done so far, in order.
    """

    def __init__(self, episode: PlayableEpisode) -> None:
        self._episode = episode
        self.incident, self.opening = episode.incident, episode.opening
        self.steps: list[Step] = []

    @property
    def trail(self) -> list[Step]:
        """The steps that were valid actions."""
        return [step for step in self.steps if not step.observation.error]

    @property
    def done(self) -> bool:
        """See `Episode.done`."""
        return self._episode.done

    @property
    def score(self) -> Score | None:
        """See `Episode.score`."""
        return self._episode.score

    @property
    def record(self) -> Record:
        """See `Episode.record`."""
        return self._episode.record

    def act(self, action: Action) -> Observation:
        """See `Episode.act`."""
        observation = self._episode.act(action)
        self.steps.append(Step(action.type, action.value, observation, action.confidence))
        return observation

    def refuse(self, error: str) -> Observation:
        """See `Episode.refuse`."""
        observation = self._episode.refuse(error)
        self.steps.append(Step("", error, observation))
        return observation

    def abandon(self) -> None:
        """See `Episode.abandon`."""
        self._episode.abandon()

    def leave(self) -> None:
        """See `Episode.leave`."""
        self._episode.leave()
