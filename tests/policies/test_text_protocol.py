"""Calls written as text: what is read out of a message, and what answers it."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_scoring import right_answers

from logtriage.play.actions import ACTION_ARGUMENTS
from logtriage.play.conversation import tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from logtriage.policies.llm.text_protocol import (
    MOST_CALLS,
    check_protocol,
    instructions,
    text_answers,
    written_calls,
)


@pytest.fixture
def session():
    return ToolSession(Episode.open("cascading_failure", "train", 0))


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


def test_a_message_is_played_as_calls_of_tools_are(session):
    calls = [tool_call(action)["function"] for action in right_answers(session.episode.incident)]
    content = "\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)
    (answer,) = text_answers(session, {"role": "assistant", "content": content})
    assert session.episode.score.total == 1.0 and answer["role"] == "user"
    assert answer["content"].count("step ") == 5
    assert answer["content"].endswith("Incident closed.")


def test_what_cannot_be_read_costs_a_step_and_silence_ends(session):
    (answer,) = text_answers(session, {"role": "assistant", "content": "<tool_call>no"})
    assert "could not be read" in answer["content"]
    assert session.malformed == session.episode.record.steps == 1
    assert text_answers(session, {"role": "assistant", "content": "I give up."}) == []
    content = '{"name": "resolve"}\n{"name": "resolve"}\n{'  # on a closed incident nothing happens
    (answer,) = text_answers(session, {"role": "assistant", "content": content})
    assert answer["content"].count("Incident closed.") == 3 and session.episode.record.steps == 2


def test_an_unknown_protocol_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="'json'; choose native or text"):
        check_protocol("json")
