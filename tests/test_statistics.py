import numpy as np
import pandas as pd
import pytest

from logtriage.statistics import mean_interval, paired_gain, summarise


def test_the_interval_has_the_width_of_the_normal_approximation():
    values = np.random.default_rng(1).normal(0.5, 0.2, 400)
    mean, low, high = mean_interval(values)
    assert mean == pytest.approx(values.mean())
    expected = 1.96 * values.std() / 20
    assert (high - low) / 2 == pytest.approx(expected, rel=0.1)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(2)
    hits = [
        low <= 0.3 <= high for _ in range(200) for _, low, high in [mean_interval((random.random(100) < 0.3).astype(float))]
    ]
    assert 0.88 <= np.mean(hits) <= 0.99


def test_degenerate_samples():
    assert mean_interval([1.0, 1.0]) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="at least 2"):
        mean_interval([1.0])


def frame(scores, task="t"):
    return pd.DataFrame({"task": task, "split": "test", "index": range(len(scores)), "policy": "p", "score": scores})


def test_gains_are_paired_by_incident():
    before, after = frame([0.1, 0.9, 0.5]), frame([0.2, 1.0, 0.6])
    gain = paired_gain(before, after.sample(frac=1, random_state=0))  # order must not matter
    assert gain.mean == pytest.approx(0.1) and gain.high - gain.low < 1e-9  # no spread within pairs
    with pytest.raises(ValueError, match="same incidents"):
        paired_gain(before, after.iloc[:2])


def test_summary_is_a_row_a_group():
    both = pd.concat([frame([0.0, 1.0], "a"), frame([1.0, 1.0], "b")])
    table = summarise(both)
    assert list(table.task) == ["a", "b"] and list(table["mean"]) == [0.5, 1.0] and list(table.episodes) == [2, 2]
