"""The FastAPI application: OpenEnv's routes over `TriageEnvironment`, with answers that hold
whatever is sent.

Sessions live on the WebSocket `/ws`; plain HTTP `/reset` and `/step` keep none, as OpenEnv has
them. Run it with `python -m logtriage serve`; another ASGI server must bound WebSocket frames by
itself (`guard.MAX_FRAME`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, APIWebSocketRoute
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.mcp_types import JsonRpcErrorCode, JsonRpcResponse
from openenv.core.env_server.types import ConcurrencyConfig

from ..environment import TriageEnvironment
from ..models import TriageAction, TriageObservation, TriageState
from ..world.topology import Topology
from . import CAPACITY, IDLE_SECONDS, serve
from .guard import Guard
from .page import router
from .published import publish

STATELESS = "; plain HTTP keeps no session, the WebSocket /ws does"


def make_app(sessions: int = CAPACITY, topology: Topology | None = None) -> FastAPI:
    """The application, with room for so many sessions at once, all on one call graph (None: the
    default).
    """

    class Served(TriageEnvironment):
        """What OpenEnv makes for every session: it takes a class, and gives it no arguments."""

        def __init__(self) -> None:
            super().__init__(topology)

    app = create_fastapi_app(
        Served,
        TriageAction,
        TriageObservation,
        env_name="logtriage",
        # No timeout of OpenEnv's: it forgets a silent session, but leaves its socket open. The
        # guard closes both.
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=None),
        state_cls=TriageState,
    )
    # OpenEnv's MCP routes open sessions without a socket, and close those of others, past the count
    # of sessions.
    kept = [
        one
        for one in app.router.routes
        if not (isinstance(one, (APIRoute, APIWebSocketRoute)) and one.path == "/mcp")
    ]
    if len(app.router.routes) - len(kept) != 2:
        raise RuntimeError("OpenEnv's routes are not where they were; look for its MCP routes anew")
    app.router.routes[:] = kept
    app.add_api_route("/mcp", no_tools, methods=["POST"], include_in_schema=False)
    app.state.topology = topology  # for the page, which makes its environments itself
    app.include_router(router)
    app.add_middleware(Guard, idle_seconds=IDLE_SECONDS)
    app.add_exception_handler(ValueError, _refuse_value)
    app.add_exception_handler(RequestValidationError, _refuse_request)
    app.add_exception_handler(HTTPException, _refuse)
    publish(app, topology)
    return app


async def no_tools() -> dict[str, Any]:
    """The answer to every JSON-RPC request: OpenEnv expects the route, but actions are not MCP
    tools here.
    """
    message = "LogTriage has no MCP tools; sessions live on the WebSocket /ws"
    return JsonRpcResponse.error_response(JsonRpcErrorCode.METHOD_NOT_FOUND, message).model_dump()


def _problems(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Where and what is wrong, without the input, which may be anything."""
    return [{name: error[name] for name in ("type", "loc", "msg")} for error in errors]


async def _refuse_value(request: Request, error: ValueError) -> JSONResponse:
    """What the environment refuses is the client's mistake, in the words of the environment."""
    message = f"{error}{STATELESS if request.url.path == '/step' else ''}"
    return JSONResponse({"detail": [{"type": "value_error", "loc": ["body"], "msg": message}]}, 422)


async def _refuse_request(request: Request, error: RequestValidationError) -> JSONResponse:
    return JSONResponse({"detail": _problems(error.errors())}, 422)


async def _refuse(request: Request, error: HTTPException) -> JSONResponse:
    detail = _problems(error.detail) if isinstance(error.detail, list) else error.detail
    return JSONResponse({"detail": detail}, error.status_code, error.headers)


app = make_app()


def main() -> None:
    """The console script `server`; its options are those of `python -m logtriage serve`."""
    typer.run(serve)


if __name__ == "__main__":
    main()
