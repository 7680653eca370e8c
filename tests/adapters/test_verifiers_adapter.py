"""The environment for `verifiers`, played through its own evaluation against an endpoint that says
what a script says.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from logtriage.bench.registry import make_policy
from logtriage.bench.rollouts import rollout
from logtriage.play.actions import Action
from logtriage.play.conversation import from_wire, tool_call
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.play.scoring import PARTS
from logtriage.policies.policy import ConversationPolicy
from logtriage.policies.scripted import ConstantPolicy
from logtriage.world.tasks import TASKS

# In requirements.txt at the newest release that OpenEnv's mcp allows; a machine with the package
# alone may lack it.
if not os.environ.get("CI"):
    pytest.importorskip("verifiers.v1")

ROOT = Path(__file__).parents[2]
SPLIT, EPISODES = "test", 4
SCRIPT = [
    Action("classify_severity", ("P2",)),
    Action("request_more_logs", ("all",)),
    Action("escalate", ("sre",)),
    Action("resolve"),
]


class Recorder:
    """An episode that writes down the actions taken on it."""

    def __init__(self, episode):
        self.episode, self.actions = episode, []

    def __getattr__(self, name):
        return getattr(self.episode, name)

    def act(self, action):
        self.actions.append(action)
        return self.episode.act(action)


def call(identifier, name, arguments):
    """A tool call on the wire; `arguments` is the text of them."""
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def wire(calls, content=None):
    """An assistant message on the wire."""
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


def said(*actions, content=None):
    """An assistant message on the wire that takes these actions at once."""
    functions = [tool_call(action)["function"] for action in actions]
    calls = [
        call(f"call_{i}", one["name"], json.dumps(one["arguments"]))
        for i, one in enumerate(functions)
    ]
    return wire(calls, content)


@pytest.fixture
def endpoint():
    """An OpenAI-compatible server on loopback: `scripts` maps an opening to what is said;
    `requests` collects bodies.
    """
    scripts, requests = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            turn = sum(message["role"] == "assistant" for message in body["messages"])
            message = scripts[body["messages"][1]["content"]][turn]
            choice = {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
            }
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "toy",
                "choices": [choice],
                "usage": usage,
            }
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", scripts, requests
    server.shutdown()
    server.server_close()


def opening(task, index):
    """What the agent reads first."""
    episode = Episode.open(task, SPLIT, index)
    return render(episode.opening, episode.incident.topology)


def evaluate(url, folder, agent=None, **taskset):
    """Run verifiers' own evaluation, offline; returns the trace of each incident, by its name."""
    from verifiers.v1.cli.eval.runner import run_eval
    from verifiers.v1.configs.cli.eval import EvalConfig

    # A display, an upload and (0.3.1 only) worker processes are what it does unless told not to.
    quiet = {name: None for name in ("rich", "serve") if name in EvalConfig.model_fields}
    config = EvalConfig(
        env={
            "taskset": {"id": "logtriage", "split": SPLIT, "episodes": EPISODES, **taskset},
            "agent": agent or {},
        },
        client={"type": "eval", "base_url": url, "api_key_var": "NO_SUCH_KEY"},
        model="toy",
        push=False,
        output_dir=folder,
        **quiet,
    )
    episodes = asyncio.run(run_eval(config))
    assert all(episode.ok for episode in episodes), [episode.errors for episode in episodes]
    return {trace.task.data.name: trace for episode in episodes for trace in episode.traces}


def in_conversation(messages, task, index):
    """The episode as `ConversationPolicy` plays it with the same messages."""
    from openai.types.chat import ChatCompletionMessage

    class Scripted(ConversationPolicy):
        def reply(self, read, seed):
            turn = sum(message["role"] == "assistant" for message in read)
            return from_wire(ChatCompletionMessage.model_validate(messages[turn])), None

    episode = Episode.open(task, SPLIT, index)
    Scripted("scripted").play([episode])
    return episode


def test_the_oracle_earns_everything(endpoint, tmp_path):
    url, scripts, requests = endpoint
    for task in TASKS:
        for index in range(EPISODES):
            recorder = Recorder(Episode.open(task, SPLIT, index))
            make_policy("oracle").play([recorder])
            scripts[opening(task, index)] = [said(action) for action in recorder.actions]
    traces = evaluate(url, tmp_path)
    assert set(traces) == {f"{task}/{SPLIT}/{index}" for task in TASKS for index in range(EPISODES)}
    for trace in traces.values():
        assert trace.reward == 1.0 and all(trace.metrics[part] == 1.0 for part in PARTS)
        assert len(trace.branches) == 1  # each turn continues the one before, as training needs it
    assert {len(request["tools"]) for request in requests} == {7}


