"""The FastAPI application: OpenEnv's routes over `TriageEnvironment`, behind a guard, and the page.

Sessions live on the WebSocket `/ws`. OpenEnv 0.10 ends a session if a message is not a JSON object,
or if its error cannot quote the message (half a surrogate pair, nesting too deep); the guard
answers such messages itself. Run it with `python -m logtriage serve`; another ASGI server must
bound WebSocket frames itself (`MAX_MESSAGE`).
"""

import asyncio
import json
from contextlib import suppress
from functools import partial
from itertools import count
from operator import call
from typing import Any

import typer
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..adapters.mcp import IDLE_SECONDS, http_router, make_server
from ..environment import TriageEnvironment
from ..models import TriageAction, TriageObservation, TriageState
from ..openenv_base import ConcurrencyConfig, WSErrorCode, WSErrorResponse, create_fastapi_app
from ..play.actions import quoted
from ..play.episode import Episode
from ..world.tasks import TASKS
from ..world.topology import Topology
from . import CAPACITY, serve
from .page import router

# Bytes of a frame and of a body, more than the longest `reasoning` takes. A longer frame ends its
# session, since it is not read to its end.
MAX_MESSAGE = 1024 * 1024
MESSAGE_TYPES = ("reset", "step", "state", "close")


def make_app(sessions: int = CAPACITY, topology: Topology | None = None) -> FastAPI:
    """Make the application with room for `sessions`, on a custom call graph or the default."""
    app = create_fastapi_app(
        lambda: TriageEnvironment(topology),
        TriageAction,
        TriageObservation,
        env_name="logtriage",
        # OpenEnv's own timeout leaves the socket of an idle session open; the guard closes both.
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=None),
        state_cls=TriageState,
    )
    app.title = "LogTriage"
    # OpenEnv's MCP routes open sessions without a socket and beyond the limit, and close those of
    # others. They are replaced by ours, whose sessions are bounded and play their own incidents.
    kept = [
        route
        for route in app.router.routes
        if not (isinstance(route, (APIRoute, APIWebSocketRoute)) and route.path == "/mcp")
    ]
    if len(app.router.routes) - len(kept) != 2:
        raise RuntimeError("expected two routes /mcp of OpenEnv; see where 0.10 moved them")
    app.router.routes[:] = kept
    opened = (partial(Episode.open, task, "train", n, topology) for n in count() for task in TASKS)
    # `map` goes on after an error: a call graph may have no incident of one of the tasks.
    app.include_router(http_router(make_server(map(call, opened)), sessions))
    app.state.topology = topology  # for the page, which makes its own environments
    app.include_router(router)
    app.add_middleware(Guard, idle_seconds=IDLE_SECONDS)
    for kind in (ValueError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)
    return app


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a client's mistake: say what is wrong, but not the input, which may be anything."""
    status = error.status_code if isinstance(error, HTTPException) else 422
    detail: Any = error.detail if isinstance(error, HTTPException) else str(error)
    if isinstance(error, RequestValidationError):
        detail = error.errors()
    elif request.url.path == "/step" and status == 422 and isinstance(detail, str):
        detail += "; plain HTTP keeps no session, the WebSocket /ws does"
    if isinstance(detail, list):
        detail = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in detail]
    return JSONResponse({"detail": detail}, status)


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
        kind, kinds = quoted(message.get("type")), ", ".join(MESSAGE_TYPES)
        raise ValueError(f"unknown message type {kind}; choose one of {kinds}")


class Guard:
    """ASGI middleware: answers bad messages, ends silent sessions, and bounds plain requests."""

    def __init__(self, app: ASGIApp, idle_seconds: float) -> None:
        self.app, self.idle_seconds = app, idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, _bounded(receive), send)
            return

        async def send_if_open(event: Message) -> None:
            with suppress(OSError):  # the client is gone, and the next `receive` reports it
                await send(event)

        next_message = partial(self._next_message, receive, send_if_open)
        # Without the query: OpenEnv would attach the socket to a session that is named there.
        await self.app({**scope, "query_string": b""}, next_message, send_if_open)

    async def _next_message(self, receive: Receive, send: Send) -> Message:
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


def _error(code: WSErrorCode, message: str) -> Message:
    answer = WSErrorResponse(data={"message": message, "code": code})
    return {"type": "websocket.send", "text": answer.model_dump_json()}


def _bounded(receive: Receive) -> Receive:
    """Wrap the `receive` of a plain request, to refuse bodies above `MAX_MESSAGE`."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        event = await receive()
        size += len(event.get("body", b""))
        if size > MAX_MESSAGE:
            raise HTTPException(413, f"a body has at most {MAX_MESSAGE} bytes")
        return event

    return bounded


app = make_app()


def main() -> None:
    """The console script `server`; its options are those of `python -m logtriage serve`."""
    typer.run(serve)


if __name__ == "__main__":
    main()
