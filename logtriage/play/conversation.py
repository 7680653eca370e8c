"""An episode as a chat: the opening messages, the calls in an assistant's message, and the answers.

Messages have the form of `transformers` chat templates; `from_wire` and `to_wire` translate from
and to the OpenAI protocol. A model calls its tools by one of two protocols. `NATIVE` is for a chat
template or a server that supports tools. `TEXT` describes the tools in the system prompt, and reads
calls as JSON objects in the message, after a tag, in a fence of three backticks, or bare.

Each call is a step, and so is a call that cannot be read. Everything a model writes is data: calls
are checked, never evaluated.
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
CALL_TAG = "<tool_call>"  # Qwen writes it before a call; if it stays in the text, it was not JSON
UNREADABLE = "the call could not be read; write one JSON object with name and arguments"
# Levels of objects and lists in a call's arguments; a tool needs one. Arguments within this limit
# can be written and printed without coming near Python's recursion limit.
MOST_NESTED = 20
END_TAG = "</tool_call>"
THOUGHT_END = "</think>"  # whatever a model writes before it is not a call
MOST_CALLS = 32  # calls read from one message; no incident has more steps
MOST_TEXT = 50_000  # characters read from one message
# Only blanks on its line may follow the fence's name: empty lines would take quadratic time.
FENCE = re.compile(r"```[a-z]*[ \t\r]*\n(.*?)```", re.DOTALL)

WrittenCall = tuple[str, Any]  # name and arguments as a model wrote them, unchecked


class Protocol(NamedTuple):
    """How a model reads its tools, and how it calls them."""

    name: str  # `native` or `text`
    opening: Callable[[str], list[Message]]  # the first messages, from an opening's text
    # Runs the calls of an assistant message, one step each; no answers: the agent walked away.
    answers: Callable[[ToolSession, Message], list[Message]]


def opening_messages(text: str) -> list[Message]:
    """See `Protocol.opening`."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": text}]


def tool_call(action: Action) -> dict[str, Any]:
    """Return an action as a tool call of a message, without the confidence, which no tool takes."""
    # An invalid action may have too few arguments or too many.
    arguments = dict(zip(ACTION_ARGUMENTS[action.type], action.args, strict=False))
    return {"type": "function", "function": {"name": action.type, "arguments": arguments}}


def unreadable(message: Message) -> bool:
    """Whether an assistant's message was meant as a call but could not be parsed."""
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
    """Whether a parsed JSON value is nested more than `MOST_NESTED` levels deep."""
    level = [read]
    for _ in range(MOST_NESTED + 1):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def from_wire(message: Any) -> Message:
    """Convert an assistant message with the attributes of the `openai` package's to the form that
    `answers` takes. Arguments are parsed as JSON; nested too deep, they become `UNREADABLE`.
    """
    calls = []
    for number, call in enumerate(message.tool_calls or ()):
        arguments = call.function.arguments
        # They stay as they are if they cannot be parsed (also for endless integers or nesting), or
        # are an object already: `ToolSession.call` checks them.
        with suppress(ValueError, TypeError, RecursionError):
            arguments = json.loads(arguments or "{}")
        arguments = UNREADABLE if is_deep(arguments) else arguments
        function = {"name": call.function.name or "", "arguments": arguments}
        # Without an id the answer could not name its call, and few servers accept that.
        calls.append({"id": call.id or f"call_{number}", "type": "function", "function": function})
    answer = {"role": "assistant", "content": message.content or ""}
    return {**answer, "tool_calls": calls} if calls else answer


def to_wire(message: Message) -> Message:
    """Convert a message to the OpenAI protocol; a tool's without a call becomes the user's."""
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


def instructions() -> str:
    """What the system prompt of `TEXT` says about the tools and how to call them."""
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
    """The opening of `NATIVE`, with the tools described in the system prompt."""
    system, user = NATIVE.opening(text)
    return [{**system, "content": f"{system['content']}\n\n{instructions()}"}, user]


def text_answers(session: ToolSession, message: Message) -> list[Message]:
    """See `Protocol.answers`; with `TEXT`, all answers are in one user message."""
    answered = []
    for call in written_calls(message["content"]):
        if call is None and not session.episode.done:
            answered.append(session.refuse(UNREADABLE))
        else:
            name, arguments = call or ("", {})
            answered.append(session.call(name, arguments))
    return [{"role": "user", "content": "\n\n".join(answered)}] if answered else []


def written_calls(content: str) -> list[WrittenCall | None]:
    """Return the calls in a message's text, in order; None for one that cannot be read."""
    text = content[:MOST_TEXT].rpartition(THOUGHT_END)[2].strip()
    if CALL_TAG in text:
        parts = [part.partition(END_TAG)[0] for part in text.split(CALL_TAG)[1:]]
    else:
        # A fence may hold anything, such as a quoted log; if it begins as JSON, a call was meant.
        parts = FENCE.findall(text) or [text]
        parts = [part for part in parts if part.lstrip().startswith(("{", "["))]
    return [call for part in parts for call in _read(part)][:MOST_CALLS]


def _read(part: str) -> list[WrittenCall | None]:
    """Return the calls in one piece of JSON: objects one after another, or a list of them."""
    decoder, rest = json.JSONDecoder(), part.strip()
    calls: list[WrittenCall | None] = []
    while rest and len(calls) < MOST_CALLS:
        try:
            read, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):  # also for endless integers or nesting
            return [*calls, None]
        calls += map(_call, read if isinstance(read, list) else [read])
        rest = rest[end:].lstrip(" \t\r\n,;")
    return calls or [None]


def _call(read: Any) -> WrittenCall | None:
    if not isinstance(read, dict) or not isinstance(read.get("name"), str):
        return None
    arguments = read.get("arguments", read.get("parameters", {}))  # Llama writes the latter
    return None if is_deep(arguments) else (read["name"], arguments)


TEXT = Protocol("text", text_opening, text_answers)
PROTOCOLS = {protocol.name: protocol for protocol in (NATIVE, TEXT)}


def protocol_of(messages: Sequence[Message], opening: str) -> Protocol | None:
    """Return the protocol whose messages for this opening begin the conversation, if any."""
    for protocol in PROTOCOLS.values():
        begun = protocol.opening(opening)
        if list(messages[: len(begun)]) == begun:
            return protocol
    return None
