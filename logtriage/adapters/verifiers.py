"""Incidents for PrimeIntellect's `verifiers`: a taskset, and the harness that plays it;
docs/agents.md has the commands.

It is for `verifiers.v1` of version 0.3.1; 0.4.0 needs mcp 2, with which OpenEnv fails.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import verifiers.v1 as vf
from openai import AsyncOpenAI

from ..play.conversation import answers, from_wire, to_wire
from ..play.episode import Episode, final_score, incident_id
from ..play.observation import SYSTEM_PROMPT
from ..play.tools import ToolSession, tool_schemas
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


class TriageTask(vf.Task[TriageData, vf.State]):
    """One incident. The total is the reward; every number of the score is an unweighted metric."""

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


class TriageHarness(vf.Harness[vf.HarnessConfig]):
    """Plays the incident in process, as `ConversationPolicy` does. It plays no other tasks."""

    APPENDS_SYSTEM_PROMPT, EXECUTES_CODE, NEEDS_CONTAINER = True, False, False

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


def load_environment(**options: object) -> vf.Env:
    """The environment over the incidents that `options` name: fields of `TriageTasksetConfig`."""
    return vf.load_environment(TriageEnvConfig(taskset={"id": "logtriage", **options}))
