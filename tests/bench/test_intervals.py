from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from logtriage.bench.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    brier,
    calibration_error,
    matched,
    mean_interval,
    paired_gain,
    probability_of_improvement,
    reliability,
    score_table,
    share_of_ceiling,
    stratified_iqm,
    stratified_mean,
    summarise,
    wilson,
)
from logtriage.play.scoring import PARTS

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


def test_scores_are_told_by_policy_and_task():
    parts = dict.fromkeys(PARTS, 0.255)
    both = pd.concat([frame([0.0, 1.0], "b"), frame([1.0, 1.0], "a")])
    table = score_table(both.assign(**parts, steps=[3, 4, 2, 2]))
    assert list(table.columns) == ["policy", "task", "score", *PARTS, "steps"]
    assert list(table["task"]) == ["b", "a"]  # in order of appearance
    assert list(table["score"]) == ["0.500 [0.000, 1.000]", "1.000 [1.000, 1.000]"]
    assert list(table["steps"]) == ["3.5", "2.0"] and set(table[PARTS[0]]) == {"0.26"}


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


@pytest.mark.parametrize(("right", "trials"), [(0, 26), (26, 26), (1, 1), (11, 23)])
def test_wilson_is_scipys(right, trials):
    known = binomtest(right, trials).proportion_ci(method="wilson")
    found = wilson(right / trials, trials)
    assert found == pytest.approx((right / trials, known.low, known.high), abs=1e-9)


@pytest.mark.parametrize(("share", "trials"), [(-0.1, 3), (1.1, 3), (0.5, 0), (float("nan"), 3)])
def test_wilson_wants_a_share_of_something(share, trials):
    with pytest.raises(ValueError, match="a share in"):
        wilson(share, trials)
