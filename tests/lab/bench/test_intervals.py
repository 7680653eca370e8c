"""Intervals hold the truth about as often as they say; comparisons are of the same incidents."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_ind, ttest_rel

from triagelab.bench import intervals
from triagelab.bench.intervals import mean_interval, two_way_mean, two_way_share

STRATA = [
    np.random.default_rng(7).beta(*shape, size)
    for shape, size in (((2, 5), 40), ((5, 2), 25), ((1, 1), 60))
]


def frame(scores):
    where = {"task": "t", "split": "test", "index": range(len(scores)), "policy": "p"}
    return pd.DataFrame({**where, "score": scores})


def test_a_stratum_is_resampled_for_itself():
    # All the spread is between the tasks: a pooled bootstrap would show it, a stratified must not.
    assert mean_interval(np.zeros(50), np.ones(50)) == (0.5, 0.5, 0.5)
    assert mean_interval(np.zeros(10), np.ones(90)).mean == 0.5  # tasks count alike


def test_degenerate_samples():
    assert mean_interval([1.0, 1.0]) == (1.0, 1.0, 1.0)
    interval = intervals.Interval(0.5, 0.25, 0.75)
    assert f"{interval:.2f}" == "0.50 [0.25, 0.75]" and str(interval) == "0.500 [0.250, 0.750]"
    for strata in ([], [[0.1, 0.2], [0.3]]):
        with pytest.raises(ValueError, match="at least 2"):
            mean_interval(*strata)
    for values in ([0.1, np.nan], [0.1, np.inf]):
        with pytest.raises(ValueError, match="finite"):
            mean_interval(values)


def test_gains_are_paired_by_incident():
    before, after = frame([0.1, 0.9, 0.5]), frame([0.2, 1.0, 0.6])
    shuffled = after.sample(frac=1, random_state=0)
    left, right = intervals.matched(before, shuffled)  # order must not matter
    gain = mean_interval(right - left)
    assert gain.mean == pytest.approx(0.1) and gain.high - gain.low < 1e-9  # no spread within pairs
    assert list(left) == [0.1, 0.9, 0.5] and list(right) == [0.2, 1.0, 0.6]
    twice = pd.concat([after.iloc[:2], after.iloc[:1]])
    for other in (after.iloc[:2], after.assign(index=after["index"] + 1), twice):
        with pytest.raises(ValueError, match="same incidents"):
            intervals.matched(before, other)


def test_seeds_and_incidents_are_both_resampled():
    # Values that differ by seed only, by incident only, or by both.
    random = np.random.default_rng(5)
    by_seed, by_incident = random.normal(0, 1, (12, 1)), random.normal(0, 1, (1, 150))
    stretch = np.sqrt(12 / 11)  # few seeds vary around their own mean by less than around the true
    widths = []
    for values, alone, factor in (
        (by_seed, by_seed[:, 0], stretch),
        (by_incident, by_incident[0], 1),
    ):
        two_way, single = two_way_mean([values + np.zeros((12, 150))]), mean_interval(alone)
        widths.append(factor * (single.high - single.low))
        assert two_way.mean == pytest.approx(single.mean)
        assert two_way.high - two_way.low == pytest.approx(widths[-1], rel=0.06)
    both = two_way_mean([by_seed + by_incident])
    assert both.high - both.low == pytest.approx(np.hypot(*widths), rel=0.1)


def test_one_seed_is_the_bootstrap_over_incidents_and_no_limit_lies_beyond_the_data():
    assert two_way_mean([part[None] for part in STRATA]) == mean_interval(*STRATA)
    assert two_way_mean([np.ones((3, 5))]) == (1.0, 1.0, 1.0)
    rare = np.zeros((3, 5))
    rare[0] = 1.0
    mean = two_way_mean([rare])
    assert 0.0 <= mean.low < mean.mean < mean.high <= 1.0
    with pytest.raises(ValueError, match="finite"):
        two_way_mean([np.full((2, 4), np.nan)])


def test_a_share_of_seeds_is_a_ratio_of_means():
    random = np.random.default_rng(6)
    scores, reference = random.uniform(0, 1, (4, 80)), random.uniform(0.5, 1, 80)
    share = two_way_share(scores, reference)
    assert share.mean == pytest.approx(scores.mean() / reference.mean())
    assert share.low < share.mean < share.high
    assert two_way_share(np.tile(reference, (3, 1)), reference) == pytest.approx((1.0, 1.0, 1.0))
    of_incidents = intervals.share_of_reference(scores[0], reference)
    assert two_way_share(scores[:1], reference) == pytest.approx(of_incidents, abs=0.02)


@pytest.mark.slow  # it checks the method, which no change elsewhere can break
def test_three_seeds_hold_the_truth_about_as_often_as_they_say():
    # Scores of 100 incidents after three trainings, of which seeds, incidents and both vary.
    random, held = np.random.default_rng(9), 0
    for _ in range(400):
        incidents, seeds = random.normal(0, 0.3, (1, 100)), random.normal(0, 0.05, (3, 1))
        _, low, high = two_way_mean([seeds + incidents + random.normal(0, 0.2, (3, 100))])
        held += low <= 0.0 <= high
    assert 0.88 <= held / 400 <= 0.98  # a little narrow


def test_recipes_are_compared_by_t_over_seeds():
    theirs, ours = np.array([0.80, 0.84, 0.81]), np.array([0.72, 0.80, 0.66])
    for paired, test in (
        (True, ttest_rel(ours, theirs)),
        (False, ttest_ind(ours, theirs, equal_var=False)),
    ):
        difference, p = intervals.compare_recipes(theirs, ours, paired)
        assert p == pytest.approx(test.pvalue)
        assert difference == pytest.approx((-0.09, *test.confidence_interval()))
    assert intervals.compare_recipes(theirs, theirs, True) == ((0.0, 0.0, 0.0), 1.0)
    assert intervals.compare_recipes(theirs, theirs - 0.5, True)[1] == pytest.approx(0.0, abs=1e-9)
    assert np.isnan(intervals.compare_recipes(theirs[:1], ours[:1], False)[1])


def test_a_family_of_comparisons_is_corrected():
    adjusted = intervals.holm([0.01, 0.04, np.nan, 0.03])
    assert adjusted[[0, 1, 3]] == pytest.approx([0.03, 0.06, 0.06]) and np.isnan(adjusted[2])
    assert intervals.verdict(-0.2, 0.01, 0.03) == "worse"
    assert intervals.verdict(0.2, 0.01, 0.03) == "better"
    assert intervals.verdict(-0.2, 0.04, 0.06) == "suggestive"
    assert intervals.verdict(-0.2, 0.2, 0.2) == "no significant difference"


@pytest.mark.parametrize(("right", "trials"), [(0, 26), (26, 26), (1, 1), (11, 23)])
def test_wilson_is_scipys(right, trials):
    known = binomtest(right, trials).proportion_ci(method="wilson")
    share = intervals.wilson(right / trials, trials)
    assert share == pytest.approx((right / trials, known.low, known.high), abs=1e-9)
