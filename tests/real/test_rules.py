"""Rules on toy clusters, and as a policy. What each ranks of the real cases is tested with their
results.
"""

import pytest

from logtriage.play.observation import Observation
from logtriage.real.observed import CallTime, Measure, gather
from logtriage.real.real_episode import RealEpisode
from logtriage.real.rules import RULES, RankingPolicy, unexplained, votes
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert


def cluster(**calls):
    return CallGraph(tuple(Service(name, "unknown", tuple(calls[name])) for name in calls))


GRAPH = cluster(web=("shop", "ads"), shop=("stock", "prices"), ads=(), stock=("prices",), prices=())
ALERTS = (Alert("web", "latency", 400.0),)


def measure(service, name, value, usual=100.0, wide=5.0):
    return Measure(service, name, "", (usual, usual, value), usual, usual - wide, usual + wide)


def seen(*measures, alerts=ALERTS, calls=None, graph=GRAPH):
    answer = Observation(1, 20, measures=list(measures), calls=calls)
    return gather(graph, [Observation(0, 20, alerts=list(alerts)), answer])


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
    p95 = [one._replace(name="p95") for one in SLOW if one.name == "latency"]
    for rule in ("worst_callee", "traversal"):
        errors = (Alert("web", "errors", 10.0),)
        assert RULES[rule](seen(*SLOW, *failing, alerts=errors))[0] == "ads"
        # Without alerts the walk begins where users enter.
        assert RULES[rule](seen(*p95, alerts=()))[0] == "stock"


@pytest.mark.parametrize("name", RULES)
def test_every_rule_ranks_everybody_when_nothing_is_known(name):
    assert sorted(RULES[name](seen(alerts=()))) == sorted(GRAPH.names)


def test_as_a_policy_it_asks_about_all_and_blames_three_in_order():
    given = []

    def rule(evidence):
        given.append(evidence)
        return sorted(evidence.graph.names)

    episode = RealEpisode.open("petshop", 0)
    RankingPolicy(rule, "by name").play([episode])
    assert episode.record.root_causes == sorted(episode.incident.topology.names)[:3]
    assert (episode.record.steps, episode.record.closed_by) == (5, "resolve")
    assert len(given) == 1 and len(given[0].measures) > 5  # the answer brought all metrics


# -- unexplained: suspect is who is so for what its callees do not explain ----------------------


def test_what_a_callee_explains_leaves_no_residual():
    slow = [measure(name, "latency", 400.0) for name in ("web", "shop", "stock")]
    found = votes(seen(*slow))["waiting"]
    assert found["stock"] > 0.9 and found["shop"] == found["web"] == 0.0


def test_residuals_are_counted_in_requests():
    # ads fails all of its two requests; stock one in twenty of a thousand, and the users feel that.
    share = {"web": 95.0, "shop": 95.0, "stock": 95.0, "ads": 0.0}
    rows = [measure(name, "available", value, wide=0.0) for name, value in share.items()]
    for name, rate in {"web": 1000.0, "shop": 1000.0, "stock": 1000.0, "ads": 2.0}.items():
        rows.append(measure(name, "requests", rate, rate, 1.0))
    assert unexplained(seen(*rows, alerts=(Alert("web", "errors", 1.0),)))[0] == "stock"
    # An alert of latency alone does not look at them.
    assert "failures" not in votes(seen(*rows))


def test_of_several_callers_the_one_in_the_middle_is_believed():
    waits = {("a", "c"): 400.0, ("b", "c"): 10.0, ("e", "c"): 10.0}
    waits |= {(caller, "d"): 150.0 for caller in "abe"}
    calls = [CallTime(*call, wait, 10.0, 5.0, 5.0) for call, wait in waits.items()]
    graph = cluster(a="cd", b="cd", e="cd", c="", d="")
    assert unexplained(seen(alerts=(), calls=calls, graph=graph))[0] == "d"


def test_noise_singles_nobody_out():
    kinds = ("latency", "cpu", "memory")
    noise = [measure(name, kind, 101.0) for name in GRAPH.names for kind in kinds]
    assert max(max(vote.values(), default=0.0) for vote in votes(seen(*noise)).values()) < 0.05
