"""A model behind an endpoint, on loopback: a server that fails in any way ends one episode at most,
and the episode's error says why.
"""

import gzip
import re
import threading
import time

import pytest
from helpers import free_port
from talking_server import HANG, RESOLVES, call, refused, said, talking, without_pauses

from logtriage.play.actions import ACTION_TYPES
from logtriage.play.conversation import TEXT
from logtriage.play.episode import Episode
from logtriage.policies.policy import EndpointError, UnusableEndpointError
from triagelab.language_models import endpoint
from triagelab.language_models.endpoint import NOT_PARSED, RETRIES, EndpointPolicy

ASKS = said(call("request_more_logs", '{"service": "all"}'))


def episodes(count=3):
    return [Episode.open("cascading_failure", "train", index) for index in range(count)]


@pytest.fixture
def pauses(monkeypatch):
    return without_pauses(monkeypatch)


def played(answer, count=1, **options):
    """The played episodes of a server that answers so, in order, and what it was asked."""
    with talking(answer) as (url, talk):
        waiting = episodes(count)
        policy = EndpointPolicy(url, "toy", **options)
        results = {id(result.episode): result for result in policy.play_each(waiting)}
        return [results[id(episode)] for episode in waiting], talk


def test_a_server_that_is_busy_or_restarts_is_waited_for(pauses):
    # A rate limit answers 429 again and again; none of that is an error.
    (result,), _ = played(
        lambda body, number: refused(429, headers={"Retry-After": "20"}) if number < 8 else RESOLVES
    )
    assert pauses == [20.0] * 8 and not result.error
    assert result.episode.record.closed_by == "resolve"
    pauses.clear()
    (result,) = EndpointPolicy(f"http://127.0.0.1:{free_port()}", "toy").play_each(episodes(1))
    assert 60 < sum(pauses) < 200 and "refused" in result.error


def test_the_first_retry_is_said_once_and_soon(capsys, monkeypatch):
    # With the real pauses. A reader who pipes the output away sees it, too.
    monkeypatch.setattr(endpoint, "PATIENCE", 3.0)  # ends its threads
    url = f"http://127.0.0.1:{free_port()}"
    began, player = time.monotonic(), EndpointPolicy(url, "toy", workers=2)
    each = player.play_each(episodes(2))
    threading.Thread(target=lambda: next(each, None), daemon=True).start()
    said = ""
    while not said and time.monotonic() - began < 5.0:
        time.sleep(0.05)
        said = capsys.readouterr().err
    assert said.startswith(f"toy: {url} does not answer; trying again, {RETRIES} times at most")
    assert player._client.timeout.connect < 5.0  # a host that drops what is sent to it


def test_a_busy_server_is_named_and_a_redirect_is_no_failure(pauses, capsys):
    played(lambda body, number: RESOLVES if number else refused(429))
    assert "answers with status 429; trying again" in capsys.readouterr().err
    moved = (307, {"Location": "/v1/chat/completions?again"}, {})
    (result,), talk = played(lambda body, number: RESOLVES if number else moved)
    assert not result.error and len(talk.requests) == 2 and not capsys.readouterr().err


def trickling():
    while True:
        time.sleep(0.02)
        yield b" "


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_trickles_is_asked_for_again(status, pauses):
    # Each read comes in time, and the whole never does; the next answer may.
    slow = (status, {}, trickling)
    (result,), talk = played(lambda body, number: RESOLVES if number else slow, timeout=0.3)
    assert not result.error and len(talk.requests) == 2


@pytest.mark.parametrize("answer", [HANG, (200, {}, trickling)], ids=["hangs", "trickles"])
def test_a_server_that_is_always_too_slow_is_left(answer, pauses, monkeypatch):
    monkeypatch.setattr(endpoint, "PATIENCE", 0.3)
    (result,), talk = played(lambda *_: answer, timeout=0.2)
    assert "no answer within 0.3 seconds" in result.error and len(talk.requests) < RETRIES


