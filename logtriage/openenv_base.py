"""All that LogTriage takes from OpenEnv, without what `slow_imports` names."""

from .slow_imports import GRADIO, IRI_SYNTAX, hidden

with hidden(GRADIO, IRI_SYNTAX):  # `X as X`: a name for other modules to import from here
    from openenv.core import EnvClient as EnvClient
    from openenv.core import SyncEnvClient as SyncEnvClient
    from openenv.core.client_types import StepResult as StepResult
    from openenv.core.env_server.http_server import create_fastapi_app as create_fastapi_app
    from openenv.core.env_server.interfaces import Environment as Environment
    from openenv.core.env_server.types import Action as Action
    from openenv.core.env_server.types import ConcurrencyConfig as ConcurrencyConfig
    from openenv.core.env_server.types import EnvironmentMetadata as EnvironmentMetadata
    from openenv.core.env_server.types import Observation as Observation
    from openenv.core.env_server.types import State as State
    from openenv.core.env_server.types import WSErrorCode as WSErrorCode
    from openenv.core.env_server.types import WSErrorResponse as WSErrorResponse
    from openenv.core.rubrics import Rubric as Rubric
