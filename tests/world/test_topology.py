from random import Random

import pytest

from logtriage.world.topology import (
    DEFAULT_TOPOLOGY,
    REST_UTILISATION,
    Service,
    Topology,
    load_topology,
    random_topology,
)


def test_default_is_the_shop_of_seven():
    assert len(DEFAULT_TOPOLOGY.names) == 7
    assert DEFAULT_TOPOLOGY.depth["payment-db"] == 2
    assert DEFAULT_TOPOLOGY.service("email-queue").owner == "sre"


def test_no_other_module_names_a_service():
    # Topology is data: a service name anywhere else would tie the world to one graph.
    from pathlib import Path

    folder = Path(__file__).parents[2] / "logtriage"
    for path in folder.glob("*.py"):
        if path.name != "topology.py":
            for name in DEFAULT_TOPOLOGY.names:
                examples = path.name in ("environment.py", "client.py")  # in their docstrings
                assert name not in path.read_text() or examples, f"{path.name} names {name}"


@pytest.mark.parametrize(
    "services, told",
    [
        ((Service("a", "edge", calls=("b",)),), "unknown service 'b'"),
        ((Service("a", "app"),), "needs a service of kind 'edge'"),
        ((Service("a", "edge"), Service("a", "app")), "unique"),
        ((Service("a", "edge"), Service("b", "app")), "nothing calls b"),
        ((Service("a", "edge", calls=("b",)), Service("b", "app", calls=("a",))), "callers first"),
        ((Service("a", "edge", calls=("b",)), Service("b", "cloud")), "unknown kind 'cloud'"),
    ],
)
def test_bad_graphs_are_refused_with_the_reason(services, told):
    with pytest.raises(ValueError, match=told):
        Topology(services)


def test_random_topologies_are_valid_and_span_the_sizes():
    sizes = {len(random_topology(Random(i)).names) for i in range(300)}
    assert min(sizes) == 5 and max(sizes) == 30
    names = {name for i in range(50) for name in random_topology(Random(i)).names}
    assert not names & set(DEFAULT_TOPOLOGY.names)


def test_every_service_rests_at_the_planned_utilisation():
    network = DEFAULT_TOPOLOGY.network
    for load, capacity in zip(network.rest_load, network.capacity, strict=True):
        assert load / capacity == pytest.approx(REST_UTILISATION)


def test_yaml_round_trip(tmp_path):
    path = tmp_path / "shop.yaml"
    path.write_text(
        "services:\n- {name: front, kind: edge, calls: [cart]}\n"
        "- {name: cart, kind: app, calls: [cart-db], session_cache: true}\n- {name: cart-db, kind: database}\n"
    )
    assert load_topology(path).names == ("front", "cart", "cart-db")
    path.write_text("services:\n- {name: front, kind: edge, colour: red}\n")
    with pytest.raises(ValueError, match="colour"):
        load_topology(path)
    path.write_text("- front\n")
    with pytest.raises(ValueError, match="mapping"):
        load_topology(path)
