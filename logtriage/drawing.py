"""An incident as HTML, for a page: what its agent was shown so far, and the score at the end.

`draw` needs only what was shown, so it cannot give the answer away. `templates/` has the HTML and
its style, without scripts. Numbers or words say what the colours do, too.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from .play.actions import Action
from .play.episode import Answer, Episode, Step, final_score
from .play.observation import Observation
from .play.scoring import WEIGHTS, Record, Score
from .world.call_graph import CallGraph
from .world.incidents import Incident
from .world.tasks import PAR_STEPS
from .world.telemetry import ALERT_ERRORS, ALERT_SLOWDOWN, Alert, Metric
from .world.wording import Reading, read_line

# Shares of failed requests, and slowdowns, at which a service is drawn as failing or suffering.
FAILING = (ALERT_ERRORS, ALERT_SLOWDOWN)
SUFFERING = (0.01, 1.5)
# Maps the first word of a log line to a class in drawing.css; lines of other levels have none.
LEVELS = {"ERROR": "error", "CRIT": "error", "FATAL": "error", "PANIC": "error", "WARN": "warning"}
# Pixels of the call graph. A box holds its service's name, and at least 20 characters of numbers.
CHARACTER, PADDING, COLUMN_GAP, ROW_HEIGHT, MARGIN = 8.5, 10, 44, 60, 4


class Box(NamedTuple):
    """A service of the call graph."""

    service: str
    x: int  # of its left edge, in pixels
    y: int  # of its middle
    alerted: bool
    metric: Metric | None  # the newest
    step: int | None  # at which it was shown

    @property
    def health(self) -> str:
        """`failing`, `suffering` or `healthy` by errors and slowdown; `unseen` without a metric."""
        if self.metric is None:
            return "unseen"
        errors, slowdown = (self.metric.errors or 0.0) / 100.0, self.metric.slowdown or 1.0
        for name, (most_errors, most_slowdown) in (("failing", FAILING), ("suffering", SUFFERING)):
            if errors >= most_errors or slowdown >= most_slowdown:
                return name
        return "healthy"


def draw(
    topology: CallGraph,
    opening: Observation,
    history: Sequence[Step] = (),
    verdict: str = "",
    links: Mapping[str, str] | None = None,
    marked: str = "",
) -> str:
    """Draw the episode so far as an HTML fragment, with `draw_parts`'s verdict once it is over.
    `links` say where a click on a service leads; the one that is `marked` has a thick frame.
    """
    newest: dict[str, tuple[Metric, int]] = {}
    alerts: list[Alert] = []
    log = []
    for action, seen in (Step(None, opening), *history):
        newest |= {row.service: (row, seen.step) for row in seen.metrics or ()}
        alerts = alerts if seen.alerts is None else seen.alerts
        done = "" if seen is opening else "invalid action"
        log.append((f"{action.type} {action.value}" if action else done, seen, by_level(seen)))
    return read_template(__package__, "drawing.html.jinja").render(
        last=log[-1][1],
        alerts=alerts,
        graph=place(topology, newest, {alert.service for alert in alerts}),
        log=log[::-1],
        verdict=verdict,
        failing=FAILING,
        links=links or {},
        marked=marked,
    )


def gate_reason(episode: Episode) -> str:
    """Why the gate made the score 0, and which line told of the fault; empty if it did not."""
    score, record, incident = final_score(episode), episode.record, episode.incident
    injection = incident.injection
    if score.gate > 0.0 or injection is None:
        return ""
    paged = "the wrong team" if record.teams else "nobody"
    why = f"the right root cause, and {paged} paged"
    why = "a real fault was ignored" if record.closed_by == "ignore" else why
    points = sum(weight * getattr(score, part) for part, weight in WEIGHTS.items()) - score.cost
    root, fault = incident.topology.services[injection.position], injection.fault.name
    whose = f"{incident.team}, the owner" if incident.team == root.owner else incident.team
    why += f". It was for {whose}; {_proof(episode, root.name, fault)}"
    return f"The gate makes it 0, and not {max(0.0, points):.2f}: {why}"


def _proof(episode: Episode, root: str, fault: str) -> str:
    """The line that tells of the fault: one that was shown, else one that the root has to show."""
    cause, proof = cause_of(episode.incident), (root, Reading("proof", fault))
    if proving := _first_line(episode, proof):
        step, line = proving
        return f'step {step} showed the {cause}: "{line}"'
    asked = Episode(episode.incident)
    while not asked.done:
        asked.act(Action("request_more_logs", (root,)))
    if proving := _first_line(asked, proof):
        return f'{root} shows, if asked, the {cause}: "{proving[1]}"'
    return f"no line tells of the {cause}, even if {root} is asked at every step"


def _first_line(episode: Episode, meaning: tuple[str, Reading]) -> tuple[int, str] | None:
    """The first line with this meaning that an episode has shown, after its step."""
    for observation in (episode.opening, *(step.observation for step in episode.history)):
        for line in observation.lines or ():
            if read_line(line) == meaning:
                return observation.step, line
    return None


def score_parts(score: Score, record: Record, incident: Incident) -> list[Answer]:
    """The parts of the score, with the first answer to each question beside the truth."""
    real = incident.injection is not None
    did = " ".join(record.remediations[0] if record.remediations else ())
    rows = [
        (record.severity, incident.severity),
        (record.root_cause, incident.root),
        (did, f"{incident.remedy} {incident.root}" if real else ""),
        (record.team, incident.team),
        (f"{record.steps} steps, {record.closed_by}", f"{PAR_STEPS[real]} steps"),
    ]
    return [
        Answer(name, *row, value, weight)
        for (name, weight), row, value in zip(WEIGHTS.items(), rows, score[:5], strict=True)
    ]


def cause_of(incident: Incident) -> str:
    """The cause of an incident in words."""
    if incident.injection is None:
        return "a false alarm, to be ignored"
    return incident.injection.fault.name.replace("-", " ")


def draw_parts(score: Score, parts: Sequence[Answer], cause: str, gate: str = "") -> Markup:
    """Draw a score and its parts, with the cause and, if the gate closed, the reason."""
    verdict = read_template(__package__, "verdict.html.jinja")
    return Markup(verdict.render(score=score, parts=parts, gate=gate, cause=cause))


@cache
def read_template(package: str, file: str) -> Template:
    """Read a file in `templates/` of a package; whatever is filled into HTML is escaped."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=".html" in file,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(file)


