"""Estimators of credit beside the truth, on frames of which the truth is known."""

import numpy as np
import pandas as pd
import pytest

from logtriage.bench.credit_plots import SHOWN, plot_credit
from logtriage.bench.credit_truth import MEASURES, baseline_bias, compare_credits, true_advantages

ERROR = 0.2  # standard error of a value in the frame


@pytest.fixture(scope="module")
def frame():
    """Sixty incidents of eight episodes of four calls, with a truth of variance 0.04 that is
    measured with an error of variance 0.04; what estimators say follows from the truth itself.
    """
    random = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product(
        [["single_crash", "cascading_failure"], range(30), range(8), range(4)],
        names=["task", "index", "episode", "call"],
    )
    frame = keys.to_frame(index=False)
    exact = random.normal(0.0, 0.2, len(frame))
    frame["calls"], frame["reward"] = 4, 0.5
    frame["action"] = np.array(["request_more_logs", "", "escalate", "resolve"])[frame["call"]]
    frame["value_before"] = 0.5
    frame["value_after"] = 0.5 + exact + random.normal(0.0, ERROR, len(frame))
    frame["error_before"], frame["error_after"] = 0.0, ERROR
    frame["credit_exact"] = exact
    frame["credit_double"] = 2.0 * exact
    frame["credit_shifted"] = exact + 0.1
    frame["credit_noisy"] = exact + random.normal(0.0, 0.2, len(frame))
    frame["credit_silent"] = 0.0
    return frame


@pytest.fixture(scope="module")
def table(frame):
    return compare_credits(frame)


def whole(table):
    return table[table["by"] == "all"].set_index("estimator")


def test_the_noise_of_the_truth_is_not_laid_to_the_estimator(table):
    rows = whole(table)
    assert rows.loc["exact", "reliability"] == pytest.approx(0.5, abs=0.05)
    assert rows.loc["exact", "correlation"] == pytest.approx(np.sqrt(0.5), abs=0.03)
    assert rows.loc["exact", "corrected"] == pytest.approx(1.0, abs=0.05)
    assert rows.loc["noisy", "corrected"] == pytest.approx(np.sqrt(0.5), abs=0.05)
    assert rows.loc["exact", "deviation"] == pytest.approx(0.0, abs=0.003)
    assert rows.loc["noisy", "deviation"] == pytest.approx(0.02, abs=0.004)  # half of 0.04
    assert rows.loc["exact", "square"] == pytest.approx(0.04, abs=0.004)


def test_a_scale_is_told_and_no_error_and_a_shift_is_both(table):
    rows = whole(table)
    for measure in ("correlation", "corrected", "deviation"):
        assert rows.loc["double", measure] == pytest.approx(rows.loc["exact", measure])
    assert rows.loc["exact", "slope"] == pytest.approx(1.0, abs=0.05)
    assert rows.loc["double", "slope"] == pytest.approx(rows.loc["exact", "slope"] / 2.0)
    assert rows.loc["shifted", "slope"] == pytest.approx(rows.loc["exact", "slope"])
    assert rows.loc["shifted", "bias"] - rows.loc["exact", "bias"] == pytest.approx(0.1)
    # The best factor for e + 0.1 leaves 0.04 x 0.01 / 0.05.
    assert rows.loc["shifted", "deviation"] == pytest.approx(0.008, abs=0.003)


def test_the_plain_measures_are_those_of_numpy(frame, table):
    truth, rows = true_advantages(frame), whole(table)
    for name in ("exact", "noisy"):
        given = frame[f"credit_{name}"]
        assert rows.loc[name, "correlation"] == pytest.approx(np.corrcoef(given, truth)[0, 1])
        assert rows.loc[name, "slope"] == pytest.approx(np.polyfit(given, truth, 1)[0])
        assert rows.loc[name, "bias"] == pytest.approx((given - truth).mean())


def test_who_says_nothing_has_no_correlation_and_all_of_the_error(table):
    silent = whole(table).loc["silent"]
    assert np.isnan(silent[["correlation", "corrected", "slope", "slope_low"]].astype(float)).all()
    assert silent["deviation"] == pytest.approx(silent["square"])


