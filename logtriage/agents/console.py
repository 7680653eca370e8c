"""A console to play an incident by hand: a human is one more policy. Works with ipywidgets 7 and 8."""

from __future__ import annotations

from html import escape
from typing import Any

from ..play.actions import ACTION_TYPES, action_values
from ..play.drawing import LEVEL_COLOURS
from ..play.episode import Episode
from ..play.prompts import render
from ..play.rewards import PARTS
from ..world.incidents import sample_incident
from ..world.topology import Topology

_STYLE = "font-family: monospace; font-size: 12px; white-space: pre-wrap; margin: 0"


class Console:
    """Plays one incident by buttons. All state is in `episode` and `history`; `html()` shows it
    without a kernel.

    Args:
        task, split, index: the incident's coordinates.
        topology: a call graph of one's own; the split's without.
    """

    def __init__(
        self,
        task: str = "cascading_failure",
        split: str = "train",
        index: int = 0,
        topology: Topology | None = None,
    ) -> None:
        self.episode = Episode(sample_incident(task, split, index, topology))
        self.history = [render(self.episode.opening, self.episode.incident.topology)]

    def act(self, action_type: str, value: str = "") -> None:
        """Take one step; on a closed incident nothing happens."""
        if not self.episode.done:
            self.history.append(
                f">>> {action_type} {value}\n{render(self.episode.act(action_type, value))}"
            )

    def values(self, action_type: str) -> list[str]:
        """The values that an action type can take here."""
        return list(action_values(self.episode.incident.topology)[action_type])

    def html(self) -> str:
        """Everything seen so far, newest last, and the score once the incident is closed. Text is
        escaped.
        """
        lines = []
        for line in "\n".join(self.history).splitlines():
            colour = LEVEL_COLOURS.get(
                line.partition(" ")[0], "#0072B2" if line.startswith(">>>") else "inherit"
            )
            lines.append(f'<span style="color: {colour}">{escape(line)}</span>')
        if self.episode.score is not None:
            score = self.episode.score
            parts = ", ".join(
                f"{part.replace('_', ' ')} {getattr(score, part):.2f}" for part in PARTS
            )
            lines.append(f"<b>score {score.total:.2f}</b> ({parts}, gate {score.gate:.0f})")
        return f'<pre style="{_STYLE}">' + "\n".join(lines) + "</pre>"

    @property
    def widget(self) -> Any:
        """The console as a widget."""
        from ipywidgets import HTML, Button, Dropdown, HBox, VBox

        view = HTML(self.html())
        kind = Dropdown(options=list(ACTION_TYPES), value="request_more_logs", description="action")
        value = Dropdown(options=self.values("request_more_logs"), description="value")
        button = Button(description="Act", button_style="primary")

        def choose(change: dict[str, Any]) -> None:
            value.options = self.values(change["new"])

        def press(_: Any) -> None:
            self.act(kind.value, value.value)
            view.value = self.html()
            button.disabled = self.episode.done

        kind.observe(choose, names="value")
        button.on_click(press)
        return VBox([HBox([kind, value, button]), view])
