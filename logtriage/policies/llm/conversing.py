"""Policies that play by conversation: they read messages, and write the next.

Whatever the model, it reads `prompts.render`, calls the tools of `tools.TriageTools`, and may make
several calls in one message (see `conversation`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from ...play.conversation import NATIVE, Message, Protocol
from ...play.episode import BaseEpisode
from ...play.tools import ToolSession
from ..policy import BATCH, Played, Policy, Tokens


class ConversationPolicy(Policy):
    """Plays episodes in lockstep by conversation.

    Subclasses say how messages become the next assistant message.

    Attributes:
        transcripts: the conversations of the last `play`, one a played episode.
        tokens: what each of them cost; None where nobody counted.
        protocol: how tools are told and called.
    """

    def __init__(self, name: str, max_turns: int = 16, protocol: Protocol = NATIVE) -> None:
        self.name, self.max_turns, self.protocol = name, max_turns, protocol
        self.transcripts: list[list[Message]] = []
        self.tokens: list[Tokens | None] = []
        self._attempt = 0

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        """Next assistant messages; `seats` are the stable numbers of the conversations within this
        `play`.
        """
        raise NotImplementedError

    def play(self, episodes: Iterable[BaseEpisode]) -> None:
        """Play all episodes at once.

        One that ends a turn without a call, or runs out of turns, has walked away.
        """
        sessions = [ToolSession(episode) for episode in episodes]
        self.transcripts = [self.protocol.opening(session.opening) for session in sessions]
        self.tokens = [None] * len(sessions)
        seats = list(range(len(sessions)))
        for _ in range(self.max_turns):
            if not seats:
                break
            replies = self.reply([self.transcripts[seat] for seat in seats], seats)
            going = []
            for seat, message in zip(seats, replies, strict=True):
                told = self.protocol.answers(sessions[seat], message)
                self.transcripts[seat] += [message, *told]
                if told and not sessions[seat].episode.done:
                    going.append(seat)
            seats = going
        for session in sessions:
            session.episode.abandon()

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """Play `batch` episodes at once, and tell of them together; see `Policy.play_each`."""
        self._attempt, opened = attempt, iter(episodes)
        while together := list(islice(opened, batch)):
            began = time.perf_counter()
            self.play(together)
            seconds = (time.perf_counter() - began) / len(together)
            for episode, messages, tokens in zip(
                together, self.transcripts, self.tokens, strict=True
            ):
                yield Played(episode, seconds, messages=messages, tokens=tokens)
