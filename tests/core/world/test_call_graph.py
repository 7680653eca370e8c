"""Call graphs: the few rules of those that were observed, and more of those that are simulated."""

from random import Random

import pytest

from logtriage.world.call_graph import MOST_OBSERVED, UNKNOWN_KIND, CallGraph, Service
from logtriage.world.topology import (
    DEFAULT_TOPOLOGY,
    Topology,
    callers_first,
    random_topology,
    simulated,
)


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
    # where all are called, only the first is where users enter
    assert graph(a="b", b="a").depth == {"a": 0, "b": 1}


def test_users_enter_where_nobody_calls_unless_an_edge_is_known():
    assert graph(a="b", b="", c="b").entry_services == (0, 2)
    known = CallGraph((Service("a", UNKNOWN_KIND, ("b",)), Service("b", "edge")))
    assert known.entry_services == (1,) and known.depth == {"a": 0, "b": 0}


LONE = Service("a", "app")
OF_ANY = [  # services, and why they are no call graph
    ((), "1 to 200 services, got 0"),
    (tuple(Service(f"s{i}", "app") for i in range(MOST_OBSERVED + 1)), "got 201"),
    ((LONE, LONE), "a stands twice"),
    ((Service("a\x1b[31m", "app"),), "printable"),
    ((Service("all", "app"),), "not 'all'"),
    ((Service("a", "cache"),), "unknown kind 'cache' of a; choose one of edge, app"),
    ((Service("a", "app", ("b",)),), "a calls unknown service 'b'"),
    ((Service("a", "app", ("b", "b")), Service("b", "app")), "names b twice"),
]
OF_SIMULATED = [  # likewise, none that can be simulated
    ((LONE,), "no service of kind edge"),
    ((Service("a", "edge"), Service("b", "app")), "nothing calls b"),
    ((Service("b", "edge"), Service("a", "edge", calls=("b",))), "callers first"),
    (tuple(Service(f"a{i}", "edge") for i in range(31)), "1 to 30 services, got 31"),
    ((Service("Web", "edge"),), "lower-case letter"),
    ((Service("a:b", "edge"),), "lower-case letter"),
    ((Service("a\n", "edge"),), "lower-case letter"),
    ((Service("a" * 41, "edge"),), "at most 39"),
    ((Service("a", "edge", handles_logins=True),), "only an app has handles_logins"),
]


@pytest.mark.parametrize(
    "kind, services, reason",
    [(CallGraph, *row) for row in OF_ANY] + [(Topology, *row) for row in OF_SIMULATED],
)
def test_a_bad_graph_is_refused_in_a_line_with_the_reason(kind, services, reason):
    with pytest.raises(ValueError, match=rf"^[^\n]*{reason}"):
        kind(services)


def test_an_observed_graph_is_not_simulated():
    assert simulated(DEFAULT_TOPOLOGY) is DEFAULT_TOPOLOGY
    with pytest.raises(ValueError, match="was observed and cannot be simulated"):
        simulated(graph(a=""))


def test_random_topologies_are_valid_and_span_the_sizes():
    sizes = {len(random_topology(Random(i)).names) for i in range(300)}
    assert min(sizes) == 5 and max(sizes) == 30


def test_a_graph_that_fails_at_rest_is_refused():
    # Every app calls all that come after it: the waits add up to more than a request may take.
    names = [f"a{i}" for i in range(12)]
    apps = [Service(name, "app", tuple(names[i + 1 :])) for i, name in enumerate(names)]
    with pytest.raises(ValueError, match=r"a\d waits so long.* timeout of 3000 ms"):
        Topology((Service("web", "edge", ("a0",)), *apps))


def test_services_are_put_after_their_callers_and_else_left_in_order():
    services = DEFAULT_TOPOLOGY.services
    assert callers_first(services) == services
    leaf, web = Service("db", "database"), Service("web", "edge", ("db",))
    other = Service("mail", "edge")
    assert callers_first((leaf, web, other)) == (web, leaf, other)
    circle = (
        Service("a", "app", ("b",)),
        Service("b", "app", (), ("c",)),
        Service("c", "app", ("a",)),
    )
    with pytest.raises(ValueError, match=r"a > b > c > a|b > c > a > b|c > a > b > c"):
        callers_first((Service("web", "edge", ("a",)), *circle))
