"""docs/incident.svg, the README's first picture: SmolLM2 on one incident, before and after GRPO."""

from html import escape

from logtriage.play.actions import Action
from logtriage.play.episode import Episode, final_score
from logtriage.policies.scripted import LoudestPolicy
from logtriage.recorded import AFTER, BEFORE, CHOSEN, GAINED, LOST, recorded_actions
from logtriage.world.incidents import Incident

from .published import ROOT

PATH = ROOT / "docs" / "incident.svg"
SIDES = {BEFORE: BEFORE, AFTER: "after GRPO, seeds averaged"}  # to their heads
SAYS = {
    "request_more_logs": "asks {}",
    "classify_severity": "calls it {}",
    "identify_root_cause": "blames {}",
    "remediate": "{} on {}",
    "escalate": "pages {}",
    "resolve": "closes it",
    "ignore": "dismisses it",
}
WIDTH, COLUMN, ROW, TOP = 600, 300, 24, 120  # pixels
STYLE = """
text { font: 16px ui-monospace, SFMono-Regular, Menlo, monospace; fill: #1d1d1f; }
.head { font-weight: 700; }
.asks { fill: #6e6e73; }
.right { fill: #1a7f4b; }
.wrong { fill: #b00020; }
.score { font-size: 30px; font-weight: 700; }
"""


def is_right(action: Action, incident: Incident) -> bool:
    """Whether an answer is that of the incident."""
    answers = {
        "classify_severity": (incident.severity,),
        "identify_root_cause": (incident.root,),
        "remediate": (incident.remedy, incident.root),
        "escalate": (incident.team,),
    }
    return answers.get(action.type) == action.args


def played(name: str) -> tuple[list[Action], float]:
    """What somebody who is recorded did on the incident, and the score for it."""
    episode = Episode.open(*CHOSEN)
    recorded = recorded_actions(*CHOSEN)[name]
    actions = [Action.from_text(done) for done in recorded]
    for action in actions:
        episode.act(action)
    return actions, final_score(episode).total


def write(text: str, x: int, y: int, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def picture() -> str:
    """The text of docs/incident.svg."""
    episode, script = Episode.open(*CHOSEN), LoudestPolicy()
    script.open(episode)
    incident, loudest = episode.incident, script.loudest()
    games = {name: played(name) for name in SIDES}
    lines = [
        write("An unseen incident, chosen since reward made it solved:", 20, 32),
        write(f"so were {GAINED} of 100 cascades; the reverse happened in {LOST}.", 20, 56),
        write(f"It began at {incident.root}; {loudest} logs most errors.", 20, 80),
    ]
    longest = max(len(actions) for actions, _ in games.values())
    for side, (name, head) in enumerate(SIDES.items()):
        x, (actions, score) = 20 + COLUMN * side, games[name]
        lines.append(write(head, x, TOP, "head"))
        for step, action in enumerate(actions, start=1):
            kind = "right" if is_right(action, incident) else "wrong"
            if action.type in ("request_more_logs", "resolve"):
                kind = "asks"
            lines.append(write(SAYS[action.type].format(*action.args), x, TOP + ROW * step, kind))
        kind = "score right" if score > 0.5 else "score wrong"
        lines.append(write(f"{score:.2f}", x, TOP + ROW * (longest + 2), kind))
    height = TOP + ROW * (longest + 3)
    body = "\n".join(lines)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" role="img"
 viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">
<title>SmolLM2, a language model, plays one incident before GRPO and after it</title>
<style>{STYLE}</style>
<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#fff" stroke="#d0d7de"/>
{body}
</svg>
"""


def write_picture() -> None:
    """Write docs/incident.svg."""
    PATH.write_text(picture())
