"""Rules on a toy cluster, and as a policy: web calls shop and ads, shop stock and prices. What each
ranks of the real cases is tested with their results.
"""

import pytest

from logtriage.play.observation import Observation
from logtriage.real.cases import SOURCES
from logtriage.real.observed import Measure, gather
from logtriage.real.real_episode import RealEpisode
from logtriage.real.rules import RULES, RankingPolicy
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert

GRAPH = CallGraph(
    (
        Service("web", "unknown", ("shop", "ads")),
        Service("shop", "unknown", ("stock", "prices")),
        Service("ads", "unknown"),
        Service("stock", "unknown", ("prices",)),
        Service("prices", "unknown"),
    )
)


def measure(service, name, value, usual=100.0, wide=5.0):
    return Measure(service, name, "", (usual, usual, value), usual, usual - wide, usual + wide)


ALERTS = (Alert("web", "latency", 400.0),)


def seen(*measures, alerts=ALERTS, calls=None, counts=None):
    answer = Observation(1, 20, measures=list(measures), calls=calls, counts=counts)
    return gather(GRAPH, [Observation(0, 20, alerts=list(alerts)), answer])


SLOW = (  # stock is slow; those above it wait, and ads is anomalous for another reason
    measure("web", "latency", 400.0),
    measure("shop", "latency", 380.0),
    measure("stock", "latency", 360.0),
    measure("prices", "latency", 101.0),
    measure("ads", "latency", 140.0),
    measure("ads", "cpu", 900.0),
    measure("prices", "requests", 120.0, wide=0.5),
)


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("largest_z_score", "ads"),
        ("worst_callee", "stock"),
        ("traversal", "stock"),
        ("unexplained", "stock"),
    ],
)
def test_a_slow_service_below(rule, first):
    evidence = seen(*[one for one in SLOW if rule != "unexplained" or one.name == "latency"])
    ranking = RULES[rule](evidence)
    assert ranking[0] == first and sorted(ranking) == sorted(GRAPH.names)


def test_the_alert_says_in_which_measure_to_look():
    failing = (measure("web", "available", 90.0), measure("ads", "available", 60.0))
    errors = (Alert("web", "errors", 10.0),)
    assert RULES["worst_callee"](seen(*SLOW, *failing, alerts=errors))[0] == "ads"
    assert RULES["traversal"](seen(*SLOW, *failing, alerts=errors))[0] == "ads"


def test_without_alerts_the_walk_begins_where_users_enter():
    p95 = [one._replace(name="p95") for one in SLOW if one.name == "latency"]
    assert RULES["worst_callee"](seen(*p95, alerts=()))[0] == "stock"
    assert RULES["traversal"](seen(*p95, alerts=()))[0] == "stock"


@pytest.mark.parametrize("name", RULES)
def test_every_rule_ranks_everybody_when_nothing_is_known(name):
    assert sorted(RULES[name](seen(alerts=()))) == sorted(GRAPH.names)


@pytest.mark.parametrize("source", SOURCES)
def test_as_a_policy_it_asks_about_all_and_blames_three_in_order(source):
    given = []

    def rule(evidence):
        given.append(evidence)
        return sorted(evidence.graph.names)

    episode = RealEpisode.open(source, 0)
    RankingPolicy(rule, "by name").play([episode])
    assert episode.record.root_causes == sorted(episode.incident.topology.names)[:3]
    assert (episode.record.steps, episode.record.closed_by) == (5, "resolve")
    assert len(given) == 1 and len(given[0].measures) > 5  # the answer brought all metrics
