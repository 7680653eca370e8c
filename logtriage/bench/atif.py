"""Trajectories in ATIF, the Agent Trajectory Interchange Format of the Harbor framework.

One document an episode: what the user said, what the agent did, what came of it, and at the end
what it was worth. The models below are the part of ATIF's schema that is used here, with its rules;
nothing is written that they do not let through. Version 1.7 of
https://harborframework.com/docs/trajectory-format, RFC 0001.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .. import __version__
from ..play.actions import Action
from ..play.conversation import NATIVE, protocol_of, tool_call, written_calls
from ..play.scoring import PARTS
from ..play.tools import tool_schemas


class _Model(BaseModel):
    """A field that the format does not know is a mistake."""

    model_config = ConfigDict(extra="forbid")


class ToolCall(_Model):
    """A call of a tool."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class Result(_Model):
    """What a call brought; `source_call_id` is that of a call of the same step."""

    source_call_id: str | None = None
    content: str


class Observation(_Model):
    """What a step's calls brought."""

    results: list[Result]


class Step(_Model):
    """A step of a trajectory. `llm_call_count` is 0 where no language model was asked."""

    step_id: int = Field(ge=1)
    source: Literal["system", "user", "agent"]
    message: str
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    llm_call_count: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.source != "agent" and self.tool_calls is not None:
            raise ValueError(f"tool_calls are an agent's, and the source is {self.source}")
        known = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id not in (None, *known):
                raise ValueError(f"no call of step {self.step_id} has id {result.source_call_id}")
        return self


class Agent(_Model):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None


class FinalMetrics(_Model):
    """What it cost, and in `extra` what it was worth."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_steps: int = Field(ge=0)
    extra: dict[str, Any]


class Trajectory(_Model):
    """An episode."""

    schema_version: Literal["ATIF-v1.7"] = "ATIF-v1.7"
    session_id: str
    trajectory_id: str
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    final_metrics: FinalMetrics
    extra: dict[str, Any]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, step in enumerate(self.steps, start=1):
            if step.step_id != number:
                raise ValueError(f"step {number} has step_id {step.step_id}; they count from 1")
        return self


def as_atif(line: dict[str, Any], verdict: str) -> dict[str, Any]:
    """A line of `evaluate --trajectories` as an ATIF document, checked against the schema.

    Args:
        line: as `journal` writes it.
        verdict: that of `replay`; kept in `extra`.

    Raises:
        ValueError: where the schema is not kept (pydantic's `ValidationError`).
    """
    row, talks = line["row"], bool(line["messages"])
    native = protocol_of(line["messages"], line["opening"]) is NATIVE
    steps = list(_talked(line["messages"], native) if talks else _acted(line))
    where = {name: row[name] for name in ("task", "split", "index", "attempt", "benchmark")}
    trajectory = Trajectory(
        session_id=f"{row['policy']}/{row['split']}",
        trajectory_id=name_of(row),
        agent=Agent(
            name=row["policy"],
            version=f"logtriage {__version__}",
            model_name=row["policy"] if talks else None,
            tool_definitions=tool_schemas() if talks else None,
        ),
        steps=[Step(step_id=number, **step) for number, step in enumerate(steps, start=1)],
        final_metrics=FinalMetrics(
            total_prompt_tokens=row["prompt_tokens"],
            total_completion_tokens=row["completion_tokens"],
            total_steps=len(steps),
            # another version of the benchmark may have had other parts
            extra={name: row.get(name) for name in ("score", *PARTS, "cost", "gate", "solved")},
        ),
        extra={**where, "closed_by": row["closed_by"], "error": row["error"], "replay": verdict},
    )
    return trajectory.model_dump(exclude_none=True, mode="json")


def name_of(row: dict[str, Any]) -> str:
    """A name for an episode that can be a file's; one that had to be changed ends in a digest, as
    others may come to the same.
    """
    parts = (row[name] for name in ("policy", "task", "split", "index", "attempt"))
    told = "_".join(map(str, parts))
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", told).strip("-.")
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return plain if plain == told else f"{plain}-{digest}"


def _talked(messages: list[dict[str, Any]], native: bool) -> Iterator[dict[str, Any]]:
    """The steps of a conversation, without their numbers; answers belong to the turn before. Where
    tools are `native`, what only looks like a call in a text is none.
    """
    at = 0
    while at < len(messages):
        message, at = messages[at], at + 1
        text = message.get("content") or ""
        if message["role"] != "assistant":
            source = "system" if message["role"] == "system" else "user"
            yield {"source": source, "message": text}
            continue
        told: list[str] = []
        while at < len(messages) and messages[at]["role"] != "assistant":
            told.append(messages[at].get("content") or "")
            at += 1
        calls = [_call(call["function"], at) for call in message.get("tool_calls") or ()]
        if not calls and not native:
            written = [call for call in written_calls(text) if call is not None]
            calls = [_call(call._asdict(), at) for call in written]
        yield _agent(text, calls, told, 1)


def _acted(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of an agent that does not talk, without their numbers."""
    yield {"source": "user", "message": line["opening"]}
    for number, step in enumerate(line["steps"]):
        try:
            calls = [
                _call(tool_call(Action.parse(step["action"], step["value"]))["function"], number)
            ]
        except KeyError:  # an action that there is not
            calls = [_call({"name": step["action"], "arguments": step["value"]}, number)]
        yield _agent("", calls, [step["observation"]], 0)


def _agent(
    message: str, calls: list[dict[str, Any]], told: list[str], asked: int
) -> dict[str, Any]:
    """An agent's step: answers are the calls' in turn where there are as many of both."""
    named = [f"{call['tool_call_id']}_{number}" for number, call in enumerate(calls)]
    calls = [{**call, "tool_call_id": name} for call, name in zip(calls, named, strict=True)]
    sources = named if len(named) == len(told) else [None] * len(told)
    results = [
        {"source_call_id": source, "content": text}
        for source, text in zip(sources, told, strict=True)
    ]
    step: dict[str, Any] = {"source": "agent", "message": message, "llm_call_count": asked}
    return {
        **step,
        "tool_calls": calls or None,
        "observation": {"results": results} if results else None,
    }


def _call(function: dict[str, Any], number: int) -> dict[str, Any]:
    """A call; arguments that are no object are kept beside."""
    arguments, extra = function["arguments"], None
    if not isinstance(arguments, dict):
        arguments, extra = {}, {"written": str(arguments)}
    return {
        "tool_call_id": f"call_{number}",
        "function_name": function["name"],
        "arguments": arguments,
        "extra": extra,
    }
