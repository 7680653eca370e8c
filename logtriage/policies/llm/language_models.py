"""A causal language model in memory as a policy: it plays many episodes at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from ...play.conversation import NATIVE, Message, Protocol
from ...play.episode import BaseEpisode
from ...play.tools import ToolSession
from ..policy import BATCH, MAX_TURNS, Played, Policy, Tokens, coordinates, seed_of
from .chat_ids import NativeChat, TextChat
from .text_protocol import TEXT

TURN_TOKENS = 128  # new tokens of a turn; five calls of the embedded model need 24, of Qwen 110


@dataclass
class Conversation:
    """An episode as a language model has written and read it.

    Attributes:
        messages: the opening, then turns and answers.
        prompt: ids of the opening, system prompt and tool schemas included.
        ids: of all that followed.
        own: for each of `ids`, whether the model wrote it.
        turns: how many the model wrote.
    """

    messages: list[Message]
    prompt: list[int]
    ids: list[int] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    turns: int = 0

    def add(self, ids: list[int], own: bool) -> None:
        """Append ids, the model's own or those of an answer."""
        self.ids += ids
        self.own += [own] * len(ids)

    def tokens(self) -> Tokens:
        """What it cost: each turn reads all that is before it."""
        starts = [at for at, own in enumerate(self.own) if own and not (at and self.own[at - 1])]
        return Tokens(sum(len(self.prompt) + at for at in starts), sum(self.own))


class LanguageModelPolicy(Policy):
    """A causal language model in memory.

    Args:
        model: a transformers causal model.
        tokenizer: its tokenizer, with a chat template.
        name: shown in results.
        temperature: 0 for greedy, else the sampling temperature.
        turn_tokens: new tokens of a turn.
        completion_tokens: of all turns and answers of an episode; an answer that would exceed it
            ends the conversation. None for no bound.
        seed: of sampling. Each attempt at an incident has its own random stream, so what is sampled
            does not depend on the batch.
        protocol: `text_protocol.TEXT` for a template that has no tools.
    """

    max_turns = MAX_TURNS

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        temperature: float = 0.0,
        turn_tokens: int = TURN_TOKENS,
        completion_tokens: int | None = None,
        seed: int = 0,
        protocol: Protocol = NATIVE,
    ) -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.temperature, self.turn_tokens, self.seed = temperature, turn_tokens, seed
        self.completion_tokens, self.protocol = completion_tokens, protocol
        self._chat = TextChat(tokenizer) if protocol is TEXT else NativeChat(tokenizer)

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """Play `batch` episodes at once, and yield them together; see `Policy.play_each`."""
        opened = iter(episodes)
        while together := list(islice(opened, batch)):
            began = time.perf_counter()
            streams = [Random(seed_of(self.seed, attempt, *coordinates(one))) for one in together]
            conversations = self.converse([ToolSession(one) for one in together], streams)
            for episode in together:
                episode.abandon()
            seconds = (time.perf_counter() - began) / len(together)
            for episode, one in zip(together, conversations, strict=True):
                yield Played(episode, seconds, "", one.messages, one.tokens())

    def converse(
        self, sessions: Sequence[ToolSession], streams: Sequence[Random] | None = None
    ) -> list[Conversation]:
        """Play sessions, just opened, to where the model leaves them; their episodes may be open.

        `streams` decide what is sampled in each session; None for torch's random state.
        """
        from .decoder import Writer

        conversations = self._opened(sessions)
        eos = self._chat.end
        # Many turns are equal, and their meaning does not depend on the prompt, which always ends
        # the same.
        parsed: dict[tuple[int, ...], Message] = {}

        def answer(seat: int, turn: list[int]) -> list[int] | None:
            session, conversation = sessions[seat], conversations[seat]
            if tuple(turn) not in parsed:
                parsed[tuple(turn)] = self._chat.parse(turn, conversation.prompt)
            message = deepcopy(parsed[tuple(turn)])
            conversation.add(turn, own=True)
            conversation.messages.append(message)
            conversation.turns += 1
            answers = self.protocol.answers(session, message)
            conversation.messages += answers
            if not answers or session.episode.done or conversation.turns >= self.max_turns:
                return None
            ids = self._chat.answers(answers, ended=turn[-1] == eos)
            length = len(conversation.ids) + len(ids)
            if self.completion_tokens is not None and length >= self.completion_tokens:
                return None
            conversation.add(ids, own=False)
            return ids

        writer = Writer(self.model, self.temperature, self.turn_tokens, eos)
        writer.write([one.prompt for one in conversations], answer, streams)
        return conversations

    def _opened(self, sessions: Sequence[ToolSession]) -> list[Conversation]:
        """Conversations with their openings; equal openings, as in a group, are tokenized once."""
        prompts: dict[str, list[int]] = {}
        conversations = []
        for session in sessions:
            messages = self.protocol.opening(session.opening)
            if session.opening not in prompts:
                prompts[session.opening] = self._chat.prompt(messages)
            conversations.append(Conversation(messages, prompts[session.opening]))
        return conversations
