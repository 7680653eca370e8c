"""Clients that are killed in the middle of an episode leave nothing behind on the server: no
session, no memory.
"""

import json
import subprocess
import sys
import time

import psutil
import pytest
from conftest import serving
from test_server import Wire, fill

ROOM = 10  # sessions, and clients in a wave: one session that is not freed shuts the next wave out
KILLS = 100

# A client that plays on until it is killed. It does without OpenEnv's, whose import takes seconds.
CLIENT = """
import sys
from itertools import count
from websockets.sync.client import connect
RESET = '{"type": "reset", "data": {"task": "silent_degradation", "split": "test", "index": 3}}'
STEP = '{"type": "step", "data": {"action_type": "request_more_logs", "value": "all"}}'
with connect(sys.argv[1]) as socket:
    for number in count():
        socket.send(STEP if number % 10 else RESET)
        assert '"observation"' in socket.recv(timeout=20)
        if number == 5:
            print("playing", flush=True)
"""


def start(url):
    command = [sys.executable, "-c", CLIENT, url.replace("http", "ws") + "/ws"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wave(url):
    """As many clients as there is room for, killed while all of them play."""
    players, until = [start(url) for _ in range(ROOM)], time.monotonic() + 30
    try:
        for seat in range(ROOM):
            while (
                players[seat].stdout.readline() != "playing\n"
            ):  # refused: the server is still clearing up
                assert time.monotonic() < until, "sessions of killed clients are still held"
                players[seat].wait()
                players[seat] = start(url)
    finally:
        for player in players:
            player.kill()
        for player in players:
            player.wait()


@pytest.fixture
def server(tmp_path):
    """A server of its own, since the memory of one that other tests use says nothing."""
    with serving(tmp_path / "log", ROOM) as running:
        yield running


def test_killed_clients_leave_no_session_and_no_memory(server):
    url, process = server
    resident = psutil.Process(process.pid).memory_info
    for _ in range(3):
        wave(url)  # until caches are filled and pools have grown: half a megabyte
    before = resident().rss
    for _ in range(KILLS // ROOM):
        wave(url)
    # Measured: 0.3 MB, the last of the pools' growth, which ends after some 900 clients.
    # Environments that are kept, and nothing else of a session, would be 25 kB each.
    assert resident().rss - before < KILLS * 20_000
    assert psutil.Process(process.pid).num_threads() < ROOM  # none a session
    crowd = fill(url, ROOM)
    try:
        with Wire(url) as late:
            told = json.loads(late.socket.recv(timeout=10))["data"]
        assert told["code"] == "CAPACITY_REACHED" and f"{ROOM}/{ROOM}" in told["message"]
    finally:
        crowd.kill()
        crowd.wait()
