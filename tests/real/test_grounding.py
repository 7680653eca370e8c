"""What the ranking rules read of each service."""

import pytest

from logtriage.real.grounding import LEAST_SPREAD, z_score
from logtriage.real.observed import Measure


def test_the_later_half_of_the_window_counts():
    # The alarm lies in the middle: an anomaly before it is not the incident.
    measure = Measure("web", "cpu", "%", (90.0, 10.0, 12.0, None, 4.0), usual=10.0)
    assert z_score(measure) * measure.sigma(LEAST_SPREAD) == pytest.approx(-6.0)
    assert z_score(measure._replace(values=(90.0, None, None))) == 0.0
    assert z_score(measure._replace(usual=None)) == 0.0


def test_a_z_score_is_in_spreads_of_the_baseline():
    measure = Measure("web", "p95", "ms", (80.0,), 100.0, 90.0, 110.0, 1.0)
    assert z_score(measure) == pytest.approx(-3.29)
    flat = measure._replace(low=100.0, high=100.0, deviation=0.0)
    assert z_score(flat) == pytest.approx(-0.2 / LEAST_SPREAD)
