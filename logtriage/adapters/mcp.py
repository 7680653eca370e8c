"""Incidents for any agent that speaks MCP: the seven actions and `open_incident`, as tools.

    python -m logtriage mcp --task cascading_failure --split test

A client has a `Seat` while its session lasts. Calls are passed to `ToolSession` as they come,
whatever the schemas say, so an invalid action costs a step, as everywhere. Only the answer that
closes the incident holds the score and the truth.
"""

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from .. import __version__
from ..play.actions import CHOICES, quoted
from ..play.episode import Episode, closing_report, incident_id
from ..play.observation import SYSTEM_PROMPT
from ..play.tools import ToolSession, tool_schemas
from ..slow_imports import IRI_SYNTAX, hidden

with hidden(IRI_SYNTAX):
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import (
        RequestBodyLimitMiddleware,
        StreamableHTTPSessionManager,
    )

OPEN = "open_incident"
IDLE_SECONDS = 900.0  # a session that is silent for so long ends; a model may think for long
MAX_BODY = 64 * 1024  # bytes of a request over HTTP; a call has some hundred

Finish = Callable[[Episode, float], None]  # takes a closed incident and the seconds it took


def tools() -> list[types.Tool]:
    """The tools, with the values that an argument can have; services depend on the incident."""
    # Not every client shows its model a server's instructions, but all show the descriptions.
    rules = f"Open the next incident: returns its id and what is known.\n\n{SYSTEM_PROMPT}"
    offered = [types.Tool(name=OPEN, description=rules, inputSchema={"type": "object"})]
    for schema in tool_schemas():
        name, description, parameters, _ = schema["function"].values()
        for argument in CHOICES.keys() & parameters["properties"].keys():
            parameters["properties"][argument]["enum"] = list(CHOICES[argument])
        offered.append(types.Tool(name=name, description=description, inputSchema=parameters))
    return offered


class Seat:
    """One client, and the incident that it plays."""

    def __init__(self, incidents: Iterator[Episode], finish: Finish) -> None:
        self._incidents, self._finish = incidents, finish
        self._playing: tuple[Episode, ToolSession, float] | None = None  # and when it was opened

    def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Answer a call; `ValueError` if no incident is open for it to act on."""
        if name == OPEN:
            return _result(self._open(arguments), wrong=False)
        if self._playing is None or self._playing[0].done:
            raise ValueError(f"{quoted(name)}: no incident is open; call {OPEN} first")
        episode, session, opened = self._playing
        malformed = session.malformed
        answer = session.call(name, arguments)
        wrong = session.malformed > malformed
        if not episode.done:
            return _result(answer, wrong)
        self._finish(episode, time.perf_counter() - opened)
        return _result(answer, wrong, closing_report(episode))

    def leave(self) -> None:
        """Close an open incident as timed out: the client has read it, and must not get it anew."""
        if self._playing is not None and not self._playing[0].done:
            episode, _, opened = self._playing
            episode.abandon()
            self._finish(episode, time.perf_counter() - opened)

    def _open(self, arguments: dict[str, Any]) -> str:
        if arguments:
            raise ValueError(f"{OPEN} takes nothing, got {quoted(arguments)}; leave it out")
        if self._playing is not None and not self._playing[0].done:
            opened = incident_id(self._playing[0])
            raise ValueError(f"{opened} is still open; close it by resolve or ignore first")
        episode = next(self._incidents, None)
        if episode is None:
            raise ValueError("every incident was opened once; start the server with others")
        session = ToolSession(episode)
        self._playing = episode, session, time.perf_counter()
        return f"incident {incident_id(episode)}\n{session.opening}"


def _result(answer: str, wrong: bool, end: dict[str, Any] | None = None) -> types.CallToolResult:
    """An answer as MCP's result. `end` is both text and structured: clients show a model one."""
    text = types.TextContent(type="text", text=f"{answer}\n{json.dumps(end)}" if end else answer)
    structured = end and {"answer": answer, **end}
    return types.CallToolResult(content=[text], structuredContent=structured, isError=wrong)


def make_server(incidents: Iterator[Episode], finish: Finish | None = None) -> Server:
    """Make a server that opens each of `incidents` once, for whichever client asks next. A closed
    incident is passed to `finish`. If a client leaves, its incident is closed as timed out.
    """

    @asynccontextmanager
    async def seat(server: Server) -> AsyncIterator[Seat]:
        client = Seat(incidents, finish or (lambda episode, seconds: None))
        try:
            yield client
        finally:
            client.leave()

    instructions = f"Incidents to triage. Call {OPEN}; its description has the rules."
    server = Server("logtriage", version=__version__, instructions=instructions, lifespan=seat)
    # It warns of each unknown tool by its name, which may be of any length.
    logging.getLogger("mcp").setLevel(logging.ERROR)

    @server.list_tools()
    async def list_tools() -> list[types.Tool]:
        return tools()

    @server.call_tool(validate_input=False)
    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        return server.request_context.lifespan_context.call(name, arguments)

    return server


async def serve_stdio(server: Server) -> None:
    """Serve the one client at standard input and output, until it leaves."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def http_router(server: Server, sessions: int) -> APIRouter:
    """The route `/mcp` with room for `sessions`; the router is an application by itself."""
    manager = StreamableHTTPSessionManager(
        server, json_response=True, session_idle_timeout=IDLE_SECONDS, max_sessions=sessions
    )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        whole = await receive()  # the limit below has read it whole

        async def again() -> Message:
            return whole

        app = without_session(scope, whole.get("body", b"")) or manager.handle_request
        await app(scope, again, send)

    # No GET: a stream without messages would keep an idle session open.
    route = Route("/mcp", RequestBodyLimitMiddleware(answer, MAX_BODY), methods=["POST", "DELETE"])
    return APIRouter(routes=[route], lifespan=lambda app: manager.run())


def without_session(scope: Scope, body: bytes) -> JSONResponse | None:
    """Answer a request that needs no session, as OpenEnv's clients send; else None."""
    headers = Headers(scope=scope)
    if "origin" in headers:  # a page in a browser, which may be anybody's
        return JSONResponse({"detail": "browsers are refused; leave out the header Origin"}, 403)
    if scope["method"] == "DELETE":
        return None
    try:
        asked = types.JSONRPCMessage.model_validate_json(body).root
    except ValidationError:
        reason = "no JSON-RPC 2.0 message; send an object of plain values"
        return _json_rpc(None, error={"code": types.INVALID_REQUEST, "message": reason})
    alone = isinstance(asked, types.JSONRPCRequest) and "mcp-session-id" not in headers
    if not alone or asked.method == "initialize":
        return None
    if asked.method == "tools/list":
        listed = types.ListToolsResult(tools=tools())
        return _json_rpc(asked.id, result=listed.model_dump(by_alias=True, exclude_none=True))
    reason = f"{quoted(asked.method)} needs a session; send initialize first"
    return _json_rpc(asked.id, error={"code": types.METHOD_NOT_FOUND, "message": reason})


def _json_rpc(number: str | int | None, **answer: object) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": number, **answer})
