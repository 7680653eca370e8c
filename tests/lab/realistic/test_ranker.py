"""The ranker: no order, no names, and it learns."""

import numpy as np

from triagelab.realistic import randomisation
from triagelab.realistic.features import features
from triagelab.realistic.generator import Block
from triagelab.realistic.ranker import chances, load_ranker, save_ranker, train_ranker


def test_the_order_of_services_does_not_matter_and_chances_sum_to_one():
    for number in range(2):
        seen = Block("train", number).seen
        size = seen.calls.shape[1]
        order = np.random.default_rng(0).permutation(size)
        moved = type(seen)(
            seen.calls[:, order][:, :, order],
            *(array[:, order] for array in seen[1:6]),
            seen.waits[:, order][:, :, order],
            *(array[:, order] for array in seen[7:]),
        )
        before, kinds = chances(load_ranker(), seen)
        after, moved_kinds = chances(load_ranker(), moved)
        assert np.allclose(before[:, :-1][:, order], after[:, :-1], atol=1e-4)
        assert np.allclose(kinds[:, order], moved_kinds, atol=1e-4)
        assert before.shape[1] == size + 1
        assert np.allclose(before.sum(1), 1.0, atol=1e-5)
        assert np.allclose(kinds.sum(2), 1.0, atol=1e-5)


def test_features_are_finite_whatever_is_missing():
    seen = Block("train", 2).seen
    for name in seen._fields[1:-1]:
        without = seen._replace(**{name: np.full_like(getattr(seen, name), np.nan)})
        assert np.isfinite(features(without)).all(), name


def test_training_learns_and_its_weights_survive_being_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(randomisation, "SERVICES", (10, 10))
    losses = []
    ranker = train_ranker(0, 25, log=lambda step, loss: losses.append(loss))
    # Of ten services and "nothing", a guess costs log 11 = 2.4, and the kind of fault 0.5 more.
    assert np.mean(losses[-3:]) < 2.4 < losses[0]
    save_ranker(ranker, tmp_path / "ranker.npz")
    seen = Block("test", 0).seen
    again = load_ranker(tmp_path / "ranker.npz")
    for first, other in zip(chances(ranker, seen), chances(again, seen), strict=True):
        assert np.array_equal(first, other)
