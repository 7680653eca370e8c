"""Every policy plays on a call graph of one's own as it does on the default."""

from functools import partial

import pytest
from helpers import SHOP

from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.world.call_graph import Service
from logtriage.world.tasks import TASKS
from logtriage.world.topology import Topology
from triagelab.bench.registry import POLICIES
from triagelab.bench.rollouts import Plan, rollout_each
from triagelab.reference import prior
from triagelab.reference.belief import BeliefPolicy

SMALL = Topology((Service("web", "edge", calls=("db",)), Service("db", "database")))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_plays_on_it(name):
    plan, opened = Plan(list(TASKS), "unseen_faults", 4), partial(Episode.open, topology=SHOP)
    results = list(rollout_each(make_policy(name), plan, open_episode=opened))
    assert len(results) == 12
    for row, episode, _ in results:
        assert row["score"] == 1.0 if name == "oracle" else 0.0 <= row["score"] <= 1.0
        if name != "random":  # an unknown service would be answered, and named to nobody
            assert set(episode.record.root_causes) <= set(SHOP.names)
            assert {service for _, service in episode.record.remediations} <= set(SHOP.names)


def test_the_prior_of_a_graph_is_built_once():
    prior.of_recent.cache_clear()
    policy = BeliefPolicy()
    for topology in (SMALL, Topology(SMALL.services), SMALL):  # equal is enough: it may be a copy
        policy.play([Episode.open("single_crash", "test", i, topology) for i in range(2)])
    assert prior.of_recent.cache_info().misses == 1
    # A random graph never comes again: its prior would only fill the memory.
    policy.play([Episode.open("single_crash", "unseen_topology", i) for i in range(2)])
    assert prior.of_recent.cache_info().misses == 1
    prior.of_recent.cache_clear()
