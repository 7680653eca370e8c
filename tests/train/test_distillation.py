"""What the expert says where a model's own episodes got to."""

import pytest

from logtriage.play.actions import Action
from logtriage.train.distillation import advise, compare
from logtriage.train.drills import EXPERT_INDEX, open_varied


class Grammar:
    end, between = 0, 1


ASK, OTHER, ANSWER = [10, 3, 19], [10, 4, 5, 19], [[20, 6, 29], [30, 7, 39], [40]]


def told(turn, options):
    return compare(turn, options, Grammar)


def test_a_turn_like_the_experts_is_learned_whole():
    turn = [20, 6, 29, 1, 30, 7, 39, 1, 40, 0]
    assert told(turn, [(ANSWER, 1.0)]) == [(at, token, 1.0) for at, token in enumerate(turn)]


def test_each_wrong_answer_is_corrected_and_the_next_judged_for_itself():
    turn = [20, 8, 29, 1, 30, 9, 39, 1, 40, 0]
    wanted = {at: token for at, token, _ in told(turn, [(ANSWER, 1.0)])}
    assert wanted == {0: 20, 1: 6, 4: 30, 5: 7, 8: 40, 9: 0}


@pytest.mark.parametrize("turn", [[10, 3, 19, 0], [40, 0], [0]])
def test_another_kind_of_turn_is_corrected_where_it_begins(turn):
    # What follows was never the expert's, whatever the model wrote there.
    assert told(turn, [(ANSWER, 1.0)]) == [(0, 20, 1.0)]


def test_questions_that_are_as_good_share_the_target():
    options = [([ASK], 0.75), ([OTHER], 0.25)]
    assert told([10, 4, 5, 19, 0], options) == [
        (0, 10, 1.0),
        (1, 3, 0.75),
        (1, 4, 0.25),
        (2, 5, 1.0),
        (3, 19, 1.0),
        (4, 0, 1.0),
    ]


def test_after_one_question_the_turn_ends():
    # The model asks twice without looking at what the first brought.
    assert told([10, 3, 19, 1, 10, 4, 5, 19, 0], [([ASK], 1.0), ([OTHER], 0.0)])[-1] == (3, 0, 1.0)


def test_the_expert_answers_once_it_is_sure_and_knows_no_truth(monkeypatch):
    from logtriage.world.incidents import Incident

    task, index = "silent_degradation", EXPERT_INDEX + 3
    root = open_varied(task, "train", index).incident.root
    monkeypatch.setattr(Incident, "root", property(lambda self: pytest.fail("reads the truth")))
    first, *_, last = advise(task, index, [root] * 3)
    assert all(actions[0].type == "request_more_logs" for actions, _ in first)
    assert sum(weight for _, weight in first) == pytest.approx(1.0)
    ((actions, _),) = last
    assert Action("identify_root_cause", (root,)) in actions
