"""Draw the README's two pictures, docs/architecture.svg and docs/services.svg: `make pictures`.

A test holds both fresh. Boxes have a fill of their own and everything outside them is a middle
grey, so that one file can be read on a light page and on a dark one.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from textwrap import wrap

from logtriage.world.topology import DEFAULT_TOPOLOGY, Topology

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "logtriage"

WIDTH = 830  # pixels of a README on GitHub
INK, QUIET, OUTSIDE = "#1f2328", "#57606a", "#768390"  # the last one is read on white and on black
CORE_FILL, OTHER_FILL = "#dfe3fb", "#eaeef2"
PAD, LINE, GAP = 12, 18, 8  # pixels: inside a box, from line to line, from box to box
# Pixels of a character, a little more than the widest common fonts have.
MONO_WIDTH, SANS_WIDTH, LABEL_WIDTH = 7.3, 7.2, 8.5
FONTS = {"sans": "system-ui, sans-serif", "mono": "ui-monospace, Menlo, Consolas, monospace"}

# Who owns what, by the team's colour (Okabe and Ito), pale enough for dark text.
TEAM_FILLS = {"sre": "#fbe3b5", "backend": "#cfe5f5", "dba": "#cdeadf"}
KIND_NAMES = {"edge": "edge", "app": "application", "database": "database", "queue": "queue"}

# A folder of the package, what it is for, and where its box lies: x and width as shares of the
# picture. What stands above may import what it rests on, directly or not, and nothing else.
Box = tuple[str, str, float, float]
LAYERS: tuple[tuple[Box, ...], ...] = (
    (("", "the command line", 0.0, 1.0),),
    (
        ("training", "base model, GRPO, experiments; torch and TRL", 0.0, 0.56),
        ("adapters", "other people's interfaces", 0.57, 0.21),
        ("server", "OpenEnv's, and a page", 0.79, 0.21),
    ),
    (
        ("measure", "what policies are worth", 0.0, 0.56),
        ("environment", "the OpenEnv environment and its client", 0.57, 0.43),
    ),
    (("agents", "policies: from what was seen to the next action", 0.0, 0.56),),
    (("logs", "logs of one's own: what they tell, and an episode of them", 0.0, 1.0),),
    (("real", "cases of real clusters, and their episodes", 0.0, 1.0),),
    (("play", "an incident being played, and its score", 0.0, 1.0),),
    (("world", "the simulator; standard library only", 0.0, 1.0),),
)


def modules(folder: str) -> list[str]:
    """Names of the modules in a folder of the package. The package's own top level has two boxes:
    `""` is what may import everything, and `environment` the rest.
    """
    at = PACKAGE / folder if (PACKAGE / folder).is_dir() else PACKAGE
    names = sorted(path.stem for path in at.glob("*.py") if path.stem != "__init__")
    if at != PACKAGE:
        return names
    return [name for name in names if (name == "__main__") == (folder == "")]


def text(x: float, words: str, color: str = INK, font: str = "sans", **more: str) -> str:
    """A line of text whose height is left open, as `{y:.0f}`; `more` are attributes, with `_` for
    `-`.
    """
    extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return (
        f'<text x="{x:.0f}" y="{{y:.0f}}" fill="{color}" font-family="{FONTS[font]}"{extra}>'
        f"{escape(words)}</text>"
    )


def rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A box with round corners."""
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" '
        f'fill="{fill}" stroke="{OUTSIDE}"/>'
    )


