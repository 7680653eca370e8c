"""The server as its clients meet it, over a loopback socket: one process serves all tests."""

import asyncio
import json
import re
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
import requests
from conftest import SESSIONS
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from openenv.validation.runner import run_validation
from openenv.validation.runtime.collector import collect_runtime_evidence
from openenv.validation.runtime.contracts import load_runtime_plan
from openenv.validation.types import Level, ProviderCapability
from test_environment import TRUTH, investigation, keys
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from logtriage.client import LogtriageEnv
from logtriage.environment import RESET_SECONDS, TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import ACTION_TYPES, action_values
from logtriage.server.guard import (
    MAX_DEPTH,
    MAX_FRAME,
    MAX_ITEMS,
    MAX_MESSAGE,
    Guard,
    check_message,
)
from logtriage.world.faults import FAULTS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS

ROOT = Path(__file__).parents[2]


class Wire:
    """One WebSocket session, as the bytes that cross it: `frames` keeps every text received."""

    def __init__(self, url):
        self.opening = connect(url.replace("http", "ws") + "/ws", max_size=2**24, close_timeout=1)
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


# -- what a program sends that it should not
# --------------------------------------------------------------------------

step = {"action_type": "escalate", "value": "sre"}
NO_MESSAGES = {
    "no JSON": ("{", "Invalid JSON"),
    "a list": ("[]", "a message is a JSON object, got list"),
    "a number": ("5", "a message is a JSON object, got int"),
    "null": ("null", "a message is a JSON object, got NoneType"),
    "binary": (b'{"type": "state"}', "send JSON as text"),
    "an endless integer": ('{"type": "reset", "data": {"index": ' + "9" * 5000 + "}}", "limit"),
    "no number": (
        '{"type": "step", "data": {"action_type": "resolve", "confidence": NaN}}',
        "NaN is no JSON",
    ),
    "half a surrogate": ('{"type": "step", "data": {"action_type": "\\ud800"}}', "surrogate"),
    "half a surrogate as key": ('{"type": "step", "data": {"\\udfff": 1}}', "surrogate"),
    "too deep": (
        '{"type": "reset", "data": {"task": ' + "[" * 300 + "]" * 300 + "}}",
        "nested too deep",
    ),
    "far too deep": ("[" * 100_000, "nested too deep|Expecting value"),
    "too long": ('{"type": "state", "x": "' + "x" * MAX_MESSAGE + '"}', f"at most {MAX_MESSAGE}"),
}
NO_REQUESTS = {
    "no type": ({}, "unknown message type None; choose one of reset, step, state, close"),
    "unknown type": ({"type": "cheat"}, "unknown message type 'cheat'"),
    "a type that is no text": ({"type": ["step"]}, "unknown message type"),
    "a huge type": ({"type": "x" * 200_000}, r"unknown message type 'x+\.\.\.; choose"),
    "OpenEnv's way to sessions without a socket": (
        {"type": "mcp", "data": {}},
        "unknown message type 'mcp'",
    ),
    "thousands of fields": (
        {"type": "step", "data": {str(i): 0 for i in range(9_000)}},
        "too many fields",
    ),
    "no data": ({"type": "step"}, "Field required"),
    "data of a wrong type": ({"type": "step", "data": "resolve"}, "valid dictionary"),
    "unknown field of the message": (
        {"type": "state", "truth": True},
        "Extra inputs are not permitted",
    ),
    "unknown field of the action": (
        {"type": "step", "data": {**step, "truth": True}},
        "Extra inputs are not permitted",
    ),
    "no action type": ({"type": "step", "data": {"value": "sre"}}, "Field required"),
    "action type of a wrong type": ({"type": "step", "data": {"action_type": 7}}, "valid string"),
    "value of a wrong type": (
        {"type": "step", "data": {**step, "value": {"a": [1]}}},
        "valid string",
    ),
    "huge action type": (
        {"type": "step", "data": {"action_type": "x" * 100_000}},
        "at most 64 characters",
    ),
    "huge value": (
        {"type": "step", "data": {**step, "value": "x" * 100_000}},
        "at most 256 characters",
    ),
    "huge reasoning": (
        {"type": "step", "data": {**step, "reasoning": "x" * 20_001}},
        "at most 20000 characters",
    ),
    "confidence above 1": (
        {"type": "step", "data": {**step, "confidence": 1e300}},
        "less than or equal to 1",
    ),
    "unknown task": (
        {"type": "reset", "data": {"task": "x" * 100_000}},
        "choose one of single_crash",
    ),
    "task of a wrong type": (
        {"type": "reset", "data": {"task": {"name": "single_crash"}}},
        "choose one of single_crash",
    ),
    "unknown split": ({"type": "reset", "data": {"split": ["test"]}}, "choose one of train"),
    "index below 0": ({"type": "reset", "data": {"index": -1}}, "got -1"),
    "index of a wrong type": ({"type": "reset", "data": {"index": "7"}}, "got '7'"),
    "huge index": ({"type": "reset", "data": {"index": 10**100}}, "index must be an integer"),
    "seed of a wrong type": ({"type": "reset", "data": {"seed": 0.5}}, "got 0.5"),
    "episode id of a wrong type": (
        {"type": "reset", "data": {"episode_id": {}}},
        "text of at most 255 characters",
    ),
    "unknown argument": (
        {"type": "reset", "data": {"difficulty": "easy"}},
        "unknown argument 'difficulty'",
    ),
    "an argument of Python's": ({"type": "reset", "data": {"self": 1}}, "unknown argument 'self'"),
}
MISTAKES = {
    **NO_MESSAGES,
    **{name: (json.dumps(message), told) for name, (message, told) in NO_REQUESTS.items()},
}


