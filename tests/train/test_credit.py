"""What each answer is given of an episode's reward."""

from random import Random
from types import SimpleNamespace

import pytest
from sessions import at_random, played

from logtriage.play.actions import Action
from logtriage.play.episode import final_score
from logtriage.play.scoring import Score
from logtriage.train.credit import (
    CREDITS,
    WHOLE,
    advantages,
    bookings,
    call_advantages,
    calls_made,
    credits,
    group_advantages,
    kinds_of_credit,
    reward_paid,
)
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import ALL_TASKS

RIGHT = Score(1, 1, 1, 1, 0.5, cost=0.0, gate=1.0, total=0.95)
WRONG_TEAM = Score(1, 1, 1, 0, 0.5, cost=0.0, gate=0.0, total=0.0)
WRONG_ROOT = Score(0, 0, 0, 1, 0.0, cost=0.1, gate=1.0, total=0.0)


def test_without_a_gate_the_parts_add_up_to_the_reward():
    given = credits(RIGHT, RIGHT.total)
    parts = given["classify_severity"] + given["identify_root_cause"] + given["escalate"]
    assert parts == pytest.approx(RIGHT.total) == given[WHOLE]
    assert given["remediate"] == pytest.approx(0.25 + 0.05)


def test_what_the_gate_takes_is_the_teams():
    right, wrong = credits(RIGHT, RIGHT.total), credits(WRONG_TEAM, WRONG_TEAM.total)
    assert wrong["escalate"] == pytest.approx(-(0.2 + 0.35 + 0.25 + 0.05))
    for answer in ("classify_severity", "identify_root_cause", "remediate"):
        assert wrong[answer] == pytest.approx(right[answer])


def test_what_the_gate_takes_for_ignoring_is_not_the_teams():
    ignored = Score(1, 1, 0, 1, 0.0, cost=0.0, gate=0.0, total=0.0)
    assert credits(ignored, 0.0, ignored=True)["escalate"] == pytest.approx(0.1)


def test_costs_are_the_remedys():
    given = credits(WRONG_ROOT, 0.0)
    assert given["remediate"] == given["identify_root_cause"] == pytest.approx(-0.1)
    assert given["classify_severity"] == 0.0 and given["escalate"] == pytest.approx(0.1)


def test_only_first_answers_have_a_credit_of_their_own():
    made = ["request_more_logs", "", "escalate", "escalate", "ignore"]
    assert kinds_of_credit(made) == [WHOLE, WHOLE, "escalate", WHOLE, WHOLE]


def test_an_answer_is_compared_with_the_same_answer_of_others_and_a_decision_with_all():
    given = [credits(RIGHT, 0.95), credits(WRONG_ROOT, 0.0), credits(Score(*[0] * 8), 0.1)]
    made = [["classify_severity", "escalate"], ["classify_severity", "escalate"], [WHOLE]]
    first, second, third = advantages(made, given)
    assert first["classify_severity"] == pytest.approx(0.1) == -second["classify_severity"]
    assert first["escalate"] == pytest.approx(0.0)  # both paged the right team
    assert set(third) == {WHOLE}  # it has given no answer
    assert first[WHOLE] + second[WHOLE] + third[WHOLE] == pytest.approx(0.0)
    assert third[WHOLE] == pytest.approx(0.1 - 1.05 / 3)


def of_a_group(task, index, count=4):
    random = Random(f"{task}/{index}")
    return [at_random(task, index, random) for _ in range(count)]


@pytest.mark.parametrize("reward", ["score", "no_speed", "no_gate", "no_paging"])
@pytest.mark.parametrize("task", ALL_TASKS)
def test_what_is_booked_is_what_was_paid(task, reward):
    for index in range(40):
        for session in of_a_group(task, index, 2):
            booked = bookings(session, reward)
            assert len(booked) == len(calls_made(session))
            assert sum(booked) == pytest.approx(reward_paid(session, reward), abs=1e-12)
            if reward == "score":
                assert reward_paid(session, reward) == session.reward()


def right_answers(incident):
    return [
        Action("classify_severity", (incident.severity,)),
        Action("identify_root_cause", (incident.root,)),
        Action("remediate", (incident.remedy, incident.root)),
        Action("escalate", (incident.team,)),
        Action("resolve"),
    ]


