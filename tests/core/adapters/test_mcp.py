"""Agents that speak MCP, honest and hostile: what they are told, and when."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import pytest
import requests
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from helpers import ROOT, first_answer, free_port, refusal, serving_here
from mcp.shared.memory import create_connected_server_and_client_session

from logtriage.adapters import mcp as door
from logtriage.play.actions import ACTION_ARGUMENTS, CHOICES
from logtriage.play.episode import Episode, final_score, incident_id
from logtriage.play.tools import ToolSession
from logtriage.server.app import make_app
from logtriage.world.faults import FAULTS
from logtriage.world.tasks import TASKS
from logtriage.world.topology_file import load_topology

COMMAND = [sys.executable, "-m", "logtriage", "mcp"]
INCIDENTS = 3  # of each task


def script(episode):
    """Calls for an incident, other ones for each: questions, answers right and wrong, nonsense."""
    incident = episode.incident
    random = Random(incident_id(episode))
    values = {**CHOICES, "service": (*incident.topology.names, "all")}
    right = {"service": incident.root, "remedy": incident.remedy, "team": incident.team}
    right = random.random() < 0.5 and {**right, "severity": incident.severity}
    for name in ("request_more_logs", "sudo", *list(ACTION_ARGUMENTS)[:4]):
        wrong = random.random() < 0.2
        arguments = ACTION_ARGUMENTS.get(name, ("service",))
        nonsense = {word: random.choice((7, ["sre"], {}, "x" * 1000)) for word in arguments}
        usual = right or {word: random.choice(values[word]) for word in arguments}
        yield name, nonsense if wrong else {word: usual[word] for word in arguments}
    yield random.choice(("resolve", "resolve", "ignore")), {}


async def play(client):
    """Open the next incident, play its script, and compare every answer with the same calls here.
    Returns its id.
    """
    opened = await client.call_tool_mcp("open_incident", {})
    heading, opening = opened.content[0].text.split("\n", 1)
    name = heading.removeprefix("incident ")
    task, split, index = name.split("/")
    episode = Episode.open(task, split, int(index))
    here = ToolSession(episode)
    assert opening == here.opening and opened.structuredContent is None
    for tool, arguments in script(episode):
        malformed, expected = here.malformed, here.call(tool, arguments)
        answer = await client.call_tool_mcp(tool, arguments)
        assert answer.isError is (here.malformed > malformed)
        if episode.done:
            break
        # All that is on the wire before the end, and nothing beside it.
        message = json.loads(answer.model_dump_json(exclude_none=True))
        content = [{"type": "text", "text": expected}]
        assert message == {"content": content, "isError": answer.isError}
        assert not set(re.findall(r"[a-z]+(?:-[a-z]+)+", expected)) & FAULTS.keys()
        assert not re.search(r"score|gate\b|fault\b", expected)
    end = answer.structuredContent
    assert episode.done and end["score"] == final_score(episode)._asdict()
    assert end["incident"] == name and end["root_cause"] == episode.incident.root
    assert answer.content[0].text.startswith(expected) and end["answer"] == expected
    assert json.loads(answer.content[0].text.splitlines()[-1]).items() <= end.items()
    return name


@asynccontextmanager
async def speaking(how, options):
    """Makes clients of the real command: a process for each, or one that serves them by HTTP."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if how == "stdio":
        arguments = [*COMMAND[1:], *options]
        yield lambda: Client(
            StdioTransport(COMMAND[0], arguments, env=environment, keep_alive=False)
        )
        return
    address = f"http://127.0.0.1:{(port := free_port())}/mcp"
    command = [*COMMAND, *options, "--http", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert address in process.stdout.readline()
        first_answer(address, process)  # what is said comes just before what is served
        yield lambda: Client(address)
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize("how", ["stdio", "http"])
def test_scores_are_those_of_the_same_calls_in_process(how):
    play_all(how, ["--split", "test", "--episodes", str(INCIDENTS)])


def play_all(how, options):
    """Play every incident by the real command; returns whether a client left one open."""

    async def session():
        async with speaking(how, options) as client:
            left = how == "http"  # by a client: the incident is closed, and not opened again
            if left:
                async with client() as leaving:
                    await leaving.call_tool_mcp("open_incident", {})
            async with client() as staying:
                names = [await play(staying) for _ in range(INCIDENTS * len(TASKS) - left)]
                more = await staying.call_tool_mcp("open_incident", {})
        assert more.isError and "every incident was opened once" in more.content[0].text
        assert names == [f"{task}/test/{n}" for n in range(INCIDENTS) for task in TASKS][left:]
        return left

    return asyncio.run(session())


def test_clients_at_once_do_not_mix(url):
    async def everybody():
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(Client(f"{url}/mcp")) for _ in range(4)]
            rounds = [await asyncio.gather(*map(play, clients)) for _ in range(3)]
            return [name for names in rounds for name in names]

    names = asyncio.run(everybody())
    assert len({*names}) == 12 and all("/train/" in name for name in names)


