import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from test_rewards import right_answers

from logtriage.agents.junior import tool_call
from logtriage.agents.language_models import (
    ConversationPolicy,
    EndpointPolicy,
    LanguageModelPolicy,
    call_tool,
    load_language_model,
    opening_messages,
    tool_schemas,
)
from logtriage.play.episode import Episode
from logtriage.play.tools import TOOL_NAMES, TriageTools
from logtriage.world.incidents import sample_incident


def episodes(count=3):
    return [Episode(sample_incident("cascading_failure", "train", index)) for index in range(count)]


def answers(incident):
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
    Scripted([[{"tool_calls": answers(episode.incident)}] for episode in played]).play(played)
    assert [episode.score.total for episode in played] == [1.0, 1.0]
    assert [episode.record.steps for episode in played] == [5, 5]


def test_a_message_without_a_call_walks_away():
    played = episodes(1)
    Scripted([[{"content": "I give up."}]]).play(played)
    assert (
        played[0].done and played[0].record.closed_by == "timeout" and played[0].score.total == 0.0
    )


@pytest.mark.parametrize(
    "name, arguments, told",
    [
        ("rm", {}, "unknown tool 'rm'; choose one of classify_severity"),
        ("escalate", [], "must be a JSON object, got list"),
        ("escalate", {}, "missing a required argument: 'team'; it takes team"),
        ("escalate", {"team": "sre", "urgent": True}, "unexpected keyword argument 'urgent'"),
        ("escalate", {"team": "ceo"}, "choose one of sre"),
        ("escalate", {"team": {"$ref": 1}}, "unknown team"),
        ("__init__", {}, "unknown tool"),
        ("_act", {"action_type": "resolve", "value": ""}, "unknown tool"),
        ("reset", {"task": "single_crash", "split": "test", "index": 0}, "unknown tool"),
    ],
)
def test_malformed_calls_are_answered_and_the_episode_goes_on(name, arguments, told):
    tools = TriageTools()
    tools._adopt(episodes(1)[0])
    assert told in call_tool(tools, name, arguments)
    assert not tools._episode.done
    assert "resolve" in call_tool(tools, "resolve", {})
    assert "Incident closed" in call_tool(tools, "resolve", {})


def test_a_malformed_call_costs_a_step_and_nothing_else():
    tools = TriageTools()
    tools._adopt(episodes(1)[0])
    for name, arguments in (
        ("rm", {}),
        ("escalate", []),
        ("resolve", {"now": True}),
        ("escalate", {"team": "ceo"}),
    ):
        call_tool(tools, name, arguments)
    record = tools._episode.record
    assert record.steps == 4 and tools._malformed == 4
    assert (record.severity, record.root_cause, record.team, record.remediations) == (
        None,
        None,
        None,
        [],
    )


def test_a_call_that_cannot_be_read_is_answered_and_the_episode_goes_on():
    played = episodes(1)
    policy = Scripted(
        [
            [
                {"content": '<tool_call>\n{"name": "resolve", "argu'},
                {"tool_calls": answers(played[0].incident)},
            ]
        ]
    )
    policy.play(played)
    assert "could not be read" in policy.transcripts[0][3]["content"]
    assert played[0].record.closed_by == "resolve" and played[0].record.steps == 6


def test_schemas_cover_the_seven_tools_and_nothing_else():
    schemas = tool_schemas()
    assert sorted(schema["function"]["name"] for schema in schemas) == sorted(TOOL_NAMES)
    assert len(TOOL_NAMES) == 7
    assert all(schema["function"]["description"] for schema in schemas)


def test_the_reward_takes_malformed_calls_off():
    tools = TriageTools()
    tools.reset(task="single_crash", split="train", index=0, prompt=[], extra=1)
    tools.escalate("ceo")
    tools.resolve()
    with pytest.raises(ValueError, match="Incident closed"):
        tools.resolve()
    assert tools.get_reward() == pytest.approx(tools._episode.score.total - 0.1)
    tools.reset(task="single_crash", split="train", index=0)  # pooled instances must forget
    assert tools._malformed == 0 and not tools._episode.done


def test_a_model_in_memory_plays_in_lockstep(tiny_base):
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
    tools = TriageTools()
    conversation = opening_messages(tools._adopt(episode))
    ids = policy._prompt_ids(conversation, [])
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
        function = call["function"]
        conversation += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {
                "role": "tool",
                "name": function["name"],
                "content": call_tool(tools, function["name"], function["arguments"]),
            },
        ]
        ids = policy._prompt_ids(conversation, ids)
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
    assert (
        played[0].record.closed_by == "resolve" and played[0].record.steps == 3
    )  # a malformed call is a step
    assert (
        "must be a JSON object" in policy.transcripts[0][-3]["content"]
    )  # the malformed call was answered
    assert {tool["function"]["name"] for tool in requests[1]["tools"]} == set(TOOL_NAMES)
    assert requests[-1]["messages"][-1]["tool_call_id"] == "call_1"
