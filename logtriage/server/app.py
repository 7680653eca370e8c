"""The FastAPI application: OpenEnv's routes over `TriageEnvironment`, with answers that hold whatever is sent.

Sessions live on the WebSocket `/ws`; plain HTTP `/reset` and `/step` keep none, as OpenEnv has them.
Run it with `python -m logtriage serve`, or `uvicorn logtriage.server.app:app`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import ConcurrencyConfig

from ..environment import TriageEnvironment
from ..models import TriageAction, TriageObservation, TriageState
from . import CAPACITY, IDLE_SECONDS, serve
from .guard import Guard
from .page import router
from .published import publish

STATELESS = "; plain HTTP keeps no session, the WebSocket /ws does"


def make_app(sessions: int = CAPACITY) -> FastAPI:
    """The application, with room for so many sessions at once."""
    app = create_fastapi_app(
        TriageEnvironment,
        TriageAction,
        TriageObservation,
        env_name="logtriage",
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=IDLE_SECONDS),
        state_cls=TriageState,
    )
    app.include_router(router)
    app.add_middleware(Guard, idle_seconds=IDLE_SECONDS)
    app.add_exception_handler(ValueError, _refuse_value)
    app.add_exception_handler(TypeError, _refuse_session_id)
    app.add_exception_handler(RequestValidationError, _refuse_request)
    app.add_exception_handler(HTTPException, _refuse)
    publish(app)
    return app


def _problems(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Where and what is wrong, without the input, which may be anything."""
    return [{name: error[name] for name in ("type", "loc", "msg")} for error in errors]


async def _refuse_value(request: Request, error: ValueError) -> JSONResponse:
    """What the environment refuses is the client's mistake, in the words of the environment."""
    told = f"{error}{STATELESS if request.url.path == '/step' else ''}"
    return JSONResponse({"detail": [{"type": "value_error", "loc": ["body"], "msg": told}]}, 422)


async def _refuse_session_id(request: Request, error: TypeError) -> JSONResponse:
    """OpenEnv looks up whatever a JSON-RPC request calls its `session_id`, lists as well. Other TypeErrors are our own."""
    if request.url.path != "/mcp":
        raise error
    return JSONResponse({"detail": [{"type": "type_error", "loc": ["body"], "msg": "session_id must be text"}]}, 422)


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
