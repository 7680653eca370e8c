"""Evaluations that survive: every episode is kept as it ends; whoever comes back plays the rest.

plan = Plan(["single_crash"], "test", episodes=200, attempts=4)
journal = Journal(Path("out.jsonl"), {"split": "test"}, resume=True)
found = evaluate([policy], plan, journal)
found.frame, found.unplayed, found.reason
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from tqdm import tqdm

from ..play.episode import Episode, OpenEpisode
from ..policies.policy import BATCH, Policy
from ..real.catalogue import last_incident
from ..real.real_episode import REAL
from ..world.tasks import check_index, check_split, check_tasks
from ..world.topology import Topology
from .audit import COLUMNS as AUDIT
from .audit import audited_row
from .episode_file import Journal, as_line
from .rollouts import COLUMNS, EXTRAS, Brake, Key, Result, rollout_each, rows_of

EPISODES = 200  # incidents of each simulated task, unless asked otherwise


class Plan(NamedTuple):
    """Which episodes are to be played.

    Attributes:
        tasks: names.
        split: of the incidents.
        episodes: incidents a task.
        first: the first one's index.
        attempts: at each incident.
    """

    tasks: Sequence[str]
    split: str = "test"
    episodes: int = EPISODES
    first: int = 0
    attempts: int = 1

    @property
    def indices(self) -> range:
        """Of the incidents of each task."""
        return range(self.first, self.first + self.episodes)

    @property
    def keys(self) -> list[Key]:
        """Every episode of a policy."""
        return [
            (task, index, attempt)
            for task in dict.fromkeys(self.tasks)
            for attempt in range(self.attempts)
            for index in self.indices
        ]


def make_plan(
    tasks: Sequence[str],
    split: str,
    episodes: int | None = None,
    first: int = 0,
    attempts: int = 1,
    topology: Topology | None = None,
) -> Plan:
    """A plan of incidents that there are.

    Args:
        tasks: names; `all` for the three simulated ones, `real` by itself.
        split, first, attempts: as of a `Plan`; of real incidents the split is their source.
        episodes: incidents a task; by default `EPISODES`, or all that are real.
        topology: a call graph of one's own.

    Raises:
        ValueError: for an unknown task or split, or incidents that there are not.
    """
    check_index(first)
    if REAL not in tasks:
        check_split(split, topology)
        return Plan(check_tasks(tasks), split, episodes or EPISODES, first, attempts)
    if set(tasks) != {REAL} or topology is not None:
        raise ValueError(
            "real incidents are scored by the root cause alone, and on call graphs of their own; "
            "leave out other tasks, and the topology"
        )
    last = last_incident(REAL, split)
    episodes = last + 1 - first if episodes is None else episodes
    if episodes < 1 or first + episodes - 1 > last:
        raise ValueError(
            f"{split} has the incidents 0 to {last}, and {max(1, episodes)} from {first} on were "
            "asked for; choose some of these"
        )
    return Plan([REAL], split, episodes, first, attempts)


class Evaluation(NamedTuple):
    """What an evaluation came to.

    Attributes:
        frame: a row an episode that was planned and played, now or before, with the columns
            `COLUMNS` and `EXTRAS`, and those of the audit if asked for.
        unplayed: how many were planned and never begun.
        reason: why; empty when there are none.
    """

    frame: pd.DataFrame
    unplayed: int
    reason: str


def evaluate(
    policies: Sequence[Policy],
    plan: Plan,
    journal: Journal | None = None,
    audited: bool = False,
    budget: int | None = None,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    progress: bool = True,
) -> Evaluation:
    """Play what is planned and not in the journal, and write every episode there as it ends.

    Args:
        policies: each plays the whole plan.
        plan: which episodes.
        journal: where they are kept; None to keep none.
        audited: whether rows hold the audit, too.
        budget: tokens that all policies together may spend, with those that the journal tells of;
            once they are spent no further episode is begun. None for no bound.
        batch: most episodes that are open at once.
        open_episode: as in `rollouts.rollout`.
        progress: whether to show bars.

    Raises:
        ValueError: for two policies of one name, before anything is played.
    """
    before = {} if journal is None else journal.rows
    spent = 0 if journal is None else journal.spent
    names = [policy.name for policy in policies]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"two policies are called {', '.join(twice)}, and rows know them by their names; "
            "name each once, or evaluate them one by one"
        )
    rows, unplayed, reason = [], 0, ""
    for policy in policies:
        name, keys = policy.name, set(plan.keys)
        skip = {key for key in keys if (name, key) in before}
        found = [before[name, key] for key in skip]
        brake = Brake(budget, spent)
        played = rollout_each(
            policy,
            list(dict.fromkeys(plan.tasks)),
            plan.split,
            plan.indices,
            plan.attempts,
            batch,
            open_episode,
            skip,
            brake,
        )
        with tqdm(
            desc=name, total=len(keys), initial=len(skip), leave=False, disable=not progress
        ) as bar:
            for result in played:
                if audited:
                    result = result._replace(row=audited_row(result))
                found.append(_kept(result, journal))
                errors = sum(bool(row["error"]) for row in found)
                bar.set_postfix({"errors": errors} if errors else {}, refresh=False)
                bar.update()
        spent, left = brake.spent, len(keys) - len(found)
        unplayed, reason = unplayed + left, brake.reason if left else reason
        rows += [rows_of(found, plan.tasks, (*COLUMNS, *EXTRAS, *(AUDIT if audited else ())))]
    return Evaluation(pd.concat(rows, ignore_index=True), unplayed, reason)


def _kept(result: Result, journal: Journal | None) -> dict[str, Any]:
    """A result's row as it comes back from disk, and so the same whether it was played before."""
    return as_line(result)["row"] if journal is None else journal.add(result)