def picture(height: float, title: str, parts: list[str]) -> str:
    """The whole SVG file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
            f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" font-size="13">',
            f"<title>{escape(title)}</title>",
            *parts,
            "</svg>\n",
        ]
    )


def architecture() -> str:
    """The folders as a wall: what stands above may import what it rests on."""
    rows = [[brick(*box) for box in row] for row in LAYERS]
    heights = [max(LINE * len(lines) + 1.3 * PAD for *_, lines in row) for row in rows]
    parts, y = [], 1.0
    for number, (row, height) in enumerate(zip(rows, heights, strict=True)):
        fill = CORE_FILL if number >= len(rows) - 2 else OTHER_FILL
        for folder, x, width, lines in row:
            # The environment stands on `play` itself, beside two rows of the other pillar.
            spans = height + GAP + heights[number + 1] if folder == "environment" else height
            parts.append(rectangle(x, y, width, spans, fill))
            for line, words in enumerate(lines, 1):
                parts += [mark.format(y=y + line * LINE) for mark in words]
        y += height + GAP
    return picture(y - GAP + 1, "The package: each box imports only what it rests on", parts)


def brick(folder: str, purpose: str, left: float, share: float) -> tuple[str, float, float, list]:
    """A box of `LAYERS`: its folder, x, width, and lines of text, each a list of marks in which the
    height is left open.
    """
    x, width = 1 + left * (WIDTH - 2), share * (WIDTH - 2)
    label = f"{folder}/" if folder and (PACKAGE / folder).is_dir() else "logtriage/"
    name = text(x + PAD, label, font_weight="bold")
    after = x + 2 * PAD + len(label) * LABEL_WIDTH
    if after + len(purpose) * SANS_WIDTH < x + width:
        lines = [[name, text(after, purpose, QUIET, font_size="12")]]
    else:  # in a narrow box the purpose has a line of its own
        lines = [[name], [text(x + PAD, purpose, QUIET, font_size="12")]]
    room = int((width - 2 * PAD) / MONO_WIDTH)
    for words in wrap(" · ".join(modules(folder)), room, break_on_hyphens=False):
        lines.append([text(x + PAD, words, font="mono", font_size="12")])
    return folder, x, width, lines


def services(topology: Topology = DEFAULT_TOPOLOGY) -> str:
    """The default call graph: an arrow from caller to callee, dashed where nobody waits."""
    box_width, box_height, step, top = 168, 46, 96, 14
    at = {
        name: (x * WIDTH, top + box_height / 2 - depth * step)
        for name, (x, depth) in topology.layout.items()
    }
    parts = [
        f'<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{OUTSIDE}"/></marker>'
    ]
    for service in topology.services:
        x, y = at[service.name]
        for callee in service.downstream:
            to_x, to_y = at[callee]
            dashes = ' stroke-dasharray="5 4"' if callee in service.publishes else ""
            parts.append(
                f'<line x1="{x:.0f}" y1="{y + box_height / 2:.0f}" x2="{to_x:.0f}" '
                f'y2="{to_y - box_height / 2 - 1:.0f}" stroke="{OUTSIDE}" stroke-width="1.5"'
                f'{dashes} marker-end="url(#head)"/>'
            )
    for service in topology.services:
        x, y = at[service.name]
        left, middle = x - box_width / 2, {"text_anchor": "middle"}
        parts.append(
            rectangle(left, y - box_height / 2, box_width, box_height, TEAM_FILLS[service.owner])
        )
        told = f"{KIND_NAMES[service.kind]}, {service.owner}"
        parts.append(text(x, service.name, font_weight="bold", **middle).format(y=y - 3))
        parts.append(text(x, told, QUIET, font_size="12", **middle).format(y=y + 14))
    bottom = max(y for _, y in at.values()) + box_height / 2
    for number, line in enumerate(
        (
            "users enter at the edge; an arrow calls and waits,",
            "a dashed one publishes and moves on",
        )
    ):
        parts.append(text(1, line, OUTSIDE, font_size="12").format(y=top + 14 + number * LINE))
    return picture(bottom + 2, "The seven services: who calls whom, kind and owner", parts)


PICTURES = {"docs/architecture.svg": architecture, "docs/services.svg": services}

if __name__ == "__main__":
    for path, draw in PICTURES.items():
        (ROOT / path).write_text(draw())
