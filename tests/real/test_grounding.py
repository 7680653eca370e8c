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
