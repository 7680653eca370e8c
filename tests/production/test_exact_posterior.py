"""The ceiling of `production` is a posterior: calibrated, and blind to nothing that matters."""

import numpy as np
import pytest

from logtriage.production.dials import CHANCES, FAILURES, NO_FAULT
from logtriage.production.exact_posterior import posterior
from logtriage.production.generator import Block


@pytest.fixture(scope="module")
def answers():
    """Of 48 incidents: the probability of each answer, and the number of the right one."""
    found = []
    for number in range(100, 108):
        block = Block("train", number)
        for at in range(6):
            of_kind, nothing = posterior(block, at)
            assert of_kind.min() >= 0.0 and of_kind.sum() + nothing == pytest.approx(1.0)
            chance = np.append(of_kind.sum(1), nothing)
            found.append((chance, block.root[at] if block.root[at] >= 0 else len(chance) - 1))
    return found


def test_it_is_as_often_right_as_it_says(answers):
    right = np.array([chance.argmax() == truth for chance, truth in answers])
    said = np.array([chance.max() for chance, _ in answers])
    # A mean of 48 has a standard error of about .05.
    assert abs(right.mean() - said.mean()) < 0.12
    assert right.mean() > 0.7
    assert right[said > 0.9].mean() > 0.9 and (said > 0.9).mean() > 0.4


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


def test_it_tells_kinds_of_fault_apart():
    block = Block("train", 101)
    faults = [at for at in range(10) if block.root[at] >= 0]
    told = [posterior(block, at)[0].sum(0).argmax() for at in faults]
    assert np.mean(told == block.kind[faults]) > 3.0 / len(FAILURES)
