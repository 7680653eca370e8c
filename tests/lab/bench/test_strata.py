"""Strata: the truth of incidents, shares over some of them, and paired changes."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import SHOP

from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION
from triagelab.bench.intervals import mean_interval
from triagelab.bench.rollouts import rollout
from triagelab.bench.score_tables import detection_table
from triagelab.bench.strata import FEWEST, TRUTH, describe_falls, stratum_changes, with_truth


def frame(rows):
    """A rollout with its truth, from rows of (real, root kind, depth, and what was done): `found`
    the root, `ignored`, or `blamed` another.
    """
    table = []
    for index, (real, kind, depth, done) in enumerate(rows):
        right = done == ("found" if real else "ignored")
        table.append(
            {
                **{"task": "silent_degradation", "split": "test", "index": index, "policy": "p"},
                **dict.fromkeys(("root_cause", "remediation", "escalation"), float(right)),
                "score": float(right),
                "severity": float(not real),
                "steps": 3.0 if done == "ignored" else 6.0,
                "closed_by": "ignore" if done == "ignored" else "resolve",
                "benchmark": BENCHMARK_VERSION,
                **{"real": real, "severity_true": "P2" if real else "P3"},
                **{"root_kind": kind, "root_depth": depth},
            }
        )
    return pd.DataFrame(table).astype({"root_depth": "Int64"})


def faults(count, kind, depth, done):
    return [(True, kind, depth, done)] * count


def alarms(count, done):
    return [(False, None, None, done)] * count


def seed(base, trained):
    """Both sides in one frame, as a training seed has them."""
    return pd.concat([base.assign(policy="base"), trained.assign(policy="trained")])


def cell(table, stratum, group=""):
    """The one row of that stratum and group."""
    (row,) = table[(table.stratum == stratum) & (table.group == group)].itertuples()
    return row


# -- truth --------------------------------------------------------------------------------------


def test_the_truth_is_that_of_the_incident_on_the_graph_that_was_played():
    for task, split, graph in (
        ("silent_degradation", "test", None),
        ("cascading_failure", "unseen_topology", None),
        ("single_crash", "test", SHOP),
    ):
        opened = partial(Episode.open, topology=graph)
        played = rollout(make_policy("oracle"), [task], split, 20, open_episode=opened)
        twice = pd.concat([played, played.assign(policy="another")])
        frame = with_truth(twice, graph)
        assert list(frame.columns) == [*twice.columns, *TRUTH] and frame.index.equals(twice.index)
        for row in frame.to_dict("records"):
            incident = sample_incident(task, split, row["index"], graph)
            assert row["real"] == (incident.injection is not None)
            assert row["severity_true"] == incident.severity
            if row["real"]:
                topology, root = incident.topology, incident.root
                assert row["root_kind"] == topology.service(root).kind
                assert row["root_depth"] == topology.depth[root]
            else:
                assert pd.isna([row["root_kind"], row["root_depth"]]).all()
    with pytest.raises(ValueError, match=r"benchmark 1\.0 are not known, only those of"):
        with_truth(played.assign(benchmark="1.0"))


# -- shares -------------------------------------------------------------------------------------


def test_real_faults_and_false_alarms_are_counted_apart():
    # Shares of every stratum are those of the published summaries, see test_score_tables.
    rows = [*faults(12, "edge", 0, "found"), *faults(12, "app", 1, "ignored")]
    rows += [*alarms(15, "ignored"), *alarms(5, "blamed")]
    (cells,) = detection_table(frame(rows)).to_dict("records")
    assert cells["roots found"] == "0.50 of 24"
    assert cells["false alarms dismissed"] == "0.75 of 20"


# -- changes ------------------------------------------------------------------------------------


@pytest.fixture
def dismisses_faults():
    """Version 1.0's agent: it gains on false alarms what it loses on the faults it dismisses."""
    base = [*faults(20, "app", 1, "found"), *faults(20, "edge", 0, "blamed"), *alarms(60, "blamed")]
    trained = [
        *faults(10, "app", 1, "found"),
        *faults(10, "app", 1, "ignored"),
        *faults(20, "edge", 0, "ignored"),
        *alarms(60, "ignored"),
    ]
    return frame(base), frame(trained)


def test_a_mean_that_rises_hides_what_fell(dismisses_faults):
    base, trained = dismisses_faults
    table = stratum_changes([seed(base, trained)])
    detected = cell(table, "faults_detected")
    assert (detected.base, detected.trained, detected.incidents) == (0.5, 0.25, 40)
    gained = trained[trained.real]["root_cause"] - base[base.real]["root_cause"]
    assert (detected.change, detected.low, detected.high) == mean_interval(gained)
    assert detected.fell and detected.high < 0.0
    assert cell(table, "root_by_kind", "app").fell and not cell(table, "root_by_kind", "edge").fell
    alarmed = cell(table, "false_alarms_dismissed")
    assert alarmed.change == 1.0 and not alarmed.fell
    dismissed = cell(table, "faults_dismissed")  # it rose, and that is worse
    assert dismissed.change == 0.75 and dismissed.fell
    assert not cell(table, "steps").fell

    assert describe_falls(table) == [
        "silent degradation: roots found 0.50 → 0.25 (40), real faults dismissed 0.00 → "
        "0.75 (40), app roots found 1.00 → 0.50 (20)"
    ]


def test_a_change_is_paired_whatever_the_order_of_rows(dismisses_faults):
    base, trained = dismisses_faults
    shuffled = trained.sample(frac=1.0, random_state=3)
    tables = [stratum_changes([seed(base, order)]) for order in (trained, shuffled)]
    pd.testing.assert_frame_equal(*tables, check_like=True)
    with pytest.raises(ValueError, match="same incidents once each"):
        stratum_changes([seed(base, trained), seed(base, trained[1:])])
    with pytest.raises(ValueError, match=r"versions 1\.0, .* never put together"):
        stratum_changes([seed(base, trained.assign(benchmark="1.0"))])


def test_too_few_incidents_have_not_fallen():
    base = frame([*faults(FEWEST - 1, "edge", 0, "found"), *faults(FEWEST, "app", 1, "found")])
    table = stratum_changes([seed(base, base.assign(root_cause=0.0))])
    edge, app = (cell(table, "root_by_kind", kind) for kind in ("edge", "app"))
    assert edge.change == app.change == -1.0
    assert np.isnan([edge.low, edge.high]).all() and not edge.fell and app.fell
