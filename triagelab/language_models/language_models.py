"""A causal language model in memory as a policy: it plays many episodes at once.

Its own turns are never tokenized again: the chat template renders only what is between two turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from logtriage.play.conversation import NATIVE, TEXT, UNREADABLE, Message, Protocol, is_deep
from logtriage.play.episode import BaseEpisode, incident_id
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.policies.policy import BATCH, MAX_TURNS, Played, Policy, Tokens, seed_of

from .path_names import names_for

if TYPE_CHECKING:
    from .grammar import Allowed

# Most new tokens of a turn; five calls take 24 in the embedded model, 110 in Qwen.
TURN_TOKENS = 256
RUN_TURN_TOKENS = 128  # of a run's model in its evaluation, if training did not have more
SENTINEL = "SENTINEL"  # stands for an assistant's turn, to find it in rendered text


class NativeChat:
    """Converts messages to token ids and back, by a template with tools that TRL can parse; `end`
    is the id that ends a turn.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.end = tokenizer, tokenizer.eos_token_id
        self._stems: dict[str, tuple[list[Message], int]] = {}  # by the name of the call

    def prompt(self, messages: list[Message]) -> list[int]:
        """Ids of an opening, up to the model's first turn."""
        return self._ids_of(messages, tools=tool_schemas())

    def parse(self, turn: list[int], prompt: list[int]) -> Message:
        """The message that the ids of a turn encode."""
        from trl.chat_template_utils import parse_response

        message: Message = parse_response(self.tokenizer, turn, prefix=prompt)
        for call in message.get("tool_calls") or ():
            if is_deep(call["function"]["arguments"]):
                call["function"]["arguments"] = UNREADABLE
        return message

    def answers(self, answers: list[Message], ended: bool) -> list[int]:
        """Ids up to the model's next turn, led by the end of its last one unless that `ended`."""
        stem, end = self._stem(answers[0]["name"])
        return self._ids_of(stem + answers)[end + 1 if ended else end :]

    def _ids_of(
        self, messages: list[Message], prompts: bool = True, tools: Any = None
    ) -> list[int]:
        """The tokens of a conversation in the chat template."""
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, return_dict=False, add_generation_prompt=prompts
        )

    def _stem(self, name: str) -> tuple[list[Message], int]:
        """A minimal conversation whose last turn calls `name`, and the index of that turn's end in
        its ids. If answers are added, the ids after the index are those between two turns.
        """
        if name not in self._stems:
            call = {"type": "function", "function": {"name": name, "arguments": {}}}
            stem: list[Message] = [
                {"role": "user", "content": ""},
                {"role": "assistant", "content": "", "tool_calls": [call]},
            ]
            head = self._ids_of(stem, prompts=False)
            self._stems[name] = stem, len(head) - 1 - head[::-1].index(self.end)
        return self._stems[name]


class TextChat:
    """The same with tools as text, for any template with a user and an assistant; `end` is the
    first special id after a turn.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        after = self._after([{"role": "user", "content": "go on"}])
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self.end = next((token for token in after if token in special), tokenizer.eos_token_id)

    def prompt(self, messages: list[Message]) -> list[int]:
        """Ids of an opening; if a template has no system prompt, the user's message includes it."""
        from jinja2 import TemplateError

        try:
            return self._rendered(messages, tokenize=True)
        except TemplateError:
            system, user = messages
            said = {"role": "user", "content": f"{system['content']}\n\n{user['content']}"}
            return self._rendered([said], tokenize=True)

    def parse(self, turn: list[int], prompt: list[int]) -> Message:
        """The message that the ids of a turn encode: its text, tags included."""
        written = turn[:-1] if turn[-1:] == [self.end] else turn
        return {"role": "assistant", "content": self.tokenizer.decode(written)}

    def answers(self, answers: list[Message], ended: bool) -> list[int]:
        """See `NativeChat.answers`."""
        after = self._after(answers)
        return after[after.index(self.end) + 1 :] if ended and self.end in after else after

    def _after(self, answers: list[Message]) -> list[int]:
        """Ids of everything between two turns that have these messages between them."""
        turn = {"role": "assistant", "content": SENTINEL}
        text = self._rendered([{"role": "user", "content": "go"}, turn, *answers], tokenize=False)
        return self.tokenizer.encode(text.partition(SENTINEL)[2], add_special_tokens=False)

    def _rendered(self, messages: list[Message], tokenize: bool) -> Any:
        return self.tokenizer.apply_chat_template(
            messages, tokenize=tokenize, return_dict=False, add_generation_prompt=True
        )