def place(
    topology: CallGraph, newest: Mapping[str, tuple[Metric, int]], alerted: set[str]
) -> dict[str, Any]:
    """Place the boxes and wires of a call graph, callers on the left, and return its size, too."""
    depths = list(topology.depth.values())
    columns = max(depths) + 1
    rows = max(depths.count(depth) for depth in range(columns))
    longest = max(20, *(len(name) for name in topology.names))
    box_width = round(2 * PADDING + CHARACTER * longest)
    column_width = box_width + COLUMN_GAP
    at = {
        name: (MARGIN + topology.depth[name] * column_width, round(x * rows * ROW_HEIGHT))
        for name, (x, _) in topology.layout.items()
    }
    wires, boxes = [], []
    order = sorted(topology.names, key=topology.depth.__getitem__)  # callers first
    for i, service in enumerate(map(topology.service, order)):
        x, y = at[service.name]
        for callee in service.downstream:  # from the caller's right edge to the callee's left
            ends, in_list = (x + box_width, y, *at[callee]), (i, order.index(callee))
            wires.append((ends, in_list, callee in service.publishes))
        metric, step = newest.get(service.name, (None, None))
        boxes.append(Box(service.name, x, y, service.name in alerted, metric, step))
    return {
        "width": columns * column_width - COLUMN_GAP + 2 * MARGIN,
        "height": rows * ROW_HEIGHT,
        "box_width": box_width,
        "wires": wires,
        "boxes": boxes,
    }


def by_level(observation: Observation) -> list[tuple[str, str]]:
    """An observation's further rows and its log lines, each after the class of its level."""
    further = (observation.measures, observation.calls, observation.counts)
    rows = [("", row.text) for some in further for row in some or ()]
    lines = observation.lines or ()
    return rows + [(LEVELS.get(line.partition(" ")[0], ""), line) for line in lines]
