from copy import deepcopy
from itertools import product

import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode, IncidentView
from logtriage.play.observation import Observation
from logtriage.play.scoring import Record, score
from logtriage.policies.scripted import BEST_SCRIPTS, ConstantPolicy, TracePolicy, answers
from logtriage.registry import SCRIPTS, make_policy
from logtriage.world.call_graph import TEAMS, CallGraph, Service
from logtriage.world.faults import faults_at
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SEVERITIES, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

EPISODES = 40


@pytest.fixture(scope="module")
def scripted():
    return {name: make_policy(name) for name in SCRIPTS}


@pytest.fixture(scope="module")
def scores(scripted):
    """The scores of each policy by task."""
    scores = {}
    for name in SCRIPTS:
        for task in TASKS:
            episodes = [Episode.open(task, "test", index) for index in range(EPISODES)]
            deepcopy(scripted[name]).play(episodes)
            scores[name, task] = [episode.score for episode in episodes]
    return scores


def mean(scores, part="total"):
    return sum(getattr(score, part) for score in scores) / len(scores)


def test_policies_differ_on_cascading_failure_as_they_should(scores):
    task = "cascading_failure"
    loudest, trace = (mean(scores[name, task], "root_cause") for name in ("loudest", "trace"))
    assert loudest < 0.35 and trace >= loudest + 0.30  # the root is rarely the loudest
    assert mean(scores["constant", task]) < mean(scores["loudest", task])


def test_chance_earns_little_and_no_script_solves_silent_degradation(scores):
    assert all(mean(scores["random", task]) < 0.15 for task in TASKS)
    for name in SCRIPTS:
        assert name == "oracle" or mean(scores[name, "silent_degradation"]) <= 0.90, (
            f"{name} solves silent degradation: too easy a task, or a policy that knows too much"
        )


class Sealed(Episode):
    """An episode of whose incident only what may be known can be read."""

    def __init__(self, incident):
        super().__init__(incident)
        known = (incident.task_name, incident.split, incident.index, incident.topology)
        self.incident = IncidentView(*known, incident.task)

    def _judge(self):
        return None


def actions_of(policy, episode):
    deepcopy(policy).play([episode])  # a copy, so that the policy's random stream stays
    return [step.action for step in episode.history]


@pytest.mark.parametrize("name", SCRIPTS)
def test_only_the_oracle_is_given_the_answer(name, scripted):
    for task in TASKS:
        for index in range(15):
            incident, policy = sample_incident(task, "test", index), scripted[name]
            if name == "oracle":
                with pytest.raises(ValueError, match="oracle needs the truth"):
                    actions_of(policy, Sealed(incident))
            else:
                assert actions_of(policy, Sealed(incident)) == actions_of(policy, Episode(incident))


def blind_scripts():
    """Scripts that ask nothing: full answers in every combination, partial ones, dismissals."""
    dismissed = [Action("classify_severity", ("P3",)), Action("ignore")]
    scripts = [dismissed, [Action("resolve")], [Action("ignore")]]
    for severity, team in product(SEVERITIES, TEAMS):
        scripts.append(answers(severity, None, None, team))
        for service in DEFAULT_TOPOLOGY.services:
            for remedy in sorted({fault.remedy for fault in faults_at(service)}):
                fix = (remedy, service.name)
                for blamed, fixed in ((service.name, fix), (None, fix), (service.name, None)):
                    scripts.append(answers(severity, blamed, fixed, team))
    return scripts


def script_score(script, incidents):
    """The mean score of a script that asks nothing, so that no episode has to be played."""
    record = Record(steps=len(script), closed_by=script[-1].type)
    for action in script:
        record.note(action)
    return sum(score(record, incident).total for incident in incidents) / len(incidents)


@pytest.mark.parametrize("task", TASKS)
def test_no_script_that_reads_nothing_is_better_on_train(task):
    incidents = [sample_incident(task, "train", index) for index in range(100)]
    few, scripts = 10, blind_scripts()
    while few < len(incidents):
        scripts.sort(key=lambda script: -script_score(script, incidents[:few]))
        scripts, few = scripts[: len(scripts) // 4], few * 3
    best = max(scripts, key=lambda script: script_score(script, incidents))
    assert " ".join(action.text for action in best) == BEST_SCRIPTS[task]
    for script in (best, *blind_scripts()[::40]):
        episodes = [Episode(incident) for incident in incidents[:5]]
        ConstantPolicy(script).play(episodes)
        played = [episode.score for episode in episodes]
        assert mean(played) == script_score(script, incidents[:5])


def test_the_novice_does_all_that_an_agent_can_and_is_often_wrong():
    # What is never imitated is never tried, and so never rewarded; and reward must have something
    # to teach. That the novice never sees the answer is tested with the drills.
    episodes = [Episode.open("cascading_failure", "train", index) for index in range(100)]
    make_policy("novice").play(episodes)
    assert 0.05 < mean([episode.score for episode in episodes], "root_cause") < 0.5
    episodes = [Episode.open("silent_degradation", "train", index) for index in range(100)]
    make_policy("novice").play(episodes)
    records = [episode.record for episode in episodes]
    assert {record.closed_by for record in records} == {"resolve", "ignore"}  # in time, too
    for given in ("root_causes", "teams", "remediations"):
        assert {len(getattr(record, given)) for record in records} == {0, 1}
    assert {record.severity for record in records} >= {"P2", "P3"}


def test_the_walk_down_the_calls_ends_where_two_services_complain_of_each_other():
    class Circle(TracePolicy):
        def proven(self, service):
            return False

        def fault_at(self, service):
            return None

        def subjects(self, service, role):
            return ["b" if service == "a" else "a"]

    graph = CallGraph((Service("a", "app", ("b",)), Service("b", "app", ("a",))))
    policy = Circle()
    policy.begin(graph, Observation(max_steps=12, lines=[]))
    assert policy.decide() == [Action("request_more_logs", ("b",))]
