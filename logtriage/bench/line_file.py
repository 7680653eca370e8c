"""The shape of a line of `evaluate --trajectories`: who reads one by others begins here.

Only the shape is looked at. Whether what a line tells is so, `replay` finds out.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..play.conversation import is_deep

MOST_STEPS = 1_000  # of a line that are looked at; no incident is as long
Scalar = str | int | float | bool | None


class Row(BaseModel):
    """A row: what is used by name, and other columns that hold one plain value each."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Scalar] = Field(init=False)

    task: str
    split: str
    index: int
    policy: str
    attempt: int
    benchmark: str
    closed_by: str
    error: str
    score: float | None
    prompt_tokens: int | None = Field(ge=0)
    completion_tokens: int | None = Field(ge=0)


class Step(BaseModel, extra="forbid"):
    """An action, and the text that it brought."""

    action: str
    value: str
    confidence: float | None
    observation: str


class Function(BaseModel, extra="allow"):
    """A tool that was called."""

    name: str
    arguments: Any

    @field_validator("arguments")
    @classmethod
    def _flat(cls, arguments: Any) -> Any:
        if is_deep(arguments):
            raise ValueError("the arguments are nested deeper than any that is kept")
        return arguments


class Call(BaseModel, extra="allow"):
    """A call of a tool."""

    function: Function


class Message(BaseModel, extra="allow"):
    """A message of a conversation."""

    role: str
    content: str | None = None
    tool_calls: list[Call] | None = None


class Line(BaseModel, extra="forbid"):
    """A line of a file."""

    row: Row
    opening: str
    steps: list[Step] = Field(max_length=MOST_STEPS)
    messages: list[Message]


def read_line(line: Any) -> Line:
    """A line as it is used; `ValueError` that says what is wrong with its shape."""
    try:
        return Line.model_validate(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"no trajectory: {where}: {first['msg']}") from None
