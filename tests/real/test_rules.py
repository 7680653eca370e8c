"""Each rule on a toy cluster, and as a policy: web calls shop and ads, shop stock and prices."""

import pytest

from logtriage.play.observation import Observation
from logtriage.real.cases import SOURCES
from logtriage.real.grounding import gather
from logtriage.real.observed import CallTime, LineCount, Measure
from logtriage.real.real_episode import RealEpisode
from logtriage.real.rules import RULES, RankingPolicy, commonest, random_ranking
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


def test_the_walk_back_is_the_second_guess_of_who_went_down():
    assert RULES["worst_callee"](seen(*SLOW))[:3] == ["stock", "shop", "web"]


def test_the_alert_says_in_which_measure_to_look():
    failing = (measure("web", "available", 90.0), measure("ads", "available", 60.0))
    errors = (Alert("web", "errors", 10.0),)
    assert RULES["worst_callee"](seen(*SLOW, *failing, alerts=errors))[0] == "ads"
    assert RULES["traversal"](seen(*SLOW, *failing, alerts=errors))[0] == "ads"


def test_without_alerts_the_walk_begins_where_users_enter():
    p95 = [one._replace(name="p95") for one in SLOW if one.name == "latency"]
    assert RULES["worst_callee"](seen(*p95, alerts=()))[0] == "stock"
    assert RULES["traversal"](seen(*p95, alerts=()))[0] == "stock"


def test_error_lines_and_waits():
    counts = [LineCount("ads", 9.0, 9.0, 3.0, 3.0), LineCount("stock", 9.0, 9.0, 1.0, 0.0)]
    assert RULES["error_lines"](seen(counts=counts))[:2] == ["ads", "stock"]
    calls = [
        CallTime("web", "shop", 300.0, 100.0, 290.0, 95.0),
        CallTime("shop", "prices", 250.0, 10.0, 8.0, 8.0),
        CallTime("shop", "stock", None, None),
    ]
    assert RULES["extra_wait"](seen(calls=calls))[:2] == ["prices", "shop"]


def test_whoever_was_the_root_most_often_elsewhere():
    assert commonest(["ads", "stock", "ads", "gone"])(seen())[:2] == ["ads", "stock"]


def test_random_rankings_come_again_with_their_seed():
    one, other = random_ranking(3), random_ranking(3)
    rankings = [one(seen()) for _ in range(5)]
    assert rankings == [other(seen()) for _ in range(5)]
    assert len({tuple(ranking) for ranking in rankings}) > 1
    assert all(sorted(ranking) == sorted(GRAPH.names) for ranking in rankings)


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