def test_each_call_is_booked_what_it_settles_and_causes():
    incident = sample_incident("cascading_failure", "train", 0)
    right = right_answers(incident)
    assert bookings(played("cascading_failure", 0, *right)) == pytest.approx(
        [0.2, 0.35, 0.25, 0.1, 0.1]
    )
    innocent = next(name for name in incident.topology.names if name != incident.root)
    vain = Action("remediate", ("restart", innocent))
    session = played(
        "cascading_failure", 0, vain, None, *right[:3], Action("escalate", ("ceo",)), *right[3:]
    )
    speed = 0.1 * final_score(session.episode).speed
    assert bookings(session) == pytest.approx(
        # the remedy was answered again, in the way that helps
        [-0.1, -0.05, 0.2, 0.35, -0.05, -0.05, 0.1, speed]
    )
    # What the gate took is that of the call that closes, and so is what more calls cost theirs.
    dismissed = played("cascading_failure", 0, right[0], Action("ignore"), Action("resolve"))
    assert bookings(dismissed) == pytest.approx([0.2, -0.2, -0.05])


def test_a_false_alarm_is_earned_by_dismissing_it():
    index = next(
        i for i in range(99) if sample_incident("silent_degradation", "train", i).root is None
    )
    session = played(
        "silent_degradation",
        index,
        Action("classify_severity", ("P3",)),
        Action("escalate", ("dba",)),
        Action("ignore"),
    )
    booked = bookings(session)
    assert booked[:2] == pytest.approx([0.2, -0.1]) and booked[2] == pytest.approx(
        0.35 + 0.25 + 0.1 * final_score(session.episode).speed
    )


def test_what_is_earned_from_a_call_on_is_compared_with_calls_of_its_number():
    right = right_answers(sample_incident("cascading_failure", "train", 0))
    group = [
        played("cascading_failure", 0, *right),
        played("cascading_failure", 0, right[0]),
        played("cascading_failure", 0),
    ]
    first, second, none = group_advantages("to_go", group)
    assert first.calls == pytest.approx([0.4, 0.0, 0.0, 0.0, 0.0])  # of one: nothing to compare
    assert second.calls == pytest.approx([-0.4]) and none.calls == []
    assert none.outside == pytest.approx(0.0 - 1.2 / 3)


def test_calls_in_the_same_state_are_compared():
    right = right_answers(sample_incident("cascading_failure", "train", 0))
    look = Action("request_more_logs", ("all",))
    group = [
        played("cascading_failure", 0, *right),
        played("cascading_failure", 0, right[0], Action("ignore")),
        played("cascading_failure", 0, look, right[0]),
    ]
    whole = [1.0 - 0.4, 0.0 - 0.4, 0.2 - 0.4]
    first, second, third = call_advantages("anchor", group)
    # all open alike: 1, 0 and 0.2 to go; then two have said the severity: 0.8 and -0.2 to go
    assert first == pytest.approx([whole[0] + 0.6, whole[0] + 0.5, *[whole[0]] * 3])
    assert second == pytest.approx([whole[1] - 0.4, whole[1] - 0.5])
    assert third == pytest.approx([whole[2] - 0.2, whole[2]])  # nobody else has looked


@pytest.mark.parametrize("credit", CREDITS)
def test_every_call_has_an_advantage_and_equal_episodes_have_none(credit):
    group = of_a_group("silent_degradation", 3)
    for session, calls in zip(group, call_advantages(credit, group), strict=True):
        assert len(calls) == len(calls_made(session))
    if credit != "belief":  # which compares with what could be expected
        equal = [at_random("silent_degradation", 3, Random(0)) for _ in range(3)]
        for advantage in group_advantages(credit, equal):
            assert [*advantage.calls, advantage.outside] == pytest.approx(
                [0.0] * (len(calls_made(equal[0])) + 1)
            )


def test_parts_follow_what_is_paid():
    right = right_answers(sample_incident("cascading_failure", "train", 0))
    wrong = [*right[:3], Action("escalate", ("security",)), right[4]]
    group = [played("cascading_failure", 0, *each) for each in (right, wrong)]
    assert group[0].episode.incident.team != "security"
    assert call_advantages("part", group)[1][3] == pytest.approx(-1.0 / 2)
    assert call_advantages("part", group, "no_gate")[1][3] == pytest.approx(-0.1 / 2)


def test_what_a_server_does_not_tell_is_asked_for_in_vain():
    session = played("single_crash", 0)
    session.episode = SimpleNamespace(**vars(session.episode), abandon=lambda: None)
    assert call_advantages("episode", [session, session]) == [[], []]
    for credit, reward in (("to_go", "score"), ("belief", "score"), ("part", "no_gate")):
        with pytest.raises(ValueError, match="a server does not tell"):
            call_advantages(credit, [session, session], reward)
