"""The ceiling of `production` is a posterior: calibrated, and blind to nothing that matters."""

import numpy as np
import pytest

from triagelab.realistic.dials import CHANCES, FAILURES, NO_FAULT
from triagelab.realistic.exact_posterior import posterior
from triagelab.realistic.generator import Block


def test_it_is_as_often_right_as_it_says_and_tells_kinds_apart():
    right, said, kinds = [], [], []
    for number in range(100, 108):
        block = Block("train", number)
        for at in range(3):
            of_kind, nothing = posterior(block, at)
            assert of_kind.min() >= 0.0 and of_kind.sum() + nothing == pytest.approx(1.0)
            chance = np.append(of_kind.sum(1), nothing)
            right.append(chance.argmax() == block.root[at] % len(chance))  # -1: nothing is wrong
            said.append(chance.max())
            if block.root[at] >= 0:
                kinds.append(of_kind.sum(0).argmax() == block.kind[at])
    right, said = np.array(right), np.array(said)
    # A mean of 24 has a standard error of about .08.
    assert abs(right.mean() - said.mean()) < 0.12
    assert right.mean() > 0.7
    assert right[said > 0.9].mean() > 0.9 and (said > 0.9).mean() > 0.4
    assert np.mean(kinds) > 3.0 / len(FAILURES)


def test_without_a_measurement_the_prior_stays():
    block = Block("train", 100)
    for known in (block.shown.values, block.calls.network):
        known[:] = np.nan
    for known in (block.mesh.measured, block.logged):
        known[:] = False
    of_kind, nothing = posterior(block, 0)
    can = block.mesh.can_fail[0]
    assert nothing == pytest.approx(CHANCES[NO_FAULT])
    assert of_kind.sum(0) == pytest.approx(CHANCES[:NO_FAULT])
    assert not of_kind[~can].any() and np.ptp(of_kind[can, 1:].max(1)) < 1e-9
