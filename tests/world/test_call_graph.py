"""Call graphs as they were observed: fewer rules than those that are simulated."""

import pytest

from logtriage.world.call_graph import MOST_OBSERVED, UNKNOWN_KIND, CallGraph, Service, leads
from logtriage.world.topology import DEFAULT_TOPOLOGY, simulated


def graph(**calls):
    """Services of unknown kind with these calls."""
    return CallGraph(
        tuple(Service(name, UNKNOWN_KIND, tuple(to.split())) for name, to in calls.items())
    )


def test_calls_may_go_in_circles_and_stand_in_any_order():
    circle = graph(c="", a="b", b="a c")
    assert circle.call_graph_text == "a > b; b > a c"
    assert circle.callers["c"] == ("b",) and circle.below[circle.position["b"]] == (1, 0)
    assert circle.depth == {"c": 0, "a": 0, "b": 0}  # nobody is an edge, and all are called
    assert graph(c="", a="b", b="c").depth == {"c": 2, "a": 0, "b": 1}
    assert set(circle.layout) == {"a", "b", "c"}


def test_users_enter_where_nobody_calls_unless_an_edge_is_known():
    assert graph(a="b", b="", c="b").edges == (0, 2)
    known = CallGraph((Service("a", UNKNOWN_KIND, ("b",)), Service("b", "edge")))
    assert known.edges == (1,) and known.depth == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    "services, said",
    [
        ((), "1 to 200 services, got 0"),
        (tuple(Service(f"s{i}", "app") for i in range(MOST_OBSERVED + 1)), "got 201"),
        ((Service("a", "app"), Service("a", "app")), "a stands twice"),
        ((Service("a\x1b[31m", "app"),), "printable"),
        ((Service("all", "app"),), "not 'all'"),
        ((Service("a", "cache"),), "unknown kind 'cache' of a; choose one of edge, app"),
        ((Service("a", "app", ("b",)),), "a calls unknown service 'b'"),
        ((Service("a", "app", ("b", "b")), Service("b", "app")), "names b twice"),
    ],
)
def test_what_is_no_call_graph_is_refused(services, said):
    with pytest.raises(ValueError, match="^[^\n]*" + said.replace("[", r"\[")):
        CallGraph(services)


def test_an_observed_graph_is_not_simulated():
    assert simulated(DEFAULT_TOPOLOGY) is DEFAULT_TOPOLOGY
    with pytest.raises(ValueError, match="was observed and cannot be simulated"):
        simulated(graph(a=""))


def test_calls_lead_over_any_number_of_hops_and_in_circles():
    calls = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
    assert leads(calls, "a", "c") and leads(calls, "d", "c") and leads(calls, "a", "a")
    assert not leads(calls, "a", "d") and leads({"x": []}, "x", "x")
