"""Messages to ids of a model's tokens and back, by its chat template.

What a model wrote is kept as it was generated, never re-tokenized: only what stands between two
turns is taken from the template. `NativeChat` is for templates that know tools, `TextChat` for any
that knows a user and an assistant.
"""

from __future__ import annotations

from typing import Any

from ...play.conversation import UNREADABLE, Message, is_deep
from ...play.tools import tool_schemas

SENTINEL = "SENTINEL"  # an assistant's turn in a template, to be found again


class NativeChat:
    """Chats in which the template prints the tools, and TRL can parse a call.

    Args:
        tokenizer: from `loading.with_tool_calls`.

    Attributes:
        end: id that ends a turn.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.end = tokenizer, tokenizer.eos_token_id
        self._schemas = tool_schemas()
        self._stems: dict[str, tuple[list[Message], int]] = {}  # by the name of the call

    def prompt(self, messages: list[Message]) -> list[int]:
        """Ids of an opening, up to the model's first turn."""
        return self._ids_of(messages, True, self._schemas)

    def parse(self, turn: list[int], prompt: list[int]) -> Message:
        """The message that the ids of a turn say."""
        from trl.chat_template_utils import parse_response

        message: Message = parse_response(self.tokenizer, turn, prefix=prompt)
        for call in message.get("tool_calls") or ():
            if is_deep(call["function"]["arguments"]):
                call["function"]["arguments"] = UNREADABLE
        return message

    def answers(self, told: list[Message], ended: bool) -> list[int]:
        """Ids of answers, up to the model's next turn.

        Args:
            told: the answers.
            ended: whether the turn before them has an end of its own; one that was cut off is given
                one.
        """
        stem, end = self._stem(told[0]["name"])
        return self._ids_of(stem + told, True)[end + 1 if ended else end :]

    def _ids_of(
        self,
        messages: list[Message],
        add_generation_prompt: bool,
        tools: list[dict[str, Any]] | None = None,
    ) -> list[int]:
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, return_dict=False, add_generation_prompt=add_generation_prompt
        )

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
            end = len(head) - 1 - head[::-1].index(self.end)
            self._stems[name] = stem, end
        return self._stems[name]


class TextChat:
    """Chats in which tools are text, for any template with a user and an assistant.

    Args:
        tokenizer: one with a chat template.

    Attributes:
        end: id that ends a turn: the first special one that the template puts after it.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        after = self._after([{"role": "user", "content": "go on"}])
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self.end = next((one for one in after if one in special), tokenizer.eos_token_id)

    def prompt(self, messages: list[Message]) -> list[int]:
        """Ids of an opening; where a template knows no system prompt, the user says it first."""
        from jinja2 import TemplateError

        try:
            return self._rendered(messages, tokenize=True)
        except TemplateError:
            system, user = messages
            said = {"role": "user", "content": f"{system['content']}\n\n{user['content']}"}
            return self._rendered([said], tokenize=True)

    def parse(self, turn: list[int], prompt: list[int]) -> Message:
        """The message that the ids of a turn say: its text, tags and all."""
        written = turn[:-1] if turn[-1:] == [self.end] else turn
        return {"role": "assistant", "content": self.tokenizer.decode(written)}

    def answers(self, told: list[Message], ended: bool) -> list[int]:
        """Ids of answers, as `NativeChat.answers` has them."""
        after = self._after(told)
        return after[after.index(self.end) + 1 :] if ended and self.end in after else after

    def _after(self, told: list[Message]) -> list[int]:
        """Ids of all that stands between a turn and the next, when this is said in between."""
        turn = {"role": "assistant", "content": SENTINEL}
        text = self._rendered([{"role": "user", "content": "go"}, turn, *told], tokenize=False)
        return self.tokenizer.encode(text.partition(SENTINEL)[2], add_special_tokens=False)

    def _rendered(self, messages: list[Message], tokenize: bool) -> Any:
        return self.tokenizer.apply_chat_template(
            messages, tokenize=tokenize, return_dict=False, add_generation_prompt=True
        )
