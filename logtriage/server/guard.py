"""What stands before OpenEnv's routes: a bad message ends no session, and silence ends its own.

OpenEnv 0.10 ends a session over a message that is not a JSON object, and over one that its error
cannot quote (half a surrogate pair, nesting too deep). The guard answers these itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any

from fastapi import HTTPException

from ..openenv_base import WSErrorCode, WSErrorResponse
from ..play.actions import shown

# Bytes of a frame and of a body; above the longest `reasoning` allowed. A longer frame ends its
# session, since nobody reads it to its end.
MAX_MESSAGE = 1024 * 1024
MESSAGE_TYPES = ("reset", "step", "state", "close")

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


def check_message(text: str | None) -> None:
    """Raise `ValueError` unless `text` is a message of a known type that an error can quote."""
    if text is None:
        raise ValueError("binary frame; send JSON as text")
    try:
        message = json.loads(text)
        WSErrorResponse(data={"errors": [{"input": message}]}).model_dump_json()
    except RecursionError:
        raise ValueError("nested too deep; send an object of plain values") from None
    if not isinstance(message, dict):
        raise ValueError(f"expected a JSON object, got {type(message).__name__}")
    if message.get("type") not in MESSAGE_TYPES:
        kind, kinds = shown(message.get("type")), ", ".join(MESSAGE_TYPES)
        raise ValueError(f"unknown message type {kind}; choose one of {kinds}")


class Guard:
    """ASGI middleware: answers bad messages, ends silent sessions, and bounds plain requests."""

    def __init__(self, app: Callable[..., Awaitable[None]], idle_seconds: float) -> None:
        self.app, self.idle_seconds = app, idle_seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, _bounded(receive), send)
            return

        async def send_if_open(event: Event) -> None:
            with suppress(OSError):  # the client is gone, and the next `receive` reports it
                await send(event)

        next_message = partial(self._next_message, receive, send_if_open)
        # Without its query: OpenEnv would attach the socket to the session that it names.
        await self.app({**scope, "query_string": b""}, next_message, send_if_open)

    async def _next_message(self, receive: Receive, send: Send) -> Event:
        while True:
            try:
                async with asyncio.timeout(self.idle_seconds):
                    event = await receive()
            except TimeoutError:
                reason = f"no message for {self.idle_seconds:g} s; the session is closed"
                await send(_error(WSErrorCode.SESSION_ERROR, reason))
                return {"type": "websocket.disconnect", "code": 1001, "reason": reason}
            if event["type"] != "websocket.receive":
                return event
            try:
                check_message(event.get("text"))
            except ValueError as error:
                await send(_error(WSErrorCode.INVALID_JSON, f"Invalid JSON: {error}"))
            else:
                return event


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
