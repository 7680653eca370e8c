"""The FastAPI application: OpenEnv's routes over `TriageEnvironment`, and the page.

Sessions live on the WebSocket `/ws`. Run it with `python -m logtriage serve`; another ASGI server
must bound WebSocket frames itself (`guard.MAX_MESSAGE`).
"""

from __future__ import annotations

from typing import Any

import typer
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, APIWebSocketRoute

from ..environment import TriageEnvironment
from ..models import TriageAction, TriageObservation, TriageState
from ..openenv_base import ConcurrencyConfig, JsonRpcErrorCode, JsonRpcResponse, create_fastapi_app
from ..world.topology import Topology
from . import CAPACITY, serve
from .guard import Guard
from .page import router

IDLE_SECONDS = 900.0  # after which a silent session is closed; a model may think for long


def make_app(sessions: int = CAPACITY, topology: Topology | None = None) -> FastAPI:
    """The application, for so many open sessions, on a custom call graph or the default."""
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
    # OpenEnv's MCP routes open sessions without a socket, beyond the limit, and close others'.
    kept = [
        route
        for route in app.router.routes
        if not (isinstance(route, (APIRoute, APIWebSocketRoute)) and route.path == "/mcp")
    ]
    if len(app.router.routes) - len(kept) != 2:
        raise RuntimeError("expected two routes /mcp of OpenEnv; see where 0.10 moved them")
    app.router.routes[:] = kept
    app.add_api_route("/mcp", no_tools, methods=["POST"], include_in_schema=False)
    app.state.topology = topology  # for the page, which makes its environments itself
    app.include_router(router)
    app.add_middleware(Guard, idle_seconds=IDLE_SECONDS)
    for kind in (ValueError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)
    return app


async def no_tools() -> dict[str, Any]:
    """The answer to every JSON-RPC request, whose route OpenEnv expects."""
    message = "LogTriage has no MCP tools; sessions live on the WebSocket /ws"
    return JsonRpcResponse.error_response(JsonRpcErrorCode.METHOD_NOT_FOUND, message).model_dump()


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """The answer to a client's mistake: what is wrong, but not the input, which may be anything."""
    status = error.status_code if isinstance(error, HTTPException) else 422
    detail: Any = error.detail if isinstance(error, HTTPException) else str(error)
    if isinstance(error, RequestValidationError):
        detail = error.errors()
    elif request.url.path == "/step" and status == 422 and isinstance(detail, str):
        detail += "; plain HTTP keeps no session, the WebSocket /ws does"
    if isinstance(detail, list):
        detail = [{name: one[name] for name in ("type", "loc", "msg")} for one in detail]
    return JSONResponse({"detail": detail}, status)


app = make_app()


def main() -> None:
    """The console script `server`; its options are those of `python -m logtriage serve`."""
    typer.run(serve)


if __name__ == "__main__":
    main()
