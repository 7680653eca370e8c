"""A console to play incidents by hand, as a widget of ipywidgets 7 or 8."""

from typing import Any

from logtriage.catalogue import draw_episode, last_incident, open_incident, splits_of, tasks_on
from logtriage.play.actions import ACTION_TYPES, Action, action_values
from logtriage.world.topology import Topology

SLIDER_END = 999  # the last incident that the slider reaches; `Console` itself takes any


class Console:
    """Plays an incident by buttons. `html()` shows the same without a kernel."""

    def __init__(
        self,
        task: str = "cascading_failure",
        split: str = "train",
        index: int = 0,
        topology: Topology | None = None,
    ) -> None:
        self._topology = topology
        self.open(task, split, index)

    def open(self, task: str, split: str, index: int) -> None:
        self.episode = open_incident(task, split, index, self._topology)

    def values(self, action_type: str) -> list[str]:
        return list(action_values(self.episode.incident.topology)[action_type])

    def html(self) -> str:
        """All that was seen so far as HTML, and the score and truth once the incident is closed."""
        return draw_episode(self.episode)

    @property
    def widget(self) -> Any:
        """The widget, with the incident as it stands; it needs ipywidgets."""
        from ipywidgets import HTML, Button, Dropdown, HBox, IntSlider, ToggleButtons, VBox

        incident = self.episode.incident
        names = [(name.replace("_", " "), name) for name in ACTION_TYPES]
        tasks, splits = tasks_on(self._topology), splits_of(incident.task_name, self._topology)
        task = Dropdown(options=tasks, value=incident.task_name, description="task")
        split = Dropdown(options=splits, value=incident.split, description="split")
        last = last_incident(incident.task_name, incident.split)
        index = IntSlider(
            incident.index, 0, min(last, max(SLIDER_END, incident.index)), description="incident"
        )
        opener = Button(description="Open")
        kind = ToggleButtons(options=names, value="request_more_logs")
        # It needs options from the start: a drop-down that begins empty selects nothing later on.
        value = Dropdown(options=self.values(kind.value), description="value")
        actor = Button(description="Act", button_style="primary")
        view = HTML()

        def offer(*_: Any) -> None:
            value.options = self.values(kind.value)
            value.disabled = len(value.options) == 1

        def show() -> None:
            view.value = self.html()
            actor.disabled = self.episode.done

        def choose_task(*_: Any) -> None:
            split.options = splits_of(task.value, self._topology)
            choose_split()

        def choose_split(*_: Any) -> None:
            index.max = min(SLIDER_END, last_incident(task.value, split.value))

        def press_open(_: Any) -> None:
            self.open(task.value, split.value, index.value)
            offer()  # another incident may have another call graph
            show()

        def press_act(_: Any) -> None:
            if not self.episode.done:
                self.episode.act(Action.parse(kind.value, value.value))
            show()

        kind.observe(offer, names="value")
        task.observe(choose_task, names="value")
        split.observe(choose_split, names="value")
        opener.on_click(press_open)
        actor.on_click(press_act)
        show()
        return VBox([HBox([task, split, index, opener]), kind, HBox([value, actor]), view])
