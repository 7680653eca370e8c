import asyncio
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from test_scoring import right_answers

from logtriage import environment
from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.episode import Episode
from logtriage.play.scoring import PARTS
from logtriage.world.call_graph import TEAMS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SEVERITIES, SPLITS, TASKS

README = Path(environment.__file__).with_name("README.md").read_text(encoding="utf-8")


def act(kind, value=""):
    return TriageAction(action_type=kind, value=value)


def test_a_full_score_by_the_openenv_interface():
    env = TriageEnvironment()
    opening = env.reset(task="cascading_failure", split="test", index=7)
    assert opening.reward == 0.0 and not opening.done and env.state.score == {}
    for action in right_answers(sample_incident("cascading_failure", "test", 7)):
        observation = env.step(act(action.type, action.value))
        assert observation.services is None  # what the step did not bring
    assert observation.done and observation.reward == 1.0 == env.state.score["total"]
    named = {name: rubric.last_score for name, rubric in env.rubric.named_children()}
    assert named == dict.fromkeys((*PARTS, "gate"), 1.0) | {"cost": 0.0}


def test_reset_takes_seed_and_episode_id_as_openenv_has_them():
    env = TriageEnvironment()
    assert env.reset(seed=5).text == env.reset(index=5).text == env.reset(index=5.0).text
    env.reset(seed=5, episode_id="mine", task="single_crash")
    assert (env.state.episode_id, env.state.index) == ("mine", 5)
    assert env.reset().text == env.reset(index=6).text
    env = TriageEnvironment()
    assert [env.reset().text for _ in range(4)] == [env.reset(index=i).text for i in range(4)]


def test_reset_without_a_task_opens_what_the_task_api_numbers():
    # A client that knows OpenEnv and nothing of ours meets every task.
    env = TriageEnvironment()
    assert [split["name"] for split in env.list_splits()] == list(SPLITS)
    every, count = env.list_tasks("test"), env.num_tasks("test")
    assert len(every) == count == len({tuple(spec.values()) for spec in every})
    assert {spec["task"] for spec in env.get_task_range("test", stop=3)} == set(TASKS)
    assert every[5:9] == env.get_task_range("test", 5, 9)
    for number in range(6):
        opening = env.reset(split="test", index=number)
        assert env.get_task("test", number) == every[number]
        assert every[number].items() <= env.state.model_dump().items()
        assert env.reset(**every[number]) == opening
    for index in (-1, count, 10**30):
        with pytest.raises(IndexError, match=f"0 to {count - 1}"):
            env.get_task("test", index)
    with pytest.raises(ValueError, match="choose one of train"):
        env.num_tasks("dev")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"task": "nope"}, "choose one of single_crash"),
        ({"split": "dev"}, "choose one of train"),
        ({"index": -1}, "got -1"),
        ({"index": "7"}, "got '7'"),
        ({"index": float("inf")}, "got inf"),
        ({"seed": -3}, "got -3"),
        ({"level": 9}, "unknown argument 'level'"),
        ({"split": {}}, "choose one of train"),
        ({"episode_id": 5}, "text of at most 255 characters, got 5"),
        ({"episode_id": "x" * 256}, "text of at most 255 characters"),
    ],
)
def test_a_bad_reset_leaves_the_open_incident_open(arguments, message):
    env = TriageEnvironment()
    env.reset(task="single_crash", index=1)
    env.step(act("escalate", "sre"))
    with pytest.raises(ValueError, match=message):
        env.reset(**arguments)
    assert env.state.step_count == 1 and env.state.task == "single_crash"
    assert env.step(act("escalate", "sre")).step == 2


def test_a_slow_reset_does_not_stall_other_sessions(monkeypatch):
    # Incidents of `production` are drawn for 17 to 37 ms.
    went_on = threading.Event()

    def open_slowly(**_):
        assert went_on.wait(2), "the event loop was blocked"
        return Episode.open("single_crash", "train", 0)

    async def everybody():
        opening = asyncio.create_task(TriageEnvironment().reset_async(task="production", index=0))
        await asyncio.sleep(0)  # the reset begins, and the loop goes on
        went_on.set()
        return await opening

    monkeypatch.setattr(environment, "open_incident", open_slowly)
    assert asyncio.run(everybody()).text.startswith("step 0 of 8")


