"""What LogTriage takes from OpenEnv, and the one place that imports it: without gradio.

OpenEnv's server part imports gradio, and does without where that is missing. Gradio is for a page
that ours replaces (`server.page`), and takes longer to import than all else together. It is missing
for this import alone: `import gradio` works before and after. What stays is that
`openenv.core.env_server.create_web_interface_app` is None in this process; it is still to be had
from `openenv.core.env_server.web_interface`.
"""

import sys

hidden = "gradio" not in sys.modules
if hidden:
    sys.modules["gradio"] = None  # type: ignore[assignment]  # an import of it fails
try:
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
finally:
    if hidden:
        del sys.modules["gradio"]

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