def test_a_mistake_is_answered_and_changes_nothing(url):
    env = TriageEnvironment()
    with Wire(url) as wire:
        opening = env.reset(task="silent_degradation", split="test", index=3)
        assert wire.say("reset", {"task": "silent_degradation", "split": "test", "index": 3})[
            "data"
        ] == on_wire(opening)
        for name, (message, told) in MISTAKES.items():
            answer = wire.raw(message)
            assert answer["type"] == "error" and answer["data"]["code"], name
            assert re.search(told, json.dumps(answer["data"])), (name, wire.frames[-1][:300])
        state = wire.say("state")["data"]
        assert state["step_count"] == 0 and state["index"] == 3 and not state["done"]
        seen = env.step(TriageAction(action_type="request_more_logs", value="all"))
        assert wire.do("request_more_logs", "all")["data"] == on_wire(seen)


def test_steps_out_of_order_are_errors_and_the_session_lives(url):
    with Wire(url) as wire:
        early = wire.do("resolve")
        assert early["type"] == "error" and "call reset first" in early["data"]["message"]
        assert wire.say("state")["data"]["task"] == ""
        wire.say("reset", {"task": "single_crash", "index": 0})
        assert wire.do("resolve")["data"]["done"]
        score = wire.say("state")["data"]["score"]
        late = wire.do("remediate", "restart:user-db")
        assert late["type"] == "error" and "Incident closed" in late["data"]["message"]
        assert wire.say("state")["data"]["score"] == score
        assert (
            wire.say("reset", {"task": "single_crash", "index": 1})["data"]["observation"]["step"]
            == 0
        )


def test_an_invalid_action_costs_a_step_and_names_the_allowed_values(url):
    with Wire(url) as wire:
        wire.say("reset", {"task": "single_crash", "index": 0})
        seen = wire.do("escalate", "__import__('os').system('id')")["data"]["observation"]
        assert seen["step"] == 1 and "choose one of sre" in seen["error"]


def test_a_frame_beyond_all_bounds_ends_its_session_and_no_other(url):
    with Wire(url) as wire, Wire(url) as other:
        other.say("reset", {"index": 1})
        with pytest.raises(ConnectionClosed, match="1009"):
            wire.raw("x" * (MAX_FRAME + 1))
        assert other.say("state")["data"]["step_count"] == 0


