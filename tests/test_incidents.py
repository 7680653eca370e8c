from collections import Counter

import pytest

from logtriage.incidents import (
    NOTICED_ERRORS,
    OUTAGE_ERRORS,
    SEVERITIES,
    SPLITS,
    TASKS,
    is_held_out,
    sample_incident,
    severity_of,
    user_impact,
)
from logtriage.topology import DEFAULT_TOPOLOGY

MANY = 200


def sample(task, split, count=MANY):
    return [sample_incident(task, split, index) for index in range(count)]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("cascade", "train", 0), "single_crash, cascading_failure, silent_degradation"),
        (("single_crash", "dev", 0), "train, test, unseen_faults"),
        (("single_crash", "train", -1), "index must be an integer >= 0, got -1"),
        (("single_crash", "train", 1.5), "got 1.5"),
        (("single_crash", "train", True), "got True"),
    ],
)
def test_bad_coordinates_are_answered_with_the_good_ones(arguments, told):
    with pytest.raises(ValueError, match=told):
        sample_incident(*arguments)


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


def test_severities_vary_where_they_can():
    assert set(Counter(i.severity for i in sample("single_crash", "test"))) == set(SEVERITIES)
    assert {"P1", "P2"} == set(Counter(i.severity for i in sample("cascading_failure", "test")))
    assert {"P2", "P3"} == set(Counter(i.severity for i in sample("silent_degradation", "test")))


def test_splits_are_what_they_say():
    for task in TASKS:
        train = {(i.root, i.injection.fault.name) for i in sample(task, "train", 600) if i.injection}
        for split in ("test", "unseen_wording"):
            for incident in sample(task, split):
                if incident.injection:  # no held-out pair leaks into the others
                    service = incident.topology.service(incident.root)
                    assert not is_held_out(service, incident.injection.fault)
        unseen = {(i.root, i.injection.fault.name) for i in sample(task, "unseen_faults") if i.injection}
        assert unseen and not unseen & train
        names = {name for i in sample(task, "unseen_topology", 50) for name in i.topology.names}
        assert not names & set(DEFAULT_TOPOLOGY.names)


def test_neighbouring_and_same_numbered_incidents_share_nothing():
    # `Random(seed + index)` would make neighbours overlap, and one stream for all splits would leak test into train.
    streams = {}
    for split in SPLITS:
        for index in range(50):
            values = tuple(sample_incident("single_crash", split, index).stream("telemetry").random() for _ in range(1))
            assert values not in streams, (split, index, streams.get(values))
            streams[values] = (split, index)


def test_cascading_roots_are_below_those_who_shout():
    for incident in sample("cascading_failure", "test"):
        assert incident.topology.depth[incident.root] >= 1
        callers = incident.topology.callers[incident.root]
        assert callers


def test_silent_degradation_stays_under_the_outage_threshold_and_cries_wolf():
    incidents = sample("silent_degradation", "test")
    assert all(i.severity != "P1" for i in incidents)
    share = sum(i.injection is None for i in incidents) / len(incidents)
    assert 0.15 < share < 0.35


def test_every_fault_and_service_occurs_in_train():
    for task in ("single_crash", "silent_degradation"):
        incidents = sample(task, "train", 1500)
        assert {i.root for i in incidents if i.root} == set(DEFAULT_TOPOLOGY.names)
        assert len({i.injection.fault.name for i in incidents if i.injection}) >= 14
