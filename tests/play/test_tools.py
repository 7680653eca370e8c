"""Incidents played by tool calls: a session, TRL's face over it, and the schemas of the tools."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from logtriage.play.actions import ACTION_ARGUMENTS, Action
from logtriage.play.episode import Episode
from logtriage.play.tools import MALFORMED_COST, ToolSession, TriageTools, tool_schemas

ROOT = Path(__file__).parents[2]
ROW = {"task": "single_crash", "split": "train", "index": 0}


@pytest.fixture
def session():
    return ToolSession(Episode.open("cascading_failure", "train", 0))


@pytest.mark.parametrize(
    "name, arguments, answer",
    [
        ("rm", {}, "unknown tool 'rm'; choose one of classify_severity"),
        ("escalate", [], "must be a JSON object, got list"),
        ("escalate", {}, "missing a required argument: 'team'; it takes team"),
        ("escalate", {"team": "sre", "urgent": True}, "unexpected keyword argument 'urgent'"),
        ("resolve", {"now": True}, "unexpected keyword argument 'now'; it takes nothing"),
        ("escalate", {"team": "ceo"}, "choose one of sre"),
        ("escalate", {"team": {"$ref": 1}}, "unknown team"),
        ("escalate", {"team": None}, "unknown team 'None'"),
        ("remediate", {"remedy": 1, "service": []}, "unknown remedy '1'"),
        ("__init__", {}, "unknown tool"),
        ("_call", {"name": "resolve"}, "unknown tool"),
        ("reset", ROW, "unknown tool"),
        ("get_reward", {}, "unknown tool"),
    ],
)
def test_malformed_calls_are_answered_and_the_episode_goes_on(session, name, arguments, answer):
    assert answer in session.call(name, arguments)
    assert not session.episode.done
    assert "resolve" in session.call("resolve", {})
    assert session.call("resolve", {}) == "Incident closed."


def test_a_malformed_call_costs_a_step_and_nothing_else(session):
    calls = [("rm", {}), ("escalate", []), ("resolve", {"now": 1}), ("escalate", {"team": "ceo"})]
    for name, arguments in calls:
        session.call(name, arguments)
    session.refuse("that was no call")
    record = session.episode.record
    assert record.steps == session.malformed == 5
    assert (record.severity, record.root_cause, record.team) == (None, None, None)
    assert record.remediations == []


def test_the_reward_takes_malformed_calls_off():
    tools = TriageTools()
    opening = tools.reset(**ROW, prompt=[], extra=1)
    assert opening == tools.session.opening and opening.startswith("step 0 of 8\ncalls: ")
    tools.escalate("ceo")
    tools.resolve()
    with pytest.raises(ValueError, match="Incident closed"):
        tools.resolve()
    score = tools.session.episode.score.total
    assert tools.get_reward() == tools.session.reward() == pytest.approx(score - 0.1)
    tools.session.malformed += 1  # one that a trainer saw and the session did not
    assert tools.get_reward() == pytest.approx(score - 3 * MALFORMED_COST)


def test_an_instance_is_used_again_and_forgets():
    # TRL pools instances: an incident must not inherit what an earlier one cost.
    left = []

    class Watched(Episode):
        def leave(self):
            left.append(self.incident.index)

    tools = TriageTools(
        lambda task, split, index: Watched(Episode.open(task, split, index).incident)
    )
    tools.reset(**ROW)
    tools.escalate("ceo")
    before = tools.session
    tools.reset(**{**ROW, "index": 1})
    assert tools.session is not before and tools.session.malformed == 0
    assert not tools.session.episode.done and left == [0]


def test_an_open_incident_is_rewarded_as_timed_out():
    tools = TriageTools()
    tools.reset(**ROW)
    assert tools.get_reward() == 0.0 and tools.session.episode.record.closed_by == "timeout"


def test_every_public_method_is_an_action_or_what_trl_asks_for():
    # As TRL finds its tools: whatever else were public, a model could call.
    tools = TriageTools()
    tools.reset(**ROW)
    methods = dict(inspect.getmembers(tools, predicate=inspect.ismethod))
    public = {name for name in methods if not name.startswith("_")}
    assert public == {*ACTION_ARGUMENTS, "reset", "get_reward"}
    for name, arguments in ACTION_ARGUMENTS.items():
        assert tuple(inspect.signature(methods[name]).parameters) == arguments


def test_a_method_is_the_call_of_its_name():
    values = {"severity": "P2", "service": "user-db", "team": "dba", "remedy": "restart"}
    for name, arguments in ACTION_ARGUMENTS.items():
        given = {argument: values[argument] for argument in arguments}
        tools, session = TriageTools(), ToolSession(Episode.open(**ROW))
        tools.reset(**ROW)
        assert getattr(tools, name)(**given) == session.call(name, given)
        assert tools.session.malformed == session.malformed == 0


def test_schemas_are_those_of_transformers():
    # TRL makes its own from the methods, and the tokenizer holds lines of them as single tokens:
    # the same text to the letter, and so the same order of keys.
    from transformers.utils import get_json_schema

    methods = [getattr(TriageTools, name) for name in sorted(ACTION_ARGUMENTS)]
    assert json.dumps(tool_schemas()) == json.dumps([get_json_schema(tool) for tool in methods])


def test_playing_by_calls_needs_no_library_of_models():
    code = """
import sys
from logtriage.play.conversation import tool_call
from logtriage.play.tools import tool_schemas
assert len(tool_schemas()) == 7
assert not {"torch", "transformers", "trl"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_what_was_done_is_remembered_in_order(session):
    session.call("request_more_logs", {"service": "all"})
    session.call("escalate", {"team": "ceo"})
    session.refuse("no call")
    session.call("remediate", {"remedy": "scale", "service": "user-db"})
    session.call("resolve", {})
    session.call("resolve", {})
    history = session.episode.history
    assert [step.action for step in history] == [
        Action("request_more_logs", ("all",)),
        None,
        None,
        Action("remediate", ("scale", "user-db")),
        Action("resolve"),
    ]
    assert [step.observation.step for step in history] == [1, 2, 3, 4, 5]
    assert "unknown team" in history[1].observation.error
    assert history[2].observation.error == "no call"
    assert session.late == 1 and session.malformed == 3


def test_what_is_seen_follows_from_the_incident_and_what_was_done_before():
    # What credits compare as the same state must be the same to the agent.
    for index in range(20):
        done = [
            ("request_more_logs", {"service": "all"}),
            ("classify_severity", {"severity": "P2"}),
            ("escalate", {"team": "ceo"}),
            ("request_more_logs", {"service": "user-db"}),
            ("remediate", {"remedy": "restart", "service": "user-db"}),
            ("request_more_logs", {"service": "all"}),
        ]
        sessions = [
            ToolSession(Episode.open("silent_degradation", "train", index)) for _ in range(2)
        ]
        answers = [[session.call(*call) for call in done] for session in sessions]
        assert (
            answers[0] == answers[1] and sessions[0].episode.history == sessions[1].episode.history
        )
