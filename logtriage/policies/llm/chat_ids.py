"""Messages to token ids and back, by a model's chat template.

What a model wrote is kept as it was generated, never tokenized again: only what is between two
turns comes from the template. `NativeChat` is for templates with tools, `TextChat` for any with a
user and an assistant.
"""

from __future__ import annotations

from typing import Any

from ...play.conversation import UNREADABLE, Message, is_deep
from ...play.tools import tool_schemas

SENTINEL = "SENTINEL"  # an assistant's turn, to be found in what a template renders


class NativeChat:
    """Chats in which the template prints the tools, and TRL can parse a call; `tokenizer` is from
    `loading.with_tool_calls`, and `end` the id that ends a turn.
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
        """Ids of answers, up to the model's next turn; with the end of the turn before them, unless
        that was `ended` by the model itself.
        """
        stem, end = self._stem(answers[0]["name"])
        return self._ids_of(stem + answers)[end + 1 if ended else end :]

    def _ids_of(
        self, messages: list[Message], prompts: bool = True, tools: Any = None
    ) -> list[int]:
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, return_dict=False, add_generation_prompt=prompts
        )

    def _stem(self, name: str) -> tuple[list[Message], int]:
        """A minimal conversation, whose last turn calls `name`, and the place of that turn's end
        among its ids: with answers, the template puts after it what is between two turns.
        """
        if name not in self._stems:
            call = {"type": "function", "function": {"name": name, "arguments": {}}}
            stem: list[Message] = [
                {"role": "user", "content": ""},
                {"role": "assistant", "content": "", "tool_calls": [call]},
            ]
            head = self._ids_of(stem, prompts=False)
            end = len(head) - 1 - head[::-1].index(self.end)
            self._stems[name] = stem, end
        return self._stems[name]


class TextChat:
    """Chats in which tools are text, for any template with a user and an assistant; `end` is the
    first special id that the template puts after a turn.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        after = self._after([{"role": "user", "content": "go on"}])
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self.end = next((one for one in after if one in special), tokenizer.eos_token_id)

    def prompt(self, messages: list[Message]) -> list[int]:
        """Ids of an opening; where a template has no system prompt, the user's message begins with
        it.
        """
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
        """Ids of all between a turn and the next, with these messages between them."""
        turn = {"role": "assistant", "content": SENTINEL}
        text = self._rendered([{"role": "user", "content": "go"}, turn, *answers], tokenize=False)
        return self.tokenizer.encode(text.partition(SENTINEL)[2], add_special_tokens=False)

    def _rendered(self, messages: list[Message], tokenize: bool) -> Any:
        return self.tokenizer.apply_chat_template(
            messages, tokenize=tokenize, return_dict=False, add_generation_prompt=True
        )
