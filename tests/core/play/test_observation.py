"""Rows as they are read, with what nobody measured."""

import pytest

from logtriage.play.observation import Measure, number, observed_metric


@pytest.mark.parametrize(
    "value, text",
    [(None, "-"), (0, "0"), (0.905, "0.905"), (2.0, "2"), (2531.7, "2530"), (99.96, "100"),
     (1e-7, "0"), (-3.456, "-3.46"), (1.5e6, "1500000")],
)  # fmt: skip
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert number(value) == text
    row = observed_metric("a", value, value, value)  # which holds rounded numbers
    assert row.text == (f"a {text}% {text}ms {text}" if value is not None else "a - - -")
    assert row.slowdown == (1.0 if row.usual else None)


def test_the_sigma_is_the_widest_of_what_is_known_and_never_nothing():
    measure = Measure("web", "p95", "ms", (100.0,), 100.0, 90.0, 110.0, 1.0)
    assert measure.sigma == pytest.approx(20.0 / 3.29)
    assert measure._replace(deviation=10.0).sigma == pytest.approx(10.0)
    flat = measure._replace(low=100.0, high=100.0, deviation=0.0)
    assert flat.sigma == pytest.approx(1.0) and flat._replace(usual=0.0).sigma > 0.0