def test_the_schemas_hold_the_values_that_are_allowed():
    listed = {tool.name: tool.inputSchema for tool in door.tools()}
    assert listed.keys() == {door.OPEN, *ACTION_ARGUMENTS}
    for name, arguments in ACTION_ARGUMENTS.items():
        assert listed[name].get("required", []) == list(arguments)
        for argument in {*arguments} - {"service"}:
            values = listed[name]["properties"][argument]["enum"]
            assert values == list(CHOICES[argument])


def incidents(count=3):
    return (Episode.open("single_crash", "train", n) for n in range(count))


HOSTILE = [
    ("sudo", {}, "unknown tool 'sudo'; choose one of classify_severity"),
    ("x" * 50_000, {}, "unknown tool 'xxxx"),
    ("escalate", {"team": ["dba"]}, "unknown team \"['dba']\"; choose one of sre"),
    ("escalate", {"team": "x" * 50_000}, "unknown team 'xxxx"),
    ("escalate", {"team": "sre", "truth": 1}, "unexpected keyword argument"),
    ("escalate", {}, "missing a required argument: 'team'; it takes team"),
    ("remediate", {"remedy": {"a": [{}]}, "service": None}, "unknown remedy"),
    ("open_incident", {"index": 3}, "takes nothing, got {'index': 3}; leave it out"),
    ("open_incident", {}, "single_crash/train/0 is still open; close it by resolve or ignore"),
]


def test_a_bad_call_is_answered_with_the_way_out():
    closed = []

    async def session():
        server = door.make_server(incidents(), lambda *ended: closed.append(ended))
        async with create_connected_server_and_client_session(server) as client:
            early = await client.call_tool("resolve", {})
            assert early.isError and "call open_incident first" in early.content[0].text
            await client.call_tool("open_incident", {})
            for name, arguments, expected in HOSTILE:
                answer = await client.call_tool(name, arguments)
                text = answer.content[0].text
                assert answer.isError and expected in text and len(text) < 1000, name[:50]
            assert "step 8 of 8" in (await client.call_tool("resolve", {})).content[0].text
            late = await client.call_tool("resolve", {})
            assert late.isError and "call open_incident first" in late.content[0].text

    asyncio.run(session())
    assert len(closed) == 1 and closed[0][0].record.steps == 8  # seven bad actions cost a step each


def test_garbage_on_stdio_is_survived():
    deep = b'{"jsonrpc":"2.0","id":1,"method":' + b"[" * 100_000
    garbage = [b"", b"\xff\xfe", b"[]", b"{", b"null", deep, b'"' + b"x" * 1_000_000, b"{}"]
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}}
    begin["clientInfo"] = {"name": "raw", "version": "1"}
    asked = [("initialize", begin), ("tools/call", {"name": "resolve", "arguments": []})]
    asked += [("tools/list", {}), ("shutdown", {})]
    sent = [
        json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode()
        for n, (method, params) in enumerate(asked)
    ]
    sent.insert(1, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    with subprocess.Popen(
        COMMAND, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        out, _ = process.communicate(b"\n".join([*garbage, *sent[:2], *garbage, *sent[2:], b""]))
    assert process.returncode == 0
    messages = [json.loads(line) for line in out.splitlines()]  # nothing else is on it
    answers = {message["id"]: message for message in messages if "id" in message}
    assert answers[0]["result"]["serverInfo"]["name"] == "logtriage"
    assert "error" in answers[1] and "error" in answers[3]
    assert len(answers[2]["result"]["tools"]) == 8


@pytest.fixture
def local():
    """A server with room for two sessions: its address."""
    with serving_here(door.http_router(door.make_server(incidents()), 2)) as address:
        yield f"{address}/mcp"


HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def ask(url, method, params=None, **headers):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return requests.post(url, json=body, headers={**HEADERS, **headers}, timeout=10)


def begin(url):
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}}
    answer = ask(url, "initialize", {**asked, "clientInfo": {"name": "raw", "version": "1"}})
    session = {"mcp-session-id": answer.headers.get("mcp-session-id", "")}
    if answer.ok:
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        requests.post(url, json=ready, headers={**HEADERS, **session}, timeout=10)
    return answer.status_code, session


