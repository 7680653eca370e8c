"""Language models as policies, with a model that learned nothing and an endpoint on loopback. What
is about messages is tested with `play.conversation`, and calls with `play.tools`.
"""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from test_rewards import right_answers

from logtriage.agents.language_models import ConversationPolicy, EndpointPolicy, LanguageModelPolicy
from logtriage.agents.loading import load_language_model
from logtriage.play.actions import ACTION_TYPES
from logtriage.play.conversation import answers, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession, tool_schemas

ROOT = Path(__file__).parents[2]


def episodes(count=3):
    return [Episode.open("cascading_failure", "train", index) for index in range(count)]


def right_calls(incident):
    return [tool_call(action) for action in right_answers(incident)]


class Scripted(ConversationPolicy):
    """Replies from a list of messages a seat."""

    def __init__(self, replies):
        super().__init__("scripted")
        self.replies = replies

    def reply(self, conversations, seats):
        return [{"role": "assistant", "content": "", **self.replies[seat].pop(0)} for seat in seats]


def test_several_calls_in_one_message_are_several_steps():
    played = episodes(2)
    Scripted([[{"tool_calls": right_calls(episode.incident)}] for episode in played]).play(played)
    assert [episode.score.total for episode in played] == [1.0, 1.0]
    assert [episode.record.steps for episode in played] == [5, 5]


def test_a_message_without_a_call_walks_away():
    played = episodes(1)
    Scripted([[{"content": "I give up."}]]).play(played)
    assert (
        played[0].done and played[0].record.closed_by == "timeout" and played[0].score.total == 0.0
    )


def test_a_call_that_cannot_be_read_is_answered_and_the_episode_goes_on():
    played = episodes(1)
    policy = Scripted(
        [
            [
                {"content": '<tool_call>\n{"name": "resolve", "argu'},
                {"tool_calls": right_calls(played[0].incident)},
            ]
        ]
    )
    policy.play(played)
    assert "could not be read" in policy.transcripts[0][3]["content"]
    assert played[0].record.closed_by == "resolve" and played[0].record.steps == 6


def test_a_model_in_memory_plays_all_at_once(tiny_base):
    policy = LanguageModelPolicy(*load_language_model(tiny_base), name="tiny", temperature=1.0)
    played = episodes(4)
    policy.play(played)
    assert all(episode.done for episode in played) and len(policy.transcripts) == 4


def test_ids_are_the_templates_whatever_the_number_of_turns(tiny_base):
    # Turn by turn the ids are concatenated, never re-tokenized; for the mini tokenizer both must
    # agree.
    model, tokenizer = load_language_model(tiny_base)
    policy = LanguageModelPolicy(model, tokenizer, name="tiny")
    episode = episodes(1)[0]
    session = ToolSession(episode)
    conversation = opening_messages(session.opening)
    (opened,) = policy._opened([session])
    ids = opened.prompt
    for action in (("request_more_logs", episode.incident.root), ("escalate", "sre")):
        call = tool_call(action)
        said = (
            tokenizer.apply_chat_template(
                [
                    {"role": "user", "content": ""},
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                ],
                tokenize=False,
            )
            .split("<|im_start|>assistant\n")[1]
            .removesuffix("\n")
        )
        ids = ids + tokenizer.encode(said, add_special_tokens=False)
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        told = answers(session, message)
        conversation += [message, *told]
        ids = ids + policy._answer_ids(told, ended=True)
        whole = tokenizer.apply_chat_template(
            conversation, tools=tool_schemas(), add_generation_prompt=True, return_dict=False
        )
        assert ids == whole


def test_four_bit_needs_a_gpu(tiny_base):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="needs an NVIDIA GPU"):
        load_language_model(tiny_base, load_in_4bit=True)


@pytest.fixture
def endpoint():
    """An OpenAI-compatible server on loopback: fails once, asks for logs, sends malformed
    arguments, closes.
    """
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            if len(requests) == 1:
                self.send_response(503)
                self.end_headers()
                return
            turn = sum(message["role"] == "assistant" for message in body["messages"])
            name, arguments = [
                ("request_more_logs", '{"service": "all"}'),
                ("escalate", "{broken"),
                ("resolve", "{}"),
            ][turn]
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"call_{turn}",
                        "type": "function",
                        "function": {"name": name, "arguments": arguments},
                    }
                ],
            }
            answer = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "toy",
                    "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", requests
    server.shutdown()


def test_an_endpoint_is_a_policy_too(endpoint):
    url, requests = endpoint
    policy = EndpointPolicy(url, "toy")
    played = episodes(1)
    policy.play(played)
    record = played[0].record
    assert record.closed_by == "resolve" and record.steps == 3  # a malformed call is a step
    # and was answered
    assert "must be a JSON object" in policy.transcripts[0][-3]["content"]
    assert {tool["function"]["name"] for tool in requests[1]["tools"]} == set(ACTION_TYPES)
    assert requests[-1]["messages"][-1]["tool_call_id"] == "call_1"


def test_an_endpoint_needs_no_library_of_models(endpoint):
    # They take seconds to import, and a machine that only evaluates may lack them.
    url, requests = endpoint
    code = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "trl")))
from logtriage.agents.language_models import EndpointPolicy
from logtriage.play.episode import Episode
episode = Episode.open("single_crash", "test", 0)
EndpointPolicy(sys.argv[1], "toy").play([episode])
assert episode.record.closed_by == "resolve"
"""
    subprocess.run([sys.executable, "-c", code, url], check=True, cwd=ROOT)
    assert len(requests) == 4
