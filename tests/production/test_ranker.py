"""The ranker: no order, no names, and it learns."""

import numpy as np
import pytest
import torch

from logtriage.bench.production_results import metrics_alone, without_the_rest
from logtriage.production import dials
from logtriage.production.features import features
from logtriage.production.generator import Block
from logtriage.production.ranker import Ranker, chances, load_ranker, save_ranker, train_ranker
from logtriage.real.cases import SOURCES


@pytest.fixture(scope="module")
def ranker():
    """One without training."""
    torch.manual_seed(0)
    numbers = features(Block("train", 0).shown)
    return Ranker(numbers.mean((0, 1)), numbers.std((0, 1)) + 0.1).eval()


def test_the_order_of_services_does_not_matter(ranker):
    seen = Block("train", 1).shown
    size = seen.calls.shape[1]
    order = np.random.default_rng(0).permutation(size)
    moved = type(seen)(
        seen.calls[:, order][:, :, order],
        *(one[:, order] for one in seen[1:6]),
        seen.waits[:, order][:, :, order],
        *(one[:, order] for one in seen[7:]),
    )
    (before, kinds), (after, moved_kinds) = chances(ranker, seen), chances(ranker, moved)
    assert np.allclose(before[:, :-1][:, order], after[:, :-1], atol=1e-5)
    assert np.allclose(kinds[:, order], moved_kinds, atol=1e-5)


def test_chances_sum_to_one_in_clusters_of_any_size(ranker):
    for number in range(4):
        seen = Block("test", number).shown
        chance, kinds = chances(ranker, seen)
        assert chance.shape[1] == seen.calls.shape[1] + 1
        assert np.allclose(chance.sum(1), 1.0, atol=1e-5)
        assert np.allclose(kinds.sum(2), 1.0, atol=1e-5)


def test_what_metrics_alone_are_worth_is_measured_everywhere():
    table = metrics_alone(load_ranker(), blocks=2).set_index("place")
    assert list(table.index) == ["production", *SOURCES]
    assert table.loc["production", "right"] > 0.5  # one root of 10 to 45
    seen = Block("test", 0).shown
    changed = seen._replace(
        waits=seen.waits + 9.0, counts=seen.counts * 3.0, alerts=1.0 - seen.alerts
    )
    assert np.array_equal(*(features(without_the_rest(one)) for one in (seen, changed)))
    assert not np.array_equal(features(seen), features(changed))


def test_features_are_finite_whatever_is_missing():
    seen = Block("train", 2).shown
    for name in seen._fields[1:-1]:
        without = seen._replace(**{name: np.full_like(getattr(seen, name), np.nan)})
        assert np.isfinite(features(without)).all(), name


def test_weights_survive_being_saved(ranker, tmp_path):
    save_ranker(ranker.half().float(), tmp_path / "ranker.npz")  # as training rounds them
    again = load_ranker(tmp_path / "ranker.npz")
    seen = Block("test", 0).shown
    for one, other in zip(chances(ranker, seen), chances(again, seen), strict=True):
        assert np.array_equal(one, other)


def test_training_learns(monkeypatch):
    monkeypatch.setattr(dials, "SERVICES", (10, 10))
    losses = []
    train_ranker(0, 25, log=lambda step, loss: losses.append(loss))
    # Of ten services and "nothing", a guess costs log 11 = 2.4, and the kind of fault 0.5 more.
    assert np.mean(losses[-3:]) < 2.4 < losses[0]
