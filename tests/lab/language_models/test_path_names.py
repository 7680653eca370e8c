"""Path names: an agent that reads them cannot know what its services are called."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.play.episode import Episode
from logtriage.play.renaming import renamed_graph
from logtriage.play.tools import ToolSession
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.tasks import SPLITS, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY, random_topology
from triagelab.language_models.path_names import NAMING, incident_names, names_for, path_names


def read(session, services):
    """All that an agent reads that asks these services, and answers in the end."""
    texts = [session.opening]
    calls = [("request_more_logs", {"service": service}) for service in services]
    calls += [
        ("identify_root_cause", {"service": services[-1]}),
        ("remediate", {"remedy": "restart", "service": services[-1]}),
        ("resolve", {}),
    ]
    for name, arguments in calls:
        if not session.episode.done:
            texts.append(session.call(name, arguments))
    return texts


def under(episode, names):
    """The same incident on a call graph with these names."""
    incident = episode.incident
    return Episode(incident.renamed(renamed_graph(incident.topology, names)))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_the_agent_reads_what_a_cluster_of_these_names_would_print(task, split):
    for index in range(3):
        names = incident_names(Episode.open(task, split, index))
        services = [*list(names.values())[:5], "all"]
        translated = ToolSession(Episode.open(task, split, index), incident_names)
        printed = ToolSession(under(Episode.open(task, split, index), names))
        assert translated.services == printed.services
        assert read(translated, services) == read(printed, services)
        score = translated.episode.score
        assert score is not None and score == printed.episode.score


@given(st.integers(0, 10_000), st.sampled_from(list(TASKS)), st.sampled_from(list(SPLITS)))
def test_other_names_change_nothing_that_the_agent_reads(number, task, split):
    # The words are such that occur in log lines, too.
    words = Random(number).sample([f"{first}-{second}" for first in WORDS for second in WORDS], 30)
    episode = Episode.open(task, split, number % 20)
    given_names = dict(zip(episode.incident.topology.names, words, strict=False))
    asked = [*incident_names(episode).values()][::-1][:4]
    first = ToolSession(episode, incident_names)
    second = ToolSession(under(Episode.open(task, split, number % 20), given_names), incident_names)
    assert read(first, asked) == read(second, asked)


WORDS = ("error", "connection", "user", "db", "app", "cache", "queue", "request", "edge", "pool")


def test_a_real_name_is_unknown_to_an_agent_with_names_of_its_own():
    session = ToolSession(Episode.open("single_crash", "test", 0), incident_names)
    answer = session.call("identify_root_cause", {"service": "user-db"})
    assert "unknown service; choose one of edge, app-a" in answer and "user-db" not in answer
    assert session.malformed == 1 and not session.episode.record.root_causes


def test_a_path_name_says_where_a_service_stands_in_every_call_graph():
    names = path_names(DEFAULT_TOPOLOGY, "any")
    assert names["api-gateway"] == "edge"
    assert names["user-db"] == names["auth-service"].replace("app", "db") + "-b1"
    assert len({path_names(DEFAULT_TOPOLOGY, str(seed))["user-db"] for seed in range(20)}) == 3
    shared = CallGraph(
        (
            Service("Web", "edge", calls=("a_1", "b")),
            Service("a_1", "app", calls=("db.local",)),
            Service("b", "app", calls=("db.local", "c")),
            Service("db.local", "database"),
            Service("c", "unknown", calls=("b",)),  # calls may go in circles
            Service("island", "app", calls=("reef",)),
            Service("reef", "queue", calls=("island",)),
        )
    )
    names = path_names(shared, "seed")
    assert names["Web"] == "edge-a1" and names["island"] == "app-a2"
    assert names["reef"] == "queue-a2-b1"
    assert names["db.local"].count("-") == 3 and names["c"].startswith("service-a1-b")
    for seed in range(20):
        graph = random_topology(Random(seed))
        assert len(set(path_names(graph, str(seed)).values())) == len(graph.names)


def test_a_model_gets_the_names_that_it_has_learned_or_a_refusal():
    assert names_for({}) is None
    assert names_for({"path_names": NAMING}) is incident_names
    with pytest.raises(ValueError, match=r"another form of path names \(True, .*train it again"):
        names_for({"path_names": True})  # names before the letters, such as `app-2-1`
