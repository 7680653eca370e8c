"""Messages: what is read out of them, what answers them, and both on the wire."""

import json
from types import SimpleNamespace

import pytest
from test_scoring import right_answers

from logtriage.play.actions import Action, action_values
from logtriage.play.conversation import answers, from_wire, to_wire, tool_call, unreadable
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession


@pytest.fixture
def session():
    return ToolSession(Episode.open("cascading_failure", "train", 0))


def assistant(*calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def test_every_action_can_be_called(session):
    # The call of an action does what the action does, whatever its value.
    for action_type, values in action_values(session.episode.incident.topology).items():
        for value in values[:3]:
            action = Action.parse(action_type, value)
            call = tool_call(action)["function"]
            here = ToolSession(Episode.open("cascading_failure", "train", 0))
            there = Episode.open("cascading_failure", "train", 0)
            here.call(call["name"], call["arguments"])
            there.act(action)
            assert here.episode.record == there.record and here.malformed == 0
    # Tools take no confidence.
    assert tool_call(Action("ignore", confidence=0.9)) == tool_call(Action("ignore"))


def test_each_call_is_answered_in_turn(session):
    calls = [tool_call(action) for action in right_answers(session.episode.incident)]
    answered = answers(session, assistant(*calls))
    assert [answer["name"] for answer in answered] == [call["function"]["name"] for call in calls]
    assert {answer["role"] for answer in answered} == {"tool"}
    assert answered[-1]["content"].endswith("Incident closed.")
    assert session.episode.score.total == 1.0


def test_a_call_that_cannot_be_read_is_a_malformed_one(session):
    broken = {"role": "assistant", "content": '<tool_call>\n{"name": "resol'}
    (answer,) = answers(session, broken)
    assert unreadable(broken) and "could not be read" in answer["content"]
    assert session.malformed == session.episode.record.steps == 1
    # beside calls that were read it is no more than text
    assert not unreadable({**broken, "tool_calls": [tool_call(Action("resolve"))]})


def wired(arguments, identifier="a"):
    """An assistant message as the `openai` package has it; `arguments` is text."""
    function = SimpleNamespace(name="escalate", arguments=arguments)
    call = SimpleNamespace(id=identifier, function=function)
    return SimpleNamespace(content=None, tool_calls=[call])


@pytest.mark.parametrize(
    "text, arguments",
    [
        ('{"team": "sre"}', {"team": "sre"}),
        ("", {}),
        ("[]", []),
        ("{broken", "{broken"),
        ("[" * 100_000, "[" * 100_000),  # deeper than Python counts
        ("9" * 5_000, "9" * 5_000),  # longer than Python reads
    ],
    ids=["object", "nothing", "list", "broken", "deep", "long"],
)
def test_arguments_are_read_as_json_or_left_as_they_are(text, arguments, session):
    message = from_wire(wired(text))
    assert message["tool_calls"][0]["function"]["arguments"] == arguments
    (answer,) = answers(session, message)
    assert answer["tool_call_id"] == "a" and session.episode.record.steps == 1


def test_a_message_goes_over_the_wire_and_back():
    message = from_wire(wired('{"team": "sre"}'))
    written = to_wire(message)
    assert json.loads(written["tool_calls"][0]["function"]["arguments"]) == {"team": "sre"}
    assert message["tool_calls"][0]["function"]["arguments"] == {"team": "sre"}  # left as it was
    silent = SimpleNamespace(content="I give up.", tool_calls=None)
    assert to_wire(from_wire(silent)) == {"role": "assistant", "content": "I give up."}
    # The protocol allows a tool's message only where a call has an id for it.
    answer = {"role": "tool", "name": "unreadable", "content": "step 1 of 8"}
    assert to_wire(answer) == {"role": "user", "content": "step 1 of 8"}
    answer = {"role": "tool", "content": "step 1 of 8", "tool_call_id": "a"}
    assert to_wire({**answer, "name": "escalate"}) == answer