OBSERVED = {"done", "reward", "metadata", "text", "step", "max_steps", "notice", "error"}
OBSERVED |= {"services", "alerts", "metrics", "logs", "measures", "calls", "counts"}
STATE = {"episode_id", "step_count", "task", "split", "index", "max_steps"}
STATE |= {"done", "closed_by", "confidence", "score"}
TRUTH = {"root", "fault", "injection", "remedy", "severity", "team"}
TRUTH |= {"quiet", "arrival", "untreated"}


def keys(data):
    """Every key at any depth of a JSON value."""
    if isinstance(data, dict):
        return set(data).union(*map(keys, data.values()))
    return set().union(*map(keys, data)) if isinstance(data, list) else set()


def watch(env, incident, actions):
    """Observation, state and metadata as JSON values after each action: all that is on the wire."""
    observation = env.reset(task=incident.task.name, split=incident.split, index=incident.index)
    for action in [*actions, None]:
        wire = (observation, env.state, env.get_metadata())
        yield [json.loads(model.model_dump_json()) for model in wire]
        if action:
            observation = env.step(action)


def investigation(incident):
    """Actions whose answers name no team, remedy or severity: a tour of the logs and an action that
    does not exist.
    """
    others = [name for name in incident.topology.names if name != incident.root][:3]
    asked = ("all", *others, incident.root or "all")
    return [*(act("request_more_logs", name) for name in asked), act("sudo")]


@pytest.mark.parametrize("task", TASKS)
def test_the_truth_is_not_on_the_wire_before_the_end(task):
    env = TriageEnvironment()
    for index in range(30):
        incident = sample_incident(task, "test", index)
        fault = incident.injection.fault.name if incident.injection else None
        answers = {fault, incident.remedy, incident.team, incident.severity} - {None}
        for observation, state, metadata in watch(env, incident, investigation(incident)):
            assert set(observation) == OBSERVED and set(state) == STATE
            assert metadata.pop("readme_content") == README  # the same for all incidents
            assert not TRUTH & (keys(observation) | keys(state) | keys(metadata))
            assert state["score"] == {} == observation["metadata"]
            assert observation["reward"] == 0.0
            logs = observation.pop("logs") or []
            # Log lines use ordinary words such as crash and restart, but no names of ours; nothing
            # else has a reason to.
            text = [line for line in observation.pop("text").splitlines() if line not in logs]
            elsewhere = json.dumps([text, observation, state, metadata])
            for answer in answers:
                assert not re.search(rf"\b{answer}\b", elsewhere), answer
                assert "-" not in answer or answer not in "\n".join(logs)
            if incident.root:
                assert incident.root not in json.dumps([state, metadata, observation["error"]])


@pytest.mark.parametrize("task", TASKS)
def test_what_is_seen_does_not_depend_on_severity_and_team(task, monkeypatch):
    # Twins differ in these answers only; everything that crosses the wire is the same until the
    # score tells them apart.
    for index in range(30):
        incident = sample_incident(task, "test", index)
        if incident.injection is None:
            continue
        team = next(team for team in TEAMS if team != incident.team)
        severity = next(severity for severity in SEVERITIES if severity != incident.severity)
        injection = replace(incident.injection, fault=replace(incident.injection.fault, team=team))
        twin = replace(incident, severity=severity, injection=injection)
        actions = [
            *investigation(incident)[-3:],
            act("classify_severity", incident.severity),
            act("escalate", incident.team),
            act("resolve"),
        ]
        seen = []
        for version in (incident, twin):
            opened = lambda version=version, **_: Episode(version)  # noqa: E731
            monkeypatch.setattr(environment, "open_incident", opened)
            seen.append(list(watch(TriageEnvironment(), incident, actions)))
        assert seen[0][:-1] == seen[1][:-1]
        own, other = (steps[-1][1]["score"] for steps in seen)
        assert own["severity"] == own["escalation"] == 1.0
        assert other["severity"] == other["escalation"] == 0.0
