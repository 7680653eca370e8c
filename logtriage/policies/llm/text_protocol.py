"""Calls written as text: a protocol for models whose template or server knows no tools.

The tools stand in the system prompt, and a call is a JSON object in the message:

    <tool_call>{"name": "escalate", "arguments": {"team": "sre"}}</tool_call>

Several are several steps. A message without the tag may be one JSON object (or a list of them),
bare or in a fence of three backticks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ...play.conversation import CALL_TAG, NATIVE, UNREADABLE, Message, Protocol, is_deep
from ...play.tools import ToolSession, tool_schemas

END_TAG = "</tool_call>"
THOUGHT_END = "</think>"  # what a model writes before it is no call
MOST_CALLS = 32  # of a message that are read; no incident has more steps
MOST_TEXT = 50_000  # characters of a message that are read
# Blanks after the fence's name are of its line: empty lines, too, would cost the square of them.
FENCE = re.compile(r"```[a-z]*[ \t\r]*\n(.*?)```", re.DOTALL)

WrittenCall = tuple[str, Any]  # name and arguments as a model wrote them, nothing of them checked


def instructions() -> str:
    """What the system prompt of `TEXT` says of the tools, and of how they are called."""
    lines = [
        "To act, write calls and nothing else, one a line:",
        f'{CALL_TAG}{{"name": "escalate", "arguments": {{"team": "sre"}}}}{END_TAG}',
        "A message without a call ends your work on the incident. The tools:",
    ]
    for schema in tool_schemas():
        function = schema["function"]
        arguments = function["parameters"]["properties"]
        meaning = " ".join(f"{name}: {one['description']}" for name, one in arguments.items())
        line = f"- {function['name']}({', '.join(arguments)}): {function['description']}"
        lines.append(f"{line} {meaning}".rstrip())
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
