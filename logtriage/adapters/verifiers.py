"""Incidents for PrimeIntellect's `verifiers`: a taskset, the harness that plays it, and the tools
for other harnesses; docs/agents.md has the commands.

It is for `verifiers.v1` of version 0.3.1; 0.4.0 needs mcp 2, with which OpenEnv fails.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import wraps
from inspect import getdoc
from itertools import product
from typing import Any, cast

import verifiers.v1 as vf
from openai import AsyncOpenAI

from ..play.actions import ACTION_TYPES
from ..play.conversation import answers, from_wire, to_wire
from ..play.episode import Episode, final_score, incident_id
from ..play.observation import SYSTEM_PROMPT
from ..play.tools import ToolSession, TriageTools, tool_schemas
from ..world.tasks import TASKS

# one of each kind: verifiers finds them by their base classes
__all__ = ["TriageEnv", "TriageHarness", "TriageTaskset"]


class TriageTasksetConfig(vf.TasksetConfig):
    """Which incidents: `first` to `first + episodes - 1` of each of `tasks`, from `split`."""

    tasks: tuple[str, ...] = tuple(TASKS)
    split: str = "train"
    episodes: int = 200
    first: int = 0


class TriageData(vf.TaskData):
    """The coordinates of an incident (see `sample_incident`); `prompt` is its opening."""

    task: str
    split: str
    index: int


class TriageState(vf.State):
    """An incident and the calls of the served tools so far; all else follows from these."""

    incident: tuple[str, str, int] = ("", "", 0)
    calls: tuple[tuple[str, dict[str, str]], ...] = ()
    closed: bool = False

    def replay(self) -> ToolSession:
        session = ToolSession(Episode.open(*self.incident))
        for call in self.calls:
            session.call(*call)
        return session


class TriageToolset(vf.Toolset[vf.SharedToolsetConfig, TriageState], TriageTools):
    """The tools on an MCP server, for harnesses other than ours: one process for all rollouts."""

    TOOL_PREFIX = "logtriage"

    def register(self, mcp: Any) -> None:
        turn = asyncio.Lock()
        for name in ACTION_TYPES:
            tool = getattr(self, name)
            mcp.add_tool(_in_turn(self._with_state(tool), turn), name, description=getdoc(tool))

    def _call(self, name: str, **arguments: Any) -> str:
        session = self.state.replay()
        answer = session.call(name, arguments)
        self.state.calls += ((name, arguments),)
        self.state.closed = session.episode.done
        return answer


def _in_turn(tool: Callable, turn: asyncio.Lock) -> Callable:
    """Let the calls of a tool wait for one another: of two at once, one would lose its step."""

    @wraps(tool)
    async def call(**arguments: Any) -> Any:
        async with turn:
            return await tool(**arguments)

    return call


class TriageTask(vf.Task[TriageData, TriageState]):
    """One incident. The total is the reward; every number of the score is an unweighted metric."""

    async def setup(self, trace: vf.Trace) -> None:
        trace.state.incident = (self.data.task, self.data.split, self.data.index)

    @vf.stop
    async def closed(self, trace: vf.Trace) -> bool:
        return trace.state.closed

    async def finalize(self, trace: vf.Trace) -> None:
        if "score" not in trace.info:  # if another harness played
            episode = trace.state.replay().episode
            episode.abandon()
            trace.info["score"] = final_score(episode)._asdict()

    @vf.reward
    async def total(self, trace: vf.Trace) -> float:
        return trace.info["score"]["total"]

    @vf.metric
    async def parts(self, trace: vf.Trace) -> dict[str, float]:
        return trace.info["score"]


class TriageTaskset(vf.Taskset[TriageTask, TriageTasksetConfig]):
    """Incidents sorted by index, with tasks in turn, so that the first few have some of each."""

    def load(self) -> Iterator[TriageTask]:
        config = self.config
        indices = range(config.first, config.first + config.episodes)
        for number, (index, task) in enumerate(product(indices, config.tasks)):
            episode = Episode.open(task, config.split, index)
            data = TriageData(
                idx=number,
                name=incident_id(episode),
                task=task,
                split=config.split,
                index=index,
                system_prompt=SYSTEM_PROMPT,
                prompt=ToolSession(episode).opening,
            )
            yield TriageTask(data, config.task)

    @classmethod
    def toolsets(cls, config: TriageTasksetConfig) -> list[vf.Toolset]:
        return [TriageToolset(vf.SharedToolsetConfig())]


class TriageHarness(vf.Harness[vf.HarnessConfig]):
    """Plays the incident in process, as `ConversationPolicy` does. It plays no other tasks."""

    APPENDS_SYSTEM_PROMPT, EXECUTES_CODE, NEEDS_CONTAINER = True, False, False
    SUPPORTS_MCP = True  # verifiers demands it beside a toolset; this harness needs no server

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        url: str,
        secret: str,
        mcp: dict,
        data: TriageData,
    ) -> vf.ProgramResult:
        episode = Episode.open(data.task, data.split, data.index)
        session, schemas = ToolSession(episode), cast(Any, tool_schemas())
        messages: list[Any] = [
            {"role": "system", "content": data.system_prompt},
            {"role": "user", "content": data.prompt},
        ]
        try:
            async with AsyncOpenAI(base_url=url, api_key=secret) as client:
                while not episode.done:
                    reply = await client.chat.completions.create(
                        model=ctx.model, messages=messages, tools=schemas
                    )
                    message = reply.choices[0].message
                    answered = answers(session, from_wire(message))
                    if not answered:
                        break
                    # It goes back as it came: for training, each turn must continue the one before.
                    messages += [message.model_dump(exclude_none=True), *map(to_wire, answered)]
        finally:  # the model walked away, or verifiers' limit of turns, tokens or time was reached
            episode.abandon()
            trace.info["score"] = final_score(episode)._asdict()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class TriageEnvConfig(vf.SingleAgentEnvConfig):
    """One agent. The harness runs no code of the model's, so a subprocess is sandbox enough."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class TriageEnv(vf.SingleAgentEnv, vf.Env[TriageEnvConfig]):
    """One agent plays one incident per episode."""

    def shared_tools(self) -> AbstractAsyncContextManager[dict]:
        """Serve the tools if another harness plays."""
        harness = self.config.agent_harnesses()["agent"]
        return nullcontext({}) if harness.id == "logtriage" else super().shared_tools()


def load_environment(**options: object) -> vf.Env:
    """The environment over the incidents that `options` name: fields of `TriageTasksetConfig`."""
    return vf.load_environment(TriageEnvConfig(taskset={"id": "logtriage", **options}))


if __name__ == "__main__":  # how verifiers starts the server
    TriageToolset.run()