JSON = {"Content-Type": "application/json"}
HTTP_MISTAKES = [
    ("POST", "/reset", {"task": "nope"}, "choose one of single_crash"),
    ("POST", "/reset", {"task": "\ud800"}, "choose one of single_crash"),
    ("POST", "/reset", {"self": 1}, "unknown argument 'self'"),
    ("POST", "/reset", {"seed": -1}, "greater than or equal to 0"),
    ("POST", "/reset", {"seed": "\ud800"}, "seed"),
    ("POST", "/step", {"action": {"action_type": "resolve"}}, "keeps no session"),
    ("POST", "/step", {"action": {"action_type": "resolve"}, "self": 1}, "keeps no session"),
    ("POST", "/step", {"action": {"action_type": "\ud800"}}, "action_type"),
    (
        "POST",
        "/step",
        {"action": {"action_type": "resolve", "confidence": float("nan")}},
        "confidence",
    ),
    ("POST", "/step", {"action": {"action_type": "resolve", "\ud800": 1}}, "unicode"),
    ("POST", "/step", {"action": [1]}, "valid dictionary"),
    (
        "POST",
        "/step",
        {"action": {"action_type": "x" * MAX_MESSAGE}},
        f"at most {MAX_MESSAGE} bytes",
    ),
    ("GET", "/elsewhere/splits", None, "unknown environment"),
    ("POST", "/logtriage/num_tasks", {"split": "dev"}, "choose one of train"),
    ("POST", "/logtriage/task", {"split": "test", "index": 10**30}, "Invalid task index"),
]


@pytest.mark.parametrize("method, path, body, told", HTTP_MISTAKES)
def test_a_mistake_in_plain_http_is_the_clients(url, method, path, body, told):
    answer = requests.request(
        method, url + path, data=body and json.dumps(body), headers=JSON, timeout=10
    )
    assert 400 <= answer.status_code < 500 and told in json.dumps(answer.json()), answer.text


def test_bodies_that_are_no_json_are_answered(url):
    for body in (b"{", b"[" * 100_000, b"\xff\xfe", b'{"seed": ' + b"9" * 5000 + b"}"):
        for path in ("/reset", "/step", "/logtriage/task"):
            assert (
                400
                <= requests.post(url + path, data=body, headers=JSON, timeout=10).status_code
                < 500
            )
        assert "error" in requests.post(f"{url}/mcp", data=body, timeout=10).json()


# -- sessions
# ---


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
        seen = [
            await env.reset(task=task, split=split, index=index, episode_id=f"session {number}")
        ]
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


CROWD = """
import sys, time
from contextlib import ExitStack
from websockets.sync.client import connect
with ExitStack() as stack:
    for _ in range(int(sys.argv[2])):
        socket = stack.enter_context(connect(sys.argv[1], close_timeout=1))
        socket.send('{"type": "reset"}')
        assert '"observation"' in socket.recv()
    print("in", flush=True)
    time.sleep(600)
"""


def fill(url, sessions=SESSIONS):
    """Another process holds so many sessions of the server; waits until there is room for that."""
    until = time.monotonic() + 20
    while True:
        command = [sys.executable, "-c", CROWD, url.replace("http", "ws") + "/ws", str(sessions)]
        crowd = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if crowd.stdout.readline() == "in\n":
            return crowd
        crowd.wait()
        assert time.monotonic() < until, "sessions are still held"


def test_a_full_server_says_so_and_vanished_clients_are_freed(url):
    for _ in range(3):
        crowd = fill(url)  # again, and again: not one session of the crowd before was leaked
        with Wire(url) as late:
            told = json.loads(late.socket.recv(timeout=10))["data"]
            assert (
                told["code"] == "CAPACITY_REACHED" and f"{SESSIONS}/{SESSIONS}" in told["message"]
            )
        with (
            pytest.raises(RuntimeError, match="CAPACITY_REACHED"),
            LogtriageEnv(base_url=url).sync() as env,
        ):
            env.reset()
        crowd.kill()
        crowd.wait()


def test_no_request_makes_or_ends_sessions_past_their_count(url):
    with Wire(url) as wire:
        wire.say("reset", {"index": 1})
        for method in ("openenv/session/create", "openenv/session/close", "tools/list"):
            ask = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"session_id": ["x"]}}
            answer = requests.post(f"{url}/mcp", json=ask, timeout=10)
            assert answer.status_code == 200 and "no MCP tools" in answer.json()["error"]["message"]
        with pytest.raises(InvalidStatus), connect(url.replace("http", "ws") + "/mcp"):
            pass
        # A socket that asks for a session of that name gets one of its own: nothing was reset in
        # it.
        other = Wire(url)
        other.opening = connect(url.replace("http", "ws") + "/ws?session_id=1", close_timeout=1)
        with other:
            assert other.say("state")["data"]["task"] == ""


