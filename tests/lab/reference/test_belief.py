"""The policy that plays by the posterior: its table of scores, and that it is a reference."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from test_scripted import Sealed, actions_of

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import TracePolicy
from logtriage.world.call_graph import TEAMS
from logtriage.world.faults import REMEDIES
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SEVERITIES, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from triagelab.reference import belief
from triagelab.reference.belief import NONE, Answers, BeliefPolicy, answer_actions, score_table


def mean_score(policy, task, count):
    incidents = [sample_incident(task, "train", index) for index in range(7000, 7000 + count)]
    return np.mean([played.episode.score.total for played in policy.play(map(Episode, incidents))])


@pytest.mark.parametrize("task", TASKS)
def test_belief_is_not_given_the_answer(task):
    for index in range(2):
        incident = sample_incident(task, "test", index)
        sealed, plain = (actions_of(BeliefPolicy(), kind(incident)) for kind in (Sealed, Episode))
        assert sealed == plain


@pytest.mark.parametrize("task", TASKS)
def test_belief_is_above_trace(task):
    assert mean_score(BeliefPolicy(), task, 25) > mean_score(TracePolicy(), task, 25) + 0.02


@pytest.mark.parametrize("change", [{"quiet": (6,)}, {"noise": 0.7}])
def test_it_knows_the_settings_of_a_task(change):
    task = replace(TASKS["cascading_failure"], **change)
    ours = mean_score(BeliefPolicy(), task, 10)
    assert ours > max(0.6, mean_score(TracePolicy(), task, 10))


def test_the_table_of_scores_is_that_of_the_rubric():
    random, topology = Random("scores"), DEFAULT_TOPOLOGY
    for task in TASKS:
        for index in range(12):
            incident = sample_incident(task, "train", index)
            team = NONE if incident.team is None else TEAMS.index(incident.team)
            root = NONE if incident.injection is None else incident.injection.position
            severity = SEVERITIES.index(incident.severity)
            truth = (root, incident.remedy or "", team, severity, 1.0)
            outcomes = belief.Outcomes(*(np.array([part]) for part in truth))
            options = [Answers(random.randrange(3), NONE, None, NONE, ignore=True)]
            for _ in range(20):
                at = root if root != NONE and random.random() < 0.6 else random.randrange(7)
                remedy = incident.remedy or ""
                if not remedy or random.random() < 0.4:
                    remedy = random.choice(REMEDIES)
                paged = team if random.random() < 0.5 else random.choice([NONE, 0, 1, 2, 3])
                fix = random.choice([None, (at, remedy)])
                options.append(Answers(random.randrange(3), random.choice([at, NONE]), fix, paged))
            asked = random.randrange(3)
            table = score_table(options, outcomes, incident.task, asked)
            for row, option in zip(table, options, strict=True):
                episode = Episode(incident)
                question = Action("request_more_logs", ("all",))
                for action in [question] * asked + answer_actions(option, topology):
                    episode.act(action)
                assert row[0] == pytest.approx(episode.score.total), (incident, option)
