"""Steps per second, observation text included, one core, in process.

    python scripts/speed.py                       ours
    python scripts/speed.py path/to/module.py     ours and another world's, in turns, in one run

The module of another world defines `SPEED_EPISODE`, a function of an episode's number that plays
that episode and returns its number of steps. Machines are noisy: rounds alternate, and the ratio of
the medians is what counts.
"""

import runpy
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

GATEWAY, PAYMENT, DATABASE = (DEFAULT_TOPOLOGY.names[position] for position in (0, 2, 5))
SCRIPT = [
    Action("request_more_logs", (GATEWAY,)),
    Action("request_more_logs", (PAYMENT,)),
    Action("request_more_logs", (DATABASE,)),
    Action("classify_severity", ("P1",)),
    Action("identify_root_cause", (DATABASE,)),
    Action("remediate", ("kill-query", DATABASE)),
    Action("escalate", ("dba",)),
    Action("resolve"),
]  # eight steps, the length of the shortest task

Player = Callable[[int], int]  # plays episode n, returns its number of steps


def play_core(number: int) -> int:
    """The lean core that training uses: every observation rendered as text."""
    episode = Episode(sample_incident(list(TASKS)[number % 3], "train", number))
    render(episode.opening, episode.incident.topology)
    for action in SCRIPT:
        render(episode.act(action))
    return len(SCRIPT)


def openenv_player() -> Player:
    """The OpenEnv environment, with its own types for actions and observations."""
    environment = TriageEnvironment()
    actions = [TriageAction(action_type=one.type, value=one.value) for one in SCRIPT]

    def play(number: int) -> int:
        environment.reset(task=list(TASKS)[number % 3], split="train", index=number)
        for action in actions:
            environment.step(action)
        return len(actions)

    return play


def measure(players: dict[str, Player], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Steps per second, `rounds` values for each player; players take turns, on new episodes."""
    rates: dict[str, list[float]] = {name: [] for name in players}
    numbers = {name: count() for name in players}
    for _ in range(rounds):
        for name, play in players.items():
            steps, began = 0, time.perf_counter()
            while time.perf_counter() - began < seconds:
                steps += play(next(numbers[name]))
            rates[name].append(steps / (time.perf_counter() - began))
    return rates


def main(
    other: Annotated[Path | None, typer.Argument(help="The module of another world.")] = None,
    seconds: Annotated[float, typer.Option(help="Length of a turn.")] = 1.0,
    rounds: Annotated[int, typer.Option(help="Turns for each.")] = 5,
) -> None:
    """Measure, and print medians, ranges, and ratios to the other world."""
    players: dict[str, Player] = {
        "logtriage core": play_core,
        "logtriage OpenEnv": openenv_player(),
    }
    if other:
        sys.path.insert(0, str(other.resolve().parent))
        players[other.stem] = runpy.run_path(str(other))["SPEED_EPISODE"]
    rates = measure(players, seconds, rounds)
    base = statistics.median(rates[other.stem]) if other else None
    for name, values in rates.items():
        middle = statistics.median(values)
        ratio = f", {middle / base:.2f} x {other.stem}" if base else ""
        print(f"{name:20} {middle:9,.0f} steps/s ({min(values):,.0f} to {max(values):,.0f}){ratio}")


if __name__ == "__main__":
    typer.run(main)
