"""The optional task: two faults at once, each scored, the score averaged."""

from itertools import permutations

import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import LoudestPolicy, OraclePolicy
from logtriage.world.cluster import is_degraded
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS

TASK = "double_fault"


def answers(incident):
    """Blame, fix and page for each fault, in the order of the faults."""
    found = []
    for injection in incident.injections:
        service = incident.topology.services[injection.position]
        found.append(
            [
                Action("identify_root_cause", (service.name,)),
                Action("remediate", (injection.fault.remedy, service.name)),
                Action("escalate", (injection.fault.owner_at(service),)),
            ]
        )
    return found


def play(incident, actions):
    episode = Episode(incident)
    for action in actions:
        episode.act(action)
    episode.act(Action("resolve"))
    return episode.score


def two_teams():
    incidents = (sample_incident(TASK, "train", index) for index in range(99))
    return next(i for i in incidents if answers(i)[0][2] != answers(i)[1][2] and i.severity == "P1")


@pytest.mark.parametrize("split", SPLITS)
def test_two_services_are_struck_and_both_are_felt(split):
    for index in range(40):
        incident = sample_incident(TASK, split, index)
        assert incident == sample_incident(TASK, split, index)
        roots = {injection.position for injection in incident.injections}
        assert len(roots) == 2
        state = incident.untreated[incident.arrival]
        for root in roots:
            callers = [
                i
                for i, callees in enumerate(incident.topology.network.callees)
                if root in {j for j, _ in callees}
            ]
            assert any(is_degraded(incident.topology, state, caller) for caller in callers)


def test_the_oracle_scores_one_and_loudest_less_than_half():
    scores = {}
    for policy in (OraclePolicy(), LoudestPolicy()):
        episodes = [Episode(sample_incident(TASK, "test", index)) for index in range(200)]
        policy.play(episodes)
        assert all(0.0 <= episode.score.total <= 1.0 for episode in episodes)
        scores[policy.name] = [episode.score.total for episode in episodes]
    assert (
        min(scores["oracle"]) >= 0.98
    )  # 1 where the teams differ or agree: the par allows for two pages
    assert sum(scores["loudest"]) / 200 < 0.5


def test_the_order_of_answers_does_not_matter():
    incident = two_teams()
    first, second = answers(incident)
    severity = Action("classify_severity", (incident.severity,))
    for blame, fix, page in permutations(range(3)):
        order = [pair[kind] for kind in (blame, fix, page) for pair in (second, first)]
        assert play(incident, [severity, *order]).total == 1.0


def test_one_of_two_is_worth_about_half():
    incident = two_teams()
    first, second = answers(incident)
    severity = Action("classify_severity", (incident.severity,))
    for known, other in ((first, second), (second, first)):
        score = play(incident, [severity, *known])
        # Half the answers; all of the severity; no speed, since the other fault is still at work.
        assert score.total == pytest.approx((0.2 + 0.35 + 0.25 + 0.1 + 0.2) / 2)
        assert (
            score.root_cause == score.remediation == score.escalation == 0.5 and score.speed == 0.0
        )
        # The gate is each fault's own: both named, but only one team paged.
        gated = play(incident, [severity, *known, other[0], other[1]])
        assert gated.gate == 0.5 and gated.total < 0.55


def test_a_wrong_answer_is_worth_the_same_before_and_after_a_right_one():
    incident = two_teams()
    (blame, fix, page), second = answers(incident)
    innocent = next(n for n in incident.topology.names if n not in (blame[1], second[0][1]))
    wrong = [Action("identify_root_cause", (innocent,)), Action("remediate", ("scale", innocent))]
    right = [blame, fix]
    totals = {
        play(incident, [Action("classify_severity", (incident.severity,)), *mixed, page]).total
        for mixed in ([*right, *wrong], [*wrong, *right], [right[0], wrong[0], wrong[1], right[1]])
    }
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
        state = episode.cluster.states[-1]
        assert not any(
            is_degraded(incident.topology, state, i) for i in range(len(incident.topology.services))
        )


def test_third_answers_cost():
    incident = two_teams()
    first, second = answers(incident)
    severity = Action("classify_severity", (incident.severity,))
    innocent = next(n for n in incident.topology.names if n not in (first[0][1], second[0][1]))
    full = [severity, *first, *second]
    for extra in (
        Action("identify_root_cause", (innocent,)),
        Action("remediate", ("restart", innocent)),
        Action("escalate", ("sre",)),
        severity,
    ):
        assert play(incident, [*full, extra]).total < 0.96
    shotgun = [
        severity,
        *(Action("identify_root_cause", (name,)) for name in incident.topology.names),
    ]
    assert play(incident, shotgun).total < 0.3
