"""Language models as policies: held in memory (see `loading`), or behind an endpoint.

Whatever the model, it reads `prompts.render`, calls the tools of `tools.TriageTools`, and may make
several calls in one message (see `conversation`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

from ..play.conversation import Message, answers, from_wire, opening_messages, to_wire
from ..play.episode import PlayableEpisode
from ..play.tools import ToolSession, tool_schemas
from .scripted import Policy

TURN_TOKENS = 128  # new tokens a turn; five calls of the mini model need 24, of Qwen 110
# Turns of a conversation by their ids, each with its end unless it was cut off; the last may be one
# that the model has not ended yet.
Turns = Sequence[Sequence[int]]


class ConversationPolicy(Policy):
    """Plays episodes in lockstep by conversation.

    Subclasses say how messages become the next assistant message.

    Attributes:
        transcripts: the conversations of the last `play`, one a played episode.
    """

    def __init__(self, name: str, max_turns: int = 16) -> None:
        self.name, self.max_turns = name, max_turns
        self.transcripts: list[list[Message]] = []

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        """Next assistant messages; `seats` are the stable numbers of the conversations within this
        `play`.
        """
        raise NotImplementedError

    def play(self, episodes: Iterable[PlayableEpisode]) -> None:
        """Play all episodes at once.

        One that ends a turn without a call, or runs out of turns, has walked away.
        """
        sessions = [ToolSession(episode) for episode in episodes]
        self.transcripts = [opening_messages(session.opening) for session in sessions]
        seats = list(range(len(sessions)))
        for _ in range(self.max_turns):
            if not seats:
                break
            replies = self.reply([self.transcripts[seat] for seat in seats], seats)
            for seat, message in zip(seats, replies, strict=True):
                self.transcripts[seat].append(message)
                self.transcripts[seat] += answers(sessions[seat], message)
            seats = [
                seat
                for seat in seats
                if self.transcripts[seat][-1]["role"] == "tool" and not sessions[seat].episode.done
            ]
        for session in sessions:
            session.episode.abandon()


@dataclass
class Conversation:
    """An episode as a language model has written and read it.

    Attributes:
        messages: the opening, then turns and answers.
        prompt: ids of the opening, system prompt and tool schemas included.
        ids: ids of all that followed.
        own: which of `ids` the model wrote.
        turns: number of its turns.
    """

    messages: list[Message]
    prompt: list[int]
    ids: list[int] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    turns: int = 0

    def add(self, ids: list[int], own: bool) -> None:
        """Go on by these ids."""
        self.ids += ids
        self.own += [own] * len(ids)

    def written(self) -> list[list[int]]:
        """The ids of each turn; between two there is always an answer."""
        runs = groupby(zip(self.own, self.ids, strict=True), itemgetter(0))
        return [[token for _, token in run] for own, run in runs if own]


class LanguageModelPolicy(ConversationPolicy):
    """A causal language model held in memory.

    Args:
        model: a transformers causal model.
        tokenizer: its tokenizer, with a chat template that knows tools.
        name: shown in results.
        temperature: 0 for greedy, else the sampling temperature.
        turn_tokens: new tokens a turn.
        completion_tokens: of all turns and answers of an episode; one that an answer would take
            beyond it has walked away. None for no bound.
        seed: of sampling; each `play` starts from it.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        temperature: float = 0.0,
        turn_tokens: int = TURN_TOKENS,
        completion_tokens: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(name)
        self.model, self.tokenizer = model, tokenizer
        self.temperature, self.turn_tokens, self.seed = temperature, turn_tokens, seed
        self.completion_tokens = completion_tokens
        self._schemas = tool_schemas()
        self._stems: dict[str, tuple[list[Message], int]] = {}  # by the name of the call

    def play(self, episodes: Iterable[PlayableEpisode]) -> None:
        """Play all episodes at once, as `ConversationPolicy.play` does; `seed` decides what is
        sampled.
        """
        import torch

        torch.manual_seed(self.seed)
        sessions = [ToolSession(episode) for episode in episodes]
        self.transcripts = [one.messages for one in self.converse(sessions)]
        for session in sessions:
            session.episode.abandon()

    def converse(
        self, sessions: Sequence[ToolSession], begun: Sequence[Turns] | None = None
    ) -> list[Conversation]:
        """Play sessions to where the model leaves them, which may be open; torch's random state
        decides what is sampled.

        Args:
            sessions: just opened.
            begun: for each session the turns that it begins with, which are played but not written
                again; the model goes on with the last, which may be empty. None where all begin at
                the opening.

        Raises:
            ValueError: when a session is over before the last of its begun turns.
        """
        from .generation import Writer

        conversations = self._opened(sessions)
        eos = self.tokenizer.eos_token_id
        # Many turns are the same, and what they mean does not depend on the prompt, which always
        # ends alike.
        parsed: dict[tuple[int, ...], Message] = {}

        def answer(seat: int, turn: list[int]) -> list[int] | None:
            session, conversation = sessions[seat], conversations[seat]
            if tuple(turn) not in parsed:
                parsed[tuple(turn)] = self._parse(turn, conversation.prompt)
            message = deepcopy(parsed[tuple(turn)])
            conversation.add(turn, own=True)
            conversation.messages.append(message)
            conversation.turns += 1
            told = answers(session, message)
            conversation.messages += told
            if not told or session.episode.done or conversation.turns >= self.max_turns:
                return None
            ids = self._answer_ids(told, ended=turn[-1] == eos)
            length = len(conversation.ids) + len(ids)
            if self.completion_tokens is not None and length >= self.completion_tokens:
                return None
            conversation.add(ids, own=False)
            return ids

        open_turns: list[list[int]] = [[] for _ in sessions]
        if begun is not None:
            for seat, (*finished, last) in enumerate(begun):
                open_turns[seat] = list(last)
                for number, turn in enumerate(finished, start=1):
                    if answer(seat, list(turn)) is None:
                        raise ValueError(
                            f"session {seat} is over with turn {number} of the {len(finished) + 1}"
                            " that it was to begin with; begin it with fewer"
                        )
        writer = Writer(self.model, self.temperature, self.turn_tokens, eos)
        prompts = [one.prompt + one.ids for one in conversations]
        writer.write(prompts, answer, open_turns)
        return conversations

    def _opened(self, sessions: Sequence[ToolSession]) -> list[Conversation]:
        """Conversations with their openings; equal ones, as in a group of training, are tokenized
        once.
        """
        prompts: dict[str, list[int]] = {}
        conversations = []
        for session in sessions:
            messages = opening_messages(session.opening)
            if session.opening not in prompts:
                prompts[session.opening] = self._ids_of(messages, True, self._schemas)
            conversations.append(Conversation(messages, prompts[session.opening]))
        return conversations

    def _ids_of(
        self,
        messages: list[Message],
        add_generation_prompt: bool,
        tools: list[dict[str, Any]] | None = None,
    ) -> list[int]:
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, return_dict=False, add_generation_prompt=add_generation_prompt
        )

    def _parse(self, turn: list[int], prompt: list[int]) -> Message:
        """The message that the ids of a turn say."""
        from trl.chat_template_utils import parse_response

        return parse_response(self.tokenizer, turn, prefix=prompt)

    def _answer_ids(self, told: list[Message], ended: bool) -> list[int]:
        """Ids of tools' answers, up to the next turn. What the model wrote is kept as it was
        generated, never re-tokenized.

        Args:
            told: the answers.
            ended: whether the turn before them has an end of its own; one that was cut off at
                `turn_tokens` is given one.
        """
        stem, end = self._stem(told[0]["name"])
        return self._ids_of(stem + told, True)[end + 1 if ended else end :]

    def _stem(self, name: str) -> tuple[list[Message], int]:
        """A minimal conversation, whose last turn calls `name` and ends as a real one does, and the
        place of that end among its ids.

        Written with answers, it has after that place what the template puts between a turn and the
        next.
        """
        if name not in self._stems:
            call = {"type": "function", "function": {"name": name, "arguments": {}}}
            stem: list[Message] = [
                {"role": "user", "content": ""},
                {"role": "assistant", "content": "", "tool_calls": [call]},
            ]
            head = self._ids_of(stem, False)
            end = len(head) - 1 - head[::-1].index(self.tokenizer.eos_token_id)
            self._stems[name] = stem, end
        return self._stems[name]


