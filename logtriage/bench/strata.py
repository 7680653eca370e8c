"""What a mean hides: results by what was true of each incident.

A policy gains on silent degradation by dismissing everything, since some incidents are false
alarms; another stops blaming the edge, even where the edge is at fault. Neither shows in a mean
score. Strata show it: faults detected and false alarms dismissed, roots by kind and by depth,
severity by class, each with its 95 % interval, and the paired change from before to after training.

| stratum | mean of | groups |
|---|---|---|
| faults_detected | real faults whose root was blamed first | |
| false_alarms_dismissed | false alarms ignored, nothing blamed, remediated or paged | |
| detection_balanced | the mean of these two, where a task has both | |
| faults_dismissed | real faults closed by `ignore` | |
| root_by_kind | real faults whose root was blamed first | kind of the root |
| root_by_depth | the same | calls from the nearest edge down to it |
| severity_by_class | incidents whose severity was right | true severity |
| steps | steps of an episode (no share) | |

The truth of an incident is no column of a rollout: it is sampled again from (task, split, index).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ..world.call_graph import KINDS
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, SEVERITIES
from ..world.topology import Topology
from .intervals import KEYS, Interval, matched, two_way_mean
from .rollouts import scored

TRUTH = ("real", "severity_true", "root", "root_kind", "root_depth", "fault")
# A stratum of fewer incidents has no interval, and is never said to have fallen: a bootstrap of so
# few values is far too narrow.
FEWEST = 10

Frames: TypeAlias = pd.DataFrame | Sequence[pd.DataFrame]  # rollouts, of one or several seeds
Parts: TypeAlias = list[tuple[str, np.ndarray]]  # answers, and the incidents (a mask) of each


class Stratum(NamedTuple):
    """What is averaged over which incidents.

    Attributes:
        answer: a key of `_answers`.
        label: in words; `{}` is the group.
        real: over real faults, over false alarms, or, for None, over all incidents.
        by: column of the truth of which each value is a group; empty for one group of all.
        better: 1 where more is better, -1 where less is, 0 where neither.
    """

    answer: str
    label: str
    real: bool | None
    by: str = ""
    better: int = 1


STRATA = {
    "faults_detected": Stratum("root found", "real faults detected", real=True),
    "false_alarms_dismissed": Stratum("alarm dismissed", "false alarms dismissed", real=False),
    "detection_balanced": Stratum("", "detected and dismissed, balanced", real=None),
    "faults_dismissed": Stratum("ignored", "real faults dismissed", real=True, better=-1),
    "root_by_kind": Stratum("root found", "{} roots found", real=True, by="root_kind"),
    "root_by_depth": Stratum("root found", "roots at depth {} found", real=True, by="root_depth"),
    "severity_by_class": Stratum("severity", "severity right at {}", None, by="severity_true"),
    "steps": Stratum("steps", "steps", real=None, better=0),
}


def label(stratum: str, group: str = "") -> str:
    """A stratum in words: `root_by_kind` and `edge` are "edge roots found"."""
    return STRATA[stratum].label.format(group)


def with_truth(frame: pd.DataFrame, topology: Topology | None = None) -> pd.DataFrame:
    """Rollouts with what was true of each incident; unchanged where they have it.

    Args:
        frame: rows of `rollouts.rollout`.
        topology: the custom call graph on which they were played.

    Returns:
        The frame with the columns `TRUTH`: real (whether there was a fault), severity_true, and
        root, root_kind, root_depth (calls below the nearest edge) and fault, which a false alarm
        lacks.

    Raises:
        ValueError: for an unknown task, or another version of the benchmark, whose incidents
            were others.
    """
    if set(TRUTH) <= set(frame.columns):
        return frame
    coordinates = [*KEYS, "benchmark"]
    incidents = frame[coordinates].drop_duplicates()
    rows = [
        _truth(task, split, index, benchmark, topology)
        for task, split, index, benchmark in incidents.itertuples(index=False, name=None)
    ]
    truth = pd.DataFrame(rows, columns=list(TRUTH), index=incidents.index)
    truth = truth.astype({"real": bool, "root_depth": "Int64"})
    joined = frame.merge(pd.concat([incidents, truth], axis=1), on=coordinates, how="left")
    return joined.set_axis(frame.index)


def _truth(
    task: str, split: str, index: int, benchmark: str, topology: Topology | None
) -> tuple[object, ...]:
    """The values of `TRUTH` for one incident."""
    if benchmark != BENCHMARK_VERSION:
        raise ValueError(
            f"incidents of benchmark {benchmark} are not known, only those of {BENCHMARK_VERSION}; "
            "play them again"
        )
    incident = sample_incident(task, split, int(index), topology)
    if incident.injection is None or incident.root is None:
        return False, incident.severity, None, None, None, None
    root, graph = incident.root, incident.topology
    kind, depth = graph.service(root).kind, graph.depth[root]
    return True, incident.severity, root, kind, depth, incident.injection.fault.name


def _answers(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """What is averaged in strata, by name, each (episodes,)."""
    # At a false alarm these parts are 1 where it was closed by `ignore` with nothing done.
    nothing_done = (rows[["root_cause", "remediation", "escalation"]] == 1).all(axis=1)
    return {
        "root found": (rows["root_cause"] == 1).to_numpy(float),
        "alarm dismissed": nothing_done.to_numpy(float),
        "ignored": (rows["closed_by"] == "ignore").to_numpy(float),
        "severity": rows["severity"].to_numpy(float),
        "steps": rows["steps"].to_numpy(float),
    }


def values_in(frame: pd.DataFrame, stratum: str) -> np.ndarray:
    """What each episode of a frame with truth adds to a stratum without groups: (episodes,), nan
    for episodes outside it.
    """
    rule = STRATA[stratum]
    within = np.full(len(frame), True) if rule.real is None else frame["real"] == rule.real
    return np.where(within, _answers(frame)[rule.answer], np.nan)


def _cells(truth: pd.DataFrame) -> Iterator[tuple[str, str, Parts]]:
    """Each stratum and group that occurs in the incidents (rows with truth) of one task, with the
    parts over which it is a mean; only the balanced mean has two.
    """
    real = truth["real"].to_numpy(bool)
    for name, stratum in STRATA.items():
        rows = np.full(len(truth), True) if stratum.real is None else real == stratum.real
        if name == "detection_balanced":
            if real.any() and not real.all():
                yield name, "", [("root found", real), ("alarm dismissed", ~real)]
        elif not stratum.by:
            if rows.any():
                yield name, "", [(stratum.answer, rows)]
        else:
            values = truth[stratum.by]
            for value in sorted(values[rows].unique(), key=group_order):
                within = rows & values.isin([value]).to_numpy(bool)
                yield name, str(value), [(stratum.answer, within)]


def group_order(group: object) -> int:
    """Where a group is in its stratum: kinds and classes as listed, depths by number."""
    names = ["", *KINDS, *SEVERITIES]
    return names.index(group) if group in names else int(str(group))


def _interval(parts: Sequence[np.ndarray]) -> Interval:
    """`two_way_mean`, without limits (nan) where a part has fewer than `FEWEST` incidents."""
    if min(values.shape[1] for values in parts) < FEWEST:
        return Interval(float(np.mean([values.mean() for values in parts])), np.nan, np.nan)
    return two_way_mean(parts)


def _incidents(parts: Parts) -> int:
    return sum(int(mask.sum()) for _, mask in parts)


def strata(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task, policy, stratum and group: episodes, mean, low, high.

    Args:
        frame: rows of `rollouts.rollout`; splits are taken together, and episodes without a score
            are left out.
    """
    rows = []
    for (task, policy), own in with_truth(scored(frame)).groupby(["task", "policy"], sort=False):
        answers = _answers(own)
        for stratum, group, parts in _cells(own):
            found = _interval([answers[name][None, mask] for name, mask in parts])
            rows.append((task, policy, stratum, group, _incidents(parts), *found))
    columns = ["task", "policy", "stratum", "group", "episodes", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _paired(base: Frames, trained: Frames) -> tuple[pd.DataFrame, list[list[pd.DataFrame]]]:
    """The truth of the incidents, and the frames of base and trained, one per seed, all with the
    same incidents in the same order; errors as `stratum_changes`.
    """
    sides = [[one] if isinstance(one, pd.DataFrame) else list(one) for one in (base, trained)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError(
            f"base and trained must be of the same seeds, got {len(sides[0])} and {len(sides[1])}"
        )
    first = sides[0][0]
    versions = {version for side in sides for frame in side for version in frame["benchmark"]}
    if len(versions) > 1:
        raise ValueError(
            f"benchmark {' and '.join(sorted(versions))} do not compare; play one of them again"
        )
    for frame in [*sides[0], *sides[1]]:
        matched(first, frame)
    truth = with_truth(first)
    ordered = [
        [truth[KEYS].merge(frame, on=KEYS, how="left", validate="1:1") for frame in side]
        for side in sides
    ]
    return truth.reset_index(drop=True), ordered


def stratum_changes(base: Frames, trained: Frames) -> pd.DataFrame:
    """How each stratum changed from base to trained on the same incidents.

    Intervals are not widened for the number of strata: of forty that do not change, one is said to
    have fallen by chance. Naming one too many costs a line; missing one costs the truth.

    Args:
        base, trained: rollouts of a policy before and after training, or lists with one per
            training seed: then incidents and seeds are both resampled.

    Returns:
        One row per task, stratum and group: incidents, base, trained, change, low, high (the paired
        95 % interval of the change; nan for fewer than `FEWEST` incidents), and fell: whether it
        got worse by more than that interval.

    Raises:
        ValueError: when the frames do not hold the same incidents of one version of the benchmark,
            once each, or not as many seeds.
    """
    truth, sides = _paired(base, trained)
    rows = []
    for task in truth["task"].unique():
        own = (truth["task"] == task).to_numpy(bool)
        answers = [[_answers(frame[own]) for frame in frames] for frames in sides]
        for stratum, group, parts in _cells(truth[own]):
            old, new = (
                [np.stack([seed[name][mask] for seed in side]) for name, mask in parts]
                for side in answers
            )
            change = _interval([y - x for x, y in zip(old, new, strict=True)])
            better = STRATA[stratum].better
            rows.append(
                {
                    "task": task,
                    "stratum": stratum,
                    "group": group,
                    "incidents": _incidents(parts),
                    "base": float(np.mean([values.mean() for values in old])),
                    "trained": float(np.mean([values.mean() for values in new])),
                    "change": change.mean,
                    "low": change.low,
                    "high": change.high,
                    "fell": better * change.low < 0.0 and better * change.high < 0.0,
                }
            )
    return pd.DataFrame(rows)


def named_once(changes: pd.DataFrame) -> pd.DataFrame:
    """Without the depths that hold the same incidents as a kind: in the default call graph every
    edge is at depth 0, and every app at 1.
    """
    figures = [*changes.columns.drop(["stratum", "group"])]
    kinds, depths = (changes["stratum"] == f"root_by_{name}" for name in ("kind", "depth"))
    known = set(changes.loc[kinds, figures].itertuples(index=False, name=None))
    rows = changes[figures].itertuples(index=False, name=None)
    return changes[~(depths & np.array([row in known for row in rows], bool))]


def gains(base: Frames, trained: Frames) -> dict[str, Interval]:
    """Task to the mean paired gain of the score; arguments and errors as `stratum_changes`."""
    truth, sides = _paired(base, trained)
    left, right = (np.stack([frame["score"].to_numpy(float) for frame in side]) for side in sides)
    return {
        task: two_way_mean([(right - left)[:, (truth["task"] == task).to_numpy(bool)]])
        for task in truth["task"].unique()
    }


def describe_falls(changes: pd.DataFrame) -> list[str]:
    """The rows of `stratum_changes` that fell, each once, in words with its incidents: one text
    per task, as "single crash: edge roots found 0.57 → 0.22 (23)".
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
