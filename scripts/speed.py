"""Steps per second, observation text included, one core, in process.

    python scripts/speed.py                                  ours
    python scripts/speed.py path/to/environment.py:Class     ours and another one, in turns, in
    one run

Any class with `reset(...)` and `step(action)` can be measured. Its module may define
`SPEED_EPISODE`, a function of (environment, episode number) that plays one episode and returns its
number of steps; without one, `reset()` is called and then `step` with the actions that `--actions`
lists as JSON, made into the class named by `--action-class`.

Machines are noisy: rounds alternate, and the ratio of the medians is what counts.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

SCRIPT = [
    Action("request_more_logs", ("{0}",)),
    Action("request_more_logs", ("{2}",)),
    Action("request_more_logs", ("{5}",)),
    Action("classify_severity", ("P1",)),
    Action("identify_root_cause", ("{5}",)),
    Action("remediate", ("kill-query", "{5}")),
    Action("escalate", ("dba",)),
    Action("resolve"),
]  # eight steps, the length of the shortest task; numbers in braces are positions of services

Player = Callable[[int], int]  # plays episode n, returns its number of steps


def _actions(names: tuple[str, ...]) -> list[Action]:
    return [Action(one.type, tuple(arg.format(*names) for arg in one.args)) for one in SCRIPT]


def core_player() -> Player:
    """The lean core that training uses: every observation rendered as text."""
    tasks, actions = list(TASKS), None

    def play(number: int) -> int:
        nonlocal actions
        episode = Episode(sample_incident(tasks[number % 3], "train", number))
        actions = actions or _actions(episode.incident.topology.names)
        render(episode.opening, episode.incident.topology)
        for action in actions:
            render(episode.act(action))
        return len(actions)

    return play


def openenv_player() -> Player:
    """The OpenEnv environment, actions built once and observations as OpenEnv objects."""
    tasks, environment = list(TASKS), TriageEnvironment()
    names = tuple(service.name for service in environment.reset().services)
    actions = [TriageAction(action_type=one.type, value=one.value) for one in _actions(names)]

    def play(number: int) -> int:
        environment.reset(task=tasks[number % 3], split="train", index=number)
        for action in actions:
            environment.step(action)
        return len(actions)

    return play


def other_player(location: str, action_class: str, actions: str, reset: str) -> Player:
    """Another world, by `path/to/module.py:Class`; raises `typer.BadParameter` when it cannot be
    found.
    """
    path, _, name = location.rpartition(":")
    file = Path(path).resolve()
    if not name or not file.is_file():
        raise typer.BadParameter(f"expected path/to/module.py:Class, got {location!r}")
    folder = file.parent
    parts = [file.stem]
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    module = importlib.import_module(".".join(parts))
    environment = vars(module)[name]()
    if "SPEED_EPISODE" in vars(module):
        return lambda number: module.SPEED_EPISODE(environment, number)
    if not action_class or not actions:
        raise typer.BadParameter(
            f"{location} has no SPEED_EPISODE; give --action-class and --actions"
        )
    where, _, kind = action_class.rpartition(":")
    make = vars(importlib.import_module(where))[kind]
    ready = [make(**fields) for fields in json.loads(actions)]
    settings = json.loads(reset)

    def play(number: int) -> int:
        choices = {
            key: value[number % len(value)] if isinstance(value, list) else value
            for key, value in settings.items()
        }
        environment.reset(**{**choices, **({"seed": number} if "seed" in choices else {})})
        steps = 0
        for action in ready:
            steps += 1
            if environment.step(action).done:
                break
        return steps

    return play


def measure(players: dict[str, Player], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Steps per second, `rounds` values a player; players take turns within each round, on fresh
    episodes.
    """
    rates: dict[str, list[float]] = {name: [] for name in players}
    numbers: dict[str, Iterator[int]] = {name: iter(range(10**9)) for name in players}
    for _ in range(rounds):
        for name, play in players.items():
            steps, began = 0, time.perf_counter()
            while time.perf_counter() - began < seconds:
                steps += play(next(numbers[name]))
            rates[name].append(steps / (time.perf_counter() - began))
    return rates


def main(
    other: Annotated[
        str | None, typer.Argument(help="path/to/module.py:Class of another world")
    ] = None,
    action_class: Annotated[str, typer.Option(help="package.module:Class of its actions")] = "",
    actions: Annotated[str, typer.Option(help="JSON array of its actions' fields")] = "",
    reset: Annotated[
        str, typer.Option(help="JSON object of reset's arguments; lists are cycled; seed counts up")
    ] = "{}",
    seconds: Annotated[float, typer.Option(help="length of a turn")] = 1.0,
    rounds: Annotated[int, typer.Option(help="turns each")] = 5,
) -> None:
    """Measure and print medians, ranges, and ratios to the other world."""
    players = {"logtriage core": core_player(), "logtriage OpenEnv": openenv_player()}
    if other:
        players[other.rpartition(":")[2]] = other_player(other, action_class, actions, reset)
    rates = measure(players, seconds, rounds)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    last = list(medians)[-1]
    for name, values in rates.items():
        ratio = f"  {medians[name] / medians[last]:.2f} x {last}" if other and name != last else ""
        print(
            f"{name:24} {medians[name]:9,.0f} steps/s  (min {min(values):,.0f}, max"
            f" {max(values):,.0f}){ratio}"
        )


if __name__ == "__main__":
    typer.run(main)
