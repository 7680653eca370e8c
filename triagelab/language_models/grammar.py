"""Valid calls: the tokens that a model may write next, in training and evaluation alike.

A turn consists of any number of calls, as the chat template writes them, and its end. A model with
a token for `<tool_call>` may write text before them. Every argument is a value that the tool allows
in this incident, nothing follows the call that closes the incident, and no call begins that does
not fit into the steps and tokens left. So no model can write a malformed call.

An incident has some hundred calls. They are kept as a tree of the tokens that the tokenizer makes
of each. A library's grammar (llguidance 1.9.1) allows a call in any tokens that spell it: an
untrained model wrote up to 197 in a turn for which 25 are enough.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np
from torch import Tensor, from_numpy

from logtriage.play.actions import ACTION_ARGUMENTS, ALL_SERVICES, CHOICES
from logtriage.play.conversation import CALL_TAG, Message
from logtriage.play.tools import ToolSession

# The logit of a token that may not be written. Its probability is exactly 0, but it is finite, even
# in fp16 and divided by a temperature, so that entropies are finite, too.
NEVER = -1e4
CLOSING = ("resolve", "ignore")
BLANK = "BLANK_{}"  # stands for the value of an argument

Allowed: TypeAlias = "list[int] | np.ndarray"  # ids that may come next


def masked(logits: Tensor, allowed: Sequence[Allowed]) -> Tensor:
    """Return logits, (rows, vocabulary), with `NEVER` for tokens that are not allowed in a row."""
    kept = np.zeros(logits.shape, dtype=bool)
    for row, ids in zip(kept, allowed, strict=True):
        row[ids] = True
    return logits.masked_fill(~from_numpy(kept).to(logits.device), NEVER)


@dataclass(slots=True)
class Node:
    """A place in the tree of an incident's calls: what may come next, and where it leads."""

    next: dict[int, Self] = field(default_factory=dict)  # empty: the call is complete
    longest: int = 0  # tokens to the end of the longest call from here
    closes: bool = False  # whether the incident is over after this call


class TurnGrammar:
    """The turns that a tokenizer's chat template can write. `ValueError` if it does not put
    `<tool_call>` before a call and one token between two, or starts turns with a thought.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.end = tokenizer, tokenizer.eos_token_id
        self._forms = {name: self._written(name) for name in ACTION_ARGUMENTS}
        between, last = [], CLOSING[-1]
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": ""}], tokenize=False, add_generation_prompt=True
        )
        if last in self._forms[last] and not prompt.rstrip().endswith("<think>"):
            between = self._ids(self._written(last, last).split(self._forms[last])[1:2])[0]
        if len(between) != 1:
            raise ValueError("only calls as Qwen's chat template writes them can be constrained")
        self.between, tag = between[0], self._ids([CALL_TAG])[0]
        # No tag may be spelled out in text: it would be read as a call.
        special = {*tokenizer.all_special_ids}
        vocabulary = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        text = [i for i, piece in enumerate(vocabulary) if "<" not in piece and i not in special]
        # Ids that may come in text, without room for a call and with it.
        self.text = np.array([*text, self.end]), np.array([*text, self.end, *tag])
        self.writes_text = len(tag) == 1
        self.calls = lru_cache(maxsize=64)(self._calls)

    def _calls(self, services: tuple[str, ...]) -> Node:
        """All calls of an incident with these services."""
        texts, closing = [], []
        for name, form in self._forms.items():
            arguments = ACTION_ARGUMENTS[name]
            named = (*services, ALL_SERVICES) if name == "request_more_logs" else services
            for values in product(*(CHOICES.get(argument, named) for argument in arguments)):
                texts.append(_filled(form, arguments, values))
                closing.append(name in CLOSING)
        root = Node()
        for ids, closes in zip(self._ids(texts), closing, strict=True):
            node = root
            for left, token in zip(range(len(ids), 0, -1), ids, strict=True):
                node.longest = max(node.longest, left)
                node = node.next.setdefault(token, Node())
            node.closes = closes
        return root

    def call_ids(self, name: str, values: Sequence[str]) -> list[int]:
        """The ids of a call."""
        return self._ids([_filled(self._forms[name], ACTION_ARGUMENTS[name], values)])[0]

    def _written(self, *names: str) -> str:
        """The text that the template makes of these calls, with a blank for each value."""
        calls = [
            {"name": name, "arguments": {key: BLANK.format(key) for key in ACTION_ARGUMENTS[name]}}
            for name in names
        ]
        messages: list[Message] = [{"role": "user", "content": ""}]
        functions = [{"type": "function", "function": call} for call in calls]
        messages.append({"role": "assistant", "content": "", "tool_calls": functions})
        text = self.tokenizer.apply_chat_template(messages, tokenize=False)
        return CALL_TAG + text.partition(CALL_TAG)[2].partition(self.tokenizer.eos_token)[0]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer(texts, add_special_tokens=False)["input_ids"]


def _filled(form: str, arguments: Sequence[str], values: Sequence[str]) -> str:
    """Fill the blanks of a call with values."""
    for argument, value in zip(arguments, values, strict=True):
        form = form.replace(BLANK.format(argument), json.dumps(value, ensure_ascii=False)[1:-1])
    return form


def writes_as_qwen(tokenizer: Any) -> bool:
    """Whether a tokenizer's template writes calls in the form that `TurnGrammar` needs."""
    try:
        TurnGrammar(tokenizer)
    except ValueError:
        return False
    return True


class Turn:
    """One turn being written: `next` says which tokens may come, `add` takes the one that came, and
    `forced` adds those that can come alone.

    Attributes:
        allowed: what `next` has returned, for each token.
    """

    def __init__(self, grammar: TurnGrammar, session: ToolSession, tokens: int) -> None:
        self.grammar, self.left = grammar, tokens
        self.calls = grammar.calls(session.services)
        self.steps = session.episode.max_steps - session.episode.record.steps
        self.allowed: list[Allowed] = []
        self._place: Node | None = None  # within the calls; None before them

    def next(self) -> Allowed:
        """The ids that may come next."""
        grammar, place = self.grammar, self._place
        room = self.left - 1  # tokens before the turn's end
        allowed: Allowed
        if place is None and grammar.writes_text:
            allowed = grammar.text[self.steps > 0 and self.calls.longest <= room]
        elif place is None:
            allowed = [grammar.end, *(self._fitting(room) if self.steps else ())]
        elif place is self.calls:  # after `between`
            allowed = self._fitting(room)
        elif place.next:
            allowed = list(place.next)
        else:
            more = self.steps and not place.closes and self._fitting(room - 1)
            allowed = [grammar.end, grammar.between] if more else [grammar.end]
        self.allowed.append(allowed)
        return allowed

    def add(self, token: int) -> None:
        """Advance by a token that was allowed."""
        self.left = 0 if token == self.grammar.end else self.left - 1
        if self._place is None:
            self._place = self.calls.next.get(token)  # None for text and the end
        else:
            self._place = self._place.next.get(token, self.calls)  # after `between` or the end
        if self._place is not None and not self._place.next:
            self.steps -= 1

    def forced(self) -> list[int]:
        """Add and return all tokens up to the next choice, or to the turn's end. What can be chosen
        from is then the last of `allowed`.
        """
        run: list[int] = []
        while self.left and len(allowed := self.next()) == 1:
            run.append(int(allowed[0]))
            self.add(run[-1])
        return run

    def _fitting(self, room: int) -> list[int]:
        """First tokens after which every call fits into `room` tokens."""
        return [token for token, node in self.calls.next.items() if node.longest < room]
