"""The ceiling of `production` is a posterior: calibrated, and blind to nothing that matters."""

import numpy as np
import pytest

from logtriage.production.exact_posterior import posterior
from logtriage.production.failures import FAILURES
from logtriage.production.generator import draw_block


@pytest.fixture(scope="module")
def answers():
    """Of 48 incidents: the probability of each answer, and the number of the right one."""
    found = []
    for number in range(100, 108):
        block = draw_block("train", number)
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


def test_it_reads_what_was_measured():
    # Another incident's samples on the same cluster are no evidence for the root of this one.
    block = draw_block("train", 100)
    swapped = draw_block("train", 100)
    for name in ("values", "requests", "failures", "load"):
        vars(swapped)[name][:] = np.roll(vars(block)[name], 1, axis=0)
    faults = [at for at in range(12) if block.root[at] >= 0]
    own = [posterior(block, at)[0].sum(1)[block.root[at]] for at in faults]
    other = [posterior(swapped, at)[0].sum(1)[block.root[at]] for at in faults]
    assert np.mean(own) > np.mean(other) + 0.3


def test_it_tells_kinds_of_fault_apart():
    block = draw_block("train", 101)
    faults = [at for at in range(10) if block.root[at] >= 0]
    told = [posterior(block, at)[0].sum(0).argmax() for at in faults]
    assert np.mean(told == block.kind[faults]) > 3.0 / len(FAILURES)
