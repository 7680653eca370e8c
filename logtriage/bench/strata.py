"""What a mean hides: results by what was true of each incident.

A policy gains on silent degradation by dismissing everything, since some incidents are false
alarms; another stops blaming the edge, even where the edge is ill. Neither shows in a mean score.
Strata show it: faults detected and false alarms dismissed, roots by kind and by depth, severity by
class, each with a 95 % bootstrap interval, and, before against after, the paired change.

The truth of an incident is no column of a rollout: it is drawn again from (task, split, index).
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
from .crossed import crossed_mean
from .intervals import KEYS, Interval, matched
from .rollouts import scored

TRUTH = ("real", "severity_true", "root", "root_kind", "root_depth", "fault")
# Incidents from which on a stratum has an interval, and can be said to have fallen: a bootstrap of
# fewer values is too narrow by far.
FEWEST = 10

Frames: TypeAlias = pd.DataFrame | Sequence[pd.DataFrame]  # rollouts, of one or several seeds
Parts: TypeAlias = list[tuple[str, np.ndarray]]  # answers, and the incidents (a mask) of each


class Stratum(NamedTuple):
    """What is averaged over which incidents.

    Attributes:
        answer: a key of `_answers`.
        real: over real faults, over false alarms, or, for None, over all incidents.
        by: column of the truth of which each value is a group; empty for one group of all.
        better: 1 where more is better, -1 where less is, 0 where neither.
    """

    answer: str
    real: bool | None
    by: str = ""
    better: int = 1


STRATA = {
    "faults_detected": Stratum("root found", real=True),
    "false_alarms_dismissed": Stratum("alarm dismissed", real=False),
    "faults_dismissed": Stratum("closed by ignore", real=True, better=-1),
    "root_by_kind": Stratum("root found", real=True, by="root_kind"),
    "root_by_depth": Stratum("root found", real=True, by="root_depth"),
    "severity_by_class": Stratum("severity", real=None, by="severity_true"),
    "steps": Stratum("steps", real=None, better=0),
}
BALANCED = ("faults_detected", "false_alarms_dismissed")
LABELS = {
    "faults_detected": "real faults detected",
    "false_alarms_dismissed": "false alarms dismissed",
    "detection_balanced": "detected and dismissed, balanced",
    "faults_dismissed": "real faults dismissed",
    "root_by_kind": "{} roots found",
    "root_by_depth": "roots at depth {} found",
    "severity_by_class": "severity right at {}",
    "steps": "steps",
}


def label(stratum: str, group: str = "") -> str:
    """A stratum in words: `root_by_kind` and `edge` are "edge roots found"."""
    return LABELS[stratum].format(group)


def with_truth(frame: pd.DataFrame, topology: Topology | None = None) -> pd.DataFrame:
    """Rollouts with what was true of each incident; unchanged where they have it.

    Args:
        frame: rows of `rollouts.rollout`, of the tasks of the project.
        topology: the call graph of one's own on which they were played.

    Returns:
        The frame with the columns `TRUTH`: real (whether a fault was at work), severity_true, and
        root, root_kind, root_depth (hops below the nearest edge) and fault, which a false alarm
        lacks. Of two faults, it is the first.

    Raises:
        ValueError: for an unknown task, or a version of the benchmark but this one: the incidents
            of another were others.
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
    return (
        True,
        incident.severity,
        root,
        graph.service(root).kind,
        graph.depth[root],
        incident.injection.fault.name,
    )


