"""What a policy is: it maps what was seen to the next action, and open episodes to played ones."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..play.actions import Action
from ..play.conversation import NATIVE, Message, Protocol
from ..play.episode import BaseEpisode, incident_id
from ..play.observation import Observation
from ..play.tools import ToolSession
from ..world.call_graph import CallGraph
from ..world.tasks import TASKS, Task, check_task

BATCH = 50  # episodes that may be open at once
MAX_TURNS = 16  # assistant messages of one conversation


class EndpointError(ConnectionError):
    """A model did not answer; the text is one line, which a result may keep."""


class UnusableEndpointError(EndpointError):
    """An endpoint that will not answer any other request either."""


class Tokens(NamedTuple):
    """Tokens as endpoints charge for them: text that is in three prompts counts three times."""

    prompt: int
    completion: int


class Played(NamedTuple):
    """An episode that a policy has finished with; it is closed, unless there is an error."""

    episode: BaseEpisode
    seconds: float  # wall-clock, the mean over the episodes that were played together
    error: str = ""  # why it could not be played to its end; then it has no score
    messages: Sequence[Message] = ()  # of a policy that converses
    tokens: Tokens | None = None  # None where they were not counted


class Policy:
    """An agent. By default it plays one episode after the other: `begin`, then `act` and `see`."""

    name = "policy"

    def prepare(self, task: str | Task, split: str) -> None:
        """Compute what a task and split need before any incident, outside the time of episodes."""

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        """Start on a new incident, with its opening; forget the last one."""

    def act(self) -> Action:
        """The next action."""
        raise NotImplementedError

    def see(self, observation: Observation) -> None:
        """Take in the result of the last action."""

    def play(self, episodes: Iterable[BaseEpisode]) -> list[Played]:
        """Play all episodes at once to their end; `EndpointError` for the first that failed."""
        opened = list(episodes)
        played = list(self.play_each(opened, batch=max(1, len(opened))))
        for ended in played:
            if ended.error:
                raise EndpointError(ended.error)
        return played

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """Play each episode, and yield it as soon as it has ended. Episodes are taken lazily; at
        most `batch` are open at once. Language models sample differently for each `attempt`;
        scripted policies go on with their random stream.
        """
        for episode in episodes:
            began = time.perf_counter()
            self.open(episode)
            while not episode.done:
                self.see(episode.act(self.act()))
            yield Played(episode, time.perf_counter() - began)

    def simulated_task(self, task: str | Task) -> Task:
        """The settings of a task; `ValueError` if its incidents are not simulated."""
        if isinstance(task, str) and task not in TASKS:
            raise ValueError(
                f"{self.name} plays simulated incidents alone, which {task} does not have; choose "
                f"another policy, or one of {', '.join(TASKS)}"
            )
        return check_task(task)

    def open(self, episode: BaseEpisode) -> None:
        self.begin(episode.incident.topology, episode.opening)


class ConversationPolicy(Policy):
    """Plays by conversation: reads messages, and writes the next, which may hold several calls."""

    def __init__(self, name: str, seed: int = 0, protocol: Protocol = NATIVE) -> None:
        self.name, self.seed, self.protocol = name, seed, protocol

    def reply(self, messages: list[Message], seed: int) -> tuple[Message, Tokens | None]:
        """The next assistant message and its tokens; `EndpointError` when there is none."""
        raise NotImplementedError

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        return (self.converse(episode, attempt) for episode in episodes)

    def converse(self, episode: BaseEpisode, attempt: int = 0) -> Played:
        """Play one episode to its end or error; no call, or no turn left, is to walk away."""
        began = time.perf_counter()
        session = ToolSession(episode)
        messages = self.protocol.opening(session.opening)
        tokens: Tokens | None = None
        error = ""
        try:
            for turn in range(MAX_TURNS):
                seed = seed_of(self.seed, attempt, incident_id(episode), turn)
                message, spent = self.reply(messages, seed)
                if spent is not None:
                    prompt, completion = tokens or (0, 0)
                    tokens = Tokens(prompt + spent.prompt, completion + spent.completion)
                answers = self.protocol.answers(session, message)
                messages += [message, *answers]
                if not answers or episode.done:
                    break
            episode.abandon()
        except UnusableEndpointError:
            raise
        except EndpointError as failure:
            error = str(failure)
        return Played(episode, time.perf_counter() - began, error, messages, tokens)


def seed_of(*parts: object) -> int:
    """Hash a name to a seed below 2^31: nearby seeds, attempts and incidents share nothing."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
