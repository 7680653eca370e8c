"""An episode as a chat: the messages it starts with, the calls of an assistant's message, and what
answers them.

Messages are those of the `transformers` chat templates; `from_wire` and `to_wire` translate those
of the OpenAI protocol. A model calls its tools by one of two protocols: `NATIVE`, where its chat
template or its server knows tools, and `TEXT`, where the tools stand in the system prompt, and
calls are JSON objects in the message, after a tag, in a fence of three backticks or bare.

Each call is a step, and so is what was meant as one and cannot be read. All that a model writes is
data: calls are checked, never evaluated.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from .actions import ACTION_ARGUMENTS, Action
from .observation import SYSTEM_PROMPT
from .tools import ToolSession, described_tools

Message = dict[str, Any]
CALL_TAG = "<tool_call>"  # Qwen writes it before a call; one left in a message's text was no JSON
UNREADABLE = "the call could not be read; write one JSON object with name and arguments"
# Objects and lists in the arguments of a call; a tool needs one. Whoever writes or prints arguments
# below that stays far from the bottom of Python's stack.
MOST_NESTED = 20
END_TAG = "</tool_call>"
THOUGHT_END = "</think>"  # what a model writes before it is no call
MOST_CALLS = 32  # of a message that are read; no incident has more steps
MOST_TEXT = 50_000  # characters of a message that are read
# Blanks after the fence's name are of its line: empty lines, too, would cost the square of them.
FENCE = re.compile(r"```[a-z]*[ \t\r]*\n(.*?)```", re.DOTALL)

WrittenCall = tuple[str, Any]  # name and arguments as a model wrote them, nothing of them checked


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
    """See `Protocol.opening`."""
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
    """See `Protocol.answers`."""
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


# -- tools as text ---------------------------------------------------------------------------------


def instructions() -> str:
    """What the system prompt of `TEXT` says of the tools, and of how they are called."""
    lines = [
        "To act, write calls and nothing else, one a line:",
        f'{CALL_TAG}{{"name": "escalate", "arguments": {{"team": "sre"}}}}{END_TAG}',
        "A message without a call ends your work on the incident. The tools:",
    ]
    for tool, does, arguments in described_tools():
        meanings = [f"{name}: {meaning}" for name, meaning in arguments.items()]
        lines.append(" ".join([f"- {tool}({', '.join(arguments)}): {does}", *meanings]))
    return "\n".join(lines)


def text_opening(text: str) -> list[Message]:
    """The opening of `NATIVE`, with the tools in the system prompt."""
    system, user = NATIVE.opening(text)
    return [{**system, "content": f"{system['content']}\n\n{instructions()}"}, user]


def text_answers(session: ToolSession, message: Message) -> list[Message]:
    """See `Protocol.answers`: of `TEXT`, all in one message of the user."""
    answered = []
    for call in written_calls(message["content"]):
        if call is None and not session.episode.done:
            answered.append(session.refuse(UNREADABLE))
        else:
            name, arguments = call or ("", {})
            answered.append(session.call(name, arguments))
    return [{"role": "user", "content": "\n\n".join(answered)}] if answered else []


def written_calls(content: str) -> list[WrittenCall | None]:
    """The calls that a message's text holds, in order; None for one that cannot be read."""
    text = content[:MOST_TEXT].rpartition(THOUGHT_END)[2].strip()
    if CALL_TAG in text:
        parts = [part.partition(END_TAG)[0] for part in text.split(CALL_TAG)[1:]]
    else:
        # A fence may hold anything, a quoted log too; what begins as JSON was meant as a call.
        parts = FENCE.findall(text) or [text]
        parts = [part for part in parts if part.lstrip().startswith(("{", "["))]
    return [call for part in parts for call in _read(part)][:MOST_CALLS]


def _read(part: str) -> list[WrittenCall | None]:
    """The calls of one piece of JSON: objects, one after another, or a list of them."""
    decoder, rest = json.JSONDecoder(), part.strip()
    found: list[WrittenCall | None] = []
    while rest and len(found) < MOST_CALLS:
        try:
            read, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):  # endless integers and depth included
            return [*found, None]
        found += map(_call, read if isinstance(read, list) else [read])
        rest = rest[end:].lstrip(" \t\r\n,;")
    return found or [None]


def _call(read: Any) -> WrittenCall | None:
    if not isinstance(read, dict) or not isinstance(read.get("name"), str):
        return None
    arguments = read.get("arguments", read.get("parameters", {}))  # the latter is what Llama writes
    return None if is_deep(arguments) else (read["name"], arguments)


TEXT = Protocol("text", text_opening, text_answers)
PROTOCOLS = {protocol.name: protocol for protocol in (NATIVE, TEXT)}


def protocol_of(messages: Sequence[Message], opening: str) -> Protocol | None:
    """The protocol by which a conversation about an incident with this opening begins, if any."""
    for protocol in PROTOCOLS.values():
        begun = protocol.opening(opening)
        if list(messages[: len(begun)]) == begun:
            return protocol
    return None


def check_protocol(name: str) -> Protocol:
    """The protocol of that name; `ValueError` with the names there are otherwise."""
    if name not in PROTOCOLS:
        raise ValueError(f"unknown way to call tools {name!r:.60}; choose {' or '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
