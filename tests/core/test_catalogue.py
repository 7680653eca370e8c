"""Incidents by their coordinates: what a suite has, and why."""

from collections import defaultdict

import pytest

from logtriage.catalogue import SUITES, suite_places
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS


def chosen(task, count=10, among=200):
    """The lowest indices of each depth of the root, and of false alarms, each as often as its
    share of `among` incidents says; the largest remainders are rounded up.
    """
    groups = defaultdict(list)
    for index in range(among):
        incident = sample_incident(task, "test", index)
        root = incident.root
        groups[-1 if root is None else incident.topology.depth[root]].append(index)
    share = {group: count * len(own) / among for group, own in groups.items()}
    taken = {group: int(part) for group, part in share.items()}
    left = count - sum(taken.values())
    for group in sorted(share, key=lambda group: taken[group] - share[group])[:left]:
        taken[group] += 1
    return sorted(index for group, own in groups.items() for index in own[: taken[group]])


@pytest.mark.parametrize("task", TASKS)
def test_lite_is_chosen_by_a_rule_that_knows_no_result(task):
    assert [*SUITES["lite"][task]] == chosen(task)


def test_the_places_of_a_suite_take_turns():
    places = suite_places("lite")
    assert len({*places}) == 30 and [task for task, _ in places] == [*TASKS] * 10
    with pytest.raises(ValueError, match="unknown suite 'light'; choose lite"):
        suite_places("light")
