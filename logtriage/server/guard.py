"""What stands before the environment's routes: bounded bodies, and on WebSockets messages of
bounded size and depth.

OpenEnv 0.10 ends a session over a message that is no JSON object, and over some that its own error
answer cannot quote (half a surrogate pair, nesting too deep). The guard answers these itself, and
the session lives.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, NoReturn

from fastapi import HTTPException
from openenv.core.env_server.types import WSErrorCode, WSErrorResponse

from ..play.actions import shown

# Characters of a message, bytes of a body; above the longest `reasoning` allowed, fully escaped.
MAX_MESSAGE = 256 * 1024
MAX_FRAME = 1024 * 1024  # bytes; a frame above this is not read to its end, and ends the session
MAX_DEPTH = 16
# in all objects and lists of a message; OpenEnv repeats the whole message for each field it does
# not know
MAX_ITEMS = 64
MESSAGE_TYPES = ("reset", "step", "state", "close")

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


def check_message(text: str | None) -> None:
    """Raise `ValueError` unless `text` is a message of a known type, and safe to parse and to quote
    in an answer.
    """
    if text is None:
        raise ValueError("binary frame; send JSON as text")
    if len(text) > MAX_MESSAGE:
        raise ValueError(f"{len(text)} characters; a message has at most {MAX_MESSAGE}")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:  # nothing else makes half a pair
            json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair, which is no text") from None
    except RecursionError:
        raise ValueError(f"nested too deep; at most {MAX_DEPTH} levels") from None
    if not isinstance(message, dict):
        raise ValueError(f"a message is a JSON object, got {type(message).__name__}")
    if message.get("type") not in MESSAGE_TYPES:
        raise ValueError(
            f"unknown message type {shown(message.get('type'))}; choose one of"
            f" {', '.join(MESSAGE_TYPES)}"
        )
    layer: list[dict[str, Any] | list[Any]] = [message]
    items = 0
    for _ in range(MAX_DEPTH):
        items += sum(map(len, layer))
        if items > MAX_ITEMS:
            raise ValueError(f"too many fields; a message has at most {MAX_ITEMS}")
        layer = [
            inner for one in layer for inner in _inside(one) if isinstance(inner, (dict, list))
        ]
        if not layer:
            return
    raise ValueError(f"nested too deep; at most {MAX_DEPTH} levels")


def _inside(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class Guard:
    """ASGI middleware: answers what is no message, closes silent sessions, and bounds the bodies of
    plain requests.

    Args:
        app: what it stands before.
        idle_seconds: silence after which a WebSocket is told so and closed, which frees its
            session.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], idle_seconds: float) -> None:
        self.app, self.idle_seconds = app, idle_seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            send = _if_there(send)
            # Without its query: OpenEnv would attach the socket to the session that it names.
            await self.app(
                {**scope, "query_string": b""}, lambda: self._next_message(receive, send), send
            )
        elif scope["type"] == "http":
            await self.app(scope, _bounded(receive), send)
        else:
            await self.app(scope, receive, send)

    async def _next_message(self, receive: Receive, send: Send) -> Event:
        while True:
            try:
                async with asyncio.timeout(self.idle_seconds):
                    event = await receive()
            except TimeoutError:
                silent = f"nothing heard for {self.idle_seconds:g} s; the session is closed"
                await send(_error(WSErrorCode.SESSION_ERROR, silent))
                return {"type": "websocket.disconnect", "code": 1001, "reason": silent}
            if event["type"] != "websocket.receive":
                return event
            try:
                check_message(event.get("text"))
            except ValueError as error:
                await send(_error(WSErrorCode.INVALID_JSON, f"Invalid JSON: {error}"))
            else:
                return event


def _if_there(send: Send) -> Send:
    """`send` for a client that may have vanished: the next thing heard of it is that it is gone,
    which frees its session.
    """

    async def answer(event: Event) -> None:
        with suppress(OSError):
            await send(event)

    return answer


def _error(code: WSErrorCode, message: str) -> Event:
    answer = WSErrorResponse(data={"message": message, "code": code})
    return {"type": "websocket.send", "text": answer.model_dump_json()}


def _bounded(receive: Receive) -> Receive:
    """`receive` of a plain request, refusing bodies above `MAX_MESSAGE`."""
    size = 0

    async def bounded() -> Event:
        nonlocal size
        event = await receive()
        size += len(event.get("body", b""))
        if size > MAX_MESSAGE:
            raise HTTPException(413, f"a body has at most {MAX_MESSAGE} bytes")
        return event

    return bounded
