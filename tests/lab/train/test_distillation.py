"""What the expert says where a model's own episodes got to."""

from random import Random

import pytest
from joblib import Parallel
from lab_helpers import blames

from logtriage.play.tools import ToolSession
from triagelab.language_models.language_models import LanguageModelPolicy
from triagelab.language_models.loading import load_language_model
from triagelab.train.distillation import advise, compare, corrected
from triagelab.train.sft_tasks import EXPERT_INDEX, open_varied


class Grammar:
    end, between = 0, 1


ASK, OTHER, ANSWER = [10, 3, 19], [10, 4, 5, 19], [[20, 6, 29], [30, 7, 39], [40]]


@pytest.mark.parametrize(
    "turn, wanted",
    [
        # A turn like the expert's is learned whole.
        ([20, 6, 29, 1, 30, 7, 39, 1, 40, 0], [20, 6, 29, 1, 30, 7, 39, 1, 40, 0]),
        # Each wrong answer is corrected, and the next judged for itself.
        ([20, 8, 29, 1, 30, 9, 39, 1, 40, 0], [20, 6, None, None, 30, 7, None, None, 40, 0]),
        # Another kind of turn is corrected where it begins: what follows was never the expert's.
        ([10, 3, 19, 0], [20]),
        ([40, 0], [20]),
        ([0], [20]),
    ],
)
def test_a_turn_of_answers_is_learned_as_far_as_it_agrees(turn, wanted):
    expected = [(at, token, 1.0) for at, token in enumerate(wanted) if token is not None]
    assert compare(turn, [(ANSWER, 1.0)], Grammar) == expected


def test_questions_that_are_as_good_share_the_target_and_one_ends_the_turn():
    options = [([ASK], 0.75), ([OTHER], 0.25)]
    shared = [(0, 10, 1.0), (1, 3, 0.75), (1, 4, 0.25), (2, 5, 1.0), (3, 19, 1.0), (4, 0, 1.0)]
    assert compare([10, 4, 5, 19, 0], options, Grammar) == shared
    # The model asks twice without looking at what the first brought.
    twice, options = [10, 3, 19, 1, 10, 4, 5, 19, 0], [([ASK], 1.0), ([OTHER], 0.0)]
    assert compare(twice, options, Grammar)[-1] == (3, 0, 1.0)


def test_a_token_that_the_grammar_forces_has_a_weight_of_its_own(tiny_base):
    model = load_language_model(tiny_base)
    policy = LanguageModelPolicy(*model, name="x", temperature=1.5, constrained=True)
    indices = range(EXPERT_INDEX, EXPERT_INDEX + 12)

    def sessions():
        return [ToolSession(open_varied("single_crash", "train", at)) for at in indices]

    with Parallel(n_jobs=1) as parallel:
        plain, weighed = (corrected(policy, sessions(), parallel, own) for own in (1.0, 0.1))
    talks = policy.converse(sessions(), [Random(f"distillation/{at}") for at in indices])
    kinds = set()
    for talk, one, other in zip(talks, plain, weighed, strict=True):
        assert one.ids == other.ids == talk.prompt + talk.ids
        places = [at for at, own in enumerate(one.own) if own]
        choices = {at: len(ids) for at, ids in zip(places, talk.allowed, strict=True)}
        pairs = zip(one.targets, other.targets, strict=True)
        for (place, token, weight), (at, same, lower) in pairs:
            kinds.add(choices[place] > 1)
            assert (place, token) == (at, same)
            assert lower == pytest.approx(weight if choices[place] > 1 else weight / 10)
    assert kinds == {True, False}


def test_the_expert_answers_once_it_is_sure_and_knows_no_truth(monkeypatch):
    from logtriage.world.incidents import Incident

    task, index = "silent_degradation", EXPERT_INDEX + 3
    root = open_varied(task, "train", index).incident.root
    monkeypatch.setattr(Incident, "root", property(lambda self: pytest.fail("reads the truth")))
    first, *_, last = advise(task, index, [root] * 3)
    assert all(actions[0].type == "request_more_logs" for actions, _ in first)
    assert sum(weight for _, weight in first) == pytest.approx(1.0)
    ((actions, _),) = last
    assert blames(root) in actions