@dataclass
class Conversation:
    """An episode as a language model has written and read it."""

    messages: list[Message]  # the opening, then turns and answers
    prompt: list[int]  # ids of the opening, system prompt and tool schemas included
    ids: list[int] = field(default_factory=list)  # of all that followed
    own: list[bool] = field(default_factory=list)  # for each of `ids`, whether the model wrote it
    turns: int = 0  # how many the model wrote
    allowed: list[Allowed] = field(default_factory=list)  # before each own id, if constrained

    def add(self, ids: list[int], own: bool) -> None:
        self.ids += ids
        self.own += [own] * len(ids)

    def tokens(self) -> Tokens:
        """The tokens it cost; each turn reads everything before it."""
        starts = [at for at, own in enumerate(self.own) if own and not (at and self.own[at - 1])]
        return Tokens(sum(len(self.prompt) + at for at in starts), sum(self.own))


class LanguageModelPolicy(Policy):
    """A causal language model of `transformers`, whose tokenizer has a chat template. `ValueError`
    for one whose attention is not reproduced here (see `decoder.check_attention`).

    Args:
        temperature: sampling temperature; 0 for greedy. Each attempt at an incident has its own
            random stream, so what is sampled does not depend on the batch.
        turn_tokens: most new tokens per turn.
        completion_tokens: most tokens after the opening, answers included; None for no limit.
        protocol: `TEXT` for a template without tools.
        constrained: whether only valid calls can be written (see `grammar`); for `NATIVE` only.
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
        protocol: Protocol = NATIVE,
        constrained: bool = False,
    ) -> None:
        from .decoder import check_attention

        check_attention(model)  # now, and not after an hour of play
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.temperature, self.turn_tokens, self.seed = temperature, turn_tokens, seed
        self.completion_tokens, self.protocol = completion_tokens, protocol
        self._names = names_for(self.model.config.to_dict())
        self._chat = TextChat(tokenizer) if protocol is TEXT else NativeChat(tokenizer)
        self.grammar = None
        if constrained:
            from .grammar import TurnGrammar

            self.grammar = TurnGrammar(tokenizer)

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """See `Policy.play_each`; the episodes of one batch end together."""
        opened = iter(episodes)
        while together := list(islice(opened, batch)):
            began = time.perf_counter()
            ids = map(incident_id, together)
            streams = [Random(seed_of(self.seed, attempt, incident)) for incident in ids]
            sessions = [ToolSession(episode, self._names) for episode in together]
            conversations = self.converse(sessions, streams)
            for episode in together:
                episode.abandon()
            seconds = (time.perf_counter() - began) / len(together)
            for episode, talk in zip(together, conversations, strict=True):
                yield Played(episode, seconds, "", talk.messages, talk.tokens())

    def converse(
        self, sessions: Sequence[ToolSession], streams: Sequence[Random] | None = None
    ) -> list[Conversation]:
        """Play newly opened sessions until the model stops; their episodes may still be open.

        `streams` determine what is sampled in each session; None for torch's random state.
        """
        from .decoder import Writer
        from .grammar import Turn

        conversations, eos = self._opened(sessions), self._chat.end
        # Many turns are equal, and their meaning does not depend on the prompt, which always ends
        # in the same way.
        parsed: dict[tuple[int, ...], Message] = {}
        grammar = self.grammar
        grammars = [
            Turn(grammar, session, self.turn_tokens) for session in sessions if grammar is not None
        ]

        def answer(seat: int, turn: list[int]) -> list[int] | None:
            session, conversation = sessions[seat], conversations[seat]
            if tuple(turn) not in parsed:
                parsed[tuple(turn)] = self._chat.parse(turn, conversation.prompt)
            message = deepcopy(parsed[tuple(turn)])
            conversation.add(turn, own=True)
            if grammar:
                conversation.allowed += grammars[seat].allowed
            conversation.messages.append(message)
            conversation.turns += 1
            answers = self.protocol.answers(session, message)
            conversation.messages += answers
            if not answers or session.episode.done or conversation.turns >= MAX_TURNS:
                return None
            ids = self._chat.answers(answers, ended=turn[-1] == eos)
            length = len(conversation.ids) + len(ids)
            if self.completion_tokens is not None and length >= self.completion_tokens:
                return None
            conversation.add(ids, own=False)
            if grammar:
                grammars[seat] = Turn(grammar, session, self.turn_tokens)
            return ids

        writer = Writer(self.model, self.temperature, self.turn_tokens, eos)
        prompts = [conversation.prompt for conversation in conversations]
        writer.write(prompts, answer, streams, grammars)
        return conversations

    def _opened(self, sessions: Sequence[ToolSession]) -> list[Conversation]:
        """Conversations with their openings; equal openings, as in a group, are tokenized once."""
        opening = self.protocol.opening
        different = {session.opening for session in sessions}
        prompts = {text: self._chat.prompt(opening(text)) for text in different}
        texts = [session.opening for session in sessions]
        return [Conversation(opening(text), prompts[text]) for text in texts]
