"""A model behind an endpoint, on loopback: servers that fail in every way end one episode at most,
and are told.
"""

import gzip
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from talking_server import HANG, RESOLVES, call, refused, said, talking

from logtriage.play.actions import ACTION_TYPES
from logtriage.play.episode import Episode
from logtriage.play.text_protocol import TEXT
from logtriage.policies.llm.completions import (
    ATTEMPTS,
    MOST_ANSWER,
    MOST_TOLD,
    NOT_PARSED,
    Completions,
    EndpointError,
    retry_after,
)
from logtriage.policies.llm.endpoint import EndpointPolicy

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def episodes(count=3):
    return [Episode.open("cascading_failure", "train", index) for index in range(count)]


@pytest.fixture
def pauses(monkeypatch):
    """Seconds of every pause before a further attempt, none of which is waited for."""
    paused = []
    monkeypatch.setattr(Completions, "_pause", lambda self, stop, seconds: paused.append(seconds))
    return paused


def played(answer, count=1, **options):
    """What came of episodes against a server, in their order, and what it was asked."""
    with talking(answer) as (url, talk):
        waiting = episodes(count)
        found = {
            id(one.episode): one for one in EndpointPolicy(url, "toy", **options).play_each(waiting)
        }
        return [found[id(episode)] for episode in waiting], talk


def asks_errs_resolves(body, number):
    """Fails once, asks for logs, sends malformed arguments, closes."""
    if number == 0:
        return refused(503)
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    name, arguments = [
        ("request_more_logs", '{"service": "all"}'),
        ("escalate", "{broken"),
        ("resolve", "{}"),
    ][turn]
    return said(call(name, arguments, f"call_{turn}"))


def test_an_endpoint_is_a_policy_too(pauses):
    (one,), talk = played(asks_errs_resolves)
    record = one.episode.record
    assert record.closed_by == "resolve" and record.steps == 3  # a malformed call is a step
    assert "must be a JSON object" in one.messages[-3]["content"]  # and was answered
    assert {tool["function"]["name"] for tool in talk.requests[1]["tools"]} == set(ACTION_TYPES)
    assert talk.requests[-1]["messages"][-1]["tool_call_id"] == "call_1"
    assert one.tokens == (300, 30) and not one.error and len(pauses) == 1


def test_an_endpoint_needs_no_library_of_models():
    # They take seconds to import, and a machine that only evaluates may lack them.
    code = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "trl")))
