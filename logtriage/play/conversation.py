"""An episode as a chat: the messages it starts with, the calls of an assistant's message, and what
answers them.

Messages are those of the `transformers` chat templates, the arguments of a call an object; as the
OpenAI protocol has them, by `from_wire` and `to_wire`. A model calls its tools by one of two
protocols: `NATIVE`, where its chat template or its server knows tools, and
`policies.llm.text_protocol.TEXT`. What was meant as a call and cannot be read costs a step, as any
malformed call does. All that a model writes is data: calls are checked, never evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from .actions import ACTION_ARGUMENTS, Action
from .observation import SYSTEM_PROMPT
from .tools import ToolSession

Message = dict[str, Any]
CALL_TAG = "<tool_call>"  # Qwen writes it before a call; one left in a message's text was no JSON
UNREADABLE = "the call could not be read; write one JSON object with name and arguments"
# Objects and lists in the arguments of a call; a tool needs one. Whoever writes or prints arguments
# below that stays far from the bottom of Python's stack.
MOST_NESTED = 20


class Protocol(NamedTuple):
    """How a model reads its tools, and how it calls them.

    Attributes:
        name: `native` or `text`.
        opening: the messages that an episode starts with, from its rendered opening.
        answers: runs the calls of an assistant message, a step each; no answer means that the
            agent walked away.
    """

    name: str
    opening: Callable[[str], list[Message]]
    answers: Callable[[ToolSession, Message], list[Message]]


def opening_messages(text: str) -> list[Message]:
    """See `Protocol.opening`: of `NATIVE`."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": text}]


def tool_call(action: Action) -> dict[str, Any]:
    """An action as a message's tool call, without its confidence: tools take none."""
    # An invalid action may have too few arguments or too many.
    arguments = dict(zip(ACTION_ARGUMENTS[action.type], action.args, strict=False))
    return {"type": "function", "function": {"name": action.type, "arguments": arguments}}


def unreadable(message: Message) -> bool:
    """Whether an assistant's message was meant as a call, and could not be parsed as one."""
    return not message.get("tool_calls") and CALL_TAG in (message.get("content") or "")


def answers(session: ToolSession, message: Message) -> list[Message]:
    """See `Protocol.answers`: of `NATIVE`."""
    answered: list[Message] = []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        content = session.call(function["name"], function["arguments"])
        answer = {"role": "tool", "name": function["name"], "content": content}
        answered.append({**answer, "tool_call_id": call["id"]} if "id" in call else answer)
    if unreadable(message):
        error = session.refuse(UNREADABLE)
        answered.append({"role": "tool", "name": "unreadable", "content": error})
    return answered


NATIVE = Protocol("native", opening_messages, answers)


def is_deep(read: Any) -> bool:
    """Whether JSON that was read is nested more than `MOST_NESTED` deep."""
    level = [read]
    for _ in range(MOST_NESTED + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def from_wire(message: Any) -> Message:
    """An assistant message with the attributes of the `openai` package's, as the message that
    `answers` takes: arguments are read as JSON, unless they are deep (`is_deep`).
    """
    calls = []
    for number, call in enumerate(message.tool_calls or ()):
        arguments = call.function.arguments
        # Left as it is where it cannot be read (endless integers and depth included), or is an
        # object already: `ToolSession.call` looks at it.
        with suppress(ValueError, TypeError, RecursionError):
            read = json.loads(arguments or "{}")
            arguments = arguments if is_deep(read) else read
        if is_deep(arguments):  # an object already
            arguments = UNREADABLE
        function = {"name": call.function.name or "", "arguments": arguments}
        # Without an id the answer could not name its call, and few servers take it then.
        calls.append({"id": call.id or f"call_{number}", "type": "function", "function": function})
    answer = {"role": "assistant", "content": message.content or ""}
    return {**answer, "tool_calls": calls} if calls else answer


def to_wire(message: Message) -> Message:
    """A message as the OpenAI protocol has it: arguments are a JSON string, and a tool's message
    answers a call.
    """
    if message["role"] == "tool" and "tool_call_id" not in message:
        return {"role": "user", "content": message["content"]}
    if not message.get("tool_calls"):
        return {key: value for key, value in message.items() if key != "name"}
    calls = []
    for call in message["tool_calls"]:
        function = call["function"]
        text = json.dumps(function["arguments"])
        calls.append({**call, "function": {**function, "arguments": text}})
    return {**message, "tool_calls": calls}