def call(url, session, tool):
    answer = ask(url, "tools/call", {"name": tool}, **session)
    return answer.json()["result"]["content"][0]["text"] if answer.ok else answer.status_code


BODIES = [b"", b"[", b"[]", b"{}", b"\xff", b"null", b"9" * 5000, b"[" * 60_000]
BODIES += [b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}']
BODIES += [b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 300]


def test_garbage_over_http_is_survived(local):
    _, session = begin(local)
    assert "incident single_crash/train/0" in call(local, session, "open_incident")
    for body in BODIES:
        for headers in ({}, session):
            answer = requests.post(local, data=body, headers={**HEADERS, **headers}, timeout=10)
            error = answer.json()["error"]["message"]
            assert answer.status_code == 200 and "no JSON-RPC 2.0 message" in error, body[:30]
    huge = requests.post(local, data=b" " * (door.MAX_BODY + 1), headers=HEADERS, timeout=10)
    assert huge.status_code == 413
    assert requests.get(local, headers={**HEADERS, **session}, timeout=10).status_code == 405
    assert ask(local, "tools/list", Origin="http://127.0.0.1").status_code == 403
    assert ask(local, "tools/list", **{"mcp-session-id": "nobody's"}).status_code == 404
    assert "step 1 of 8" in call(local, session, "resolve")


def test_sessions_are_bounded_and_an_episode_ends_with_its_session(local):
    (_, first), (_, second) = begin(local), begin(local)
    assert begin(local)[0] == 503
    assert "train/0" in call(local, first, "open_incident")
    assert requests.delete(local, headers={**HEADERS, **first}, timeout=10).ok
    assert call(local, first, "resolve") == 404
    status, third = begin(local)
    assert status == 200 and "no incident is open" in call(local, third, "resolve")
    assert "train/1" in call(local, second, "open_incident")  # nobody is given the dropped one


def test_a_task_without_incidents_on_a_call_graph_is_passed_over(tmp_path):
    path = tmp_path / "edge.yaml"
    path.write_text("services:\n  - {name: front, kind: edge}\n")
    with serving_here(make_app(1, load_topology(path))) as address:
        _, session = begin(f"{address}/mcp")
        texts = [call(f"{address}/mcp", session, name) for name in ("open_incident", "resolve") * 3]
    assert "incident single_crash/train/0" in texts[0]
    assert "task cascading_failure needs a service" in texts[2]
    assert "call open_incident" in texts[3]
    assert "incident silent_degradation/train/0" in texts[4]


def test_a_silent_session_ends(monkeypatch):
    monkeypatch.setattr(door, "IDLE_SECONDS", 0.2)
    with serving_here(door.http_router(door.make_server(incidents()), 1)) as address:
        _, session = begin(f"{address}/mcp")
        until = time.monotonic() + 10
        while begin(f"{address}/mcp")[0] == 503:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert call(f"{address}/mcp", session, "open_incident") == 404


def test_the_command_refuses_what_there_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a lock is left beside the file that is named
    assert "choose one of single_crash" in refusal("mcp", "--task", "nope")
    assert "index must be" in refusal("mcp", "--first", 10**30)
    assert "choose lite" in refusal("mcp", "--suite", "nope")
    assert "drop --task, --split" in refusal(
        "mcp", "--suite", "lite", *("--split", "test"), "--task", "all"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("mcp", "--http"), ("serve", "--port")):
            assert f"port {port} of 127.0.0.1" in refusal(*command, port)