from logtriage.policies.llm.endpoint import EndpointPolicy
from logtriage.play.episode import Episode
episode = Episode.open("single_crash", "test", 0)
EndpointPolicy(sys.argv[1], "toy").play([episode])
assert episode.record.closed_by == "resolve"
"""
    with talking(asks_errs_resolves) as (url, talk):
        subprocess.run([sys.executable, "-c", code, url], check=True, cwd=ROOT)
        assert len(talk.requests) == 4


@pytest.mark.parametrize(
    "value, seconds",
    [
        ("60", 60.0),
        ("0.5", 0.5),
        ("Thu, 01 Jan 2026 00:02:00 GMT", 120.0),
        ("Thu, 01 Jan 2025 00:02:00 GMT", 0.0),  # gone by
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after(value, NOW) == seconds


def test_a_server_that_is_busy_for_a_minute_is_waited_for(pauses):
    # It tells 20 seconds three times; nothing of that is an error.
    (one,), _ = played(
        lambda body, number: refused(429, headers={"Retry-After": "20"}) if number < 3 else RESOLVES
    )
    assert pauses == [20.0] * 3 and one.episode.record.closed_by == "resolve" and not one.error


def test_a_server_may_be_busy_more_often_than_it_may_fail(pauses):
    busy, fails = (
        played(lambda body, number, told=told: told if number < 8 else RESOLVES)[0][0]
        for told in (refused(429, headers={"Retry-After": "1"}), refused(500))
    )
    assert not busy.error and "500" in fails.error


@pytest.mark.parametrize("value", ["0", "-5", "Thu, 01 Jan 2015 00:02:00 GMT"])
def test_a_server_that_asks_for_no_pause_is_not_hammered(value, pauses):
    (one,), talk = played(lambda *_: refused(429, headers={"Retry-After": value}))
    assert one.error and len(talk.requests) == ATTEMPTS and sum(pauses) > 0


def test_an_answer_that_trickles_is_left(pauses):
    # Each read comes in time, and the whole never does; so with an error.
    for status in (200, 400):
        began = time.monotonic()
        (one,), _ = played(lambda *_, status=status: (status, {}, trickling), timeout=0.3)
        assert "not whole after 0.3 seconds" in one.error and time.monotonic() - began < 15


def trickling():
    while True:
        time.sleep(0.02)
        yield b" "


def test_an_answer_without_end_is_not_read(pauses):
    sent = [0]

    def endless():
        while True:
            sent[0] += 100_000
            yield b" " * 100_000

    for status in (200, 500):
        sent[0] = 0
        (one,), talk = played(lambda *_, status=status: (status, {}, endless))
        assert "no more are read" in one.error and len(talk.requests) == 1
        assert sent[0] < 40 * MOST_ANSWER
    packed = gzip.compress(b" " * 50 * MOST_ANSWER)
    (one,), _ = played(lambda *_: (200, {"Content-Encoding": "gzip"}, lambda: [packed]))
    assert "no more are read" in one.error


def test_who_is_no_longer_wanted_asks_no_more(pauses):
    # Each turn answers well, so there is no pause in which to hear of it.
    asks = said(call("request_more_logs", '{"service": "all"}'))
    begun, go_on = threading.Event(), threading.Event()

    def answer(body, number):
        if number == 0:
            return RESOLVES
        begun.set()
        go_on.wait(10)
        return asks

    with talking(answer) as (url, talk):
        each = EndpointPolicy(url, "toy", workers=2).play_each(episodes(2))
        next(each)
        assert begun.wait(10)
        each.close()
        go_on.set()
        time.sleep(0.5)
        assert len(talk.requests) == 2


def test_an_error_can_be_printed(pauses):
    (one,), _ = played(lambda *_: refused(413, "no \x1b]0;mine\x07"))
    assert one.error.isprintable() and "no \\x1b]0;mine" in one.error


def test_nobody_waits_for_ever(pauses):
    (one,), talk = played(lambda *_: refused(429, "later", headers={"Retry-After": "3600"}))
    assert "later" in one.error and not pauses and len(talk.requests) == 1
    (one,), _ = played(lambda *_: refused(429, headers={"Retry-After": "100"}))
    assert one.error and pauses == [100.0] * 6  # ten minutes in all


def test_a_call_that_the_server_could_not_read_is_the_models_mistake(pauses):
    failed = refused(
        400, code="tool_use_failed", failed_generation='<function=escalate{"team": "sre"}'
    )
    (one,), talk = played(lambda body, number: RESOLVES if number else failed)
    assert not one.error and one.episode.record.steps == 2
    told = [message["content"] for message in one.messages]
    assert "could not be read" in told[3] and "<function=escalate" in told[2]
    assert talk.requests[1]["messages"][-1]["role"] == "user"  # no call has an id to answer
    (one,), _ = played(lambda *_: refused(400, code="tool_use_failed", failed_generation=None))
    assert not one.error and one.episode.record.closed_by == "timeout"


@pytest.mark.parametrize(
    "answer, told",
    [
        (refused(400, "bad"), "BadRequestError: Error code: 400"),
        (refused(401, "who is sk-1234567890"), "who is ***"),
        (refused(413, "too long"), "too long"),
        (refused(500, "broken"), "broken"),
        (refused(500, "x" * 9_000), "x" * 200),
        ((200, {}, {"object": "chat.completion"}), "no chat completion: choices"),
        ((200, {}, {"choices": []}), "no chat completion: choices"),
        ((200, {}, {"choices": None}), "no chat completion: choices"),
        ((200, {}, {"choices": [{"message": None}]}), "no chat completion: choices.0.message"),
        ((200, {}, {"choices": [{"message": {"tool_calls": "no"}}]}), "tool_calls"),
        ((200, {}, "[" * 100_000), "no chat completion"),
        ((200, {"Content-Type": "text/html"}, "<html>"), "no chat completion"),
    ],
    ids=[
        *("400", "401", "413", "500", "long", "nothing", "no choices", "null choices", "null"),
        *("no list", "deep", "html"),
    ],
)
def test_whatever_fails_ends_that_episode_with_its_error(answer, told, pauses):
    (one,), _ = played(lambda *_: answer, api_key="sk-1234567890")
    assert told in one.error and one.episode.score is None and "\n" not in one.error
    assert len(one.error) <= MOST_TOLD + 50


@pytest.mark.parametrize("arguments", [None, "null", "", {}, [], 7, {"team": "sre"}])
def test_arguments_may_be_anything(arguments, pauses):
    (one,), _ = played(
        lambda body, number: RESOLVES if number else said(call("escalate", arguments))
    )
    assert one.episode.record.steps == 2 and not one.error
    assert one.episode.record.team == ("sre" if arguments == {"team": "sre"} else None)


def test_a_name_may_be_missing_and_an_id_too(pauses):
    (one,), talk = played(lambda body, number: RESOLVES if number else said(call(None, "{}", None)))
    assert one.episode.record.steps == 2 and "unknown tool ''" in one.messages[3]["content"]
    assert talk.requests[1]["messages"][-1]["tool_call_id"] == "call_0"


def test_a_server_that_hangs_is_left(pauses):
    (one,), _ = played(lambda *_: HANG, timeout=0.1)
    assert "APITimeoutError" in one.error


def test_an_error_is_of_one_episode_only(pauses):
    texts = [episode.opening.lines for episode in episodes(3)]
    assert len({str(text) for text in texts}) == 3

    def answer(body, number):
        return refused(413, "too long") if texts[1][0] in str(body["messages"][1]) else RESOLVES

    ends, _ = played(answer, 3)
    assert [bool(one.error) for one in ends] == [False, True, False]


def test_a_slow_conversation_holds_nobody_up(pauses):
    first, others = episodes(1)[0].opening.lines[0], []
    release = threading.Event()

    def answer(body, number):
        if first in body["messages"][1]["content"]:
            release.wait(20)
        return RESOLVES

    with talking(answer) as (url, _):
        waiting = episodes(6)
        for one in EndpointPolicy(url, "toy", workers=2).play_each(waiting):
            others.append(one.episode)
            if len(others) == 5:
                release.set()  # all others are through by now
    assert others[-1] is waiting[0] and len(others) == 6


def test_no_more_are_at_work_than_there_are_workers(pauses):
    at_work, most, lock = [0], [0], threading.Lock()

    def answer(body, number):
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.02)
        with lock:
            at_work[0] -= 1
        return RESOLVES

    ends, _ = played(answer, 12, workers=3)
    assert len(ends) == 12 and 1 < most[0] <= 3


def test_a_server_that_does_not_parse_tools_is_recognised(pauses):
    wrote = said(content='<tool_call>{"name": "resolve", "arguments": {}}</tool_call>')
    (one,), _ = played(lambda *_: wrote)
    assert one.error == NOT_PARSED and "--tools text" in NOT_PARSED
    # Of a server that has parsed a call before, it is the model that has not made one.
    parsed = said(call("request_more_logs", '{"service": "all"}'))
    (one,), _ = played(lambda body, number: [parsed, wrote, RESOLVES][number])
    assert not one.error and one.episode.record.steps == 3
    (one,), _ = played(lambda *_: refused(400, "tools need --enable-auto-tool-choice"))
    assert one.error.endswith("--tools text does without tools")


def test_a_text_protocol_asks_for_no_tools(pauses):
    wrote = [
        'Let me see.\n<tool_call>{"name": "request_more_logs", "arguments": {"service": "all"}}',
        '```json\n{"name": "resolve", "arguments": {}}\n```',
    ]
    (one,), talk = played(lambda body, number: said(content=wrote[number]), protocol=TEXT)
    assert one.episode.record.closed_by == "resolve" and one.episode.record.steps == 2
    assert not any("tools" in body for body in talk.requests)
    assert [message["role"] for message in one.messages] == [
        *("system", "user", "assistant", "user", "assistant", "user")
    ]


def test_attempts_are_sampled_with_seeds_of_their_own(pauses):
    with talking(lambda *_: RESOLVES) as (url, talk):
        for attempt in (0, 1, 1):
            list(
                EndpointPolicy(url, "toy", temperature=0.7).play_each(episodes(2), attempt=attempt)
            )
        list(EndpointPolicy(url, "toy").play_each(episodes(1)))
    seeds = [body.get("seed") for body in talk.requests]
    assert len(set(seeds[:4])) == 4 and set(seeds[2:4]) == set(seeds[4:6]) and seeds[6] is None


def test_play_alone_tells_of_an_error_too(pauses):
    with (
        talking(lambda *_: refused(413, "too long")) as (url, _),
        pytest.raises(EndpointError, match="too long"),
    ):
        EndpointPolicy(url, "toy").play(episodes(2))
