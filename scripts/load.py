"""Steps per second and latency of the server under hundreds of WebSocket sessions, beside OpenEnv's
own echo environment.

    python scripts/load.py        about 2 minutes; writes results/serving/load.json

Two servers run on loopback: ours as `python -m logtriage serve` starts it, and the echo environment
of `openenv init`, changed in one number, the sessions it allows. One client process plays whole
episodes against them, in turns. It compares each answer, byte for byte, with that of the same
episode played in this process (its twin), made beforehand.

A session sends its next message as soon as it has an answer, so a step's latency is mostly waiting
for the other sessions. Openings take their time, but are not counted as steps. Rounds alternate;
medians are reported. Both servers run on asyncio's own event loop: uvloop is hidden.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import requests
from openenv.core.env_server.serialization import serialize_observation
from openenv.core.env_server.types import WSObservationResponse
from websockets.asyncio.client import connect

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import action_values
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS

ROOT = Path(__file__).parents[1]
SESSIONS, ROUNDS, SECONDS = (64, 256), 3, 8.0
ROOM = 2 * max(SESSIONS)  # on each server: sessions of the turn before may still be closing
EPISODES = 8  # different ones in a session, which plays them again and again
PORTS = {"logtriage": 8701, "echo": 8702}


class Play(NamedTuple):
    """The texts that an episode sends, opening first, and the texts that its twin was answered."""

    sent: list[str]
    answers: list[str]


class Turn(NamedTuple):
    """One turn of load. Latencies are of steps; `wrong` answers differ from the twin's."""

    steps_per_second: float
    p50_ms: float
    p99_ms: float
    steps: int
    wrong: int


def twin(environment: Any, action_class: Any, reset: dict, actions: list[dict]) -> Play:
    """The episode played in this process, up to its end, in the bytes that OpenEnv would send."""
    observations, sent = [environment.reset(**reset)], [{"type": "reset", "data": reset}]
    for action in actions:
        if not observations[-1].done:
            observations.append(environment.step(action_class(**action)))
            sent.append({"type": "step", "data": action})
    answers = [
        WSObservationResponse(data=serialize_observation(one)).model_dump_json()
        for one in observations
    ]
    return Play([json.dumps(message) for message in sent], answers)


def our_plays(count: int) -> list[Play]:
    """Random episodes of all tasks and splits; one action in ten does not exist."""
    plays = []
    for number in range(count):
        random = Random(f"load/{number}")
        task, split = random.choice(list(TASKS)), random.choice(list(SPLITS))
        values = action_values(sample_incident(task, split, number).topology)
        values["sudo"] = ("make me a sandwich",)
        kinds = random.choices(list(values), [2, 2, 2, 2, 2, 0.6, 0.6, 1], k=TASKS[task].max_steps)
        actions = [{"action_type": one, "value": random.choice(values[one])} for one in kinds]
        reset = {"task": task, "split": split, "index": number}
        plays.append(twin(TriageEnvironment(), TriageAction, reset, actions))
    return plays


def echo_plays(plays: list[Play]) -> list[Play]:
    """The same episodes for the echo environment, whose messages are our actions."""
    from echo_env.models import EchoAction
    from echo_env.server.echo_env_environment import EchoEnvironment

    messages = [[{"message": text} for text in play.sent[1:]] for play in plays]
    return [twin(EchoEnvironment(), EchoAction, {}, actions) for actions in messages]


def make_echo(folder: Path) -> None:
    """OpenEnv's template in `folder`/echo_env with room for as many sessions, and what hides
    uvloop.
    """
    command = [sys.executable, "-m", "openenv.cli", "init", "echo_env", "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    app = folder / "echo_env" / "server" / "app.py"
    source = app.read_text()
    if "max_concurrent_envs=1," not in source:
        raise RuntimeError("OpenEnv's template has changed; see where it limits its sessions")
    app.write_text(source.replace("max_concurrent_envs=1,", f"max_concurrent_envs={ROOM},"))
    (folder / "uvloop.py").write_text("raise ImportError\n")
    sys.path.insert(0, str(folder))


@contextmanager
def running(module: list[str], port: int, path: Path) -> Iterator[None]:
    """A server, once it is healthy."""
    command = [sys.executable, "-m", *module, "--host", "127.0.0.1", "--port", str(port)]
    paths = os.pathsep.join((str(path), str(ROOT)))
    process = subprocess.Popen(command, cwd=path, env={**os.environ, "PYTHONPATH": paths})
    try:
        while True:
            try:
                requests.get(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except requests.ConnectionError:
                if process.poll() is not None:
                    raise
                time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(30)


async def load(url: str, plays: list[Play], sessions: int, seconds: float) -> Turn:
    """So many sessions at once, each with its own episodes, for so long from the moment when all of
    them are there.
    """
    everybody, latencies, wrong = asyncio.Barrier(sessions + 1), [], 0

    async def one(own: list[Play]) -> None:
        nonlocal wrong
        async with connect(url, compression=None, max_size=None, proxy=None) as socket:
            await everybody.wait()
            until = time.perf_counter() + seconds
            for play in cycle(own):
                for number, (message, answer) in enumerate(zip(*play, strict=True)):
                    began = time.perf_counter()
                    await socket.send(message)
                    got = await socket.recv()
                    wrong += got != answer  # after the await: other sessions count here too
                    now = time.perf_counter()
                    if now > until:
                        return
                    if number:
                        latencies.append(now - began)

    async with asyncio.timeout(seconds + 180), asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(one(plays[number * EPISODES : (number + 1) * EPISODES]))
        await everybody.wait()
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    return Turn(len(latencies) / seconds, p50, p99, len(latencies), wrong)


def summary(turns: list[Turn]) -> dict[str, float]:
    """Medians of the rates and latencies, and sums of what was counted."""
    columns = {name: [getattr(turn, name) for turn in turns] for name in Turn._fields}
    middle = {name: round(statistics.median(columns[name]), 2) for name in Turn._fields[:3]}
    return {**middle, "steps": sum(columns["steps"]), "wrong": sum(columns["wrong"])}


def main() -> None:
    """Measure both servers and write the figures; exit status 1 when an answer was wrong."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        make_echo(Path(folder))
        ours = our_plays(max(SESSIONS) * EPISODES)
        plays = {"logtriage": ours, "echo": echo_plays(ours)}
        serve = ["logtriage", "serve", "--sessions", str(ROOM)]
        for name, module in (("logtriage", serve), ("echo", ["echo_env.server.app"])):
            stack.enter_context(running(module, PORTS[name], Path(folder)))
        rows = []
        for sessions in SESSIONS:
            turns: dict[str, list[Turn]] = {name: [] for name in PORTS}
            for name in list(PORTS) * ROUNDS:
                url = f"ws://127.0.0.1:{PORTS[name]}/ws"
                turns[name].append(asyncio.run(load(url, plays[name], sessions, SECONDS)))
            echo = summary(turns["echo"])["steps_per_second"]
            for name, measured in turns.items():
                row = {"server": name, "sessions": sessions, **summary(measured)}
                rows.append({**row, "of_echo": round(row["steps_per_second"] / echo, 2)})
                print(rows[-1])
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine |= {name: version(name) for name in ("openenv", "uvicorn", "websockets", "pydantic")}
    figures = {"machine": machine, "seconds": SECONDS, "rounds": ROUNDS, "rows": rows}
    path = ROOT / "results" / "serving" / "load.json"
    path.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
