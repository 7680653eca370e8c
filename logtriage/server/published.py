"""What `/openapi.json` tells of the plain routes: OpenEnv's description, made true of this
environment.

OpenEnv describes routes for any environment: arguments and observations are objects of any kind,
and some answers are left out. Here a program that keeps to the document is understood, and every
answer that it can get is in it.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from ..environment import NUMBERED
from ..models import TriageAction, TriageObservation
from ..real.cases import SOURCES
from ..real.door import last_incident, tasks_on
from ..real.real_episode import REAL
from ..world.tasks import MAX_INDEX, TASKS, splits_on
from ..world.topology import Topology
from .guard import MAX_MESSAGE

PLACE = "#/components/schemas/{model}"


def publish(app: FastAPI, topology: Topology | None = None) -> None:
    """Correct the document that `app` keeps and serves.

    The routes it describes must be there already. `topology`: the call graph that is served, None
    for the default.
    """
    splits = splits_on(topology)
    document = app.openapi()
    schemas, paths = document["components"]["schemas"], document["paths"]
    models: Any = [(TriageAction, "validation"), (TriageObservation, "validation")]
    schemas |= models_json_schema(models, ref_template=PLACE)[1]["$defs"]
    schemas["Refusal"] = {
        "type": "object",
        "properties": {"detail": {"type": "string"}},
        "required": ["detail"],
    }

    document["info"]["title"] = "LogTriage"
    document["info"]["description"] = (
        "Incidents to trace to their root. An episode is played on the WebSocket `/ws`, as"
        " OpenEnv's clients do, or by a person on the page `/web`. Plain HTTP keeps no session:"
        " `/reset` shows an opening, `/step` is refused."
    )
    reset = schemas["ResetRequest"]
    index = {"type": "integer", "minimum": 0, "maximum": MAX_INDEX}
    reset["properties"]["seed"]["anyOf"] = [index, {"type": "null"}]
    tasks = tasks_on(topology)
    reset["properties"]["task"] = {"enum": [*tasks, None]}
    reset["properties"]["split"] = {"type": "string", "default": "train"}
    reset["properties"]["index"] = {"anyOf": [index, {"type": "null"}]}
    if REAL in tasks:  # of real incidents there is a number, and no default
        recorded = [
            {"properties": {"split": {"const": source}, "index": {**index, "maximum": last}}}
            for source in SOURCES
            for last in (last_incident(REAL, source),)
        ]
        reset["if"] = {"properties": {"task": {"const": REAL}}, "required": ["task"]}
        reset["then"] = {"anyOf": recorded, "required": ["split", "index"]}
        reset["else"] = {"properties": {"split": {"enum": splits}}}
    else:
        reset["properties"]["split"] |= {"enum": splits}
    reset["additionalProperties"] = False
    reset["examples"] = [{"task": "cascading_failure", "split": "test", "index": 7}, {}]
    schemas["ResetResponse"]["properties"]["observation"] = _reference("TriageObservation")
    del paths["/reset"]["post"]["responses"]["200"]["content"]["application/json"]["example"]

    # Each request has an environment of its own, in which nothing was reset: a step is always
    # refused.
    schemas["StepRequest"]["properties"]["action"] = _reference("TriageAction")
    schemas["StepRequest"]["examples"] = [
        {"action": {"action_type": "request_more_logs", "value": "all"}}
    ]
    step = paths["/step"]["post"]
    step["description"] = (
        "Refused: plain HTTP keeps no session. Steps are taken on the WebSocket `/ws`."
    )
    step["responses"] = {"422": _answer("Nothing was reset, or no action", "HTTPValidationError")}

    for name in ("ListTasksRequest", "NumTasksRequest", "GetTaskRequest", "GetTaskRangeRequest"):
        schemas[name]["properties"]["split"]["enum"] = splits
    schemas["GetTaskRequest"]["properties"]["index"] |= {
        "minimum": 0,
        "maximum": NUMBERED * len(TASKS) - 1,
    }

    for path, operations in paths.items():
        for method, operation in operations.items():
            if method == "post":
                operation["responses"]["400"] = _answer(
                    "The body is no JSON, or no task has this index", "Refusal"
                )
                operation["responses"]["413"] = _answer(
                    f"The body has more than {MAX_MESSAGE} bytes", "Refusal"
                )
            if "{env_name}" in path:
                operation["parameters"][0]["schema"]["enum"] = ["logtriage"]
                operation["responses"]["404"] = _answer("Another environment's name", "Refusal")


def _reference(model: str) -> dict[str, str]:
    return {"$ref": PLACE.format(model=model)}


def _answer(description: str, model: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": _reference(model)}},
    }
