"""An incident as HTML, for a page: what its agent was shown so far, and the score at the end. All
text is escaped.

`draw(topology, seen)` needs nothing but what was shown, so it cannot tell more. The result carries
its own style and no script; colours are Okabe and Ito's, and every colour is said in numbers or
words, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ..world.incidents import Incident
from ..world.tasks import PAR_STEPS
from ..world.telemetry import ALERT_ERRORS, ALERT_SLOWDOWN, Metric
from ..world.topology import Topology
from .episode import Observation
from .rewards import WEIGHTS, Record, Score, by_fault

# Share of failed requests, and slowdown, from which a service is drawn as failing or as suffering.
FAILING = (ALERT_ERRORS, ALERT_SLOWDOWN)
SUFFERING = (0.01, 1.5)
LEVEL_COLOURS = {
    "ERROR": "#B00020",
    "CRIT": "#B00020",
    "FATAL": "#B00020",
    "PANIC": "#B00020",
    "WARN": "#9A6700",
}

_BOX, _COLUMN, _ROW = (178, 42), 236, 56  # pixels
_STYLE = """<style>
.lt { color: #1d1d1f; font: 13px/1.45 system-ui, sans-serif; color-scheme: light; background: #fff;
  overflow-x: auto; }
.lt svg { display: block; width: 100%; height: auto; margin: 4px 0 2px; }
.lt svg text { font: 11px ui-monospace, monospace; fill: #1d1d1f; }
.lt svg .name { font-weight: 700; }
.lt svg .wire { fill: none; stroke: #9a9aa0; stroke-width: 1.3; }
.lt svg rect { stroke: #6e6e73; stroke-width: 1; }
.lt svg .alerted { stroke: #B00020; stroke-width: 3; }
.lt .failing { fill: #F6C3B0; } .lt .suffering { fill: #FBE3B3; }
.lt .healthy { fill: #C5E9DC; } .lt .unseen { fill: #ECECEE; }
.lt .bar { margin: 0 0 6px; } .lt .error, .lt .alert { color: #B00020; } .lt .small { color: #6e6e73; font-size: 12px; }
.lt .alert { border: 1px solid #B00020; border-radius: 9px; padding: 0 7px; margin-right: 4px; white-space: nowrap; }
.lt table { border-collapse: collapse; font: 12px ui-monospace, monospace; margin: 8px 0; }
.lt th, .lt td { text-align: right; padding: 1px 12px 1px 0; font-weight: 400; } .lt th { color: #6e6e73; }
.lt th:first-child, .lt td:first-child { text-align: left; }
.lt pre { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 8px; }
.lt h3 { font-size: 13px; margin: 8px 0 2px; }
.lt .score { border: 2px solid #0072B2; border-radius: 8px; padding: 8px 14px; margin: 0 0 8px; }
.lt .score b { font-size: 22px; } .lt meter { width: 80px; } .lt td { white-space: nowrap; }
</style>"""


class Step(NamedTuple):
    """What was done (empty for the opening) and what it showed."""

    action: str
    observation: Observation


def draw(topology: Topology, seen: Sequence[Step], verdict: str = "") -> str:
    """The episode so far as an HTML fragment.

    Args:
        topology: the call graph.
        seen: everything shown, oldest first; at least the opening.
        verdict: `draw_verdict`'s HTML, once the episode is over.
    """
    last = seen[-1].observation
    latest: dict[str, tuple[int, Metric]] = {}
    alerts = []
    for _, observation in seen:
        latest.update({row.service: (observation.step, row) for row in observation.metrics or ()})
        alerts = alerts if observation.alerts is None else observation.alerts
    parts = [f'<p class="bar"><b>step {last.step} of {last.max_steps}</b>']
    parts += (
        [f' <span class="error">{escape(last.error)}</span>']
        if last.error
        else [f" {escape(last.notice)}"]
    )
    parts.append('</p><p class="bar">alerts: ')
    parts.append(
        " ".join([f'<span class="alert">{escape(one.text)}</span>' for one in alerts]) or "none"
    )
    parts += [
        "</p>",
        _graph(topology, latest, {one.service for one in alerts}),
        _table(topology, latest, last.step),
    ]
    parts.append("<h3>Log stream, newest first</h3>")
    for action, observation in reversed(seen):
        told = [
            f'<span style="color: {_colour(line)}">{escape(line)}</span>'
            for line in observation.lines or ()
        ]
        told = (
            [f'<span class="error">{escape(observation.error)}</span>'] if observation.error else []
        ) + told
        told = told or [escape(observation.notice) or "no lines"]
        parts.append(
            f'<div class="small">step {observation.step}: {escape(action) or "the incident is reported"}</div>'
        )
        parts.append("<pre>" + "\n".join(told) + "</pre>")
    return f'{_STYLE}<div class="lt">{verdict}{"".join(parts)}</div>'


def draw_verdict(score: Score, record: Record, incident: Incident) -> str:
    """The score with its parts, what was answered and what was true: for closed episodes only."""
    counted = max(1, len(incident.injections))
    answers = {
        name: (_each(given[:counted]), _each(true))
        for name, (given, true) in _answers(record, incident).items()
    }
    rows = [
        f"<tr><td>{name.replace('_', ' ')}</td><td>{escape(answers[name][0])}</td><td>{escape(answers[name][1])}</td>"
        f'<td><meter value="{part:.3f}"></meter></td><td>{part:.2f} x {weight:.2f}</td><td>{part * weight:.3f}</td></tr>'
        for (name, weight), part in zip(WEIGHTS.items(), score, strict=False)
    ]
    if score.cost:
        told = "repeated answers, fixes that did not help, needless pages"
        rows.append(f'<tr><td>costs</td><td colspan="4">{told}</td><td>-{score.cost:.3f}</td></tr>')
    heads = "".join(f"<th>{head}</th>" for head in ("", "answer that counts", "truth", "", "", ""))
    gate = (
        "" if score.gate == 1.0 else f'<p class="error">{_why_gated(score, record, incident)}.</p>'
    )
    faults = [one.fault.name.replace("-", " ") for one in incident.injections]
    told = f"What it was: {', and '.join(faults) or 'a false alarm, to be ignored'}."
    return (
        f'<div class="score"><b>score {score.total:.2f}</b><table><tr>{heads}</tr>{"".join(rows)}</table>{gate}'
        f"<p>{escape(told)}</p></div>"
    )


def _answers(record: Record, incident: Incident) -> dict[str, tuple[list[str], list[str]]]:
    """Part of the score to what was answered, in order, and what was true."""
    faults = by_fault(incident)
    return {
        "severity": ([record.severity] if record.severity else [], [incident.severity]),
        "root_cause": (record.root_causes, [fault.root for fault in faults]),
        "remediation": (
            [" ".join(done) for done in record.remediations],
            [f"{fault.remedy} {fault.root}" for fault in faults],
        ),
        "escalation": (record.teams, [fault.team for fault in faults]),
        "speed": (
            [f"{record.steps} steps, {record.closed_by}"],
            [f"{PAR_STEPS[len(faults)]} steps"],
        ),
    }


def _each(names: list[str]) -> str:
    return " and ".join(names) or "none"


def _why_gated(score: Score, record: Record, incident: Incident) -> str:
    effect = "makes it 0" if score.gate == 0.0 else "halves it, for one of the two faults"
    if record.closed_by == "ignore" and incident.severity == "P1":
        return f"The gate {effect}: a P1 was ignored"
    return f"The gate {effect}: the right root cause, and {'the wrong team' if record.teams else 'nobody'} paged"


def health(row: Metric | None) -> str:
    """`failing`, `suffering`, `healthy` by the row's errors and slowdown, or `unseen`."""
    if row is None:
        return "unseen"
    errors, slowdown = float(row.errors) / 100.0, float(row.latency) / float(row.usual)
    for name, (most_errors, most_slowdown) in (("failing", FAILING), ("suffering", SUFFERING)):
        if errors >= most_errors or slowdown >= most_slowdown:
            return name
    return "healthy"


def _graph(topology: Topology, latest: dict[str, tuple[int, Metric]], alerted: set[str]) -> str:
    depths = topology.depth
    columns = max(depths.values()) + 1
    rows = max(list(depths.values()).count(depth) for depth in range(columns))
    width, height = (columns - 1) * _COLUMN + _BOX[0] + 8, rows * _ROW + 4
    at = {
        name: (4 + depths[name] * _COLUMN, x * rows * _ROW + 2)
        for name, (x, _) in topology.layout.items()
    }
    wires, boxes = [], []
    for service in topology.services:
        x, y = at[service.name]
        for callee in service.downstream:
            (to_x, to_y), dashes = (
                at[callee],
                "" if callee in service.calls else ' stroke-dasharray="4 3"',
            )
            bend = (x + _BOX[0] + to_x) / 2
            curve = (
                f"M{x + _BOX[0]} {y:.0f}C{bend:.0f} {y:.0f} {bend:.0f} {to_y:.0f} {to_x} {to_y:.0f}"
            )
            wires.append(f'<path class="wire" d="{curve}"{dashes}/>')
        row = latest[service.name][1] if service.name in latest else None
        numbers = f"{row.errors}% failed  {row.latency} ms" if row else "not seen yet"
        mark = f"{health(row)} alerted" if service.name in alerted else health(row)
        boxes.append(
            f'<rect class="{mark}" x="{x}" y="{y - _BOX[1] / 2:.0f}" width="{_BOX[0]}" height="{_BOX[1]}" rx="7"/>'
            f'<text class="name" x="{x + 10}" y="{y - 3:.0f}">{escape(service.name)}</text>'
            f'<text x="{x + 10}" y="{y + 13:.0f}">{escape(numbers)}</text>'
        )
    described = "call graph, each service as last seen, callers on the left; dashed: asynchronous; red frame: alert"
    colours = f"orange: failing ({FAILING[0]:.0%} errors or {FAILING[1]:g} x the usual time), yellow: suffering, green: healthy"
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width: {width}px" role="img" aria-label="{described}">'
        f'{"".join(wires + boxes)}</svg><div class="small">{described}; {colours}</div>'
    )


def _table(topology: Topology, latest: dict[str, tuple[int, Metric]], step: int) -> str:
    rows = []
    for name in topology.names:
        if name in latest:
            when, row = latest[name]
            told = (
                f"{row.errors}%",
                f"{row.latency} ms",
                f"{row.usual} ms",
                f"step {when}" if when < step else "now",
            )
        else:
            told = ("", "", "", "not yet")
        rows.append(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (name, *told)) + "</tr>"
        )
    heads = "".join(
        f"<th>{head}</th>" for head in ("service", "errors", "p95", "usual p95", "seen")
    )
    return f"<table><tr>{heads}</tr>{''.join(rows)}</table>"


def _colour(line: str) -> str:
    return LEVEL_COLOURS.get(line.partition(" ")[0], "inherit")
