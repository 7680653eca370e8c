"""Training seeds and incidents, resampled crosswise."""

import numpy as np
import pytest
from test_intervals import STRATA, frame, improvement_by_hand, iqm_by_hand

from logtriage.bench.crossed import (
    crossed_improvement,
    crossed_iqm,
    crossed_mean,
    crossed_share,
    resample_counts,
)
from logtriage.bench.intervals import (
    LEVEL,
    RESAMPLES,
    mean_interval,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
)


def test_seeds_and_incidents_are_both_resampled():
    # Values that differ by seed only, by incident only, or by both at once: the crossed bootstrap
    # is as wide as the one way that there is something to draw.
    random = np.random.default_rng(5)
    by_seed, by_incident = random.normal(0, 1, (12, 1)), random.normal(0, 1, (1, 150))
    for values, alone in (
        (by_seed + np.zeros((12, 150)), by_seed[:, 0]),
        (by_incident + np.zeros((12, 150)), by_incident[0]),
    ):
        crossed, single = crossed_mean([values]), mean_interval(alone)
        assert crossed.mean == pytest.approx(single.mean)
        assert crossed[1:] == pytest.approx(single[1:], abs=0.06)
    both = crossed_mean([by_seed + by_incident])
    widths = [mean_interval(part.ravel()) for part in (by_seed, by_incident)]
    expected = np.hypot(*(high - low for _, low, high in widths))
    assert both.high - both.low == pytest.approx(expected, rel=0.1)


def test_seeds_that_share_incidents_are_no_separate_strata():
    # Ten seeds on the same 150 incidents, some of which are hard for all: 95 % intervals must hold
    # the truth about as often as they say; with each seed a stratum, they do in half the cases.
    random, held = np.random.default_rng(8), {"crossed": 0, "strata": 0}
    for _ in range(60):
        values = random.normal(0, 0.3, (1, 150)) + random.normal(0, 0.05, (10, 1))
        values = values + random.normal(0, 0.3, (10, 150))
        for name, interval in (
            ("crossed", crossed_mean([values])),
            ("strata", stratified_mean(list(values))),
        ):
            held[name] += interval.low <= 0.0 <= interval.high
    assert held["crossed"] >= 51 and held["strata"] <= 45, held


def test_one_seed_is_the_bootstrap_over_incidents():
    assert crossed_mean([part[None] for part in STRATA]) == stratified_mean(STRATA)
    assert crossed_mean([STRATA[0][None]]) == mean_interval(STRATA[0])
    assert crossed_mean([np.ones((3, 5))]) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="finite"):
        crossed_mean([np.full((2, 4), np.nan)])


def test_a_share_of_seeds_is_a_ratio_of_means():
    random = np.random.default_rng(6)
    scores, ceiling = random.uniform(0, 1, (4, 80)), random.uniform(0.5, 1, 80)
    share = crossed_share(scores, ceiling)
    assert share.mean == pytest.approx(scores.mean() / ceiling.mean())
    assert share.low < share.mean < share.high
    assert crossed_share(np.tile(ceiling, (3, 1)), ceiling) == pytest.approx((1.0, 1.0, 1.0))
    one = share_of_ceiling(frame(scores[0]), frame(ceiling))
    assert crossed_share(scores[:1], ceiling) == pytest.approx(one, abs=0.02)


def crossed_by_hand(strata, statistic):
    """A crossed bootstrap, one resample at a time: rows and columns are drawn, then looked up."""
    rng, values = np.random.default_rng(12), []
    for _ in range(RESAMPLES):
        seeds = rng.integers(0, len(strata[0]), len(strata[0]))
        drawn = [rng.integers(0, part.shape[1], part.shape[1]) for part in strata]
        values.append(
            statistic(
                *(part[seeds][:, rows].ravel() for part, rows in zip(strata, drawn, strict=True))
            )
        )
    return np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def test_the_crossed_iqm_agrees_with_a_bootstrap_by_hand():
    random = np.random.default_rng(4)
    strata = [
        np.clip(random.normal(0, 0.2, (5, 1)) + random.beta(*shape, (5, size)), 0, 1)
        for shape, size in (((2, 5), 30), ((5, 2), 17))  # 235 values: not all quarters are whole
    ]
    for chosen in (strata, strata[:1]):
        found = crossed_iqm(chosen)
        assert found.mean == pytest.approx(iqm_by_hand(*(part.ravel() for part in chosen)))
        expected = crossed_by_hand(chosen, iqm_by_hand)
        assert found[1:] == pytest.approx(expected, abs=0.1 * (expected[1] - expected[0]))
    assert crossed_iqm([part[:1] for part in strata]) == stratified_iqm(
        [part[0] for part in strata]
    )
    assert crossed_iqm([np.ones((3, 5))]) == (1.0, 1.0, 1.0)
    assert crossed_iqm([np.zeros((3, 25)), np.full((3, 50), 0.4), np.full((3, 25), 9.0)]) == (
        pytest.approx((0.4, 0.4, 0.4))
    )


@pytest.mark.slow
def test_the_crossed_iqm_holds_the_truth_about_as_often_as_it_says():
    random, deviations = np.random.default_rng(9), (0.05, 0.3, 0.3)  # seeds, incidents, both

    def scores(seeds, incidents):
        shapes = ((seeds, 1), (1, incidents), (seeds, incidents))
        drawn = zip(deviations, shapes, strict=True)
        return np.clip(0.6 + sum(random.normal(0, one, shape) for one, shape in drawn), 0, 1)

    everything = np.sort(
        0.6 + random.normal(0, np.hypot.reduce(deviations), 2_000_000).clip(-0.6, 0.4)
    )
    truth = everything[500_000:1_500_000].mean()
    for seeds in (5, 10):
        held = [
            low <= truth <= high
            for _, low, high in (crossed_iqm([scores(seeds, 100)]) for _ in range(200))
        ]
        assert 0.90 <= np.mean(held) <= 0.99, (seeds, np.mean(held))


def test_the_improvement_of_runs_is_that_of_all_pairs():
    random = np.random.default_rng(6)
    before, after = random.random((4, 30)), 0.03 + random.random((5, 30))
    old, new = before.mean(axis=1), after.mean(axis=1)
    found = crossed_improvement([before], [after])
    assert found.mean == pytest.approx(improvement_by_hand(old, new))
    assert 0.0 <= found.low < found.mean < found.high <= 1.0
    back = crossed_improvement([after], [before])
    assert found.mean == pytest.approx(1.0 - back.mean)
    assert crossed_improvement([before], [before]).mean == 0.5
    assert crossed_improvement([before], [before + 2.0]) == (1.0, 1.0, 1.0)
    mixed = crossed_improvement([before, before], [before + 2.0, before - 2.0])
    assert mixed == (0.5, 0.5, 0.5)  # better on one task, worse on the other


def test_resamples_are_shared_and_cannot_be_spoiled():
    first, second = resample_counts(0, 5, 7), resample_counts(0, 5, 7)
    assert first is second and [drawn.shape for drawn in first] == [(RESAMPLES, 5), (RESAMPLES, 7)]
    assert all((drawn.sum(axis=1) == drawn.shape[1]).all() for drawn in first)
    with pytest.raises(ValueError, match="read-only"):
        first[0][0, 0] = 1
