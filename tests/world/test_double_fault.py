"""The optional task: two faults at once, each scored, the score averaged."""

from itertools import permutations

import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.scoring import single_faults
from logtriage.policies.scripted import LoudestPolicy, OraclePolicy
from logtriage.world.cluster import is_degraded
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS

TASK = "double_fault"


def answers(incident):
    """Blame, fix and page for each fault, in the order of the faults."""
    return [
        [
            Action("identify_root_cause", (fault.root,)),
            Action("remediate", (fault.remedy, fault.root)),
            Action("escalate", (fault.team,)),
        ]
        for fault in single_faults(incident)
    ]


def play(incident, actions):
    episode = Episode(incident)
    for action in (Action("classify_severity", (incident.severity,)), *actions, Action("resolve")):
        episode.act(action)
    return episode.score


@pytest.fixture(scope="module")
def incident():
    """An outage whose faults are of two teams."""
    incidents = (sample_incident(TASK, "train", index) for index in range(99))
    return next(i for i in incidents if answers(i)[0][2] != answers(i)[1][2] and i.severity == "P1")


def innocent(incident):
    roots = {fault.root for fault in single_faults(incident)}
    return next(name for name in incident.topology.names if name not in roots)


@pytest.mark.parametrize("split", SPLITS)
def test_two_services_are_at_fault_and_both_are_felt(split):
    for index in range(40):
        incident = sample_incident(TASK, split, index)
        roots = {fault.root for fault in single_faults(incident)}
        assert len(roots) == 2
        topology, state = incident.topology, incident.untreated[incident.arrival]
        for root in roots:
            callers = [i for i, one in enumerate(topology.services) if root in one.calls]
            assert any(is_degraded(topology, state, caller) for caller in callers)


def test_the_oracle_scores_one_and_loudest_less_than_half():
    scores = {}
    for policy in (OraclePolicy(), LoudestPolicy()):
        episodes = [Episode(sample_incident(TASK, "test", index)) for index in range(200)]
        policy.play(episodes)
        scores[policy.name] = [episode.score.total for episode in episodes]
        assert 0.0 <= min(scores[policy.name]) <= max(scores[policy.name]) <= 1.0
    # Not 1 where the teams agree: the fewest steps allow for two pages.
    assert min(scores["oracle"]) >= 0.98
    assert sum(scores["loudest"]) / 200 < 0.5


def test_the_order_of_answers_does_not_matter(incident):
    first, second = answers(incident)
    for order in permutations(range(3)):
        assert play(incident, [fault[i] for i in order for fault in (second, first)]).total == 1.0


def test_one_of_two_is_worth_about_half(incident):
    first, second = answers(incident)
    for known, other in ((first, second), (second, first)):
        score = play(incident, known)
        # Half the answers; all of the severity; no speed, since the other fault is still at work.
        assert score.total == pytest.approx((0.2 + 0.35 + 0.25 + 0.1 + 0.2) / 2)
        assert score.root_cause == score.remediation == score.escalation == 0.5
        assert score.speed == 0.0
        # The gate is each fault's own: both named, but only one team paged.
        gated = play(incident, [*known, other[0], other[1]])
        assert gated.gate == 0.5 and gated.total < 0.55


def test_a_wrong_answer_is_worth_the_same_before_and_after_a_right_one(incident):
    (blame, fix, page), _ = answers(incident)
    name = innocent(incident)
    blamed, fixed = Action("identify_root_cause", (name,)), Action("remediate", ("scale", name))
    orders = ([blame, fix, blamed, fixed], [blamed, fixed, blame, fix], [blame, blamed, fixed, fix])
    totals = {play(incident, [*order, page]).total for order in orders}
    assert len(totals) == 1 and totals.pop() > 0.2


def test_only_both_remedies_heal():
    for index in range(60):
        incident = sample_incident(TASK, "train", index)
        episode, (first, second) = Episode(incident), answers(incident)
        episode.act(first[1])
        assert list(episode.cluster.active) == [incident.injections[1].position]
        episode.act(second[1])
        assert not episode.cluster.active
        for _ in range(40):
            episode.cluster.advance()
        topology, state = incident.topology, episode.cluster.states[-1]
        assert not any(is_degraded(topology, state, i) for i in range(len(topology.services)))


def test_third_answers_cost(incident):
    first, second = answers(incident)
    name = innocent(incident)
    for extra in (
        Action("identify_root_cause", (name,)),
        Action("remediate", ("restart", name)),
        Action("escalate", ("sre",)),
        Action("classify_severity", (incident.severity,)),
    ):
        assert play(incident, [*first, *second, extra]).total < 0.96
    everyone = [Action("identify_root_cause", (name,)) for name in incident.topology.names]
    assert play(incident, everyone).total < 0.3
