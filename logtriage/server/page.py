"""The page at /web: play an incident by clicking. No script and no session: an episode is its link.

The address holds the incident's coordinates and what was done. Since an incident is a pure function
of them, the page plays it again at every click (milliseconds): visitors cannot meet, nothing is
kept, and a link can be sent to a colleague.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from ..environment import TriageEnvironment
from ..models import TriageAction
from ..play.actions import ALL_SERVICES
from ..play.prompts import SYSTEM_PROMPT
from ..world.tasks import ALL_TASKS, SPLITS

router = APIRouter()

# Nothing may be loaded and nothing may run, whatever should ever slip through the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_DOT = "%3Csvg xmlns='http://www.w3.org/2000/svg'%3E%3Ccircle cx='8' cy='8' r='8' fill='%23D55E00'/%3E%3C/svg%3E"
_STYLE = """
body { margin: 0; background: #f5f5f7; color: #1d1d1f; font: 14px/1.45 system-ui, sans-serif; color-scheme: light; }
main { max-width: 1240px; margin: 0 auto; padding: 14px 18px 40px; }
h1 { font-size: 20px; margin: 0; } h2 { font-size: 13px; margin: 14px 0 4px; } h2:first-child { margin-top: 2px; }
header { display: flex; flex-wrap: wrap; gap: 8px 22px; align-items: baseline; margin-bottom: 12px; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; } input { width: 72px; }
select, input, button, .do { font: 13px system-ui, sans-serif; color: #1d1d1f; background: #fff; border: 1px solid #c7c7cc;
  border-radius: 6px; padding: 3px 8px; text-decoration: none; white-space: nowrap; }
.do { display: inline-block; } .do:hover, button:hover { background: #0072B2; border-color: #0072B2; color: #fff; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) max-content; gap: 16px; align-items: start; }
.card { background: #fff; border: 1px solid #e0e0e4; border-radius: 10px; padding: 12px 16px; }
.actions { position: sticky; top: 8px; max-height: calc(100vh - 44px); overflow: auto; }
.actions table { border-collapse: collapse; }
.actions td { padding: 1px 3px 1px 0; font: 12px ui-monospace, monospace; }
.actions td .do { font-size: 12px; padding: 2px 6px; }
.wrong { color: #B00020; } details { margin-top: 14px; } summary { cursor: pointer; font-size: 13px; }
details pre { max-width: 600px; white-space: pre-wrap; font-size: 12px; }
@media (max-width: 1000px) {
  .columns { grid-template-columns: minmax(0, 1fr); } .actions { position: static; max-height: none; }
  .actions tr { display: block; margin: 6px 0; } .actions td { display: inline-block; }
}
"""


@router.get("/", include_in_schema=False)
@router.get("/web/", include_in_schema=False)
def to_page() -> RedirectResponse:
    """The page, from where a browser arrives."""
    return RedirectResponse("/web")


@router.get(
    "/web",
    response_class=HTMLResponse,
    responses={400: {"description": "A page that says what is wrong."}},
)
def page(
    request: Request,
    task: Annotated[
        str, Query(description="Task of the incident.", json_schema_extra={"enum": list(ALL_TASKS)})
    ] = "cascading_failure",
    split: Annotated[
        str, Query(description="Split of the incident.", json_schema_extra={"enum": list(SPLITS)})
    ] = "train",
    index: Annotated[str, Query(description="Number of the incident.")] = "0",
    did: Annotated[
        list[str] | None, Query(description="Each action taken, `action_type:value`.")
    ] = None,
) -> HTMLResponse:
    """The incident as it stands after these actions, and every next action as a link."""
    environment, done = TriageEnvironment(request.app.state.topology), did or []
    try:
        observation = environment.reset(
            task=task, split=split, index=int(index) if index.isdecimal() else index
        )
        for one in done:
            action_type, _, value = one.partition(":")
            observation = environment.step(TriageAction(action_type=action_type, value=value))
    except ValidationError:
        return _answer(
            task,
            split,
            index,
            '<p class="wrong">An action of the link is too long; open the incident anew.</p>',
            400,
        )
    except ValueError as error:
        return _answer(task, split, index, f'<p class="wrong">{escape(str(error))}</p>', 400)
    seen = observation.model_dump()
    drawing = f'<div class="card">{environment.render_web(seen)}</div>'
    here = {"task": task, "split": split, "index": index}
    actions = (
        _actions(here, done, environment.web_actions(seen))
        if not observation.done
        else _after(here)
    )
    return _answer(
        task,
        split,
        index,
        f'<div class="columns">{drawing}<div class="card actions">{actions}</div></div>',
    )


def _actions(
    here: dict[str, str], done: list[str], actions: Iterable[tuple[str, dict[str, Any]]]
) -> str:
    """Links to the page after each action: a row a service, and rows for the questions that name
    none.
    """

    def link(label: str, action: dict[str, Any], text: str) -> str:
        address = urlencode(
            {**here, "did": [*done, f"{action['action_type']}:{action['value']}".rstrip(":")]},
            doseq=True,
        )
        return f'<a class="do" href="?{escape(address)}" aria-label="{escape(label)}">{escape(text)}</a>'

    by_service: dict[str, list[str]] = {}
    rows: dict[str, list[str]] = {}
    for label, action in actions:
        kind, value = action["action_type"], action["value"]
        remedy, _, service = value.rpartition(":")
        if kind == "remediate":
            by_service[service].append(link(label, action, remedy))
        elif kind == "identify_root_cause":
            by_service[value] = [link(label, action, "root cause")]
        elif kind == "request_more_logs" and value != ALL_SERVICES:
            by_service[value].insert(0, link(label, action, "logs"))
        else:
            rows.setdefault(kind, []).append(link(label, action, value or kind))
    table = "".join(
        f"<tr><td>{escape(name)}&nbsp;</td>{''.join(f'<td>{one}</td>' for one in links)}</tr>"
        for name, links in by_service.items()
    )
    return (
        f"<h2>Read the logs of a service, name it the root cause, or remedy it</h2><table>{table}</table>"
        f"<h2>Read a little of everything</h2>{' '.join(rows['request_more_logs'])}"
        f"<h2>How bad is it?</h2>{' '.join(rows['classify_severity'])}<h2>Whom to page?</h2>{' '.join(rows['escalate'])}"
        f"<h2>Close it: fixed, or a false alarm</h2>{' '.join(rows['resolve'] + rows['ignore'])}"
        f"<details><summary>The rules, as a model is told them</summary><pre>{escape(SYSTEM_PROMPT)}</pre></details>"
    )


def _after(here: dict[str, str]) -> str:
    again, following = urlencode(here), urlencode({**here, "index": int(here["index"]) + 1})
    return (
        f'<h2>Closed</h2><a class="do" href="?{escape(again)}">play it again</a> '
        f'<a class="do" href="?{escape(following)}">the next incident</a>'
    )


def _answer(task: str, split: str, index: str, body: str, status: int = 200) -> HTMLResponse:
    def choice(name: str, values: Iterable[str], chosen: str) -> str:
        options = "".join(
            f"<option{' selected' if value == chosen else ''}>{value}</option>" for value in values
        )
        return f'<label>{name} <select name="{name}">{options}</select></label>'

    number = (
        f'<label>incident <input name="index" inputmode="numeric" value="{escape(index)}"></label>'
    )
    choices = choice("task", ALL_TASKS, task) + choice("split", SPLITS, split)
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>LogTriage</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:image/svg+xml,{_DOT}"><style>{_STYLE}</style></head><body><main>'
        f"<header><h1>LogTriage</h1><span>Find the service where the trouble began.</span>"
        f'<form action="web">{choices}{number}<button>Open</button></form></header>{body}</main></body></html>',
        status,
        _HEADERS,
    )
