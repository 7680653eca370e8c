"""The rule `unexplained`: a service is suspect for what its callees do not explain."""

from logtriage.play.observation import Observation
from logtriage.real.observed import CallTime, Measure, gather
from logtriage.real.unexplained import suspicion, votes
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert

GRAPH = CallGraph(
    (
        Service("web", "unknown", ("shop", "ads")),
        Service("shop", "unknown", ("stock",)),
        Service("ads", "unknown"),
        Service("stock", "unknown"),
    )
)


def seen(rows, alert="latency", calls=None, counts=None):
    """`rows`: service, name, value, baseline, and half the width of its band."""
    measures = [
        Measure(service, name, "", (usual, usual, value), usual, usual - wide, usual + wide)
        for service, name, value, usual, wide in rows
    ]
    alerts = [Alert("web", alert, 1.0)] if alert else []
    answer = Observation(1, 20, measures=measures, calls=calls, counts=counts)
    return gather(GRAPH, [Observation(0, 20, alerts=alerts), answer])


def worst(evidence):
    found = suspicion(evidence)
    return max(found, key=found.get)


def requests(**rates):
    return [(name, "requests", rate, rate, 1.0) for name, rate in rates.items()]


def test_what_a_callee_explains_leaves_no_residual():
    slow = [(name, "latency", 400.0, 100.0, 5.0) for name in ("web", "shop", "stock")]
    found = votes(seen(slow))["waiting"]
    assert found["stock"] > 0.9 and found["shop"] == found["web"] == 0.0


def test_residuals_are_counted_in_requests():
    # ads fails all of its two requests; stock one in twenty of a thousand, and the users feel that.
    rows = [
        *(
            (name, "available", value, 100.0, 0.0)
            for name, value in (("web", 95.0), ("shop", 95.0), ("stock", 95.0), ("ads", 0.0))
        ),
        *requests(web=1000.0, shop=1000.0, stock=1000.0, ads=2.0),
    ]
    assert worst(seen(rows, "errors")) == "stock"
    # An alert of latency alone does not look at them.
    assert "failures" not in votes(seen(rows, "latency"))


def test_of_several_callers_the_one_in_the_middle_is_believed():
    graph = CallGraph(
        (
            Service("a", "unknown", ("c", "d")),
            Service("b", "unknown", ("c", "d")),
            Service("e", "unknown", ("c", "d")),
            Service("c", "unknown"),
            Service("d", "unknown"),
        )
    )
    calls = [
        CallTime(caller, "c", 400.0 if caller == "a" else 10.0, 10.0, 5.0, 5.0) for caller in "abe"
    ] + [CallTime(caller, "d", 150.0, 10.0, 5.0, 5.0) for caller in "abe"]
    evidence = gather(graph, [Observation(0, 20, alerts=[], calls=calls)])
    assert worst(evidence) == "d"


def test_noise_singles_nobody_out():
    rows = [
        (name, kind, 101.0, 100.0, 5.0)
        for name in GRAPH.names
        for kind in ("latency", "cpu", "memory")
    ]
    assert max(suspicion(seen(rows)).values()) < 0.05
