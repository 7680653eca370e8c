"""What a mean hides: results by what was true of each incident (`STRATA`).

One policy gains on silent degradation by dismissing everything, since some incidents are false
alarms; another stops blaming the edge, even when the edge is at fault. A mean score shows neither,
but strata do, each with its paired change from before to after training.

Rollouts have no column for the truth, which is sampled again from (task, split, index).
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from logtriage.world.call_graph import KINDS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SEVERITIES
from logtriage.world.topology import Topology

from .intervals import KEYS, Interval, matched, two_way_mean

TRUTH = ("real", "severity_true", "root_kind", "root_depth")
# A stratum with fewer incidents has no interval, and is never said to have fallen: a bootstrap of
# so few values is far too narrow.
FEWEST = 10


class Stratum(NamedTuple):
    """What to average, and over which incidents."""

    answer: str  # what is averaged, see `values_in`
    label: str  # in words; `{}` is the group
    real: bool | None  # True: real faults only; False: false alarms only; None: all incidents
    by: str = ""  # column of the truth by which incidents are grouped; empty for a single group
    better: int = 1  # 1 if more is better, -1 if less is, 0 if neither


STRATA = {
    "faults_detected": Stratum("root found", "roots found", real=True),
    "false_alarms_dismissed": Stratum("alarm dismissed", "false alarms dismissed", real=False),
    "faults_dismissed": Stratum("ignored", "real faults dismissed", real=True, better=-1),
    "root_by_kind": Stratum("root found", "{} roots found", real=True, by="root_kind"),
    "root_by_depth": Stratum("root found", "roots at depth {} found", real=True, by="root_depth"),
    "severity_by_class": Stratum("severity", "severity right at {}", None, by="severity_true"),
    "steps": Stratum("steps", "steps", real=None, better=0),
}


def label(stratum: str, group: str = "") -> str:
    """A stratum in words: `root_by_kind` and `edge` are "edge roots found"."""
    return STRATA[stratum].label.format(group)


def group_order(group: object) -> int:
    """Sort key of a group within its stratum: kinds and severities as listed, depths by number."""
    names = ["", *KINDS, *SEVERITIES]
    return names.index(group) if group in names else int(str(group))


def check_one_version(frames: Sequence[pd.DataFrame]) -> None:
    """`ValueError` for episodes of several versions of the benchmark, whose incidents differ."""
    versions = sorted({version for frame in frames for version in frame["benchmark"]})
    if len(versions) > 1:
        raise ValueError(
            f"results of the benchmark's versions {', '.join(versions)} are never put together; "
            "play all of them with one version"
        )


def with_truth(frame: pd.DataFrame, topology: Topology | None = None) -> pd.DataFrame:
    """Add the columns `TRUTH` to rollouts (on a custom call graph, if given): real (whether there
    was a fault), severity_true, root_kind and root_depth (calls below the nearest edge; both empty
    for false alarms). `ValueError` for another version of the benchmark, whose incidents differ.
    """
    if set(TRUTH) <= set(frame.columns):
        return frame
    others = set(frame["benchmark"]) - {BENCHMARK_VERSION}
    if others:
        raise ValueError(
            f"incidents of benchmark {', '.join(others)} are not known, only those of "
            f"{BENCHMARK_VERSION}; play them again"
        )
    incidents, rows = frame[KEYS].drop_duplicates(), []
    for task, split, index in incidents.itertuples(index=False, name=None):
        incident = sample_incident(task, split, int(index), topology)
        root, graph = incident.root, incident.topology
        where = (graph.service(root).kind, graph.depth[root]) if root else (None, None)
        rows.append((root is not None, incident.severity, *where))
    truth = pd.DataFrame(rows, columns=list(TRUTH), index=incidents.index)
    truth = truth.astype({"real": bool, "root_depth": "Int64"})
    return frame.merge(incidents.join(truth), on=KEYS, how="left").set_axis(frame.index)


def values_in(frame: pd.DataFrame, stratum: str) -> np.ndarray:
    """The value of each episode in a stratum: (episodes,), nan for episodes outside it. The frame
    must have the columns `TRUTH`.
    """
    answer, real = STRATA[stratum].answer, STRATA[stratum].real
    if answer == "root found":
        values = frame["root_cause"] == 1
    elif answer == "alarm dismissed":
        # For a false alarm, these parts are 1 if it was closed by `ignore` with nothing done.
        values = (frame[["root_cause", "remediation", "escalation"]] == 1).all(axis=1)
    elif answer == "ignored":
        values = frame["closed_by"] == "ignore"
    else:
        values = frame[answer]
    return np.where(real is None or frame["real"] == real, values.astype(float), np.nan)


def stratum_changes(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """How each stratum changed from the policy `base` to `trained` on the same incidents.

    Intervals are not widened for the number of strata, so about one in forty that did not change is
    said to have fallen. One too many costs a line; one too few would hide a real fall.

    Args:
        frames: one per training seed; seeds are resampled as incidents are.

    Returns:
        One row per task, stratum and group: incidents, base, trained, change, low, high (the paired
        95 % interval of the change; nan for fewer than `FEWEST` incidents), gained and fell:
        whether it got better, or worse, by more than that interval.

    Raises:
        ValueError: if incidents or versions of the benchmark differ.
    """
    names, rows = ("base", "trained"), []
    sides = [
        frame[frame["policy"] == name].assign(seed=seed)
        for seed, frame in enumerate(frames)
        for name in names
    ]
    check_one_version(sides)
    for side in sides:
        matched(sides[0], side)
    played = with_truth(pd.concat(sides, ignore_index=True))
    valued = {
        name: played.assign(
            value=values_in(played, name), group=played[stratum.by] if stratum.by else ""
        )
        for name, stratum in STRATA.items()
    }
    for task, (name, stratum) in product(played["task"].unique(), STRATA.items()):
        inside = valued[name]
        inside = inside[(inside["task"] == task) & inside["value"].notna()]
        for group, own in sorted(inside.groupby("group"), key=lambda pair: group_order(pair[0])):
            values = own.pivot(index=KEYS, columns=["policy", "seed"], values="value")
            old, new = (values[side].to_numpy().T for side in names)
            change = Interval(float((new - old).mean()), np.nan, np.nan)
            if len(values) >= FEWEST:
                change = two_way_mean([new - old])
            ends = stratum.better * change.low, stratum.better * change.high
            rows.append(
                {
                    "task": task,
                    "stratum": name,
                    "group": str(group),
                    "incidents": len(values),
                    "base": float(old.mean()),
                    "trained": float(new.mean()),
                    "change": change.mean,
                    "low": change.low,
                    "high": change.high,
                    "gained": min(ends) > 0.0,
                    "fell": max(ends) < 0.0,
                }
            )
    return pd.DataFrame(rows)


def named_once(changes: pd.DataFrame) -> pd.DataFrame:
    """Drop the depths that hold the same incidents as a kind: in the default call graph every edge
    is at depth 0, and every app at 1.
    """
    figures = [*changes.columns.drop(["stratum", "group"])]
    kinds, depths = (changes["stratum"] == f"root_by_{name}" for name in ("kind", "depth"))
    known = set(changes.loc[kinds, figures].itertuples(index=False, name=None))
    rows = changes[figures].itertuples(index=False, name=None)
    return changes[~(depths & np.array([row in known for row in rows], bool))]


def describe_falls(changes: pd.DataFrame) -> list[str]:
    """Describe the rows of `stratum_changes` that fell, each once, with its number of incidents:
    one text per task, as "single crash: edge roots found 0.57 → 0.22 (23)".
    """
    fallen = named_once(changes)
    return [
        f"{task.replace('_', ' ')}: "
        + ", ".join(
            f"{label(row.stratum, row.group)} {row.base:.2f} → {row.trained:.2f} ({row.incidents})"
            for row in rows.itertuples()
        )
        for task, rows in fallen[fallen["fell"]].groupby("task", sort=False)
    ]
