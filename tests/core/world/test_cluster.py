"""The causal claims of the simulator, one by one."""

import pytest

from logtriage.world.cluster import (
    Cluster,
    Injection,
    is_degraded,
    next_state,
    rest_state,
    untreated_states,
)
from logtriage.world.faults import FAULTS, faults_at
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY as SHOP

DB, APP, EDGE = (SHOP.position[name] for name in ("payment-db", "payment-service", "api-gateway"))
OTHER = SHOP.position["auth-service"]


def inject(name, service):
    return Injection(FAULTS[name], SHOP.position[service], 1.0, onset=1, ramp=1)


def test_rest_is_a_fixed_point():
    state, moved = next_state(SHOP, rest_state(SHOP), None, 1, SHOP.reach(5))
    assert not moved
    for now, before in zip(state, rest_state(SHOP), strict=True):
        assert now == pytest.approx(before, abs=1e-9)


def after(fault, service, ticks=10):
    """The state after so many ticks of a total fault."""
    return untreated_states(SHOP, inject(fault, service), ticks)[-1]


def test_trouble_climbs_a_hop_a_tick_and_does_not_spread_sideways():
    states = untreated_states(SHOP, inject("crash", "payment-db"), 10)
    assert [s.errors[DB] > 0.5 for s in states[:4]] == [False, True, True, True]
    assert [s.errors[APP] > 0.5 for s in states[:4]] == [False, False, True, True]
    assert [s.errors[EDGE] > 0.2 for s in states[:4]] == [False, False, False, True]
    assert states[-1].errors[OTHER] == 0.0


def test_load_descends_failures_are_retried_and_slow_callees_fill_pools():
    rest = rest_state(SHOP)
    assert after("overload", "payment-service").load[DB] > 2 * rest.load[DB]
    assert after("bad-deploy", "payment-service").load[APP] > 1.05 * rest.load[APP]
    assert after("lock-convoy", "payment-db").pool[APP] > 2 * rest.pool[APP]


def test_asynchronous_callees_do_not_hurt_users():
    last = after("crash", "email-queue")
    assert last.errors[EDGE] == 0.0 and last.errors[SHOP.position["notification-service"]] == 0.0


def test_every_fault_degrades_its_service_wherever_it_can_occur():
    for service in SHOP.services:
        for fault in faults_at(service):
            last = after(fault.name, service.name)
            assert is_degraded(SHOP, last, SHOP.position[service.name]), (fault.name, service.name)


@pytest.mark.parametrize("task", TASKS)
def test_services_out_of_reach_stay_exactly_at_rest_and_the_rest_is_the_full_computation(
    task, monkeypatch
):
    # The simulator computes only `reach(root)`; computing everything must give the same states.
    for index in range(40):
        incident = sample_incident(task, "unseen_topology" if index % 2 else "train", index)
        if incident.injection is None:
            continue
        topology = incident.topology
        monkeypatch.setattr(
            type(topology), "reach", lambda self, root: tuple(range(len(self.names)))
        )
        full = untreated_states(topology, incident.injection, len(incident.untreated) - 1)
        monkeypatch.undo()
        for state, other in zip(incident.untreated, full, strict=True):
            assert state.errors == pytest.approx(other.errors, abs=1e-6)
            assert state.latency == pytest.approx(other.latency, rel=2e-3)


def play(incident, actions, ticks=18):
    cluster = Cluster(incident.topology, incident.injection, incident.untreated, incident.arrival)
    for remedy, position in actions:
        cluster.remediate(remedy, position)
    for _ in range(ticks):
        cluster.advance()
    return cluster


def incidents():
    for index in range(30):
        for task in TASKS:
            for split in ("train", "unseen_topology"):  # deep random graphs heal, too
                incident = sample_incident(task, split, index)
                if incident.injection is not None:
                    yield incident


def test_the_right_remedy_heals_and_a_wrong_one_does_not():
    for incident in incidents():
        root = incident.injection.position
        healed = play(incident, [(incident.remedy, root)])
        rest = rest_state(incident.topology)
        assert healed.active is None
        assert healed.states[healed.tick].errors == pytest.approx(rest.errors, abs=5e-3)
        wrong = "rollback" if incident.remedy != "rollback" else "scale"
        same = play(incident, [(wrong, root)], ticks=5)
        assert same.active and same.states[same.tick] == incident.untreated[incident.arrival + 5]


def test_restarting_a_symptom_helps_for_a_moment_only():
    incident = sample_incident("cascading_failure", "test", 21)  # a crash of user-db, P1
    caller = incident.topology.position[incident.topology.callers[incident.root][0]]
    cluster = play(incident, [("restart", caller)], ticks=0)
    assert cluster.states[cluster.tick].errors[caller] == 0.0
    # The incident itself is not touched.
    assert incident.untreated[incident.arrival].errors[caller] > 0.02
    cluster.advance()
    assert cluster.states[cluster.tick].errors[caller] > 0.02 and cluster.active


def test_nothing_can_be_fixed_at_a_false_alarm():
    incidents = (sample_incident("silent_degradation", "train", index) for index in range(50))
    incident = next(incident for incident in incidents if incident.injection is None)
    cluster = play(incident, [("restart", 0), ("scale", 1)], ticks=12)
    assert cluster.states[cluster.tick] == rest_state(incident.topology)
