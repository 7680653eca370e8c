"""Write docs/incident.svg, the README's first picture: the trained agent solves an incident.

It is animated by CSS alone, which plays inside an <img>. Whatever changes is shown from one second
to another. Where animation is off, it shows its end.
"""

from html import escape
from pathlib import Path
from typing import Any

from logtriage.drawing import LEVELS, place, read_template
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import LoudestPolicy
from logtriage.server.comparison import Row, others
from logtriage.world.telemetry import Metric, two_digits
from logtriage.world.wording import read_line
from triagelab.bench.watch import CHOSEN

PATH = Path(__file__).resolve().parents[1] / "docs" / "incident.svg"
TASK, SPLIT = "cascading_failure", "test"
TICK, ASKS, ANSWERS, END = 0.7, 2.4, 1.4, 6.0  # seconds: a tick, two kinds of action, the end
# Sizes of the whole in pixels, and of the text in units of the graph, which is drawn larger.
WIDTH, SCALE, MARGIN, TOP, ROW, CHARACTER = 800, 1.28, 44, 194, 17, 6.02
SAYS = {
    "request_more_logs": "The agent asks {} for its logs.",
    "classify_severity": "It calls this {},",
    "identify_root_cause": "blames {},",
    "remediate": "does {} on {},",
    "escalate": "pages {},",
    "resolve": "and closes the incident.",
}
MACROS: Any = read_template("logtriage", "graph.html.jinja").module
TELLING = ("proof", "hint", "callee", "own")  # kinds of log lines, the most telling first
STYLE = """
.page { fill: #fff; stroke: #d0d7de; }
.lt svg { width: auto; margin: 0; overflow: visible; }
.lt svg .line { font-size: 10px; }
.lt svg .agent { font-weight: 700; fill: #0072b2; }
.lt svg .error { fill: #b00020; }
.lt svg .focus { fill: none; stroke: #0072b2; stroke-width: 3; }
@media (prefers-reduced-motion: reduce) { .span { animation: none !important; } }
"""


class Film:
    """What is shown when; `spans` are [markup, first second, last second (None for the end)]."""

    def __init__(self, episode: Episode) -> None:
        self.episode, self.now, self.spans = episode, 0.0, []
        self._newest: dict[str, list[Any]] = {}

    def put(self, name: str, markup: str) -> None:
        """Show `markup` from now on, in place of what had this name before."""
        before = self._newest.get(name)
        if before is None or before[0] != markup:
            if before:
                before[2] = self.now
            self._newest[name] = [markup, self.now, None]
            self.spans.append(self._newest[name])

    def write(self, row: int, text: str, kind: str = "", at: int = 0) -> None:
        """Write a line of text below the graph, `at` characters from the left."""
        where = f'x="{4 + CHARACTER * at:.0f}" y="{TOP + ROW * row}"'
        self.put(where, f'<text class="line {kind}" {where}>{escape(text)}</text>')

    def show(self, seconds: float, focus: str = "") -> None:
        """Show the cluster as it is for some seconds, with a frame around the service `focus`."""
        topology, cluster = self.episode.incident.topology, self.episode.cluster
        state, rest = cluster.states[cluster.tick], topology.network.rest_latency
        newest = {
            name: (Metric(name, round(100 * state.errors[at]), two_digits(latency), rest[at]), 0)
            for at, (name, latency) in enumerate(zip(topology.names, state.latency, strict=True))
        }
        alerted = {alert.service for alert in self.episode.telemetry.alerts()}
        graph = self.graph = place(topology, newest, alerted)
        for box in graph["boxes"]:
            drawn = str(MACROS.service(box, graph["box_width"]))
            size = f'width="{graph["box_width"] + 10}" height="52" rx="11"'
            frame = f'<rect class="focus" x="{box.x - 5}" y="{box.y - 26}" {size}/>'
            self.put(box.service, drawn + frame * (box.service == focus))
        self.now += seconds

    def svg(self, rows: int) -> str:
        """The whole film, which starts again after its end."""
        height, rules, groups = 14 + SCALE * (TOP + ROW * rows), "", ""
        for number, (markup, first, last) in enumerate(self.spans):
            start, end = (100 * (second or 0.0) / self.now for second in (first, last))
            hide = "" if last is None else f"{end:.2f}%{{opacity:0}}"
            rules += f"@keyframes s{number}{{0%{{opacity:0}}{start:.2f}%{{opacity:1}}{hide}}}\n"
            play = f"animation:s{number} {self.now:.1f}s step-end infinite"
            still = int(last is None)
            groups += f'<g class="span" style="opacity:{still};{play}">{markup}</g>\n'
        return f'''<svg xmlns="http://www.w3.org/2000/svg" class="lt" role="img"
 viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}">
<title>The trained agent traces a cascading failure to its root</title>
<style>{read_template("logtriage", "drawing.css").render()}{STYLE}{rules}</style>
<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>
<svg x="{MARGIN}" y="14" width="{100 * SCALE}" height="{100 * SCALE}" viewBox="0 0 100 100">
{MACROS.wires(self.graph)}{groups}</svg>
</svg>
'''


def rows_at(index: int) -> dict[str, Row]:
    """Who did what on an incident, by name."""
    return {row.name: row for row in others(TASK, SPLIT, index, None)}


def picture() -> str:
    """The text of docs/incident.svg."""
    rows, episode = rows_at(CHOSEN), Episode.open(TASK, SPLIT, CHOSEN)
    film, cluster, arrival, row, at = Film(episode), episode.cluster, episode.cluster.tick, 1, 0
    film.write(0, "A cascading failure: one service breaks, and its callers fail with it.")
    for cluster.tick in range(arrival + 1):
        film.show(TICK)
    loudest = LoudestPolicy()
    loudest.open(episode)
    score = rows[loudest.name].score
    film.write(1, f"{loudest.loudest()} logs most errors. Whoever blames it scores {score:.2f}.")
    film.show(ASKS)
    for done in rows["trained agent"].did:
        action_type, _, value = done.partition(":")
        action, asks = Action.parse(action_type, value), action_type == "request_more_logs"
        lines, says = episode.act(action).lines or (), SAYS[action_type].format(*action.args)
        if asks or action_type in ("classify_severity", "remediate"):
            row, at = row + 1, 0
        film.write(row, says, "agent", at)
        at += len(says) + 1
        if asks:
            kinds = {line: read_line(line)[1].kind for line in lines}
            telling = min(lines, key=lambda line: (*TELLING, kinds[line]).index(kinds[line]))
            row += 1
            film.write(row, telling, LEVELS.get(telling.partition(" ")[0], ""), 2)
        film.show(ASKS if asks else ANSWERS, action.args[-1] if action.args else "")
    root, score = str(episode.incident.root), rows["trained agent"].score
    film.write(row + 1, f"The root cause was {root}: the agent scores {score:.2f}.")
    for seconds in (TICK, TICK, END):
        cluster.advance()
        film.show(seconds, root)
    return film.svg(row + 2)


def write_picture() -> None:
    """Write docs/incident.svg."""
    PATH.write_text(picture())
