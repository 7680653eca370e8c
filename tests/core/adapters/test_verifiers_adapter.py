"""The environment for `verifiers`, played through its own evaluation against an endpoint that says
what a script says.
"""

import asyncio
import sys

import pytest
from helpers import needs
from scripted_turns import WRONG, as_played_by, conversed, does, opening
from talking_server import said, talking

import logtriage
from logtriage.play.actions import Action
from logtriage.play.scoring import PARTS
from logtriage.world.tasks import TASKS

# In requirements.txt at the newest release that OpenEnv's mcp allows; a machine with the package
# alone may lack it.
pytestmark = needs("verifiers")

SPLIT, EPISODES = "test", 3


@pytest.fixture
def endpoint():
    """A server whose `scripts` map an opening to the completions of its turns; and the bodies of
    the requests.
    """
    scripts = {}

    def answer(body, number):
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return scripts[body["messages"][1]["content"]][turn]

    with talking(answer) as (url, talk):
        yield url, scripts, talk.requests


def evaluate(url, folder, agent=None, **taskset):
    """Run verifiers' own evaluation, offline; returns the trace of each incident, by its name."""
    from verifiers.v1.cli.eval.runner import run_eval
    from verifiers.v1.configs.cli.eval import EvalConfig

    # A display, an upload and (0.3.1 only) worker processes are what it does unless told not to.
    quiet = {name: None for name in ("rich", "serve") if name in EvalConfig.model_fields}
    quiet["push"] = False
    taskset = {"id": "logtriage", "split": SPLIT, "episodes": EPISODES, **taskset}
    client = {"type": "eval", "base_url": url, "api_key_var": "NO_SUCH_KEY"}
    env = {"taskset": taskset, "agent": agent or {}}
    config = EvalConfig(env=env, client=client, model="toy", output_dir=folder, **quiet)
    episodes = asyncio.run(run_eval(config))
    assert all(episode.ok for episode in episodes), [episode.errors for episode in episodes]
    return {trace.task.data.name: trace for episode in episodes for trace in episode.traces}


def test_the_oracle_earns_everything(endpoint, tmp_path):
    url, scripts, requests = endpoint
    for task in TASKS:
        for index in range(EPISODES):
            _, scripts[opening(task, index)] = as_played_by("oracle", task, index)
    traces = evaluate(url, tmp_path)
    assert set(traces) == {f"{task}/{SPLIT}/{index}" for task in TASKS for index in range(EPISODES)}
    for trace in traces.values():
        assert trace.reward == 1.0 and all(trace.metrics[part] == 1.0 for part in PARTS)
        assert len(trace.branches) == 1  # each turn continues the one before, as training needs it
    assert {len(request["tools"]) for request in requests} == {7}


def test_what_goes_wrong_ends_as_in_conversation(endpoint, tmp_path):
    url, scripts, requests = endpoint
    for index, (completions, *_) in enumerate(WRONG):
        scripts[opening("single_crash", index)] = completions
    traces = evaluate(url, tmp_path, tasks=["single_crash"], episodes=len(WRONG))
    for index, (completions, steps, closed_by) in enumerate(WRONG):
        trace = traces[f"single_crash/{SPLIT}/{index}"]
        episode = conversed(completions, "single_crash", index).episode
        assert (episode.record.steps, episode.record.closed_by) == (steps, closed_by)
        assert trace.reward == episode.score.total
        assert trace.info["score"] == episode.score._asdict()
        assert trace.num_turns == len(completions)
    first = opening("single_crash", 0)
    _, asked = (ask["messages"] for ask in requests if ask["messages"][1]["content"] == first)
    assert [answer["tool_call_id"] for answer in asked[3:]] == ["a", "b", "c", "d"]
    assert "unknown tool 'rm'" in asked[3]["content"]


def test_a_limit_of_turns_scores_what_was_done(endpoint, tmp_path):
    url, scripts, _ = endpoint
    asks = does(Action("request_more_logs", ("all",)))
    done = [does(Action("classify_severity", ("P1",))), asks]
    scripts[opening("single_crash", 0)] = [*done, asks]
    limit = {"max_turns": 2}
    (trace,) = evaluate(url, tmp_path, limit, tasks=["single_crash"], episodes=1).values()
    expected = conversed([*done, said()], "single_crash", 0).episode.score.total
    assert trace.stop_condition == "max_turns" and trace.reward == expected > 0.0


def test_its_own_validation_passes(tmp_path):
    from verifiers.v1.cli.validate import run_validate
    from verifiers.v1.configs.cli.validate import ValidateConfig

    plan = {"taskset": {"id": "logtriage", "episodes": 1}, "runtime": {"type": "subprocess"}}
    config = ValidateConfig(**plan, output_dir=tmp_path, rich=False)
    rows = asyncio.run(run_validate(config))
    assert [row["reason"] for row in rows] == ["valid"] * 3


def test_options_name_the_incidents():
    from logtriage.adapters.verifiers import load_environment

    tasks = ["silent_degradation", "single_crash"]
    env = load_environment(tasks=tasks, split="unseen_faults", episodes=2, first=5)
    rows = [(task.data.task, task.data.split, task.data.index) for task in env.taskset]
    assert rows == [(task, "unseen_faults", index) for index in (5, 6) for task in tasks]
    assert env.config.agent.runtime.type == "subprocess"  # nothing is sent to a sandbox elsewhere
    with pytest.raises(ValueError, match="unknown split 'tset'"):
        list(load_environment(split="tset").taskset)


def test_the_package_offers_verifiers_what_it_looks_for(monkeypatch):
    assert "TriageTaskset" in logtriage.__all__ and logtriage.TriageTaskset
    monkeypatch.delitem(sys.modules, "logtriage.adapters.verifiers")
    monkeypatch.setitem(sys.modules, "verifiers.v1", None)  # not installed
    monkeypatch.delattr("logtriage.adapters.verifiers")
    assert not hasattr(logtriage, "__all__")
