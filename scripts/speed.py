"""Steps per second of the simulator, observation text included, one core, in process: `make speed`.

Machines are noisy, so both ways to play take turns over several rounds, and the median counts.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

ROUNDS, SECONDS = 5, 1.0  # turns of each way, and the length of one
ASKED = [DEFAULT_TOPOLOGY.names[position] for position in (0, 2, 5)]  # the last is a database
SCRIPT = [
    *(Action("request_more_logs", (name,)) for name in ASKED),
    Action("classify_severity", ("P1",)),
    Action("identify_root_cause", (ASKED[-1],)),
    Action("remediate", ("kill-query", ASKED[-1])),
    Action("escalate", ("dba",)),
    Action("resolve"),
]  # eight steps, the length of the shortest task
ENVIRONMENT = TriageEnvironment()
MESSAGES = [TriageAction(action_type=action.type, value=action.value) for action in SCRIPT]


def play_core(number: int) -> None:
    """Play episode `number` in the lean core that training uses, rendering every observation."""
    episode = Episode.open([*TASKS][number % 3], "train", number)
    render(episode.opening, episode.incident.topology)
    for action in SCRIPT:
        render(episode.act(action))


def play_openenv(number: int) -> None:
    """Play the same in the OpenEnv environment, with its own types of actions and observations."""
    ENVIRONMENT.reset(task=[*TASKS][number % 3], split="train", index=number)
    for message in MESSAGES:
        ENVIRONMENT.step(message)


def rate(play: Callable[[int], None], numbers: Iterator[int]) -> float:
    """Steps per second of one turn, on new episodes."""
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        play(next(numbers))
        steps += len(SCRIPT)
    return steps / (time.perf_counter() - began)


if __name__ == "__main__":
    players = {"logtriage core": play_core, "logtriage OpenEnv": play_openenv}
    numbers = {name: count() for name in players}
    rates = [
        {name: rate(play, numbers[name]) for name, play in players.items()} for _ in range(ROUNDS)
    ]
    for name in players:
        values = [turn[name] for turn in rates]
        middle, least, most = statistics.median(values), min(values), max(values)
        print(f"{name:20} {middle:9,.0f} steps/s ({least:,.0f} to {most:,.0f})")
