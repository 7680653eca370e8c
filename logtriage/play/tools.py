"""The seven actions as tool calls of a language model, in training and evaluation alike.

`ToolSession` plays one incident by calls of (name, arguments); `TriageTools` adapts it to TRL:
`GRPOTrainer(..., environment_factory=TriageTools)`.
"""

import inspect
import time
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Any

from ..world.call_graph import CallGraph
from .actions import ACTION_ARGUMENTS, ACTION_TYPES, Action, quoted
from .episode import BaseEpisode, Episode, OpenEpisode, final_score
from .observation import CLOSED, Observation, render
from .renaming import Names, renamed_graph, renamed_observation

# What TRL's trainer subtracts for each call that is not a valid action; without it, training drifts
# to call spam. Every other interface pays the total of the score (docs/benchmark.md).
MALFORMED_COST = 0.05

SIGNATURES = {
    name: Signature([Parameter(word, Parameter.POSITIONAL_OR_KEYWORD) for word in arguments])
    for name, arguments in ACTION_ARGUMENTS.items()
}


class ToolSession:
    """One newly opened incident, played by tool calls, each of which is a step. With `names`, the
    agent reads and calls services by those names, and never sees the real ones.
    """

    def __init__(self, episode: BaseEpisode, names: Names | None = None) -> None:
        self.episode = episode
        graph = episode.incident.topology
        self.names = names(episode) if names else {}  # from real ones; empty if they are the same
        self._real = {name: real for real, name in self.names.items()}
        graph = renamed_graph(graph, self.names) if self.names else graph
        self.services = graph.names  # as the agent reads them
        self.opening = self._rendered(episode.opening, graph)  # what the agent reads first
        self.malformed = 0  # invalid calls; callers may add those that never get here
        self.late = 0  # calls after the incident closed; the others are in `episode.history`
        self.seconds = 0.0  # spent in the simulator

    def call(self, name: str, arguments: object) -> str:
        """Answer a call; a malformed one costs a step, and its answer says what is wrong."""
        if self.episode.done:
            self.malformed += 1
            self.late += 1
            return CLOSED
        if name not in SIGNATURES:
            known = ", ".join(ACTION_TYPES)
            return self.refuse(f"unknown tool {quoted(name)}; choose one of {known}")
        if not isinstance(arguments, dict):
            got = type(arguments).__name__
            return self.refuse(f"arguments of {name} must be a JSON object, got {got}")
        try:
            bound = SIGNATURES[name].bind(**arguments)
        except TypeError as error:
            takes = ", ".join(ACTION_ARGUMENTS[name]) or "nothing"
            return self.refuse(f"{name}: {error}; it takes {takes}")
        if {*map(str, bound.args)} & (self.names.keys() - self._real.keys()):
            # A real name; it is not repeated, since the agent must not read it.
            return self.refuse(f"unknown service; choose one of {', '.join(self.services)}")
        began = time.perf_counter()
        # A value that is not text is turned into text, and treated like any other.
        value = ":".join(self._real.get(str(word), str(word)) for word in bound.args)
        observation = self.episode.act(Action.parse(name, value))
        answer = self._rendered(observation)
        self.seconds += time.perf_counter() - began
        self.malformed += bool(observation.error)
        return answer

    def refuse(self, error: str) -> str:
        """Answer something that was not a tool call; it costs a step, like every invalid action."""
        self.malformed += 1
        return self._rendered(self.episode.refuse(error))

    def _rendered(self, observation: Observation, opening: CallGraph | None = None) -> str:
        """Render an observation as the agent reads it; the first also shows the graph `opening`."""
        if self.names:
            graph = self.episode.incident.topology
            observation = renamed_observation(observation, graph, self.names)
        return render(observation, opening)

    def reward(self) -> float:
        """TRL's training reward: the total, after `abandon`, less a cost per malformed call."""
        self.episode.abandon()
        return final_score(self.episode).total - MALFORMED_COST * self.malformed


class TriageTools:
    """A `ToolSession` as TRL wants it: every public method but `reset` and `get_reward` is a tool.
    The trainer uses an instance for many incidents; `session` belongs to the latest.
    """

    def __init__(
        self, open_episode: OpenEpisode = Episode.open, names: Names | None = None
    ) -> None:
        self._open_episode, self._names = open_episode, names
        self.session: ToolSession | None = None

    def reset(self, task: str, split: str, index: int, **row: Any) -> str:
        """Open the incident of a dataset row, whose other columns are ignored."""
        began = time.perf_counter()
        if self.session is not None:
            self.session.episode.leave()
        self.session = ToolSession(self._open_episode(task, split, int(index)), self._names)
        self.session.seconds = time.perf_counter() - began
        return self.session.opening

    def get_reward(self) -> float:
        """See `ToolSession.reward`."""
        return self._open_session().reward()

    def classify_severity(self, severity: str) -> str:
        """State how bad it is for users.

        Args:
            severity: P1, P2 or P3.
        """
        return self._call("classify_severity", severity=severity)

    def identify_root_cause(self, service: str) -> str:
        """Name the service where the trouble began.

        Args:
            service: Name of the service.
        """
        return self._call("identify_root_cause", service=service)

    def escalate(self, team: str) -> str:
        """Page a team.

        Args:
            team: sre, backend, dba or security.
        """
        return self._call("escalate", team=team)

    def remediate(self, remedy: str, service: str) -> str:
        """Apply a remedy to a service.

        Args:
            remedy: restart, rollback, scale, flush-cache or kill-query.
            service: Name of the service.
        """
        return self._call("remediate", remedy=remedy, service=service)

    def request_more_logs(self, service: str) -> str:
        """Read recent lines of a service.

        Args:
            service: Name of the service, or all.
        """
        return self._call("request_more_logs", service=service)

    def resolve(self) -> str:
        """Close the incident."""
        return self._call("resolve")

    def ignore(self) -> str:
        """Close the incident as a false alarm."""
        return self._call("ignore")

    def _call(self, name: str, **arguments: object) -> str:
        session = self._open_session()
        over = session.episode.done
        answer = session.call(name, arguments)
        if over:  # TRL expects a tool to raise if a call had no effect
            raise ValueError(answer)
        return answer

    def _open_session(self) -> ToolSession:
        if self.session is None:
            raise ValueError("no incident is open; call reset first")
        return self.session


def described_tools() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield name, meaning and arguments' meanings of each tool, from `TriageTools`' docstrings."""
    for name in sorted(ACTION_ARGUMENTS):
        text = inspect.getdoc(getattr(TriageTools, name)) or ""
        description, _, lines = text.partition("\n\nArgs:\n")
        yield name, description, dict(line.strip().split(": ", 1) for line in lines.splitlines())


def tool_schemas() -> list[dict[str, Any]]:
    """JSON schemas of the tools, sorted by name, as transformers' `get_json_schema` makes them."""
    schemas = []
    for name, description, arguments in described_tools():
        properties = {
            argument: {"type": "string", "description": meaning}
            for argument, meaning in arguments.items()
        }
        parameters: dict[str, Any] = {"type": "object", "properties": properties}
        if arguments:
            parameters["required"] = list(arguments)
        function = {"name": name, "description": description, "parameters": parameters}
        schemas.append({"type": "function", "function": {**function, "return": {"type": "string"}}})
    return schemas
