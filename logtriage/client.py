"""`LogtriageEnv`: a typed client of a LogTriage server, asynchronous or synchronous."""

from typing import Any

from .models import TriageAction, TriageObservation, TriageState
from .openenv_base import EnvClient, StepResult


class LogtriageEnv(EnvClient[TriageAction, TriageObservation, TriageState]):
    """One session on a server, over its WebSocket; OpenEnv's `AutoEnv` finds it by this name.

        with LogtriageEnv(base_url="http://127.0.0.1:8000").sync() as env:
            result = env.reset(task="cascading_failure", split="test", index=7)
            result = env.step(TriageAction(action_type="request_more_logs", value="user-db"))
            result.observation.text, result.reward, result.done
            env.state().score  # the named parts, once done

    In asynchronous code, leave out `sync()`. A mistake raises a `RuntimeError` with the server's
    message, and the session goes on. Without a server, a `ConnectionError` is raised.
    """

    def _step_payload(self, action: TriageAction) -> dict[str, Any]:
        return action.model_dump(exclude_defaults=True)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TriageObservation]:
        reward, done = payload["reward"], payload["done"]
        observation = TriageObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> TriageState:
        return TriageState(**payload)