def test_intervals_hold_the_point_and_resample_incidents(frame, table):
    rows = whole(table).drop(index="silent")
    for measure in MEASURES:
        assert (rows[f"{measure}_low"] <= rows[measure]).all(), measure
        assert (rows[measure] <= rows[f"{measure}_high"]).all(), measure
    # Each incident ten times over is no new incident: what is known is the same.
    copies = pd.concat([frame] * 10, ignore_index=True)
    again = whole(compare_credits(copies)).drop(index="silent")
    for end in ("low", "high"):
        assert np.allclose(again[f"correlation_{end}"], rows[f"correlation_{end}"])
    one = compare_credits(frame[(frame["index"] == 0) & (frame["task"] == "single_crash")])
    assert (one["incidents"] == 1).all() and one["correlation_low"].isna().all()


def test_parts_are_all_calls_once(frame, table):
    for _, part in table[table["estimator"] == "exact"].groupby("by"):
        assert part["calls"].sum() == len(frame)
    parts = table.groupby("by")["part"].agg(set)
    assert parts["half"] == {"first", "second"}
    assert parts["action"] == {"request_more_logs", "invalid", "escalate", "resolve"}


def test_a_frame_without_estimators_is_refused(frame):
    with pytest.raises(ValueError, match="no column credit_"):
        compare_credits(frame[["task", "index", "value_after", "value_before"]])


def test_a_baseline_of_those_that_went_on_hides_what_stopping_cost():
    # Of two episodes one stops after its first call with reward 0; the other is worth 1 by then.
    rows = [(0, 0, 0, 0.5, 0.0), (1, 0, 0, 0.5, 1.0), (1, 1, 1, 1.0, 1.0)]
    columns = ["episode", "call", "went_on", "value_before", "reward"]
    frame = pd.DataFrame(rows, columns=columns).assign(task="single_crash", index=7)
    table = baseline_bias(frame).set_index("call")
    assert list(table["difference"]) == [0.0, 0.5] and list(table["share"]) == [1.0, 0.5]
    assert table.loc[1, "value_on"] == 1.0 and table.loc[1, "value_all"] == 0.5
    assert table["difference_low"].isna().all()  # one incident
    two = pd.concat([frame, frame.assign(index=8)[frame["episode"] == 1]])
    table = baseline_bias(two).set_index("call")
    # In the other incident all went on, so there is nothing to hide.
    assert table.loc[1, "difference"] == 0.25 and table.loc[1, "incidents"] == 2
    assert table.loc[1, "difference_low"] == 0.0 and table.loc[1, "difference_high"] == 0.5


def test_the_figure_shows_each_estimator_of_each_policy(table):
    both = pd.concat([table.assign(policy="base"), table.assign(policy="seed-0-checkpoint-40")])
    figure = plot_credit(both[both["estimator"] != "silent"])
    axes = np.array(figure.axes).reshape(2, len(SHOWN))
    names = [label.get_text() for label in axes[0, 0].get_yticklabels()]
    assert names == ["exact", "double", "shifted", "noisy"]
    rows = whole(table)
    for ax, (measure, label, _) in zip(axes[-1], SHOWN, strict=True):
        assert ax.get_xlabel() == label
        dots = [
            line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1
        ]
        unit = rows["square"] if measure == "deviation" else 1.0
        expected = (rows[measure] / unit)[names]
        found = {float(line.get_xdata()[0]) for line in dots}
        assert all(any(abs(one - value) < 1e-9 for one in found) for value in expected)
    assert plot_credit(both).png()  # nan is no reason to fail
    # Where noise leaves nothing of the truth's square, no share of it is drawn; the rest is.
    nothing = both.assign(square=both["square"].where(both["estimator"] != "exact", -1e-6))
    drawn = plot_credit(nothing[nothing["estimator"] != "silent"])
    for ax in np.array(drawn.axes).reshape(2, len(SHOWN))[:, -1]:
        at = [line.get_xdata()[0] for line in ax.lines if list(line.get_ydata()) in ([0], [1])]
        assert np.isnan(at[0]) and np.isfinite(at[1]) and abs(ax.get_xlim()[0]) < 100.0
    plot_credit(both.assign(square=0.0)).draw_without_rendering()
    with pytest.raises(ValueError, match="by == 'all'"):
        plot_credit(both[both["by"] == "half"])