def test_an_answer_without_end_is_not_read(pauses):
    sent = [0]

    def endless():
        while True:
            sent[0] += 100_000
            yield b" " * 100_000

    for status in (200, 500):
        sent[0] = 0
        (result,), talk = played(lambda *_, status=status: (status, {}, endless))
        assert "more than 4000000 bytes" in result.error and len(talk.requests) == 1
        assert sent[0] < 40 * endpoint.MOST_ANSWER
    packed = gzip.compress(b" " * 2 * endpoint.MOST_ANSWER)
    (result,), _ = played(lambda *_: (200, {"Content-Encoding": "gzip"}, lambda: [packed]))
    assert "more than 4000000 bytes" in result.error


def test_a_play_that_was_stopped_asks_no_more(pauses):
    begun, go_on = threading.Event(), threading.Event()

    def answer(body, number):
        if number == 0:
            return RESOLVES
        begun.set()
        go_on.wait(10)
        return ASKS

    with talking(answer) as (url, talk):
        each = EndpointPolicy(url, "toy", workers=2).play_each(episodes(2))
        next(each)
        assert begun.wait(10)
        each.close()
        go_on.set()
        time.sleep(0.3)
        assert len(talk.requests) == 2


def test_a_call_that_the_server_could_not_read_is_the_models_mistake(pauses):
    # Were it an error of the episode, it would be played again until the model gets it right.
    failed = refused(400, code="tool_use_failed", failed_generation="<function=escalate")
    (result,), _ = played(lambda body, number: RESOLVES if number else failed)
    assert not result.error and result.episode.record.steps == 2
    assert "could not be read" in result.messages[3]["content"]


