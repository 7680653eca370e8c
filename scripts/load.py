"""Steps per second and latency of the server under hundreds of WebSocket sessions, beside OpenEnv's
own echo environment.

    python scripts/load.py        about 2 minutes; writes results/serving/load.json

Two servers run on free loopback ports of this machine: ours as `python -m logtriage serve` starts
it, and the echo environment of `openenv init`, generated into a temporary folder and changed in one
number, the sessions it allows. One client process plays whole episodes against them, in turns. It
is the cheapest honest one: a loop of `websockets`, without compression, that sends JSON texts made
beforehand and compares each answer, byte for byte, with that of the same episode played in this
process (its twin), also made beforehand.

A session sends its next message as soon as it has the answer to the last one. The load is therefore
whatever the server can take, and a step's latency is mostly waiting for the other sessions: about
sessions / (messages a second). Openings (`reset`) take their time, but are not counted as steps.
Client and server share the machine's cores: one each where there are two, since the server is one
process with one thread. Rounds alternate, and medians are reported. Both servers run on asyncio's
own event loop, as the package alone installs: uvloop, which Uvicorn takes where something brought
it, is hidden.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.serialization import serialize_observation
from openenv.core.env_server.types import Action, WSObservationResponse
from websockets.asyncio.client import connect

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import action_values
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS

ROOT = Path(__file__).parents[1]
SESSIONS = (64, 256)
ROOM = 2 * max(SESSIONS)  # on each server: sessions of the turn before may still be closing
EPISODES = 8  # different ones a session; it plays them again and again
INVALID = 0.1  # share of actions that do not exist, which cost a step as any other
WALK_AWAY = 0.1  # chance, at each step, that the agent closes the incident


class Play(NamedTuple):
    """An episode as it crosses the wire: the texts sent, opening first, and the texts that its twin
    was answered.
    """

    sent: list[str]
    answers: list[str]


class Turn(NamedTuple):
    """What one turn of load measured. Latencies are of steps, in milliseconds; `wrong` answers
    differ from the twin's.
    """

    steps_per_second: float
    p50_ms: float
    p99_ms: float
    client_busy: float  # share of a core; near 1 it would be the client that is measured
    steps: int
    wrong: int


def script(number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Arguments of `reset` and the actions of an episode: random ones, most of them valid."""
    random = Random(f"load/{number}")
    task = random.choice(list(TASKS))
    split = random.choice(list(SPLITS))
    index = random.randrange(10_000)
    incident = sample_incident(task, split, index)
    values, actions = action_values(incident.topology), []
    for _ in range(incident.task.max_steps):
        kind = random.choice([name for name in values if name not in ("resolve", "ignore")])
        action = {"action_type": kind, "value": random.choice(values[kind])}
        if random.random() < INVALID:
            action = random.choice(
                [
                    {**action, "value": "nobody"},
                    {"action_type": "sudo", "value": "make me a sandwich"},
                ]
            )
        elif random.random() < WALK_AWAY:
            action = {"action_type": random.choice(["resolve", "ignore"])}
        actions.append(action)
    return {"task": task, "split": split, "index": index}, actions


def twin(
    environment: Environment,
    action_class: type[Action],
    reset: dict[str, Any],
    actions: list[dict[str, Any]],
) -> Play:
    """The episode played in this process, up to its end, and put into the bytes that OpenEnv would
    send.
    """
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
    """Episodes of ours: all tasks and splits, valid and invalid actions."""
    return [twin(TriageEnvironment(), TriageAction, *script(number)) for number in range(count)]


def echo_plays(plays: list[Play]) -> list[Play]:
    """The same episodes for the echo environment, which is told our actions as its messages."""
    from echo_env.models import EchoAction
    from echo_env.server.echo_env_environment import EchoEnvironment

    messages = [
        [{"message": " ".join(json.loads(text)["data"].values())} for text in play.sent[1:]]
        for play in plays
    ]
    return [twin(EchoEnvironment(), EchoAction, {}, actions) for actions in messages]


