"""Rows as they are read, with what nobody measured."""

import pytest

from logtriage.world.rows import Alert, CallTime, LineCount, Measure, Metric, number


@pytest.mark.parametrize(
    "value, text",
    [(None, "-"), (0, "0"), (0.905, "0.905"), (2.0, "2"), (2531.7, "2530"), (99.96, "100"),
     (1e-7, "0"), (-3.456, "-3.46"), (1.5e6, "1500000")],
)  # fmt: skip
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert number(value) == text


def test_what_is_not_known_is_said():
    assert Metric("a", "3", "20", "12").text == "a 3% 20ms 12"
    assert Metric("a", "", "20", "").text == "a - 20ms -"
    assert Metric("a", "3", "30", "12").slowdown == 2.5
    assert Metric("a", "3", "", "12").slowdown is Metric("a", "3", "9", "0").slowdown is None


def test_further_rows_say_what_they_are():
    measure = Measure("a", "cpu", "%", (1.9, None, 95.2), usual=2.0, low=1.0, high=3.0)
    assert measure.text == "a cpu 1.9 - 95.2% usual 2 (1-3)"
    assert Measure("a", "cpu", "%", (1.0,)).text == "a cpu 1% usual -"
    assert CallTime("a", "b", 75, 3.8).text == "a > b waits 75ms usual 3.8"
    whole = CallTime("a", "b", 75, 3.8, 4, 3, 12, 40)
    assert whole.text.endswith(", served in 4ms usual 3, 12/min usual 40")
    count = LineCount("a", 357, 104, 2, 0)
    assert count.text == "a 357 lines/min usual 104, errors 2 usual 0, warnings 0 usual -"
    assert Alert("a", "latency", "300").text == "a latency 300ms"