@pytest.mark.parametrize(
    "answer, error",
    [
        (refused(400, "bad"), "BadRequestError: Error code: 400"),
        (refused(403, "who is sk-1234567890"), "who is ***"),
        (refused(413, "no \x1b]0;mine\x07"), r"no \x1b]0;mine"),  # it can be printed
        (refused(413, "x" * 9_000), "x" * 200),
        # A relay answers 200, and the reason is in the body.
        ((200, {}, {"error": {"code": 502, "message": "model is down"}}), "model is down"),
        ((200, {}, {"choices": []}), "no chat completion"),
        ((200, {}, {"choices": [{"message": None}]}), "no chat completion: choices.0.message"),
        ((200, {}, "[" * 100_000), "no chat completion"),
    ],
)
def test_what_fails_ends_its_episode_and_says_why(answer, error, pauses, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    (result,), _ = played(lambda *_: answer)
    assert error in result.error and result.episode.score is None and result.error.isprintable()
    assert len(result.error) <= endpoint.MOST_SHOWN + 60
    fails = pytest.raises(EndpointError, match=re.escape(result.error))
    with talking(lambda *_: answer) as (url, _), fails:
        EndpointPolicy(url, "toy").play(episodes(1))  # of all at once


@pytest.mark.parametrize("status, hint", [(401, "OPENAI_API_KEY"), (404, "the model's name")])
def test_a_url_key_or_model_that_is_refused_ends_the_play(status, hint):
    for no_url in ("localhost:8000/v1", "http://"):
        with pytest.raises(ValueError, match="is not the URL of an endpoint; give one such as"):
            EndpointPolicy(no_url, "toy")
    with talking(lambda *_: refused(status, "who?")) as (url, talk):
        with pytest.raises(UnusableEndpointError, match=rf"who\?.*{hint}"):
            list(EndpointPolicy(url, "toy", workers=1).play_each(episodes(3)))
        assert len(talk.requests) == 1


@pytest.mark.parametrize(
    "name, arguments, team",
    [
        ("escalate", {"team": "sre"}, "sre"),
        ("escalate", None, None),
        ("escalate", [], None),
        (None, "{}", None),
    ],
)
def test_arguments_may_be_anything_and_name_and_id_may_be_missing(name, arguments, team):
    asks = said(call(name, arguments, None))
    (result,), talk = played(lambda body, number: RESOLVES if number else asks)
    record = result.episode.record
    assert not result.error and (record.steps, record.team) == (2, team)
    assert talk.requests[1]["messages"][-1]["tool_call_id"] == "call_0"
    assert {tool["function"]["name"] for tool in talk.requests[1]["tools"]} == set(ACTION_TYPES)
    assert result.tokens == (200, 20)


def test_workers_are_no_more_than_asked_for_and_a_slow_conversation_holds_nobody_up():
    first, ended = episodes(1)[0].opening.lines[0], []
    release, lock = threading.Event(), threading.Lock()
    at_work, most = [0], [0]

    def answer(body, number):
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        if first in body["messages"][1]["content"]:
            release.wait(20)
        time.sleep(0.02)
        with lock:
            at_work[0] -= 1
        return RESOLVES

    with talking(answer) as (url, _):
        waiting = episodes(6)
        for result in EndpointPolicy(url, "toy", workers=2).play_each(waiting):
            ended.append(result.episode)
            if len(ended) == 5:
                release.set()  # all others have ended by now
    assert ended[-1] is waiting[0] and len(ended) == 6 and most[0] == 2


@pytest.mark.parametrize(
    "content",
    [
        '<tool_call>{"name": "resolve", "arguments": {}}</tool_call>',
        '{"name" : "resolve", "parameters": {}}',
        "<function=resolve></function>",
        '<|python_tag|>escalate.call(team="sre")',
        '[request_more_logs(service="all"), resolve()]',
    ],
)
def test_a_server_that_does_not_parse_tools_is_recognised(content):
    wrote = said(content=content)
    (result,), _ = played(lambda *_: wrote)
    assert result.error == NOT_PARSED and "--tools text" in NOT_PARSED
    # Where a server has parsed a call before, it is the model that has not made one.
    (result,), _ = played(lambda body, number: [ASKS, wrote, RESOLVES][number])
    assert not result.error


def test_a_text_protocol_asks_for_no_tools_and_is_proposed_where_they_are_refused():
    (result,), _ = played(lambda *_: refused(400, "tools need --enable-auto-tool-choice"))
    assert result.error.endswith("--tools text does without tools")
    (result,), _ = played(lambda *_: said(content="I would resolve(it) if I knew how."))
    assert not result.error and result.episode.record.closed_by == "timeout"  # prose is no call
    wrote = [
        'Let me see.\n<tool_call>{"name": "request_more_logs", "arguments": {"service": "all"}}',
        '```json\n{"name": "resolve", "arguments": {}}\n```',
    ]
    (result,), talk = played(lambda body, number: said(content=wrote[number]), protocol=TEXT)
    assert result.episode.record.closed_by == "resolve" and result.episode.record.steps == 2
    assert not any("tools" in body for body in talk.requests)
    roles = [message["role"] for message in result.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


def test_attempts_are_sampled_with_seeds_of_their_own():
    with talking(lambda *_: RESOLVES) as (url, talk):
        for attempt in (0, 1, 1):
            policy = EndpointPolicy(url, "toy", temperature=0.7)
            list(policy.play_each(episodes(2), attempt=attempt))
        list(EndpointPolicy(url, "toy").play_each(episodes(1)))
    seeds = [body.get("seed") for body in talk.requests]
    assert len(set(seeds[:4])) == 4 and set(seeds[2:4]) == set(seeds[4:6]) and seeds[6] is None


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_an_option_that_a_reasoning_model_refuses_is_left_out(temperature, pauses, capsys):
    # As hosted ones do: no temperature, and older servers know the limit by its older name.
    def answer(body, number):
        for name in ("temperature", "max_completion_tokens", "seed"):
            if name in body:
                return refused(400, f"Unsupported parameter: '{name}'", param=name)
        return RESOLVES

    played_now, talk = played(answer, count=2, workers=1, temperature=temperature)
    assert not any(result.error for result in played_now)
    assert talk.requests[0]["max_completion_tokens"] == endpoint.ANSWER_TOKENS
    assert talk.requests[-1]["max_tokens"] == endpoint.ANSWER_TOKENS
    assert not {"temperature", "max_completion_tokens", "seed"} & {*talk.requests[-1]}
    refusals = capsys.readouterr().err.splitlines()
    assert len(refusals) == len(talk.requests) - 2 == 2 + (temperature > 0)
    assert refusals[0] == "toy: it refuses temperature, so nothing is sent instead"