def test_frames_are_not_compressed(url):
    with connect(url.replace("http", "ws") + "/ws", close_timeout=1) as socket:
        assert "Sec-WebSocket-Extensions" not in socket.response.headers


def test_a_false_alarm_is_reset_no_sooner_than_a_fault():
    env, alarms = TriageEnvironment(), {True: [], False: []}
    for index in range(60):
        began = time.perf_counter()
        asyncio.run(env.reset_async(task="silent_degradation", split="test", index=index))
        false_alarm = sample_incident("silent_degradation", "test", index).injection is None
        alarms[false_alarm].append(time.perf_counter() - began)
    assert all(alarms.values()) and min(map(min, alarms.values())) >= RESET_SECONDS


def test_the_client_works_without_await(url):
    with LogtriageEnv(base_url=url).sync() as env:
        result = env.reset(task="single_crash", split="train", index=4)
        assert result.observation.max_steps == 8 and result.reward == 0.0 and not result.done
        action = TriageAction(
            action_type="identify_root_cause",
            value="user-db",
            confidence=0.25,
            reasoning="é 🙂 \u0000",
        )
        assert env.step(action).observation.notice == "root cause noted: user-db"
        assert env.step(TriageAction(action_type="resolve")).done
        assert (env.state().closed_by, env.state().confidence, env.state().step_count) == (
            "resolve",
            0.25,
            2,
        )
        with pytest.raises(RuntimeError, match="Incident closed"):
            env.step(action)


# -- the truth
# ---


@pytest.mark.parametrize("task", TASKS)
def test_only_what_the_environment_shows_is_on_the_wire(url, task):
    # What the environment shows is searched for the answers in test_environment; the wire adds
    # nothing to it.
    env = TriageEnvironment()
    with Wire(url) as wire:
        for index in range(5):
            incident = sample_incident(task, "test", index)
            shown = on_wire(env.reset(task=task, split="test", index=index))
            answer = wire.say("reset", {"task": task, "split": "test", "index": index})
            assert answer == {"type": "observation", "data": shown}
            for action in investigation(incident):
                answer = wire.do(action.action_type, action.value)
                assert answer == {"type": "observation", "data": on_wire(env.step(action))}
                state = wire.say("state")
                assert (
                    state == {"type": "state", "data": env.state.model_dump()}
                    and state["data"]["score"] == {}
                )
            if incident.injection:
                names = {incident.injection.fault.name, repr(incident.injection.intensity)}
                assert not any(
                    name in frame for name in names - {"crash", "overload"} for frame in wire.frames
                )
        assert not TRUTH & set().union(*(keys(json.loads(frame)) for frame in wire.frames))


def test_plain_requests_tell_nothing_of_an_open_incident(url):
    with Wire(url) as wire:
        wire.say("reset", {"task": "cascading_failure", "split": "test", "index": 7})
        paths = (
            "/state",
            "/metadata",
            "/schema",
            "/health",
            "/list_environments",
            "/logtriage/splits",
            "/openapi.json",
        )
        told = " ".join(requests.get(url + path, timeout=10).text for path in paths)
        told += requests.post(
            f"{url}/logtriage/task_range",
            json={"split": "test", "start": 0, "stop": 30},
            timeout=10,
        ).text
        assert requests.get(f"{url}/state", timeout=10).json()["task"] == ""
        assert not any(re.search(rf"\b{name}\b", told) for name in FAULTS)


# -- OpenEnv's own judgement
# ------------------------------------------------------------------------------------------


def openenv(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "openenv.cli", *arguments], capture_output=True, text=True, cwd=ROOT
    )


