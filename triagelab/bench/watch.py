"""Watch policies play an incident in the terminal, step by step: `python -m logtriage watch`."""

import time
from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from logtriage.drawing import by_level, cause_of, gate_reason, score_parts
from logtriage.play.actions import Action
from logtriage.play.episode import Episode, Step, final_score
from logtriage.play.observation import TABLE_HEADER, Observation, call_graph_line
from logtriage.policies.policy import Policy
from logtriage.policies.scripted import ConstantPolicy
from logtriage.recorded import AFTER, BEFORE, CHOSEN, WHY, recorded_actions

from .registry import POLICIES, named

ALL_SCORES = "docs/smollm2.md has the scores on all."
INDENT = 4  # characters before each observation
STYLES = {"error": "red", "warning": "yellow"}


def watch(
    players: Sequence[tuple[str, Policy]],
    task: str,
    split: str,
    index: int,
    pause: float,
    screen: Console,
) -> None:
    """Show side by side how each policy, under its name, plays one incident, with a pause of
    `pause` seconds between two steps.
    """
    episodes = [Episode.open(task, split, index) for _ in players]
    incident = episodes[0].incident
    screen.rule(f"{task.replace('_', ' ')}, incident {index} of {split}")
    if (task, split, index) == CHOSEN:
        screen.print(f"{WHY} {ALL_SCORES}", style="dim")
    screen.print(call_graph_line(incident.topology), style="dim")
    screen.print(_lines_of(episodes[0].opening))
    for (_, policy), episode in zip(players, episodes, strict=True):
        policy.play([episode])
    rows: list[list[Group | Text]] = [[Text(name, style="bold underline") for name, _ in players]]
    for steps in zip_longest(*(episode.history for episode in episodes)):
        rows.append([Text() if step is None else _step(step) for step in steps])
    rows.append([_verdict(episode) for episode in episodes])
    for row in rows:
        time.sleep(pause)
        side_by_side = Table.grid(expand=True, padding=(0, 2))
        for _ in row:
            side_by_side.add_column(ratio=1)
        side_by_side.add_row(*row)
        screen.print(side_by_side)
    screen.rule(f"it was: {cause_of(incident)}" + (f" at {incident.root}" if incident.root else ""))


def players_of(names: Sequence[str], task: str, split: str, index: int) -> list[tuple[str, Policy]]:
    """The policies of these names (a script, a model's name or folder; `BEFORE` and `AFTER` as they
    are recorded); `ValueError` if one is recorded, but not on this incident.
    """
    recorded = {
        name: actions
        for name, actions in recorded_actions(task, split, index).items()
        if name in (BEFORE, AFTER)  # all others play
    }
    if AFTER in names and not recorded:
        raise ValueError(
            f"{AFTER} is not recorded on incident {index} of {split}, {task}: only on the first of "
            "test; name who should play it, as in `watch agent --beside base`"
        )
    if not POLICIES.keys() | recorded.keys() >= {*names}:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
    policies = [
        ConstantPolicy([*map(Action.from_text, recorded[name])])
        if name in recorded
        else named(name).make(0)
        for name in names
    ]
    return [*zip(names, policies, strict=True)]


def _step(step: Step) -> Group:
    """The action of a step, and the observation after it."""
    action, after = step
    done = f"{action.type} {action.value}" if action else f"invalid: {after.error}"
    return Group(Text(f"{after.step:>2}  {done}", style="bold cyan"), _lines_of(after))


def _lines_of(observation: Observation) -> Padding:
    """Alerts, metrics and log lines, coloured by their level."""
    lines = [Text(metric.text, style="dim") for metric in observation.metrics or ()]
    lines[:0] = [Text(TABLE_HEADER, style="dim")] if lines else []
    lines += [Text(line, style=STYLES.get(level, "dim")) for level, line in by_level(observation)]
    if observation.alerts is not None:
        alerts = "; ".join(alert.text for alert in observation.alerts)
        lines.insert(0, Text(f"alerts: {alerts or 'none'}", style="red" if alerts else "green"))
    return Padding(Group(*lines), (0, 0, 0, INDENT))


def _verdict(episode: Episode) -> Group:
    """Each answer beside the truth, and the score."""
    score = final_score(episode)
    lines = [Text()]
    for part in score_parts(score, episode.record, episode.incident):
        wrong = part.value < 1.0 and part.name != "speed"
        answer = part.answer or "none"
        answer += f" (it was: {part.truth or 'none'})" if wrong else ""
        lines.append(
            Text(f"{part.name.replace('_', ' ')}: {answer}", style="red" if wrong else "green")
        )
    gate = gate_reason(episode)
    return Group(*lines, Text(f"score: {score.total:.2f}", style="bold"), Text(gate, style="red"))
