from random import Random

import pytest

from logtriage.world.call_graph import Service
from logtriage.world.topology import DEFAULT_TOPOLOGY, Topology, callers_first, random_topology


@pytest.mark.parametrize(
    "services, told",
    [
        ((Service("a", "app"),), "no service of kind edge"),
        ((Service("a", "edge"), Service("b", "app")), "nothing calls b"),
        ((Service("b", "edge"), Service("a", "edge", calls=("b",))), "callers first"),
        (tuple(Service(f"a{i}", "edge") for i in range(31)), "1 to 30 services, got 31"),
        ((Service("Web", "edge"),), "lower-case letter"),
        ((Service("a:b", "edge"),), "lower-case letter"),
        ((Service("a\n", "edge"),), "lower-case letter"),
        ((Service("a" * 41, "edge"),), "at most 39"),
        ((Service("a", "edge", handles_logins=True),), "only an app has handles_logins"),
    ],
)
def test_bad_graphs_are_refused_with_the_reason(services, told):
    with pytest.raises(ValueError, match=told):
        Topology(services)


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


def test_equal_graphs_are_one_key():
    # Priors and pairs are kept by call graph; one that came over the wire must find its own.
    same = Topology(DEFAULT_TOPOLOGY.services)
    assert same == DEFAULT_TOPOLOGY and hash(same) == hash(DEFAULT_TOPOLOGY)
    other = Topology((Service("web", "edge", ("a",)), Service("a", "app")))
    cached = Topology((Service("web", "edge", ("a",)), Service("a", "app", session_cache=True)))
    assert other != cached
