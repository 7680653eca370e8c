"""A call graph from a file: read as meant, or refused with the value and a suggested fix."""

from functools import partial

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.world.call_graph import KINDS, Service
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS, splits_on
from logtriage.world.topology import REST_UTILISATION, Topology
from logtriage.world.topology_file import load_call_graph, load_topology

WEB, DB = "- {name: web, kind: edge, calls: [db]}\n", "- {name: db, kind: database}\n"

# Contents of the file, and what is said of it. Invalid graphs: `test_call_graph`.
BAD_FILES = [
    ("", "expected a mapping .*got None"),
    ("services:\n- {name: web, kind: edge\n- {}\n", "not YAML .*line 3.*; expected a"),
    ("services:\n- {name: we\x07b}\n", "not YAML .*special characters"),
    ("[" * 1000, "not YAML .*recursion"),
    ("web\n", "expected a mapping .*got 'web'"),
    (WEB, "expected a mapping .*got a list"),
    ("services: []\nteams: []\n", "expected a mapping with nothing but a list"),
    ("services: []\nservices: []\n", "stands twice"),
]
# Likewise, of the list of services.
BAD_SERVICES = [
    ("- web\n", "a service is a mapping, .*got 'web'"),
    ("- {kind: edge}\n", "'name' of service None must be text.*got None"),
    ("- {name: web}\n", "'kind' of service 'web' must be text.*got None"),
    ("- {name: web, colour: red, kind: edge}\n", "unknown field 'colour' of service 'web'; fields"),
    ("- {name: web, kind: edge, kind: app}\n", "one of the fields 'name', 'kind' stands twice"),
    ("- {name: 7, kind: edge}\n", "must be text; .*got 7"),
    ('- {name: "web\\n", kind: edge}\n', "bad service name"),
    ("- {name: web, kind: {}}\n", "must be text.*got a dict"),
    ("- {name: web, kind: edge, calls: db}\n" + DB, "a list of names; got 'db'"),
    ("- {name: web, kind: edge, calls: [7]}\n", "a list of names; got a list"),
    ("- {name: app, kind: app, session_cache: 1}\n", "session_cache' of .* true or false; got 1"),
    ("- {name: web, kind: edge, calls: [web]}\n", "cycle: web > web; leave out one"),
]
BAD_FILES += [("services:\n" + text, message) for text, message in BAD_SERVICES]


@pytest.mark.parametrize("text, message", BAD_FILES)
def test_a_bad_file_is_answered_with_the_value_and_a_fix(text, message, tmp_path):
    path = tmp_path / "graph.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_topology(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none.yaml: No such file.*; name a YAML file"):
        load_topology(tmp_path / "none.yaml")
    path = tmp_path / "graph.yaml"
    path.write_bytes(b"services: \xff\xfe")
    with pytest.raises(ValueError, match=r"graph.yaml: not YAML in UTF-8"):
        load_topology(path)
    # Aliases that grow without end are answered at once.
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    path.write_text("\n".join(["a0: &a0 [x]", *lines]))
    with pytest.raises(ValueError, match="expected a mapping"):
        load_topology(path)


def test_a_graph_to_read_a_log_by_has_fewer_rules(tmp_path):
    path = tmp_path / "graph.yaml"
    path.write_text(
        "services:\n- {name: Web_1.x, calls: [cart]}\n- {name: cart, kind: app, calls: [Web_1.x]}\n"
    )
    graph = load_call_graph(path)
    assert graph.call_graph_text == "Web_1.x > cart; cart > Web_1.x"
    assert [service.kind for service in graph.services] == ["unknown", "app"]
    with pytest.raises(ValueError, match=r"'kind' of service 'Web_1.x' must be text"):
        load_topology(path)
    path.write_text("services:\n- {name: web, kind: edge}\n- {name: all}\n")
    with pytest.raises(ValueError, match=r"graph.yaml: bad service name 'all'"):
        load_call_graph(path)


def test_nothing_in_a_file_is_run(tmp_path):
    path, trace = tmp_path / "graph.yaml", tmp_path / "trace"
    path.write_text(f"services: !!python/object/apply:os.mkdir ['{trace}']\n")
    with pytest.raises(ValueError):
        load_topology(path)
    assert not trace.exists()


@st.composite
def graphs(draw):
    """Any call graph: each service may call or message any later one."""
    size = draw(st.integers(1, 12))
    names = [f"s{i}" for i in range(size)]
    links = st.sampled_from(["", "", "", "calls", "publishes"])
    services = []
    for i, name in enumerate(names):
        how = {other: draw(links) for other in names[i + 1 :]}
        called = any(name in caller.downstream for caller in services)
        kind = draw(st.sampled_from(KINDS)) if called else "edge"
        services.append(
            Service(
                name,
                kind,
                *(tuple(n for n in how if how[n] == field) for field in ("calls", "publishes")),
                *(kind == "app" and draw(st.booleans()) for _ in range(2)),
            )
        )
    return tuple(services)


@settings(deadline=None, max_examples=30)
@given(graphs(), st.sampled_from(list(TASKS)), st.randoms(), st.integers(0, 99))
def test_any_graph_is_played_or_answered(tmp_path_factory, services, task, random, index):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    shuffled = list(services)
    random.shuffle(shuffled)
    try:
        topology = Topology(services)
    except ValueError as error:
        assert "timeout" in str(error)  # the one thing such a graph can get wrong
        return
    path.write_text(yaml.safe_dump({"services": [vars(service) for service in shuffled]}))
    assert set(load_topology(path).services) == set(services)
    for load, capacity in zip(topology.network.rest_load, topology.network.capacity, strict=True):
        assert load / capacity == pytest.approx(REST_UTILISATION)
    for split in splits_on(topology):
        draw = partial(sample_incident, task, split, index, topology)
        try:
            incident = draw()
        except ValueError as error:
            assert task in str(error)
        else:
            assert incident == draw() and incident.topology is topology
