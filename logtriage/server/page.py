"""The page at /web, where an incident is played by clicking, without a script or a session.

The address holds the incident's coordinates and the actions so far. An episode is a pure function
of them, so the page plays it again at every click (milliseconds). Nothing is kept, visitors cannot
disturb each other, and a link can be sent to a colleague. `templates/` has its HTML and CSS.
"""

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from pydantic import ValidationError

from .. import REPOSITORY
from ..catalogue import last_incident, splits_of, tasks_on
from ..drawing import read_template
from ..environment import TriageEnvironment
from ..models import TriageAction
from ..play.actions import ALL_SERVICES, Action
from ..play.observation import SYSTEM_PROMPT
from ..recorded import CHOSEN, WHY, recorded_actions
from .comparison import ranking

router = APIRouter()

# Nothing may be loaded and nothing may run, even if something slips through the escaping.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "form-action 'self'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Link(NamedTuple):
    """A link to the page after one more action; `label` is what a screen reader says."""

    text: str
    label: str
    address: str


@router.get("/", include_in_schema=False)
@router.get("/web/", include_in_schema=False)
def to_page() -> RedirectResponse:
    return RedirectResponse("/web")


@router.get("/web", response_class=HTMLResponse)
def page(
    request: Request,
    task: str = CHOSEN[0],
    split: str = CHOSEN[1],
    index: str = str(CHOSEN[2]),
    did: Annotated[list[str], Query()] = [],  # noqa: B006 (FastAPI copies it)
    service: str = "",
) -> HTMLResponse:
    """The incident after the actions in `did`, with those on a chosen `service`; or status 400."""
    here = {"task": task, "split": split, "index": index}
    topology = request.app.state.topology
    tasks = tasks_on(topology)
    splits = dict.fromkeys(name for known in tasks for name in splits_of(known, topology))

    def answer(status: int = 200, **content: Any) -> HTMLResponse:
        choices = (("task", tasks), ("split", splits))
        template = read_template(__package__, "page.html.jinja")
        chosen = [*here.values()] == [*map(str, CHOSEN)] and topology is None
        always = {"here": here, "choices": choices, "repository": REPOSITORY}
        html = template.render(**always, why=WHY if chosen else "", **content)
        return HTMLResponse(html, status, _HEADERS)

    environment = TriageEnvironment(topology)
    try:
        number: Any = int(index) if index.isdecimal() else index  # the environment refuses text
        observation = environment.reset(task=task, split=split, index=number)
        for action in map(Action.from_text, did):
            observation = environment.step(
                TriageAction(action_type=action.type, value=action.value)
            )
    except ValidationError:
        return answer(400, error="An action of the link is too long; open the incident again.")
    except ValueError as error:
        return answer(400, error=str(error))

    seen = observation.model_dump()
    if observation.done:
        last = last_incident(task, split)
        following = {**here, "index": int(index) + 1 if int(index) < last else 0}
        rows = [
            (row, row.did == tuple(did), _address({**here, "did": row.did}))
            for row in ranking(task, split, number, topology, did)
        ]
        return answer(
            drawing=Markup(environment.render_web(seen)),  # escaped where it was drawn
            again=_address(here),
            following=_address(following),
            ranking=rows,
            recorded=topology is None and bool(recorded_actions(task, split, number)),
        )
    of_service, others = _links(here, did, service, environment.web_actions(seen))
    choose = {name: _address({**here, "did": did, "service": name}) for name in of_service}
    return answer(
        drawing=Markup(environment.render_web(seen, choose, service)),
        rules=SYSTEM_PROMPT,
        first=not did,
        chosen=service if service in of_service else "",
        of_chosen=of_service.get(service, []),
        others=others,
    )


def _links(
    here: dict[str, str], did: list[str], chosen: str, actions: Iterable[tuple[str, dict[str, Any]]]
) -> tuple[dict[str, list[Link]], dict[str, list[Link]]]:
    """The next actions: those on a service, by its name, and the others, by their type."""
    of_service: dict[str, list[Link]] = {}
    others: dict[str, list[Link]] = {}
    for label, action in actions:
        kind, value = action["action_type"], action["value"]
        # The fragment names the newest log lines: the browser scrolls and moves the focus there.
        after = {**here, "did": [*did, Action.parse(kind, value).text]}
        address = _address(after | ({"service": chosen} if chosen else {})) + "#log"
        remedy, _, service = value.partition(":")  # the names of real services hold colons
        if kind == "remediate":
            of_service[service].append(Link(remedy, label, address))
        elif kind == "identify_root_cause":
            of_service[value] = [Link("root cause", label, address)]
        elif kind == "request_more_logs" and value != ALL_SERVICES:
            of_service[value].insert(0, Link("logs", label, address))
        else:
            others.setdefault(kind, []).append(Link(value or kind, label, address))
    return of_service, others


def _address(query: dict[str, Any]) -> str:
    return f"?{urlencode(query, doseq=True)}"
