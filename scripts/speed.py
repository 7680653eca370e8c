"""Steps per second of the simulator, observation text included, one core, in process: `make speed`.

Machines are noisy: ours take turns over several rounds, and the median is what counts.
"""

import statistics
import time
from collections.abc import Callable
from itertools import count

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

ROUNDS, SECONDS = 5, 1.0  # turns for each, and the length of one

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


def measure(players: dict[str, Player]) -> dict[str, list[float]]:
    """Steps per second, `ROUNDS` values for each player; players take turns, on new episodes."""
    rates: dict[str, list[float]] = {name: [] for name in players}
    numbers = {name: count() for name in players}
    for _ in range(ROUNDS):
        for name, play in players.items():
            steps, began = 0, time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                steps += play(next(numbers[name]))
            rates[name].append(steps / (time.perf_counter() - began))
    return rates


if __name__ == "__main__":
    for name, values in measure(
        {"logtriage core": play_core, "logtriage OpenEnv": openenv_player()}
    ).items():
        middle, least, most = statistics.median(values), min(values), max(values)
        print(f"{name:20} {middle:9,.0f} steps/s ({least:,.0f} to {most:,.0f})")
