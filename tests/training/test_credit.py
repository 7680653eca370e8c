"""What each answer is given of an episode's reward."""

import pytest

from logtriage.play.rewards import Score
from logtriage.training.credit import WHOLE, advantages, credits, kinds_of_credit

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
