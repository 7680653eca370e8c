"""Rules where little is known, and as a policy. Whom each blames in the real cases is tested with
the published results, which are computed again.
"""

import pytest

from logtriage.play.observation import CallTime, Measure, Observation
from logtriage.world.call_graph import CallGraph, Service
from logtriage.world.telemetry import Alert
from triagelab.real.evidence import gather, z_score
from triagelab.real.real_episode import RealEpisode
from triagelab.real.rules import RULES, unexplained, votes
from triagelab.realistic.production_policies import RankingPolicy


def cluster(**calls):
    return CallGraph(tuple(Service(name, "unknown", tuple(calls[name])) for name in calls))


GRAPH = cluster(web=("shop", "ads"), shop=("stock", "prices"), ads=(), stock=("prices",), prices=())
ALERTS = (Alert("web", "latency", 400.0),)


def measure(service, name, value, usual=100.0, wide=5.0):
    return Measure(service, name, "", (usual, usual, value), usual, usual - wide, usual + wide)


def seen(*measures, alerts=ALERTS, calls=None, graph=GRAPH):
    answer = Observation(1, 20, measures=list(measures), calls=calls)
    return gather(graph, [Observation(0, 20, alerts=list(alerts)), answer])


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


def test_suspect_is_who_is_slow_for_what_its_callees_do_not_explain():
    slow = [measure(name, "latency", 400.0) for name in ("web", "shop", "stock")]
    vote = votes(seen(*slow))["waiting"]
    assert vote["stock"] > 0.9 and vote["shop"] == vote["web"] == 0.0
    kinds = ("latency", "cpu", "memory")  # noise singles nobody out
    noise = [measure(name, kind, 101.0) for name in GRAPH.names for kind in kinds]
    assert max(max(vote.values(), default=0.0) for vote in votes(seen(*noise)).values()) < 0.05
    # Of several callers the one in the middle is believed.
    waits = {("a", "c"): 2000.0, ("b", "c"): 10.0, ("e", "c"): 10.0}
    waits |= {(caller, "d"): 150.0 for caller in "abe"}
    calls = [CallTime(*call, wait, 10.0, 5.0, 5.0) for call, wait in waits.items()]
    graph = cluster(a="cd", b="cd", e="cd", c="", d="")
    assert unexplained(seen(alerts=(), calls=calls, graph=graph))[0] == "d"


def test_the_later_half_of_the_window_counts():
    # The alarm lies in the middle: an anomaly before it is not the incident.
    measure = Measure("web", "cpu", "%", (90.0, 10.0, 12.0, None, 4.0), usual=10.0)
    assert z_score(measure) * measure.sigma == pytest.approx(-6.0)
    assert z_score(measure._replace(values=(90.0, None, None))) == 0.0
    assert z_score(measure._replace(usual=None)) == 0.0
