"""Observed clusters as ones that the simulator can run, and what it believes of them."""

import pytest

from logtriage.play.episode import Episode, Observation
from logtriage.policies.llm.translated import (
    TranslatedBeliefPolicy,
    Translation,
    nearest,
    translated_beliefs,
    without_circles,
)
from logtriage.real.real_episode import RealEpisode
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.incidents import sample_incident
from logtriage.world.rows import Alert, Metric
from logtriage.world.topology import Topology

GRAPH = CallGraph(
    (
        Service("Web::Front", "unknown", ("Shop", "Ads")),
        Service("Shop", "unknown", ("Store",)),
        Service("Ads", "unknown"),
        Service("Store", "unknown"),
    )
)


def test_kinds_go_by_place_and_figures_by_times_the_usual():
    translation = Translation(GRAPH, ["Web::Front"])
    kinds = {translation.names[one.name]: one.kind for one in translation.topology.services}
    assert kinds == {"Web::Front": "edge", "Shop": "app", "Ads": "database", "Store": "database"}
    seen = translation.opening(
        Observation(
            0,
            20,
            alerts=[Alert("Web::Front", "errors", "7.3"), Alert("Shop", "p95", "999")],
            metrics=[Metric("Shop", "4.6", "30", "10"), Metric("Ads", "", "", "")],
        )
    )
    row, rest = seen.metrics[0], translation.topology.network.rest_latency
    at = translation.topology.position[row.service]
    assert translation.names[row.service] == "Shop" and len(seen.metrics) == 1
    assert row.errors == "5" and float(row.latency) == pytest.approx(3.0 * rest[at], rel=0.05)
    told = {translation.names[one.service]: (one.metric, one.value) for one in seen.alerts}
    assert told["Web::Front"] == ("errors", "7") and told["Shop"][0] == "p95"


def test_the_nearest_services_are_kept():
    chain = CallGraph(
        tuple(Service(f"n{i}", "unknown", (f"n{i + 1}",) if i < 39 else ()) for i in range(40))
    )
    kept = nearest(chain, ["n20"])
    assert len(kept) == 30 and kept[0] == "n20" and {"n6", "n34"} <= set(kept)
    assert len(Translation(chain, ["n20"]).topology.services) == 30


def test_circles_lose_the_call_that_closes_them():
    calls = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": []}
    assert without_circles(calls) == {"a": ["b"], "b": ["c"], "c": ["d"], "d": []}


def test_it_finds_the_roots_of_the_simulator_itself():
    """Incidents of a simulated cluster, shown as if it had been observed: nothing is lost but log
    lines, and names and kinds that can be told by place.
    """
    shop = Topology(
        (
            Service("web", "edge", ("shop", "ads")),
            Service("shop", "app", ("store",)),
            Service("ads", "app", ("clicks",)),
            Service("store", "database"),
            Service("clicks", "database"),
        )
    )
    observed = CallGraph(tuple(Service(one.name, "unknown", one.calls) for one in shop.services))
    right = []
    for index in range(12):
        episode = Episode(sample_incident("single_crash", "test", index, shop))
        beliefs = translated_beliefs(observed, episode.opening)
        assert sum(beliefs.values()) <= 1.0 + 1e-9
        right.append(max(beliefs, key=beliefs.get) == episode.incident.root)
    assert sum(right) >= 8


def test_it_blames_three_with_its_confidence_in_the_first():
    episode = RealEpisode.open("nezha-onlineboutique", 0)
    TranslatedBeliefPolicy().play([episode])
    assert len(set(episode.record.root_causes)) == 3 and episode.record.closed_by == "resolve"
    assert 0.0 < episode.record.confidence <= 1.0