def make_echo(folder: Path) -> None:
    """OpenEnv's template in `folder`/echo_env, with room for as many sessions as ours has, and what
    hides uvloop.
    """
    command = [sys.executable, "-m", "openenv.cli", "init", "echo_env", "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    app = folder / "echo_env" / "server" / "app.py"
    before, after = "max_concurrent_envs=1,", f"max_concurrent_envs={ROOM},"
    if app.read_text().count(before) != 1:
        raise RuntimeError(
            f"the template of openenv {version('openenv')} does not hold {before!r} once; look at"
            " it anew"
        )
    app.write_text(app.read_text().replace(before, after))
    (folder / "uvloop.py").write_text("raise ImportError\n")
    sys.path.insert(0, str(folder))


@contextmanager
def running(arguments: list[str], cwd: Path, path: Path) -> Iterator[str]:
    """A server started in `cwd` with `python -m ARGUMENTS --host --port`; its WebSocket's address
    once it is healthy.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", *arguments, "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile("w+") as log:
        environment = {**os.environ, "PYTHONPATH": str(path)}
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            until = time.monotonic() + 120
            while not _healthy(port):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise RuntimeError(f"{arguments[0]} does not serve:\n{log.read()}")
                time.sleep(0.1)
            yield f"ws://127.0.0.1:{port}/ws"
        finally:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False


async def load(url: str, plays: list[Play], sessions: int, seconds: float) -> Turn:
    """So many sessions at once, each with episodes of its own, for so long from the moment when all
    of them are there.
    """
    everybody, latencies, wrong = asyncio.Barrier(sessions + 1), [], 0

    async def one(own: list[Play]) -> None:
        nonlocal wrong
        async with connect(
            url, compression=None, max_size=None, proxy=None, open_timeout=60
        ) as socket:
            await everybody.wait()
            until = time.perf_counter() + seconds
            for play in cycle(own):
                for number, (message, answer) in enumerate(zip(*play, strict=True)):
                    began = time.perf_counter()
                    await socket.send(message)
                    got = await socket.recv()
                    wrong += (
                        got != answer
                    )  # in one piece: across an `await`, others' counts would be lost
                    now = time.perf_counter()
                    if now > until:
                        return
                    if number:
                        latencies.append(now - began)

    async with asyncio.timeout(seconds + 180), asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(one(plays[number * EPISODES : (number + 1) * EPISODES]))
        await everybody.wait()
        busy = time.process_time()
        await asyncio.sleep(seconds)
        busy = time.process_time() - busy
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    return Turn(len(latencies) / seconds, p50, p99, busy / seconds, len(latencies), wrong)


def measure(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Rows of the table: for each number of sessions, ours and the echo environment, medians over
    the rounds.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        make_echo(Path(folder))
        ours = our_plays(max(SESSIONS) * EPISODES)
        plays = {"logtriage": ours, "echo": echo_plays(ours)}
        urls = {
            "logtriage": stack.enter_context(
                running(["logtriage", "serve", "--sessions", str(ROOM)], ROOT, Path(folder))
            ),
            "echo": stack.enter_context(
                running(["echo_env.server.app"], Path(folder), Path(folder))
            ),
        }
        rows = []
        for sessions in SESSIONS:
            turns: dict[str, list[Turn]] = {name: [] for name in urls}
            for _ in range(rounds):
                for name, url in urls.items():
                    turns[name].append(asyncio.run(load(url, plays[name], sessions, seconds)))
            for name, measured in turns.items():
                middle = {
                    field: statistics.median(getattr(turn, field) for turn in measured)
                    for field in Turn._fields[:4]
                }
                total = {
                    field: sum(getattr(turn, field) for turn in measured)
                    for field in Turn._fields[4:]
                }
                rounded = {field: round(value, 2) for field, value in middle.items()}
                rows.append({"server": name, "sessions": sessions, **rounded, **total})
    return rows


def main(
    seconds: Annotated[float, typer.Option(min=1.0, help="length of a turn")] = 8.0,
    rounds: Annotated[int, typer.Option(min=1, help="turns each")] = 3,
    json_path: Annotated[Path, typer.Option("--json", help="where the figures go")] = ROOT
    / "results/serving/load.json",
) -> None:
    """Measure, print the table, write the figures; exit code 1 when one answer was not its twin."""
    rows = measure(seconds, rounds)
    echo = {row["sessions"]: row["steps_per_second"] for row in rows if row["server"] == "echo"}
    for row in rows:
        row["of_echo"] = round(row["steps_per_second"] / echo[row["sessions"]], 2)
    print(pd.DataFrame(rows).to_string(index=False))
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine |= {name: version(name) for name in ("openenv", "uvicorn", "websockets", "pydantic")}
    figures = {"machine": machine, "seconds": seconds, "rounds": rounds, "rows": rows}
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps(figures, indent=1) + "\n")
    if any(row["wrong"] for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