def test_a_script_earns_what_it_earns_in_a_rollout(endpoint, tmp_path):
    url, scripts, _ = endpoint
    for task in TASKS:
        for index in range(EPISODES):
            scripts[opening(task, index)] = [said(*SCRIPT)]
    traces = evaluate(url, tmp_path)
    rows = rollout(ConstantPolicy(SCRIPT), list(TASKS), SPLIT, EPISODES, progress=False)
    assert rows.score.nunique() > 1
    for row in rows.itertuples():
        trace = traces[f"{row.task}/{SPLIT}/{row.index}"]
        assert trace.reward == row.score
        assert all(trace.metrics[part] == getattr(row, part) for part in (*PARTS, "cost", "gate"))


MALFORMED = [
    [
        call("a", "rm", "{}"),
        call("b", "escalate", "{broken"),
        call("c", "escalate", "[]"),
        call("d", "resolve", '{"now": 1}'),
    ],
    [
        call("e", "escalate", '{"team": "ceo"}'),
        call("f", "_act", '{"action_type": "resolve", "value": ""}'),
    ],
]


@pytest.mark.parametrize(
    "messages, steps, closed_by",
    [
        ([wire(MALFORMED[0]), wire(MALFORMED[1]), said(Action("ignore"))], 7, "ignore"),
        ([wire(MALFORMED[0] * 3)], 8, "timeout"),
        ([said(Action("classify_severity", ("P2",))), said(content="I give up.")], 1, "timeout"),
        ([said(content="")], 0, "timeout"),
        ([said(content='<tool_call>\n{"name": "resol'), said(Action("resolve"))], 2, "resolve"),
        ([said(Action("resolve"), Action("resolve"))], 1, "resolve"),
    ],
    ids=[
        "malformed",
        "malformed to the last step",
        "walks away",
        "says nothing",
        "unreadable",
        "one call too many",
    ],
)
def test_what_goes_wrong_ends_as_in_conversation(messages, steps, closed_by, endpoint, tmp_path):
    url, scripts, requests = endpoint
    scripts[opening("single_crash", 0)] = messages
    (trace,) = evaluate(url, tmp_path, tasks=["single_crash"], episodes=1).values()
    episode = in_conversation(messages, "single_crash", 0)
    assert (episode.record.steps, episode.record.closed_by) == (steps, closed_by)
    assert trace.reward == episode.score.total and trace.info["score"] == episode.score._asdict()
    assert trace.num_turns == len(messages) == len(requests)


def test_malformed_calls_are_answered(endpoint, tmp_path):
    url, scripts, requests = endpoint
    scripts[opening("single_crash", 0)] = [wire(MALFORMED[0]), said(Action("ignore"))]
    evaluate(url, tmp_path, tasks=["single_crash"], episodes=1)
    answers = requests[1]["messages"][3:]
    assert [answer["tool_call_id"] for answer in answers] == ["a", "b", "c", "d"]
    assert [answer["content"].splitlines()[0] for answer in answers] == [
        f"step {step} of 8" for step in (1, 2, 3, 4)
    ]
    assert (
        "unknown tool 'rm'" in answers[0]["content"]
        and "must be a JSON object, got str" in answers[1]["content"]
    )


def test_a_limit_of_turns_scores_what_was_done(endpoint, tmp_path):
    url, scripts, _ = endpoint
    scripts[opening("single_crash", 0)] = [said(action) for action in SCRIPT]
    (trace,) = evaluate(
        url, tmp_path, agent={"max_turns": 2}, tasks=["single_crash"], episodes=1
    ).values()
    episode = Episode.open("single_crash", SPLIT, 0)
    for action in SCRIPT[:2]:
        episode.act(action)
    episode.abandon()
    assert trace.stop_condition == "max_turns" and trace.reward == episode.score.total


def test_options_name_the_incidents():
    from logtriage.adapters.verifiers import load_environment

    env = load_environment(
        tasks=["silent_degradation", "double_fault"], split="unseen_faults", episodes=2, first=5
    )
    rows = [(one.data.task, one.data.split, one.data.index) for one in env.taskset]
    assert rows == [
        (task, "unseen_faults", i)
        for i in (5, 6)
        for task in ("silent_degradation", "double_fault")
    ]
    assert env.config.agent.runtime.type == "subprocess"  # nothing is sent to a sandbox elsewhere
    with pytest.raises(ValueError, match="unknown split 'tset'"):
        list(load_environment(split="tset").taskset)


@pytest.mark.parametrize(
    "code",
    [
        "import logtriage.policies.llm.language_models, logtriage.server.app; "
        "assert 'verifiers' not in sys.modules",
        "import logtriage; assert logtriage.TriageTaskset.__name__ in logtriage.__all__; "
        "assert 'verifiers.v1' in sys.modules",
        "sys.modules['verifiers'] = None; import logtriage; "
        "assert not hasattr(logtriage, '__all__'); help(logtriage)",
        pytest.param(
            "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'trl'))); "
            "from logtriage.adapters.verifiers import load_environment; "
            "assert len(list(load_environment(episodes=1).taskset)) == 3",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["not asked for", "asked for", "not installed", "no library of models"],
)
def test_only_asking_for_the_environment_imports_verifiers(code):
    subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
