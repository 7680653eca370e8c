from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from logtriage.measure.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    brier,
    calibration_error,
    crossed_difference,
    crossed_improvement,
    crossed_iqm,
    crossed_mean,
    crossed_share,
    episodes_needed,
    matched,
    mean_interval,
    paired_gain,
    power_of,
    power_table,
    probability_of_improvement,
    reliability,
    resample_counts,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
    summarise,
)

STRATA = [
    np.random.default_rng(7).beta(*shape, size)
    for shape, size in (((2, 5), 40), ((5, 2), 25), ((1, 1), 60))
]


def frame(scores, task="t"):
    return pd.DataFrame(
        {"task": task, "split": "test", "index": range(len(scores)), "policy": "p", "score": scores}
    )


def bootstrap_by_hand(samples, statistic, paired=False):
    """Percentile bootstrap, one resample at a time."""
    rng = np.random.default_rng(11)
    if paired:
        drawn = rng.integers(0, len(samples[0]), (RESAMPLES, len(samples[0])))
        draws = [drawn for _ in samples]
    else:
        draws = [rng.integers(0, len(sample), (RESAMPLES, len(sample))) for sample in samples]
    values = [
        statistic(*(sample[rows[k]] for sample, rows in zip(samples, draws, strict=True)))
        for k in range(RESAMPLES)
    ]
    return statistic(*samples), *np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def mean_by_hand(*samples):
    return sum(sum(sample) / len(sample) for sample in samples) / len(samples)


def iqm_by_hand(*samples):
    everything = sorted(value for sample in samples for value in sample)
    cut = len(everything) // 4
    middle = everything[cut : len(everything) - cut]
    return sum(middle) / len(middle)


def improvement_by_hand(before, after):
    return sum((y > x) + 0.5 * (y == x) for x, y in product(before, after)) / (
        len(before) * len(after)
    )


def test_the_interval_has_the_width_of_the_normal_approximation():
    values = np.random.default_rng(1).normal(0.5, 0.2, 400)
    mean, low, high = mean_interval(values)
    assert mean == pytest.approx(values.mean())
    expected = 1.96 * values.std() / 20
    assert (high - low) / 2 == pytest.approx(expected, rel=0.1)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(2)
    hits = [
        low <= 0.3 <= high
        for _ in range(200)
        for _, low, high in [mean_interval((random.random(100) < 0.3).astype(float))]
    ]
    assert 0.88 <= np.mean(hits) <= 0.99


def test_intervals_agree_with_a_bootstrap_by_hand():
    """Other random numbers, so the ends agree within the noise of the resampling alone."""
    scores, ceiling = STRATA[0], 0.5 + STRATA[0] ** 2
    random = np.random.default_rng(3)
    before, after = random.integers(0, 8, 30) / 10.0, random.integers(0, 10, 40) / 10.0

    def ratio(x, y):
        return x.mean() / y.mean()

    cases = [
        (mean_interval(scores), bootstrap_by_hand([scores], np.mean)),
        (stratified_mean(STRATA), bootstrap_by_hand(STRATA, mean_by_hand)),
        (stratified_iqm(STRATA), bootstrap_by_hand(STRATA, iqm_by_hand)),
        (
            share_of_ceiling(frame(scores), frame(ceiling)),
            bootstrap_by_hand([scores, ceiling], ratio, paired=True),
        ),
        (
            probability_of_improvement(before, after),
            bootstrap_by_hand([before, after], improvement_by_hand),
        ),
    ]
    for found, expected in cases:
        assert found.mean == pytest.approx(expected[0])
        assert found[1:] == pytest.approx(expected[1:], abs=0.1 * (expected[2] - expected[1]))


def test_a_stratum_is_resampled_for_itself():
    # All the spread is between the tasks, none within: a pooled bootstrap would show it, a
    # stratified one must not.
    assert stratified_mean([np.zeros(50), np.ones(50)]) == (0.5, 0.5, 0.5)
    assert (
        stratified_mean([np.zeros(10), np.ones(90)]).mean == 0.5
    )  # tasks count alike, whatever their episodes
    assert stratified_iqm([np.zeros(25), np.full(50, 0.4), np.full(25, 9.0)]) == pytest.approx(
        (0.4, 0.4, 0.4)
    )


