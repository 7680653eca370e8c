"""Messages: what is read out of them, what answers them, both on the wire, and calls as text."""

import json
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_scoring import right_answers

from logtriage.play.actions import ACTION_ARGUMENTS, Action
from logtriage.play.conversation import (
    MOST_CALLS,
    UNREADABLE,
    answers,
    from_wire,
    instructions,
    text_answers,
    to_wire,
    tool_call,
    unreadable,
    written_calls,
)
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession


@pytest.fixture
def session():
    return ToolSession(Episode.open("cascading_failure", "train", 0))


def assistant(*calls):
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def test_a_message_of_calls_is_answered_in_turn_by_either_protocol(session):
    calls = [tool_call(action) for action in right_answers(session.episode.incident)]
    answered = answers(session, assistant(*calls))
    assert [answer["name"] for answer in answered] == [call["function"]["name"] for call in calls]
    assert {answer["role"] for answer in answered} == {"tool"}
    assert answered[-1]["content"].endswith("Incident closed.")
    assert session.episode.score.total == 1.0
    by_text = ToolSession(Episode.open("cascading_failure", "train", 0))
    content = "\n".join(f"<tool_call>{json.dumps(call['function'])}</tool_call>" for call in calls)
    (answer,) = text_answers(by_text, {"role": "assistant", "content": content})
    assert by_text.episode.score.total == 1.0 and answer["role"] == "user"
    assert answer["content"] == "\n\n".join(message["content"] for message in answered)
    # Tools take no confidence.
    assert tool_call(Action("ignore", confidence=0.9)) == tool_call(Action("ignore"))


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
        ("[" * 40 + "]" * 40, UNREADABLE),  # deeper than is passed on
        ("9" * 5_000, "9" * 5_000),  # longer than Python reads
    ],
    ids=["object", "nothing", "list", "broken", "endless", "deep", "long"],
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


DEEP = ("escalate", {"team": json.loads("[" * 19 + "]" * 19)})
SRE = ("escalate", {"team": "sre"})
JSON = '{"name": "escalate", "arguments": {"team": "sre"}}'


@pytest.mark.parametrize(
    "content, calls",
    [
        (f"<tool_call>{JSON}</tool_call>", [SRE]),
        (f"I page them.\n<tool_call>\n{JSON}\n</tool_call>\n<tool_call>{JSON}", [SRE, SRE]),
        (f"<tool_call>{JSON}\n{JSON}</tool_call>", [SRE, SRE]),
        (f"```json\n{JSON}\n```", [SRE]),
        (f"```json \r\n\n{JSON}\n```", [SRE]),
        (f"So:\n```\n[{JSON}, {JSON}]\n```\nthat is all", [SRE, SRE]),
        (JSON, [SRE]),
        (f"[{JSON}]", [SRE]),
        ('{"name": "resolve"}', [("resolve", {})]),
        ('{"name": "escalate", "parameters": {"team": "sre"}}', [SRE]),
        (f"<think>perhaps <tool_call>{JSON}</tool_call></think>nothing", []),
        (f"<think>hm</think>{JSON}", [SRE]),
        ("I give up.", []),
        ("", []),
        ("```\nERROR user-db is down\n```", []),  # a quoted log is no call
        (f"I would write {JSON} here", []),  # nor is what is talked about
        ("<tool_call>{broken", [None]),
        ("<tool_call></tool_call>", [None]),
        (f"<tool_call>{JSON}</tool_call>" * 50, [SRE] * MOST_CALLS),
        ('{"team": "sre"}', [None]),
        ("[]", [None]),
        ('{"name": 7}', [None]),
        (f"<tool_call>{JSON}</tool_call><tool_call>no</tool_call>", [SRE, None]),
        ("[" * 40_000, [None]),  # deeper than Python counts
        ("<tool_call>" + "9" * 5_000, [None]),  # longer than Python reads
        ('{"name": "escalate", "arguments": {"team": ' + "[" * 19 + "]" * 19 + "}}", [DEEP]),
        ('{"name": "escalate", "arguments": {"team": ' + "[" * 900 + "]" * 900 + "}}", [None]),
    ],
)
def test_what_is_read(content, calls):
    assert written_calls(content) == calls


@settings(max_examples=40)
@given(st.text(alphabet='<tool_cal>/{}[]",:`name \n0') | st.text())
def test_nothing_breaks_the_parser(text):
    assert len(written_calls(text)) <= MOST_CALLS


@pytest.mark.parametrize("content", ["```" + "\n" * 40_000 + "x", "```a \n" * 10_000, "`" * 50_000])
def test_fences_are_found_in_time(content):
    began = time.process_time()
    assert written_calls(content) == []
    assert time.process_time() - began < 1.0


def test_the_prompt_names_every_tool_and_its_arguments():
    for name, arguments in ACTION_ARGUMENTS.items():
        assert f"- {name}({', '.join(arguments)}): " in instructions()
    example = instructions().splitlines()[1]
    assert written_calls(example) == [SRE]  # it can be written as it is shown


@pytest.mark.parametrize("answered", [answers, text_answers])
def test_what_cannot_be_read_costs_a_step_and_silence_ends(answered, session):
    broken = {"role": "assistant", "content": '<tool_call>\n{"name": "resol'}
    (answer,) = answered(session, broken)
    assert unreadable(broken) and "could not be read" in answer["content"]
    assert session.malformed == session.episode.record.steps == 1
    # beside calls that were read it is no more than text
    assert not unreadable({**broken, "tool_calls": [tool_call(Action("resolve"))]})
    assert answered(session, {"role": "assistant", "content": "I give up."}) == []


def test_on_a_closed_incident_nothing_happens(session):
    content = '{"name": "resolve"}\n{"name": "resolve"}\n{'
    (answer,) = text_answers(session, {"role": "assistant", "content": content})
    assert answer["content"].count("Incident closed.") == 3 and session.episode.record.steps == 1
