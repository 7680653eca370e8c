"""Rules where little is known. Whom each blames in the real cases is tested with the published
results, which are computed again.
"""

import pytest

from logtriage.play.observation import Observation
from logtriage.real.cases import load_case
from logtriage.real.observed import CallTime, gather
from logtriage.real.real_episode import call_graph
from logtriage.real.rules import RULES, unexplained
from logtriage.world.call_graph import CallGraph, Service


@pytest.mark.parametrize("name", RULES)
def test_every_rule_ranks_everybody_when_nothing_is_known(name):
    graph = call_graph(load_case("petshop", 0))
    assert sorted(RULES[name](gather(graph, []))) == sorted(graph.names)


def test_of_several_callers_the_one_in_the_middle_is_believed():
    waits = {("a", "c"): 2000.0, ("b", "c"): 10.0, ("e", "c"): 10.0}
    waits |= {(caller, "d"): 150.0 for caller in "abe"}
    calls = [CallTime(*call, wait, 10.0, 5.0, 5.0) for call, wait in waits.items()]
    callees = {"a": "cd", "b": "cd", "e": "cd", "c": "", "d": ""}
    services = (Service(name, "unknown", tuple(called)) for name, called in callees.items())
    graph = CallGraph(tuple(services))
    assert unexplained(gather(graph, [Observation(1, 20, calls=calls)]))[0] == "d"
