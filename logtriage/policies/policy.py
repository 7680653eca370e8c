"""What a policy is: from what was seen to the next action, and from opened episodes to played ones.

Scripted policies, language models in memory and models behind an endpoint all go through
`Policy.play_each`, which tells of every episode as it ends.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..play.actions import Action
from ..play.conversation import Message
from ..play.episode import BaseEpisode, Observation
from ..world.call_graph import CallGraph
from ..world.tasks import Task

BATCH = 50  # episodes that may be open at once


class Tokens(NamedTuple):
    """What a conversation cost. Of the prompt, what every turn reads, as whoever charges for it
    counts: what stands in three prompts counts three times.
    """

    prompt: int
    completion: int


class Played(NamedTuple):
    """An episode that a policy is through with, and what it took.

    Attributes:
        episode: closed, unless there is an error.
        seconds: wall-clock, the mean over those that were played together.
        error: why it could not be played to its end; empty where it was. It has no score then.
        messages: of a policy that converses, the conversation.
        tokens: of a policy that converses; None where nobody counted.
    """

    episode: BaseEpisode
    seconds: float
    error: str = ""
    messages: Sequence[Message] = ()
    tokens: Tokens | None = None


class Policy:
    """One agent for one episode at a time.

    `play` runs whole episodes; language models override it with batches.
    """

    name = "policy"

    def prepare(self, task: str | Task, split: str) -> None:
        """What can be worked out before any incident of that task and split is seen; not part of an
        episode's time.
        """

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        """A new incident: forget everything, see the opening."""

    def act(self) -> Action:
        """The next action."""
        raise NotImplementedError

    def see(self, observation: Observation) -> None:
        """What the last action brought."""

    def play(self, episodes: Iterable[BaseEpisode]) -> None:
        """Play each episode to its end."""
        for episode in episodes:
            self._open(episode)
            while not episode.done:
                self.see(episode.act(self.act()))

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """Play each episode, and tell of it as soon as it has ended, in whatever order they end.

        Args:
            episodes: opened as they are asked for; who stops telling of more ends the play.
            batch: most episodes that are open at once.
            attempt: which attempt at these incidents it is. Those who sample draw anew for each;
                whoever has a stream of whims goes on with it.
        """
        for episode in episodes:
            began = time.perf_counter()
            self.play([episode])
            yield Played(episode, time.perf_counter() - began)

    def _open(self, episode: BaseEpisode) -> None:
        self.begin(episode.incident.topology, episode.opening)


def seed_of(*parts: object) -> int:
    """A seed below 2^31 of its own for everything that has a name of its own: neighbours among
    seeds, attempts and incidents share nothing.
    """
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
