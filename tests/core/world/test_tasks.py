"""A task is checked when it is made: what it cannot mean is answered with the setting's name."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import (
    MAX_INDEX,
    SPLITS,
    TASKS,
    Task,
    check_index,
    check_split,
    check_task,
    check_tasks,
)

NAN = float("nan")
BAD = {
    "name": ("", "a/b"),
    "max_steps": (0, 5, -1, 201),
    "noise": (-0.1, 1.0, NAN),
    "lead": ((2, 1), (0, 2), (1, 999)),
    "intensity": ((2, -1), (0.5, 0.1), (0, 0), (0, 2), (NAN, 1), (0.1, NAN)),
    "ramp": ((2, 1), (0, 0), (1, 999)),
    "quiet": ((), (-1,), (999,)),
    "gaps": (-0.1, 1.0, NAN),
    "proof": (-1, NAN, float("inf")),
    "hint": (-1, NAN, float("inf")),
    "false_alarms": (-0.1, 1, NAN),
    "outage": (7, -0.1, NAN),
}


def test_every_setting_is_checked():
    assert {*BAD, "below_edge"} == set(Task.__dataclass_fields__)


@pytest.mark.parametrize(
    "setting, value", [(setting, value) for setting in BAD for value in BAD[setting]]
)
def test_a_setting_out_of_range_is_named_with_its_value_and_rule(setting, value):
    with pytest.raises(ValueError) as raised:
        replace(TASKS["single_crash"], **{setting: value})
    assert str(raised.value).startswith(f"{setting} must be ")
    assert str(raised.value).endswith(f"; got {value!r:.60}")


IMPOSSIBLE = {
    "outage=1.0": {"outage": 1.0, "intensity": (0.0, 0.01)},
    "outage=0.0": {"outage": 0.0, "intensity": (0.999, 1.0), "lead": (9, 9)},
    "below_edge=True": {"outage": None, "intensity": (0.0, 0.01)},
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_what_cannot_be_met_is_told_at_once(reason, split):
    began = time.process_time()
    with pytest.raises(match=f"^task cascading_failure .*{reason}"):
        for index in range(50):  # a share of 0 or 1 leaves an incident or two that can be met
            sample_incident(replace(TASKS["cascading_failure"], **IMPOSSIBLE[reason]), split, index)
    assert time.process_time() - began < 2.0


number = st.floats(0.0, 1.0)
ticks = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(lambda pair: tuple(sorted(pair)))
tasks = st.builds(
    replace,
    st.sampled_from(list(TASKS.values())),
    max_steps=st.integers(6, 30),
    noise=st.floats(0.0, 0.99),
    lead=ticks,
    intensity=st.tuples(number, st.floats(0.001, 1.0)).map(lambda pair: tuple(sorted(pair))),
    ramp=ticks,
    quiet=st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple),
    gaps=st.floats(0.0, 0.99),
    false_alarms=st.floats(0.0, 0.99),
    outage=st.none() | number,
    below_edge=st.booleans(),
)


@settings(deadline=None, max_examples=30)
@given(tasks, st.sampled_from(list(SPLITS)), st.integers(0, MAX_INDEX))
def test_any_valid_task_has_an_incident_or_says_which_setting_forbids_it(task, split, index):
    try:
        incident = sample_incident(task, split, index)
    except ValueError as error:
        assert task.name in str(error)
    else:
        assert incident == sample_incident(task, split, index)


def test_coordinates_are_checked_one_by_one():
    assert check_task("single_crash") is TASKS["single_crash"]
    own = replace(TASKS["single_crash"], noise=0.5)
    assert check_task(own) is own
    for bad in ("cascade", 7, None, ["single_crash"]):
        with pytest.raises(ValueError, match=r"unknown task .* single_crash, cascading_failure"):
            check_task(bad)
    for bad in ("dev", 7, None, ["train"]):
        with pytest.raises(ValueError, match=r"unknown split .* train, test, unseen_faults"):
            check_split(bad)
    for bad in (-1, 1.5, True, "3", None, MAX_INDEX + 1):
        with pytest.raises(ValueError, match=r"index must be an integer >= 0"):
            check_index(bad)
    check_index(MAX_INDEX)


def test_a_task_that_is_named_twice_is_one():
    assert check_tasks(["cascading_failure", "single_crash", "cascading_failure"]) == [
        "cascading_failure",
        "single_crash",
    ]
    assert check_tasks(["single_crash", "all"]) == list(TASKS)
