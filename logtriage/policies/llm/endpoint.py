"""A language model behind an OpenAI-compatible endpoint, as a policy that survives its server.

Every conversation has a thread of its own, so a slow one holds nobody up. A request that comes to
nothing (see `completions`) ends the one episode that it was for, which is told with its error and
has no score.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from queue import Queue

from ...play.conversation import NATIVE, Protocol
from ...play.episode import BaseEpisode
from ...play.text_protocol import TEXT
from ...play.tools import ToolSession, tool_schemas
from ..policy import BATCH, Played, Tokens, seed_of
from .completions import PATIENCE, TIMEOUT, Completions, EndpointError, Usage
from .conversing import ConversationPolicy

CONCURRENCY = 8  # conversations at once


class EndpointPolicy(ConversationPolicy):
    """A model behind an OpenAI-compatible endpoint.

    Args:
        base_url: e.g. `http://localhost:8000/v1`.
        model: its name there.
        api_key: by default the environment variable `OPENAI_API_KEY`, or a placeholder, which local
            servers accept.
        workers: conversations at once.
        temperature: 0 for greedy, else of sampling; then each request has a seed of its own.
        seed: from which those are made.
        protocol: `text_protocol.TEXT` for a server that does not parse tools.
        timeout: seconds till an answer begins, and again till it is whole.
        patience: seconds that a request is waited for, with all attempts and pauses.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        workers: int = CONCURRENCY,
        temperature: float = 0.0,
        seed: int = 0,
        protocol: Protocol = NATIVE,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(model, protocol=protocol)
        self._completions = Completions(
            base_url,
            model,
            api_key or os.environ.get("OPENAI_API_KEY", "none"),
            temperature,
            None if protocol is TEXT else tool_schemas(),
            timeout,
            patience,
        )
        self._workers, self._seed = workers, seed

    def play(self, episodes: Iterable[BaseEpisode]) -> None:
        """Play all episodes; `EndpointError` with the first failure, since nobody else tells."""
        waiting = list(episodes)
        found = {id(one.episode): one for one in self.play_each(waiting)}
        played = [found[id(episode)] for episode in waiting]
        self.transcripts = [list(one.messages) for one in played]
        self.tokens = [one.tokens for one in played]
        for one in played:
            if one.error:
                raise EndpointError(one.error)

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """Play as many episodes at once as there are workers, each in a thread of its own; see
        `Policy.play_each`. Episodes are opened in the thread that asks.
        """
        opened, at_work = iter(episodes), 0
        stop = threading.Event()  # nobody wants the episodes under way any more
        ended: Queue[Played | BaseException] = Queue()
        try:
            while True:
                while at_work < min(self._workers, batch):
                    episode = next(opened, None)
                    if episode is None:
                        break
                    # A daemon: what hangs in there must not keep the process from ending.
                    arguments = (episode, attempt, stop, ended)
                    threading.Thread(target=self._work, args=arguments, daemon=True).start()
                    at_work += 1
                if not at_work:
                    return
                played = ended.get()
                at_work -= 1
                if isinstance(played, BaseException):  # the episode's own, as a lost server of it
                    raise played
                yield played
        finally:
            stop.set()

    def _work(
        self,
        episode: BaseEpisode,
        attempt: int,
        stop: threading.Event,
        ended: Queue[Played | BaseException],
    ) -> None:
        """A thread: play one episode, and hand over what came of it."""
        try:
            ended.put(self._converse(episode, attempt, stop))
        except BaseException as error:
            ended.put(error)

    def _converse(self, episode: BaseEpisode, attempt: int, stop: threading.Event) -> Played:
        """Play one episode to its end, or to its error."""
        began, session = time.perf_counter(), ToolSession(episode)
        messages, error = self.protocol.opening(session.opening), ""
        spent: list[Usage | None] = []
        try:
            incident = episode.incident
            for turn in range(self.max_turns):
                if stop.is_set():
                    raise EndpointError("nobody waits for this episode any more")
                where = (incident.task_name, incident.split, incident.index, turn)
                seed = seed_of(self._seed, attempt, *where)
                message, usage = self._completions.ask(messages, seed, stop)
                spent.append(usage)
                told = self.protocol.answers(session, message)
                messages += [message, *told]
                if not told or episode.done:
                    break
            episode.abandon()
        except EndpointError as failure:
            error = str(failure)
        return Played(episode, time.perf_counter() - began, error, messages, _sum(spent))


def _sum(spent: list[Usage | None]) -> Tokens | None:
    """The tokens of all requests; None when the server never told any."""
    told = [usage for usage in spent if usage is not None]
    if not told:
        return None
    return Tokens(
        sum(usage.prompt_tokens for usage in told), sum(usage.completion_tokens for usage in told)
    )
