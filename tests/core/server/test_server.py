"""The server as its clients meet it, over a loopback socket: one process serves all tests."""

import asyncio
import json
import re
import socket
import time
from random import Random

import pytest
import requests
from helpers import ROOT, SESSIONS, serving, serving_here
from openenv.cli.__main__ import app as openenv
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from logtriage.client import LogtriageEnv
from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import ACTION_TYPES, action_values
from logtriage.server.app import MAX_MESSAGE, make_app
from logtriage.world.faults import FAULTS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS


class Wire:
    """One WebSocket session, as the bytes that cross it: `frames` keeps every text received."""

    def __init__(self, url, query=""):
        address = url.replace("http", "ws") + "/ws" + query
        self.opening = connect(address, max_size=2**24, close_timeout=1)
        self.frames = []

    def __enter__(self):
        self.socket = self.opening.__enter__()
        return self

    def __exit__(self, *error):
        self.opening.__exit__(*error)

    def raw(self, message):
        self.socket.send(message)
        self.frames.append(self.socket.recv(timeout=20))
        return json.loads(self.frames[-1])

    def say(self, kind, data=None):
        return self.raw(json.dumps({"type": kind, **({} if data is None else {"data": data})}))

    def do(self, action_type, value=""):
        return self.say("step", {"action_type": action_type, "value": value})


def on_wire(observation):
    """An observation as OpenEnv puts it on the wire."""
    fields = json.loads(observation.model_dump_json())
    reward, done = fields.pop("reward"), fields.pop("done")
    return {"observation": fields, "reward": reward, "done": done}


def reset(**data):
    return json.dumps({"type": "reset", "data": data})


def step(**data):
    return json.dumps({"type": "step", "data": {"action_type": "escalate", **data}})