class EndpointPolicy(ConversationPolicy):
    """A model behind an OpenAI-compatible endpoint; conversations of one `play` run in parallel.

    Args:
        base_url: e.g. `http://localhost:8000/v1`.
        model: its name there.
        api_key: by default the environment variable `OPENAI_API_KEY`, or a placeholder, which local
            servers accept.
        workers: requests under way at once.
    """

    def __init__(
        self, base_url: str, model: str, api_key: str | None = None, workers: int = 8
    ) -> None:
        from openai import OpenAI

        super().__init__(model)
        self._client = OpenAI(
            base_url=base_url,
            api_key=api_key or os.environ.get("OPENAI_API_KEY", "none"),
            max_retries=0,
        )
        self._workers, self._schemas = workers, tool_schemas()

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._ask, conversations))

    def _ask(self, conversation: list[Message]) -> Message:
        from openai import APIConnectionError, InternalServerError, RateLimitError
        from tenacity import (
            Retrying,
            retry_if_exception_type,
            stop_after_attempt,
            wait_random_exponential,
        )

        passing = retry_if_exception_type((APIConnectionError, InternalServerError, RateLimitError))
        for attempt in Retrying(
            retry=passing,
            stop=stop_after_attempt(5),
            wait=wait_random_exponential(0.5, 20),
            reraise=True,
        ):
            with attempt:
                answer = self._client.chat.completions.create(
                    model=self.name,
                    messages=cast(Any, [to_wire(message) for message in conversation]),
                    tools=cast(Any, self._schemas),
                    temperature=0.0,
                )
        return from_wire(answer.choices[0].message)
