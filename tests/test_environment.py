import json

import pytest
from pydantic import ValidationError

from logtriage.environment import TriageEnvironment
from logtriage.incidents import TASKS, sample_incident
from logtriage.models import TriageAction, TriageObservation


def act(kind, value=""):
    return TriageAction(action_type=kind, value=value)


def test_the_example_of_the_docstring():
    env = TriageEnvironment()
    observation = env.reset(task="cascading_failure", split="test", index=7)
    assert isinstance(observation, TriageObservation) and observation.reward == 0.0 and not observation.done
    assert observation.max_steps == 12 and observation.services[0] in observation.text
    observation = env.step(act("request_more_logs", "user-db"))
    assert observation.step == 1 and observation.metrics[0].startswith("user-db ") and len(observation.logs) == 3


def test_a_full_score_by_the_openenv_interface():
    env = TriageEnvironment()
    incident = sample_incident("cascading_failure", "test", 7)
    env.reset(task="cascading_failure", split="test", index=7)
    assert env.score is None
    for action in (
        act("classify_severity", incident.severity),
        act("identify_root_cause", incident.root),
        act("remediate", f"{incident.remedy}:{incident.root}"),
        act("escalate", incident.team),
        act("resolve"),
    ):
        observation = env.step(action)
    assert observation.done and observation.reward == 1.0 == env.score.total
    named = {name: rubric.last_score for name, rubric in env.rubric.named_children()}
    assert named == {"severity": 1, "root_cause": 1, "remediation": 1, "escalation": 1, "speed": 1, "cost": 0, "gate": 1}


def test_reset_takes_seed_and_episode_id_as_openenv_has_them():
    env = TriageEnvironment()
    assert env.reset(seed=5).text == env.reset(index=5).text
    env.reset(seed=5, episode_id="mine")
    assert (env.state.episode_id, env.state.index) == ("mine", 5)
    env = TriageEnvironment()
    assert [env.reset().text for _ in range(2)] == [env.reset(index=i).text for i in range(2)]


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"task": "nope"}, "choose one of single_crash"),
        ({"split": "dev"}, "choose one of train"),
        ({"index": -1}, "got -1"),
        ({"index": "7"}, "got '7'"),
        ({"seed": -3}, "got -3"),
        ({"level": 9}, "unknown argument 'level'"),
    ],
)
def test_a_bad_reset_leaves_the_open_incident_open(arguments, told):
    env = TriageEnvironment()
    env.reset(task="single_crash", index=1)
    env.step(act("escalate", "sre"))
    with pytest.raises(ValueError, match=told):
        env.reset(**arguments)
    assert env.state.step_count == 1 and env.state.task == "single_crash"
    assert env.step(act("escalate", "sre")).step == 2


def test_steps_out_of_order_are_errors():
    env = TriageEnvironment()
    with pytest.raises(ValueError, match="call reset first"):
        env.step(act("resolve"))
    env.reset()
    env.step(act("resolve"))
    with pytest.raises(ValueError, match="Incident closed"):
        env.step(act("resolve"))


def test_invalid_actions_are_answered_and_unknown_fields_refused():
    env = TriageEnvironment()
    env.reset()
    observation = env.step(act("escalate", "ceo"))
    assert "choose one of sre" in observation.error and observation.error in observation.text and not observation.done
    for bad in (
        {"action_type": "resolve", "value": "", "cheat": 1},
        {"value": "x"},
        {"action_type": "resolve", "value": 3},
        {"action_type": "resolve", "confidence": 2.0},
        {"action_type": "x" * 1000},
    ):
        with pytest.raises(ValidationError):
            TriageAction(**bad)


@pytest.mark.parametrize("task", TASKS)
def test_the_truth_is_not_on_the_wire_before_the_end(task):
    # Every field is compared between incidents that differ in truth; only what the eyes saw may differ.
    env = TriageEnvironment()
    for index in range(10):
        observation = env.reset(task=task, split="test", index=index)
        incident = sample_incident(task, "test", index)
        wire = json.loads(observation.model_dump_json())
        assert set(wire) == {
            "done",
            "reward",
            "metadata",
            "text",
            "step",
            "max_steps",
            "services",
            "alerts",
            "metrics",
            "logs",
            "error",
        }
        assert wire["metadata"] == {} and env.state.score == {}
        state = env.state.model_dump_json()
        assert incident.severity not in state and (incident.root is None or incident.root not in state)


def test_environments_are_isolated():
    one, other = TriageEnvironment(), TriageEnvironment()
    one.reset(index=1), other.reset(index=2)
    one.step(act("escalate", "sre"))
    assert other.state.step_count == 0
