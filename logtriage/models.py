"""The OpenEnv types: what crosses the wire."""

from __future__ import annotations

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from .actions import ACTION_TYPES


class TriageAction(Action):
    """One of the seven actions, flat.

    | action_type | value |
    |---|---|
    | classify_severity | `P1`, `P2` or `P3` |
    | identify_root_cause | a service |
    | escalate | `sre`, `backend`, `dba` or `security` |
    | remediate | `remedy:service`, the remedy one of restart, rollback, scale, flush-cache, kill-query |
    | request_more_logs | a service, or `all` |
    | resolve, ignore | empty |
    """

    action_type: str = Field(max_length=64, description=f"one of {', '.join(ACTION_TYPES)}")
    value: str = Field(default="", max_length=256, description="what the action applies to; empty for resolve and ignore")
    confidence: float | None = Field(
        default=None, ge=0.0, le=1.0, description="how sure the agent is of the service it blames, or of ignoring"
    )
    reasoning: str = Field(
        default="", max_length=20_000, description="room for the agent's own words; neither scored nor kept"
    )


class TriageObservation(Observation):
    """What the agent sees. `text` is all of it as a language model reads it; the lists are the same for programs.

    `alerts` are `service metric value`, `metrics` rows of `service errors p95 usual-p95`, `logs` lines of
    `LEVEL service text`. Lists are empty when the step did not bring them. `reward` is 0 until the end, then the score.
    """

    text: str = ""
    step: int = 0
    max_steps: int = 0
    services: list[str] = Field(default_factory=list)
    alerts: list[str] = Field(default_factory=list)
    metrics: list[str] = Field(default_factory=list)
    logs: list[str] = Field(default_factory=list)
    error: str = ""


class TriageState(State):
    """Where the episode stands. Holds nothing of the truth before the end; then `score` has the named parts."""

    task: str = ""
    split: str = ""
    index: int = 0
    max_steps: int = 0
    done: bool = False
    score: dict[str, float] = Field(default_factory=dict)
