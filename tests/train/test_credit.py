"""Which part of an episode's score each call is credited with."""

import pytest

from logtriage.play.actions import Action
from logtriage.play.conversation import tool_call
from logtriage.play.episode import Episode
from logtriage.play.scoring import Score
from logtriage.play.tools import ToolSession
from logtriage.train.credit import WHOLE, credits, group_advantages, kinds_of_credit
from logtriage.world.incidents import sample_incident

INCIDENT = sample_incident("cascading_failure", "train", 0)
RIGHT = Score(1, 1, 1, 1, 0.5, cost=0.0, gate=1.0, total=0.95)
WRONG_TEAM = Score(1, 1, 1, 0, 0.5, cost=0.0, gate=0.0, total=0.0)
WRONG_ROOT = Score(0, 0, 0, 1, 0.0, cost=0.1, gate=1.0, total=0.0)


def played(*actions):
    """A closed session of these actions; one of None stands for text that was no call."""
    session = ToolSession(Episode(INCIDENT))
    for action in actions:
        if action is None:
            session.refuse("no call")
            continue
        function = tool_call(action)["function"]
        session.call(function["name"], function["arguments"])
    session.episode.abandon()
    return session


def test_without_a_gate_the_parts_add_up_to_the_reward():
    given = credits(RIGHT, RIGHT.total)
    parts = given["classify_severity"] + given["identify_root_cause"] + given["escalate"]
    assert parts == pytest.approx(RIGHT.total) == given[WHOLE]
    assert given["remediate"] == pytest.approx(0.25 + 0.05)


def test_the_team_is_charged_what_the_gate_takes_for_it():
    right, wrong = credits(RIGHT, RIGHT.total), credits(WRONG_TEAM, WRONG_TEAM.total)
    assert wrong["escalate"] == pytest.approx(-(0.2 + 0.35 + 0.25 + 0.05))
    for answer in ("classify_severity", "identify_root_cause", "remediate"):
        assert wrong[answer] == pytest.approx(right[answer])
    ignored = Score(1, 1, 0, 1, 0.0, cost=0.0, gate=0.0, total=0.0)  # gated for ignoring
    assert credits(ignored, 0.0, ignored=True)["escalate"] == pytest.approx(0.1)


def test_the_remedy_is_charged_the_costs():
    given = credits(WRONG_ROOT, 0.0)
    assert given["remediate"] == given["identify_root_cause"] == pytest.approx(-0.1)
    assert given["classify_severity"] == 0.0 and given["escalate"] == pytest.approx(0.1)


def test_only_first_answers_are_credited_with_their_part():
    made = ["request_more_logs", "", "escalate", "escalate", "ignore"]
    assert kinds_of_credit(made) == [WHOLE, WHOLE, "escalate", WHOLE, WHOLE]


def test_an_answer_is_compared_with_the_same_answer_of_others_and_a_decision_with_all():
    wrong = next(one for one in ("P1", "P2", "P3") if one != INCIDENT.severity)
    answers = [Action("classify_severity", (one,)) for one in (INCIDENT.severity, wrong)]
    resolve = Action("resolve")
    group = [played(answers[0], resolve), played(answers[1], resolve), played(resolve)]
    first, second, third = group_advantages(group)
    assert first.calls[0] == pytest.approx(0.1) == -second.calls[0]
    assert [*third.calls] == [third.outside]  # it has given no answer
    assert first.outside + second.outside + third.outside == pytest.approx(0.0)
    rewards = [session.reward() for session in group]
    assert third.outside == pytest.approx(rewards[2] - sum(rewards) / 3)


def test_every_call_has_an_advantage_and_equal_episodes_have_none():
    logs, team = Action("request_more_logs", ("all",)), Action("escalate", ("ceo",))
    resolve = Action("resolve")
    # None is no call, and the last of the second comes too late.
    group = [played(logs, None, team, resolve), played(resolve, logs), played()]
    for session, advantage in zip(group, group_advantages(group), strict=True):
        assert len(advantage.calls) == len(session.episode.history) + session.late
    assert [session.late for session in group] == [0, 1, 0]
    for advantage in group_advantages([played(logs, None, team, resolve) for _ in range(3)]):
        assert [*advantage.calls, advantage.outside] == pytest.approx([0.0] * 5)
