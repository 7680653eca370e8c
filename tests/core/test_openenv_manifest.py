"""What openenv.yaml declares is so. OpenEnv 0.10 names these checks in its severity policy, and has
no grader for them yet; each test bears the name of its check.
"""

import json
import runpy
import sys
from pathlib import Path

import pytest
import requests
from openenv.core.mcp_client import _tool_from_payload
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from openenv.validation.runtime.collector import collect_runtime_evidence
from openenv.validation.runtime.contracts import RuntimePlan, load_runtime_plan
from test_environment import TRUTH, keys
from test_scoring import CHEATS, play

import logtriage
from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

PACKAGE = Path(logtriage.__file__).parent
MANIFEST = OpenEnvYamlParser().parse(PACKAGE)
DECLARED = MANIFEST.capabilities
LOWEST, HIGHEST = MANIFEST.reward.range
PLAN = load_runtime_plan(PACKAGE, MANIFEST.execution)
CANARIES = [
    RuntimePlan.model_validate(plan)
    for plan in json.loads((PACKAGE / DECLARED.canaries).read_text())
]


def collect(url, plan):
    """What crosses the wire of that plan: (operation, answer) in order."""
    timeout = MANIFEST.resources.episode_timeout_s
    evidence = collect_runtime_evidence(url, plan, episode_timeout_s=timeout)
    assert evidence.failure_reason is None
    exchanges = evidence.exchanges
    return [(sent.operation, json.loads(sent.response_json)["data"]) for sent in exchanges]


def test_oracle_max(url, monkeypatch, capsys):
    assert DECLARED.oracle.form == "script"
    script = str(PACKAGE / DECLARED.oracle.location)
    monkeypatch.setattr(sys, "argv", [script, url])
    runpy.run_path(script)
    assert float(capsys.readouterr().out) >= HIGHEST - MANIFEST.reward.oracle_tolerance


@pytest.mark.parametrize("plan", CANARIES, ids=lambda plan: plan.reset.episode_id)
def test_canary_floor(url, plan):
    first, *_, last = (answer for operation, answer in collect(url, plan) if operation != "state")
    assert last["done"] and last["reward"] == first["reward"] == LOWEST
    assert last["reward"] <= HIGHEST - MANIFEST.reward.floor_margin


@pytest.mark.parametrize("plan", [PLAN, *CANARIES], ids=lambda plan: plan.reset.episode_id)
def test_no_solution_leakage_and_replayability(url, plan):
    exchanges = collect(url, plan)
    assert collect(url, plan) == exchanges
    incident = sample_incident(index=plan.reset.seed, **plan.reset.options)
    closed = False
    for operation, answer in exchanges:
        closed = closed or answer.get("done", False)
        if not closed:
            assert not TRUTH & keys(answer)
            assert incident.injection.fault.name not in json.dumps(answer)
            assert answer["score"] == {} if operation == "state" else answer["reward"] == 0.0
    assert closed


def test_tool_declaration_accuracy(url):
    # As OpenEnv's own client asks: by one request, without a handshake.
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    answer = requests.post(f"{url}/mcp", json=asked, timeout=10).json()
    assert answer["id"] == 7
    tools = [_tool_from_payload(tool) for tool in answer["result"]["tools"]]
    assert {tool.name for tool in tools} == {*DECLARED.declared_tools}
    assert all(tool.input_schema["type"] == "object" and tool.description for tool in tools)


def test_adversarial_floor():
    incidents = [sample_incident(task, "test", index) for task in TASKS for index in range(20)]
    for name, cheat in CHEATS.items():
        scores = [play(incident, cheat(incident.topology)).total for incident in incidents]
        assert sum(scores) / len(scores) <= HIGHEST - MANIFEST.reward.floor_margin, name


def test_reward_reachability():
    # By chance and by reading, without the truth: an agent that learns has something to begin with.
    for policy in ("novice", "trace"):
        totals = set()
        for task in TASKS:
            episodes = [Episode.open(task, "train", index) for index in range(40)]
            make_policy(policy).play(episodes)
            assert any(episode.score.solved for episode in episodes), (policy, task)
            totals |= {episode.score.total for episode in episodes}
        assert len(totals) > 10 and LOWEST <= min(totals) <= max(totals) <= HIGHEST