def test_openenv_validate_passes_on_the_server_and_on_the_package(url):
    for arguments in (("--url", url), ("logtriage", "--level", "static")):
        result = openenv("validate", *arguments)
        assert result.returncode == 0 and "Verdict: PASS" in result.stdout, (
            result.stdout + result.stderr
        )
        assert "FAIL" not in result.stdout


class LocalProvider:
    """Runs the server as a process, where OpenEnv's own provider needs a Docker engine. It cuts off
    no network.
    """

    name = "process"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes = frozenset({"no-network"})

    def __init__(self, url):
        self.base_url = url

    def build(self, root, execution):
        assert (root / execution.dockerfile).is_file()
        return "sha256:" + "0" * 64

    def start(self, spec):
        return self

    def inspect(self):
        return {}

    def stop(self):
        pass


def test_openenv_s_runtime_graders_pass(url):
    report = run_validation(
        ROOT / "logtriage", max_level=Level.RUNTIME, provider=LocalProvider(url)
    )
    passed = {check.check_id for check in report.results if check.status.value == "pass"}
    runtime = {
        f"runtime.{name}"
        for name in ("startup", "reward_well_formed", "observation_schema", "state_contract")
    }
    assert passed == {"static.manifest"} | runtime
    for check in report.results:
        if check.check_id not in passed:
            why = (
                "grader not implemented in this build",
                "missing provider capabilities: network_policy",
            )
            assert check.status.value == "skip" and check.evidence[0] in why


def test_the_runtime_plan_plays_to_the_end(url):
    manifest = OpenEnvYamlParser().parse(ROOT / "logtriage")
    plan = load_runtime_plan(ROOT / "logtriage", manifest.execution)
    evidence = collect_runtime_evidence(
        url, plan, episode_timeout_s=manifest.resources.episode_timeout_s
    )
    assert evidence.failure_reason is None and len(evidence.exchanges) == 2 * (
        1 + len(plan.actions)
    )
    assert json.loads(evidence.exchanges[-2].response_json)["data"]["done"]


def test_the_task_api_over_http_is_the_environments(url):
    env = TriageEnvironment()
    assert requests.get(f"{url}/logtriage/splits", timeout=10).json() == env.list_splits()
    ask = {"split": "test", "start": 4, "stop": 7}
    told = requests.post(f"{url}/logtriage/task_range", json=ask, timeout=10).json()["tasks"]
    assert told == env.get_task_range("test", 4, 7)
    with Wire(url) as wire:
        by_number = wire.say("reset", {"split": "test", "index": 4})
        assert by_number == wire.say("reset", told[0])


# -- the guard
# ---


def test_a_silent_session_is_told_so_and_closed():
    sent, heard = [], []

    async def silence():
        await asyncio.sleep(60)

    async def send(event):
        sent.append(json.loads(event["text"])["data"])

    async def session(scope, receive, send):
        heard.append(await receive())

    guarded = Guard(session, idle_seconds=0.05)({"type": "websocket"}, silence, send)
    asyncio.run(asyncio.wait_for(guarded, timeout=5))
    assert heard[0]["type"] == "websocket.disconnect"  # upon which OpenEnv frees the session
    assert "nothing heard for 0.05 s" in sent[0]["message"] and sent[0]["code"] == "SESSION_ERROR"


def test_errors_are_short_whatever_was_sent(url):
    # OpenEnv repeats what it refuses: a few messages a second that grow on their way back would
    # stall everybody.
    with Wire(url) as wire:
        for name, (message, _) in MISTAKES.items():
            wire.raw(message)
            assert len(wire.frames[-1]) < 20_000 + 2 * len(message), name


def test_the_count_of_fields_is_exact():
    check_message(json.dumps({"type": "step", "data": {str(i): [] for i in range(MAX_ITEMS - 2)}}))
    with pytest.raises(ValueError, match="too many fields"):
        check_message(
            json.dumps({"type": "step", "data": {str(i): [] for i in range(MAX_ITEMS - 1)}})
        )


@pytest.mark.parametrize("levels, fits", [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_the_bound_on_depth_is_exact(levels, fits):
    text = '{"type": "reset", "data": ' + '{"a": ' * (levels - 1) + "1" + "}" * levels
    with nullcontext() if fits else pytest.raises(ValueError, match="too deep"):
        check_message(text)