def test_the_interquartile_mean_ignores_outliers():
    scores = np.array([0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    wild = np.where(scores == 0.95, 1000.0, scores)
    assert (
        stratified_iqm([scores]).mean
        == stratified_iqm([wild]).mean
        == pytest.approx((0.5 + 0.6 + 0.7 + 0.8) / 4)
    )


def test_improvement_of_equals_is_a_half_and_reverses():
    before, after = STRATA[0], STRATA[1]
    there = probability_of_improvement(before, after)
    back = probability_of_improvement(after, before)
    assert there.mean == pytest.approx(1.0 - back.mean) and there.mean > 0.9
    assert probability_of_improvement(before, before).mean == pytest.approx(0.5)
    assert probability_of_improvement([0.2, 0.2], [0.2, 0.2]) == (0.5, 0.5, 0.5)
    assert probability_of_improvement([0.2, 0.3], [0.4, 0.4]) == (1.0, 1.0, 1.0)


def test_a_share_of_the_ceiling_itself_is_one():
    scores = frame(STRATA[0])
    assert share_of_ceiling(scores, scores) == pytest.approx((1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="ceiling above 0"):
        share_of_ceiling(scores, scores.assign(score=0.0))


def test_degenerate_samples():
    assert mean_interval([1.0, 1.0]) == (1.0, 1.0, 1.0)
    assert str(Interval(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"
    with pytest.raises(ValueError, match="at least 2"):
        mean_interval([1.0])
    for strata in ([], [[0.1, 0.2], [0.3]]):
        with pytest.raises(ValueError, match="at least 2"):
            stratified_mean(strata)
    with pytest.raises(ValueError, match="finite"):
        mean_interval([0.1, np.nan])
    with pytest.raises(ValueError, match="finite"):
        probability_of_improvement([0.1, 0.2], [0.1, np.nan])


def test_gains_are_paired_by_incident():
    before, after = frame([0.1, 0.9, 0.5]), frame([0.2, 1.0, 0.6])
    shuffled = after.sample(frac=1, random_state=0)
    assert list(shuffled.index) != list(after.index)
    gain = paired_gain(before, shuffled)  # order must not matter
    assert gain.mean == pytest.approx(0.1) and gain.high - gain.low < 1e-9  # no spread within pairs
    left, right = matched(before, shuffled)
    assert list(left) == [0.1, 0.9, 0.5] and list(right) == [0.2, 1.0, 0.6]
    assert paired_gain(
        before.assign(steps=[3, 3, 3]), shuffled.assign(steps=[5, 5, 5]), "steps"
    ) == (2.0, 2.0, 2.0)
    for other in (
        after.iloc[:2],
        after.assign(index=after["index"] + 1),
        pd.concat([after.iloc[:2], after.iloc[:1]]),
    ):
        with pytest.raises(ValueError, match="same incidents"):
            paired_gain(before, other)
    twice = pd.concat([before, before])
    with pytest.raises(ValueError, match="same incidents once each"):
        paired_gain(twice, twice)


def test_summary_is_a_row_a_group():
    both = pd.concat([frame([0.0, 1.0], "a"), frame([1.0, 1.0], "b")])
    table = summarise(both)
    assert (
        list(table.task) == ["a", "b"]
        and list(table["mean"]) == [0.5, 1.0]
        and list(table.episodes) == [2, 2]
    )


def test_calibration_of_answers_by_hand():
    confidence, correct = [0.91, 0.99, 1.0, 0.55, 0.0], [True, False, True, False, False]
    table = reliability(confidence, correct)
    assert list(table.columns) == ["answers", "confidence", "accuracy"] and list(table.answers) == [
        1,
        1,
        3,
    ]
    assert list(table.confidence) == pytest.approx([0.0, 0.55, 2.9 / 3]) and list(
        table.accuracy
    ) == pytest.approx([0, 0, 2 / 3])
    assert calibration_error(confidence, correct) == pytest.approx(
        (0.0 + 0.55 + 3 * (2.9 / 3 - 2 / 3)) / 5
    )
    assert calibration_error(confidence, correct, bins=1) == pytest.approx(3.45 / 5 - 2 / 5)
    assert brier(confidence, correct) == pytest.approx(
        (0.09**2 + 0.99**2 + 0.0 + 0.55**2 + 0.0) / 5
    )
    assert brier([0.5, 0.5], [0, 1]) == 0.25


def test_a_calibrated_agent_has_no_calibration_error_and_a_boaster_has():
    random = np.random.default_rng(5)
    confidence = random.random(100_000)
    correct = random.random(100_000) < confidence
    assert calibration_error(confidence, correct) < 0.01
    assert calibration_error(np.ones(100_000), correct) == pytest.approx(1.0 - correct.mean())
    assert brier(confidence, correct) == pytest.approx(
        1 / 6, abs=0.005
    )  # the mean of c (1 - c) over [0, 1]


@pytest.mark.parametrize("measure", [reliability, calibration_error, brier])
def test_bad_answers_are_refused(measure):
    for confidence, correct, message in (
        ([0.5, 0.6], [1], "one confidence an answer"),
        ([], [], "at least one"),
        ([60.0], [1], "percentage"),
        ([np.nan], [1], r"\[0, 1\]"),
        ([0.6], [2], "0 or 1"),
    ):
        with pytest.raises(ValueError, match=message):
            measure(confidence, correct)


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


# -- training seeds -----------------------------------------------------------------------------


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


def test_other_seeds_on_the_same_incidents_are_compared_by_incident():
    random = np.random.default_rng(5)
    hard = random.normal(0, 0.3, (1, 150))
    before = hard + random.normal(0, 0.02, (4, 1)) + random.normal(0, 0.05, (4, 150))
    after = 0.1 + hard + random.normal(0, 0.02, (6, 1)) + random.normal(0, 0.05, (6, 150))
    found = crossed_difference([before], [after])
    assert found.mean == pytest.approx(after.mean() - before.mean())
    # What all seeds find hard cancels; what is left is the spread of seeds on both sides.
    seeds = [mean_interval(part.mean(axis=1)) for part in (before, after)]
    expected = np.hypot(*(high - low for _, low, high in seeds))
    assert found.high - found.low == pytest.approx(expected, rel=0.25)
    alone = [crossed_mean([part]) for part in (before, after)]
    assert found.high - found.low < 0.6 * np.hypot(*(high - low for _, low, high in alone))
    two = crossed_difference([before, before], [after, after - 0.2])  # strata are averaged
    assert two.mean == pytest.approx(found.mean - 0.1)
    assert two.high - two.low == pytest.approx(found.high - found.low, rel=0.1)  # the same seeds
    # The same seeds on both sides may be paired, which is never wider.
    paired = crossed_mean([before + 0.1 - before])
    assert paired.high - paired.low <= 1e-9 < found.high - found.low


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
