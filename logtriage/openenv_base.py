"""What LogTriage takes from OpenEnv, and the one place that imports it: without gradio.

OpenEnv's server part imports gradio, and does without where that is missing. Gradio is for a page
that ours replaces (`server.page`), and takes longer to import than all else together. It is missing
for this import alone: `import gradio` works before and after, and in other threads meanwhile. What
stays is that `openenv.core.env_server.create_web_interface_app` is None in this process; it is
still to be had from `openenv.core.env_server.web_interface`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _NoGradio(MetaPathFinder):
    """Asked before all other finders, says in the thread that made it that there is no gradio."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "gradio" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError("LogTriage has its own page, without gradio", name=name)


@contextmanager
def without_gradio() -> Iterator[None]:
    """What this thread imports within finds no gradio, unless it has been imported before."""
    finder = _NoGradio()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with without_gradio():
    from openenv.core import EnvClient, SyncEnvClient
    from openenv.core.client_types import StepResult
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.mcp_types import JsonRpcErrorCode, JsonRpcResponse
    from openenv.core.env_server.types import (
        Action,
        ConcurrencyConfig,
        EnvironmentMetadata,
        Observation,
        State,
        WSErrorCode,
        WSErrorResponse,
    )
    from openenv.core.rubrics import Rubric

__all__ = [
    "Action",
    "ConcurrencyConfig",
    "EnvClient",
    "Environment",
    "EnvironmentMetadata",
    "JsonRpcErrorCode",
    "JsonRpcResponse",
    "Observation",
    "Rubric",
    "State",
    "StepResult",
    "SyncEnvClient",
    "WSErrorCode",
    "WSErrorResponse",
    "create_fastapi_app",
]
