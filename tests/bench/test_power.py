"""Whether as many episodes as are said show a gain as often as is said."""

import numpy as np
import pytest
from scipy.stats import norm
from test_intervals import STRATA

from logtriage.bench.power import episodes_needed, power_of, power_table


@pytest.mark.parametrize(
    "deviation, gain, power", [(0.4, 0.1, 0.8), (0.3, 0.05, 0.9), (0.2, 0.15, 0.6)]
)
def test_the_episodes_needed_are_the_fewest_that_have_the_power(deviation, gain, power):
    episodes = episodes_needed(deviation, gain, power)
    assert power_of(deviation, gain, episodes) >= power > power_of(deviation, gain, episodes - 1)
    assert episodes_needed(deviation, 100.0, power) == 2  # one episode has no deviation
    # The variance of a difference of two independent scores is twice that of one.
    assert episodes_needed(deviation * 2**0.5, gain, power, paired=True) == episodes


def test_power_is_the_share_of_simulated_comparisons_that_find_the_gain():
    random, limit = np.random.default_rng(6), norm.ppf(0.975)
    for gain, episodes in ((0.1, 60), (0.3, 10), (0.0, 20)):
        before = random.normal(0.5, 0.4, (4000, episodes))
        after = random.normal(0.5 + gain, 0.4, (4000, episodes))
        found = np.abs(after.mean(1) - before.mean(1)) > limit * 0.4 * (2 / episodes) ** 0.5
        assert power_of(0.4, gain, episodes) == pytest.approx(found.mean(), abs=0.03)
    assert power_of(0.4, 0.0, 20) == pytest.approx(0.05)


def test_paired_episodes_needed_have_their_power_in_simulation():
    random, needed = np.random.default_rng(8), episodes_needed(0.2, 0.05, paired=True)
    differences = random.normal(0.05, 0.2, (4000, needed))
    found = np.abs(differences.mean(1)) > norm.ppf(0.975) * 0.2 / needed**0.5
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_the_power_table_compares_designs():
    scores, differences = STRATA[2], STRATA[2] - STRATA[2].mean()
    table = power_table(scores, 0.1 * differences, gains=(0.02, 0.2))
    assert list(table.gain) == [0.02, 0.2]
    deviation = scores.std(ddof=1)
    assert list(table.unpaired) == [episodes_needed(deviation, gain) for gain in (0.02, 0.2)]
    assert list(table.paired) == [
        episodes_needed(0.1 * deviation, gain, paired=True) for gain in (0.02, 0.2)
    ]
    assert list(table.power_of_ten) == pytest.approx(
        [power_of(deviation, gain, 10) for gain in (0.02, 0.2)]
    )


def test_impossible_designs_are_refused():
    for arguments, message in (
        ((0.2, 0.0), "gain"),
        ((0.0, 0.1), "deviation"),
        ((0.2, 0.1, 1.0), "power"),
    ):
        with pytest.raises(ValueError, match=message):
            episodes_needed(*arguments)
    with pytest.raises(ValueError, match="deviation"):
        power_of(0.0, 0.1, 10)