# What a program sends that it should not, and what the answer says. OpenEnv alone ends the session
# over the first eight.
BAD_MESSAGES = {
    "a list": ("[]", "expected a JSON object, got list"),
    "binary": (b'{"type": "state"}', "send JSON as text"),
    "an endless integer": ('{"type": "reset", "data": {"index": ' + "9" * 5000 + "}}", "limit"),
    "half a surrogate": ('{"type": "step", "data": {"action_type": "\\ud800"}}', "Unicode"),
    "half a surrogate as key": ('{"type": "step", "data": {"\\udfff": 1}}', "Unicode"),
    "too deep": ('{"type": "step", "data": {"value": ' + "[" * 300 + "]" * 300 + "}}", "depth"),
    "deep enough to be quoted or not": (
        '{"type": "step", "data": {"value": ' + "[" * 248 + "]" * 248 + "}}",
        "depth|valid string",
    ),
    "far too deep": ("[" * 100_000, "nested too deep|Expecting value"),
    "no JSON": ("{", "Invalid JSON"),
    "no number": (step(confidence=float("nan")), "than or equal to 1"),
    "no type": ("{}", "unknown message type None; choose one of reset, step, state, close"),
    "a type that is no text": ('{"type": ["step"]}', "unknown message type"),
    "OpenEnv's way to sessions without a socket": ('{"type": "mcp", "data": {}}', "'mcp'"),
    "thousands of fields": (
        json.dumps({"type": "step", "data": {str(i): 0 for i in range(9_000)}}),
        "Extra inputs are not permitted",
    ),
    "no data": ('{"type": "step"}', "Field required"),
    "unknown field of the action": (step(truth=True), "Extra inputs are not permitted"),
    "huge action type": (step(action_type="x" * 100_000), "at most 64 characters"),
    "confidence above 1": (step(confidence=1e300), "less than or equal to 1"),
    "unknown task": (reset(task="x" * 100_000), "choose one of single_crash"),
    "unknown split": (reset(split=["test"]), "choose one of train"),
    "no index": (reset(index=float("nan")), "index must be an integer"),
    "unknown argument": (reset(difficulty="easy"), "unknown argument 'difficulty'"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a server as users start it."""
    with serving(tmp_path_factory.mktemp("server") / "log") as address:
        yield address


def test_a_bad_message_is_answered_and_changes_nothing(url):
    env = TriageEnvironment()
    where = {"task": "silent_degradation", "split": "test", "index": 3}
    with Wire(url) as wire:
        assert wire.say("reset", where)["data"] == on_wire(env.reset(**where))
        for name, (message, expected) in BAD_MESSAGES.items():
            answer = wire.raw(message)
            assert answer["type"] == "error" and answer["data"]["code"], name
            assert re.search(expected, json.dumps(answer["data"])), (name, wire.frames[-1][:300])
            # Answers that grow beyond all measure would stall everybody.
            assert len(wire.frames[-1]) < 20_000 + 20 * len(message), name
        state = wire.say("state")["data"]
        assert state["step_count"] == 0 and state["index"] == 3 and not state["done"]
        seen = env.step(TriageAction(action_type="request_more_logs", value="all"))
        assert wire.do("request_more_logs", "all")["data"] == on_wire(seen)


def test_steps_out_of_order_are_errors_and_the_session_lives(url):
    with Wire(url) as wire:
        early = wire.do("resolve")
        assert early["type"] == "error" and "call reset first" in early["data"]["message"]
        wire.say("reset", {"task": "single_crash", "index": 0})
        seen = wire.do("escalate", "__import__('os').system('id')")["data"]["observation"]
        assert seen["step"] == 1 and "choose one of sre" in seen["error"]  # it costs a step
        assert wire.do("resolve")["data"]["done"]
        score = wire.say("state")["data"]["score"]
        late = wire.do("remediate", "restart:user-db")
        assert late["type"] == "error" and "Incident closed" in late["data"]["message"]
        assert wire.say("state")["data"]["score"] == score
        opening = wire.say("reset", {"task": "single_crash", "index": 1})["data"]["observation"]
        assert opening["step"] == 0


def test_a_frame_that_is_too_long_ends_its_session_and_no_other(url):
    with Wire(url) as wire, Wire(url) as other:
        other.say("reset", {"index": 1})
        with pytest.raises(ConnectionClosed, match="1009"):
            wire.raw("x" * (MAX_MESSAGE + 1))
        assert other.say("state")["data"]["step_count"] == 0


BAD_REQUESTS = [
    ("/reset", {"task": "nope"}, "choose one of single_crash"),
    ("/reset", {"seed": "\ud800"}, "seed"),
    ("/step", {"action": {"action_type": "resolve"}}, "keeps no session"),
    ("/step", {"action": {"action_type": "\ud800"}}, "action_type"),
    ("/step", {"action": {"action_type": "x" * MAX_MESSAGE}}, f"at most {MAX_MESSAGE} bytes"),
    ("/logtriage/num_tasks", {"split": "dev"}, "choose one of train"),
    ("/logtriage/task", {"split": "test", "index": 10**30}, "Invalid task index"),
]


@pytest.mark.parametrize("path, body, expected", BAD_REQUESTS)
def test_a_bad_plain_request_is_the_clients_mistake(url, path, body, expected):
    answer = requests.post(url + path, json=body, timeout=10)
    assert 400 <= answer.status_code < 500 and expected in json.dumps(answer.json()), answer.text


def script(number):
    """A session's coordinates and actions, all different, most of them sensible, some not."""
    random = Random(f"session/{number}")
    task, split = random.choice(list(TASKS)), random.choice(list(SPLITS))
    values = action_values(sample_incident(task, split, number).topology)
    kinds = [random.choice((*ACTION_TYPES[:5], "sudo")) for _ in range(20)]
    return (task, split, number), [(kind, random.choice(values.get(kind, ("",)))) for kind in kinds]


async def play(url, number, barrier):
    """Every observation of one session and its last state, played among all others."""
    (task, split, index), actions = script(number)
    async with LogtriageEnv(base_url=url) as env:
        where = {"task": task, "split": split, "index": index}
        seen = [await env.reset(**where, episode_id=f"session {number}")]
        await barrier.wait()  # nobody goes on before everybody is there
        for kind, value in actions:
            if not seen[-1].done:
                seen.append(await env.step(TriageAction(action_type=kind, value=value)))
        return [result.observation for result in seen], await env.state()


def test_sessions_are_isolated(url):
    async def everybody(count):
        barrier = asyncio.Barrier(count)
        return await asyncio.gather(*(play(url, number, barrier) for number in range(count)))

    for number, (seen, state) in enumerate(asyncio.run(everybody(64))):
        (task, split, index), actions = script(number)
        env = TriageEnvironment()
        twin = [env.reset(task=task, split=split, index=index, episode_id=f"session {number}")]
        for kind, value in actions:
            if not twin[-1].done:
                twin.append(env.step(TriageAction(action_type=kind, value=value)))
        assert seen == twin and state == env.state, number


def fill(url):
    """Connections that hold all sessions of the server; waits until there is room for them."""
    crowd, until = [], time.monotonic() + 20
    while len(crowd) < SESSIONS:
        session = connect(url.replace("http", "ws") + "/ws", close_timeout=1)
        session.send('{"type": "reset"}')
        if '"observation"' in session.recv(timeout=20):
            crowd.append(session)
        else:
            session.close()
            assert time.monotonic() < until, "sessions are still held"
            time.sleep(0.05)
    return crowd


def test_a_full_server_says_so_and_clients_that_vanish_are_freed(url):
    for _ in range(2):  # and again: not one session of the crowd before was leaked
        crowd = fill(url)
        with (
            pytest.raises(RuntimeError, match="CAPACITY_REACHED"),
            LogtriageEnv(base_url=url).sync() as env,
        ):
            env.reset()
        for session in crowd:  # as when its process is killed: without a word
            session.socket.shutdown(socket.SHUT_RDWR)


def test_no_request_makes_or_ends_sessions_beyond_the_limit(url):
    with Wire(url) as wire:
        wire.say("reset", {"index": 1})
        for method in ("openenv/session/create", "openenv/session/close", "tools/call"):
            ask = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"session_id": ["x"]}}
            answer = requests.post(f"{url}/mcp", json=ask, timeout=10)
            assert answer.status_code == 200 and answer.json()["id"] == 1
            assert "needs a session; send initialize" in answer.json()["error"]["message"]
        with pytest.raises(InvalidStatus), connect(url.replace("http", "ws") + "/mcp"):
            pass
        # A socket that asks for a session of that name gets a new one: nothing was reset in it.
        with Wire(url, "?session_id=1") as other:
            assert other.say("state")["data"]["task"] == ""