def _answers(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """What is averaged in strata, by name, each (episodes,)."""
    silent = (rows[["root_cause", "remediation", "escalation"]] == 1).all(axis=1)
    return {
        "root found": (rows["root_cause"] == 1).to_numpy(float),
        # at a false alarm these parts are 1 where it was closed by `ignore` with nothing blamed,
        # fixed or paged
        "alarm dismissed": silent.to_numpy(float),
        "closed by ignore": (rows["closed_by"] == "ignore").to_numpy(float),
        "severity": rows["severity"].to_numpy(float),
        "steps": rows["steps"].to_numpy(float),
    }


def values_in(frame: pd.DataFrame, stratum: str) -> np.ndarray:
    """What each episode of a frame with truth (see `with_truth`) adds to a stratum, nan where it is
    not in it: (episodes,).
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
        if not stratum.by:
            if rows.any():
                yield name, "", [(stratum.answer, rows)]
        else:
            values = truth[stratum.by]
            for value in sorted(values[rows].unique(), key=group_order):
                yield (
                    name,
                    str(value),
                    [(stratum.answer, rows & values.isin([value]).to_numpy(bool))],
                )
        if name == BALANCED[-1] and real.any() and not real.all():
            faults, alarms = (STRATA[one].answer for one in BALANCED)
            yield "detection_balanced", "", [(faults, real), (alarms, ~real)]


def group_order(group: object) -> int:
    """Where a group stands among those of its stratum: kinds and classes as listed, depths by
    number.
    """
    names = ["", *KINDS, *SEVERITIES]
    return names.index(group) if group in names else int(str(group))


def _interval(parts: Sequence[np.ndarray]) -> Interval:
    """`crossed_mean`, without limits (nan) where a part has fewer than `FEWEST` incidents."""
    if min(values.shape[1] for values in parts) < FEWEST:
        return Interval(float(np.mean([values.mean() for values in parts])), np.nan, np.nan)
    return crossed_mean(parts)


def strata(frame: pd.DataFrame) -> pd.DataFrame:
    """The strata of rollouts, a row each: columns task, policy, stratum, group, episodes, mean,
    low, high.

    | stratum | share of | groups |
    |---|---|---|
    | faults_detected | real faults whose root was blamed first | |
    | false_alarms_dismissed | false alarms ignored, nothing blamed, fixed or paged | |
    | detection_balanced | the mean of these two, where a task has both | |
    | faults_dismissed | real faults closed by `ignore` | |
    | root_by_kind | real faults whose root was blamed first | kind of the root |
    | root_by_depth | likewise | hops from the nearest edge down to it |
    | severity_by_class | incidents whose severity was right | true severity |
    | steps | no share: mean steps of an episode | |

    Args:
        frame: rows of `rollouts.rollout`, `with_truth` or without; episodes of one policy and task
            are taken together, whatever their split. Those without a score are left out.

    Returns:
        Policies and tasks in order of appearance. Limits of a stratum of fewer than `FEWEST`
        episodes are nan.
    """
    rows = []
    for (task, policy), own in with_truth(scored(frame)).groupby(["task", "policy"], sort=False):
        answers = _answers(own)
        for stratum, group, parts in _cells(own):
            mean, low, high = _interval([answers[name][None, mask] for name, mask in parts])
            rows.append(
                {
                    "task": task,
                    "policy": policy,
                    "stratum": stratum,
                    "group": group,
                    "episodes": sum(int(mask.sum()) for _, mask in parts),
                    "mean": mean,
                    "low": low,
                    "high": high,
                }
            )
    return pd.DataFrame(rows)


def _by_seed(frames: Frames) -> list[pd.DataFrame]:
    """One frame a training seed."""
    return [frames] if isinstance(frames, pd.DataFrame) else list(frames)


def _paired(base: Frames, trained: Frames) -> tuple[pd.DataFrame, list[list[pd.DataFrame]]]:
    """The truth of the incidents, and the frames of base and trained, each a seed, all with the
    same incidents in the same order.

    Raises:
        ValueError: when they do not hold the same incidents of one version of the benchmark, once
            each, or not as many seeds.
    """
    sides = [_by_seed(base), _by_seed(trained)]
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

    Args:
        base, trained: rollouts of a policy before and after; lists of them, one a training seed,
            are taken together: incidents and seeds are resampled (`crossed.crossed_mean`).

    Intervals are not widened for the number of strata: of forty that do not change, one is said to
    have fallen by chance. To name one too many costs a line; to miss one, the truth.

    Returns:
        A row a stratum: columns task, stratum, group, incidents, base, trained, change, low, high
        (the paired 95 % interval of the change; nan for fewer than `FEWEST` incidents), and fell:
        whether it got worse by more than that interval. For faults dismissed, worse is more; steps
        never fall.

    Raises:
        ValueError: when the frames do not hold the same incidents of one version of the benchmark,
            once each, or not as many seeds.
    """
    truth, (before, after) = _paired(base, trained)
    rows = []
    for task in truth["task"].unique():
        own = (truth["task"] == task).to_numpy(bool)
        left, right = ([_answers(frame[own]) for frame in frames] for frames in (before, after))
        for stratum, group, parts in _cells(truth[own]):
            old, new = (
                [np.stack([seed[name][mask] for seed in side]) for name, mask in parts]
                for side in (left, right)
            )
            change = _interval([y - x for x, y in zip(old, new, strict=True)])
            better = STRATA[stratum].better if stratum in STRATA else 1
            worse = change.high < 0.0 if better > 0 else change.low > 0.0
            rows.append(
                {
                    "task": task,
                    "stratum": stratum,
                    "group": group,
                    "incidents": sum(int(mask.sum()) for _, mask in parts),
                    "base": float(np.mean([values.mean() for values in old])),
                    "trained": float(np.mean([values.mean() for values in new])),
                    "change": change.mean,
                    "low": change.low,
                    "high": change.high,
                    "fell": bool(better and worse),
                }
            )
    return pd.DataFrame(rows)


def named_once(changes: pd.DataFrame) -> pd.DataFrame:
    """Without the depths that hold the same incidents as a kind: in the default call graph every
    edge is at depth 0, and every app at 1.
    """
    figures = [*changes.columns.drop(["stratum", "group"])]
    kinds, depths = (changes["stratum"] == f"root_by_{name}" for name in ("kind", "depth"))
    told = set(changes.loc[kinds, figures].itertuples(index=False, name=None))
    rows = changes[figures].itertuples(index=False, name=None)
    return changes[~(depths & np.array([row in told for row in rows], bool))]


def gains(base: Frames, trained: Frames) -> dict[str, Interval]:
    """Task to the mean paired gain of the score, resampled as in `stratum_changes`; errors as
    there.
    """
    truth, sides = _paired(base, trained)
    left, right = (np.stack([frame["score"].to_numpy(float) for frame in side]) for side in sides)
    return {
        task: crossed_mean([(right - left)[:, (truth["task"] == task).to_numpy(bool)]])
        for task in truth["task"].unique()
    }


def hidden_falls(base: Frames, trained: Frames) -> pd.DataFrame:
    """The rows of `stratum_changes` that fell on a task whose mean score is told as a gain (its
    interval lies above 0), each named once; arguments and errors as there.
    """
    gained = [task for task, gain in gains(base, trained).items() if gain.low > 0.0]
    changes = named_once(stratum_changes(base, trained))
    return changes[changes["fell"] & changes["task"].isin(gained)].reset_index(drop=True)


def describe_falls(changes: pd.DataFrame) -> list[str]:
    """The rows of `stratum_changes` that fell, each once, in words, and with its incidents: a text
    a task, as "single crash: edge roots found 0.57 → 0.22 (23)".
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


def detection_table(frame: pd.DataFrame) -> pd.DataFrame:
    """What a policy did with faults and with false alarms, as text: a row a policy and task."""
    shown = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")
    table = strata(frame)
    rows = []
    for (policy, task), own in table.groupby(["policy", "task"], sort=False):
        found = own.set_index("stratum")
        cells = {
            label(name): f"{found.loc[name, 'mean']:.2f} of {found.loc[name, 'episodes']}"
            for name in shown
            if name in found.index
        }
        rows.append(
            {"policy": policy, "task": task, **{label(name): "-" for name in shown}, **cells}
        )
    return pd.DataFrame(rows)
