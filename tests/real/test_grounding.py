"""What the ranking rules read of each service."""

import pytest

from logtriage.play.observation import Observation
from logtriage.real.grounding import LEAST_SPREAD, gather, z_score
from logtriage.real.observed import CallTime, LineCount, Measure
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert, Metric

GRAPH = CallGraph((Service("web", "unknown", ("shop",)), Service("shop", "unknown")))


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


def test_what_is_shown_is_gathered_and_users_are_no_service():
    opening = Observation(
        0,
        20,
        alerts=[Alert("web", "p95", 300.0)],
        metrics=[Metric("web", None, 300.0, 100.0)],
        measures=[Measure("users", "p95", "ms", (300.0,), 100.0)],
    )
    answer = Observation(
        1,
        20,
        measures=[
            Measure("web", "cpu", "%", (1.0, 50.0), 1.0),
            Measure("web", "requests", "/s", (2.0, 4.0)),
        ],
        calls=[CallTime("web", "shop", 30.0, 10.0)],
        counts=[LineCount("shop", 5.0, 5.0, 1.0, 0.0)],
    )
    evidence = gather(GRAPH, [opening, answer])
    assert set(evidence.measures) == {"web"} and evidence.alerts == (Alert("web", "p95", 300.0),)
    assert evidence.anomaly("web", "cpu") > 100.0 > evidence.anomaly("shop") == 0.0
    assert evidence.rate("web") == 4.0 and evidence.rate("shop") == 1.0
    assert evidence.calls[0].wait == 30.0 and evidence.counts[0].service == "shop"
