"""The OpenEnv types that a server and its clients exchange."""

from pydantic import Field

from .openenv_base import Action, Observation, State
from .play.actions import ACTION_TYPES
from .play.observation import CallTime, LineCount, Measure
from .world.call_graph import Service
from .world.telemetry import Alert, Metric


class TriageAction(Action):
    """One of the seven actions, flat: `value` is what it applies to, as in `restart:user-db`."""

    action_type: str = Field(max_length=64, description=f"one of {', '.join(ACTION_TYPES)}")
    value: str = Field(
        default="",
        max_length=256,
        description="P1 to P3, a service, a team, or remedy:service; empty for resolve and ignore",
    )
    confidence: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="how sure the agent is of the service it blames, or of ignoring",
    )
    reasoning: str = Field(
        default="",
        max_length=20_000,
        description="room for the agent's own words; neither scored nor kept",
    )


class TriageObservation(Observation):
    """What the agent sees.

    `text` holds all of it for a language model. The other fields hold the same for programs, and
    are None if the step did not bring them. `services` is the call graph, callers first; only the
    opening has it. Rows (see `play.observation`) are arrays in JSON, in the order of their fields.
    `notice` repeats what was done, not whether it was right; `error` explains an invalid action.
    """

    text: str = ""
    step: int = 0
    max_steps: int = 0
    notice: str = ""
    error: str = ""
    services: list[Service] | None = None
    alerts: list[Alert] | None = None
    metrics: list[Metric] | None = None
    logs: list[str] | None = None
    measures: list[Measure] | None = None
    calls: list[CallTime] | None = None
    counts: list[LineCount] | None = None


class TriageState(State):
    """The state of the episode. It tells nothing of the truth until the end, when it has a `score`.

    `task`, `split` and `index` open the same incident again. `closed_by` is `resolve`, `ignore` or
    `timeout`, and empty while it is open; `confidence` is what the agent stated with its answer.
    """

    task: str = ""
    split: str = ""
    index: int = 0
    max_steps: int = 0
    done: bool = False
    closed_by: str = ""
    confidence: float | None = None
    score: dict[str, float] = Field(default_factory=dict)
