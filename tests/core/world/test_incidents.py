from functools import cache

import pytest

from logtriage.world.call_graph import TEAMS
from logtriage.world.cluster import (
    NOTICED_ERRORS,
    OUTAGE_ERRORS,
    Injection,
    is_degraded,
    severity_of,
    untreated_states,
    user_impact,
)
from logtriage.world.faults import FAULTS, REMEDIES, faults_at
from logtriage.world.incidents import candidate_pairs, is_held_out, sample_incident
from logtriage.world.tasks import SEVERITIES, SPLITS, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY


def test_a_remedy_does_not_give_the_team_away():
    for remedy in REMEDIES:
        teams = {
            fault.owner_at(service)
            for fault in FAULTS.values()
            if fault.remedy == remedy
            for service in DEFAULT_TOPOLOGY.services
            if fault.can_occur_at(service)
        }
        assert len(teams) >= 2 and teams <= set(TEAMS), remedy
    # Nor a kind of service the fault.
    assert all(len(faults_at(service)) >= 3 for service in DEFAULT_TOPOLOGY.services)


@cache
def sample(task, split, count=200):
    return [sample_incident(task, split, index) for index in range(count)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_severity_is_what_the_untreated_world_does_to_users(task, split):
    for incident in sample(task, split, 60):
        errors, slowdown = user_impact(incident.topology, incident.untreated)
        if incident.injection is None:
            assert (incident.severity, errors) == ("P3", 0.0)
            continue
        assert incident.severity == severity_of(errors, slowdown)
        assert not OUTAGE_ERRORS[0] < errors <= OUTAGE_ERRORS[1]  # too near to call, drawn again
        assert incident.severity != "P3" or errors <= NOTICED_ERRORS[0]


def test_severities_vary_where_they_can_and_some_alarms_are_false():
    severities = {task: {i.severity for i in sample(task, "test")} for task in TASKS}
    assert list(severities.values()) == [set(SEVERITIES), {"P1", "P2"}, {"P2", "P3"}]
    false = sum(i.injection is None for i in sample("silent_degradation", "test"))
    assert 0.15 < false / 200 < 0.35


@pytest.mark.parametrize("task", TASKS)
def test_splits_are_what_they_say(task):
    for split in ("train", "test", "unseen_wording", "unseen_faults"):
        for incident in sample(task, split):
            if incident.injection:  # no held-out pair leaks into the others
                service = incident.topology.service(incident.root)
                held_out = is_held_out(service, incident.injection.fault)
                assert held_out == (split == "unseen_faults")
    names = {name for i in sample(task, "unseen_topology", 50) for name in i.topology.names}
    assert not names & set(DEFAULT_TOPOLOGY.names)


def test_neighbouring_and_same_numbered_incidents_share_nothing():
    # `Random(seed + index)` would make neighbours overlap, and one stream for all splits would leak
    # test into train.
    drawn = [
        sample_incident("single_crash", split, index).stream("telemetry").random()
        for split in SPLITS
        for index in range(50)
    ]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("split", SPLITS)
def test_cascading_roots_are_below_those_who_are_loud(split):
    for incident in sample("cascading_failure", split):
        topology, state = incident.topology, incident.untreated[incident.arrival]
        waiting = [i for i, caller in enumerate(topology.services) if incident.root in caller.calls]
        assert any(is_degraded(topology, state, i) for i in waiting), incident


def is_always_an_outage(task, position, fault):
    """Whether the task's mildest form of the fault is a P1 already."""
    injection = Injection(fault, position, task.intensity[0], onset=1, ramp=task.ramp[1])
    states = untreated_states(DEFAULT_TOPOLOGY, injection, task.lead[0] + task.max_steps)
    return severity_of(*user_impact(DEFAULT_TOPOLOGY, states)) == "P1"


@pytest.mark.parametrize("name", TASKS)
def test_every_pair_of_service_and_fault_that_a_task_allows_occurs_in_train(name):
    task = TASKS[name]
    allowed = {
        (DEFAULT_TOPOLOGY.names[position], fault.name)
        for position, faults in candidate_pairs(DEFAULT_TOPOLOGY, task.below_edge, "train").items()
        for fault in faults
        if task.outage != 0.0 or not is_always_an_outage(task, position, fault)
    }
    drawn = {(i.root, i.injection.fault.name) for i in sample(name, "train", 1200) if i.injection}
    assert drawn <= allowed
    missing = sorted(allowed - drawn)
    assert not missing, f"{missing} never occur: a fault too weak (or too strong) to be noticed?"
