"""What rules know of each service."""

import pytest

from logtriage.ceiling.grounding import LEAST_SPREAD, Evidence, farthest, gather, sigmas
from logtriage.play.observation import CallTime, LineCount, Measure, Observation
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert, Metric

GRAPH = CallGraph((Service("web", "unknown", ("shop",)), Service("shop", "unknown")))


def test_the_later_half_of_the_window_counts():
    # The alarm lies in the middle: a loud value before it is not the incident.
    measure = Measure("web", "cpu", "%", (90.0, 10.0, 12.0, None, 4.0), usual=10.0)
    assert farthest(measure) == 4.0
    assert farthest(measure._replace(values=(90.0, None, None))) is None
    assert farthest(measure._replace(usual=None)) is None


def test_a_sigma_is_the_spread_of_the_usual():
    measure = Measure("web", "p95", "ms", (80.0,), 100.0, 90.0, 110.0, 1.0)
    assert sigmas(measure) == pytest.approx(-3.29)
    flat = measure._replace(low=100.0, high=100.0, deviation=0.0)
    assert sigmas(flat) == pytest.approx(-0.2 / LEAST_SPREAD)


def test_what_is_shown_is_gathered_and_users_are_no_service():
    opening = Observation(
        0,
        20,
        alerts=[Alert("web", "p95", 300)],
        metrics=[Metric("web", None, 300, 100)],
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
    assert set(evidence.measures) == {"web"} and evidence.alerts == (Alert("web", "p95", 300),)
    assert evidence.surprise("web", "cpu") > 100.0 > evidence.surprise("shop") == 0.0
    assert evidence.rate("web") == 4.0 and evidence.rate("shop") == 1.0
    assert evidence.calls[0].wait == 30.0 and evidence.counts[0].service == "shop"


def test_without_measures_the_table_stands_in():
    rows = [Metric("web", 12, 300, 100), Metric("shop", None, None, None)]
    evidence = gather(GRAPH, [Observation(0, 8, alerts=[], metrics=rows)])
    assert isinstance(evidence, Evidence)
    assert farthest(evidence.measures["web"]["p95"]) == 300.0
    assert farthest(evidence.measures["web"]["available"]) == 88.0
    assert evidence.measures["shop"] == {}