def test_an_idle_session_is_told_and_closed(monkeypatch):
    # That its room is free again: `test_remote`.
    monkeypatch.setattr("logtriage.server.app.IDLE_SECONDS", 0.5)
    with serving_here(make_app(1)) as url, Wire(url) as wire:
        said = json.loads(wire.socket.recv(timeout=5))["data"]
        assert "no message for 0.5 s" in said["message"] and said["code"] == "SESSION_ERROR"
        with pytest.raises(ConnectionClosed):
            wire.socket.recv(timeout=5)


def test_plain_requests_show_nothing_of_an_open_incident(url):
    with Wire(url) as wire:
        wire.say("reset", {"task": "cascading_failure", "split": "test", "index": 7})
        paths = ("state", "metadata", "schema", "health", "logtriage/splits", "openapi.json")
        text = " ".join(requests.get(f"{url}/{path}", timeout=10).text for path in paths)
        ask = {"split": "test", "start": 0, "stop": 30}
        text += requests.post(f"{url}/logtriage/task_range", json=ask, timeout=10).text
        assert requests.get(f"{url}/state", timeout=10).json()["task"] == ""
        assert not any(re.search(rf"\b{name}\b", text) for name in FAULTS)


@pytest.mark.parametrize("level", ["server", "static"])
def test_openenv_validate_passes(url, level, monkeypatch):
    monkeypatch.chdir(ROOT)
    options = {"server": ["--url", url], "static": ["logtriage", "--level", "static"]}[level]
    result = CliRunner().invoke(openenv, ["validate", *options])
    assert result.exit_code == 0 and "Verdict: PASS" in result.output, result.output
    assert "FAIL" not in result.output
