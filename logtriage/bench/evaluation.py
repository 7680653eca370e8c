"""Evaluations that survive: every episode is kept as it ends, and the same command plays the rest.

plan = Plan(["single_crash"], "test", episodes=200, attempts=4)
with Journal(Path("out.jsonl"), {"split": "test"}) as journal:
    found = evaluate([scripted("trace")], plan, journal)
print("\\n".join(report(found.frame, attempts=4)))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any, NamedTuple

import pandas as pd
from tqdm import tqdm

from ..logs.lines import visible
from ..play.episode import Episode, OpenEpisode
from ..policies.policy import BATCH, Policy
from ..real.catalogue import last_incident
from ..real.real_episode import REAL
from ..world.tasks import check_index, check_split, check_tasks
from ..world.topology import Topology
from .audit import audit_table
from .episode_log import Journal, key_of
from .intervals import KEYS, mean_interval
from .registry import Player
from .rollouts import EPISODES, Judge, Key, Plan, Result, frame_of, rollout_each, scored
from .score_tables import detection_table, score_table

MOST_ERRORS = 5  # kinds of errors that are shown


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
        split: of real incidents their source.
        episodes: incidents of each task; by default `EPISODES`, or all that are real.
        topology: a custom call graph.

    Raises:
        ValueError: for an unknown task or split, or incidents that there are not.
    """
    check_index(first)
    if REAL not in tasks:
        check_split(split, topology)
        names = list(dict.fromkeys(check_tasks(tasks)))
        return Plan(names, split, episodes or EPISODES, first, attempts)
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
        frame: one row per episode that was planned and played, now or before, with the columns
            `rollouts.COLUMNS`, and those of the audit if asked for.
        unplayed: how many were planned and never begun.
        reason: why.
    """

    frame: pd.DataFrame
    unplayed: int
    reason: str


def evaluate(
    players: Sequence[Player],
    plan: Plan,
    journal: Journal | None = None,
    judge: Judge | None = None,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    progress: bool = True,
) -> Evaluation:
    """Play what is planned and not in the journal, and write every episode there as it ends.

    Args:
        players: each plays the whole plan; one that has played all of it is not made.
        judge: adds columns to each row, see `audit.judge_result`.
        batch: most episodes that are open at once; halved where a GPU's memory does not suffice.
        open_episode: as in `rollouts.rollout_each`.
        progress: whether to show bars.

    Raises:
        ValueError: for two players of one name, or one that cannot be had or cannot play this.
    """
    twice = [name for name, count in Counter(one.name for one in players).items() if count > 1]
    if twice:
        raise ValueError(f"two policies are called {twice[0]}; name each once")
    keys, before = plan.keys, {} if journal is None else journal.rows
    found = {
        one.name: {key: before[one.name, key] for key in keys if (one.name, key) in before}
        for one in players
    }
    policies = [  # all of them before anything is played: one may not be there
        one.make(len(found[one.name])) for one in players if len(found[one.name]) < len(keys)
    ]
    unplayed, reason = 0, ""
    for policy in policies:
        rows = found[policy.name]
        with tqdm(
            desc=policy.name, total=len(keys), initial=len(rows), leave=False, disable=not progress
        ) as bar:
            try:
                for result in _play(policy, plan, rows, batch, open_episode):
                    for name, value in judge(result).items() if judge else ():
                        result.row[name] = None if value != value else value  # JSON has no nan
                    if journal is not None:
                        journal.add(result)
                    rows[key_of(result.row)[1]] = result.row
                    bar.update()
            except ConnectionError as error:
                reason = str(error)
        unplayed += len(keys) - len(rows)
    frames = [frame_of(rows.values(), plan.names) for rows in found.values()]
    return Evaluation(pd.concat(frames, ignore_index=True), unplayed, reason)


def _play(
    policy: Policy, plan: Plan, rows: dict[Key, Any], batch: int, open_episode: OpenEpisode
) -> Iterator[Result]:
    """The episodes of the plan that `rows`, which the caller adds to, does not hold."""
    while True:
        try:
            yield from rollout_each(policy, plan, batch, open_episode, {*rows})
            return
        except RuntimeError as error:  # torch, which has the type, is slow to import
            if type(error).__name__ != "OutOfMemoryError" or batch == 1:
                raise
        batch //= 2


def pass_at(k: int, attempts: int, successes: int) -> float:
    """pass@k of one incident, the chance that one of k attempts solves it: the unbiased estimator
    of Chen et al. 2021, "Evaluating large language models trained on code", section 2.1.
    """
    return 1.0 - comb(attempts - successes, k) / comb(attempts, k)


def pass_all(k: int, attempts: int, successes: int) -> float:
    """pass^k of one incident, the chance that all k attempts solve it: Yao et al. 2024,
    "tau-bench", section 3.
    """
    return comb(successes, k) / comb(attempts, k)


def attempts_table(frame: pd.DataFrame, attempts: int) -> pd.DataFrame:
    """One row per policy, task and k: pass@k and pass^k as text, each the mean over incidents with
    its 95 % interval.

    Args:
        frame: rows with the columns of `rollouts.COLUMNS`. Attempts that ended in an error are
            none; an incident with fewer than k others is left out, and `incidents` counts the rest.
        attempts: that were made at each incident; k is 1, 2, 4 and so on, and this number.
    """
    rows = []
    ks = sorted({*(2**n for n in range(attempts.bit_length()) if 2**n <= attempts), attempts})
    for (policy, task), group in frame.groupby(["policy", "task"], sort=False):
        ended = group[group["solved"].notna()]
        counts = ended.assign(solved=ended["solved"].astype(bool)).groupby(KEYS, sort=False)
        counted = counts["solved"].agg(["size", "sum"]).to_numpy()
        for k in ks:
            enough = [(int(n), int(won)) for n, won in counted if n >= k]
            row: dict[str, object] = {"policy": policy, "task": task, "k": k}
            row["incidents"] = len(enough)
            for name, estimate in (("pass@k", pass_at), ("pass^k", pass_all)):
                values = pd.Series([estimate(k, n, won) for n, won in enough], dtype=float)
                row[name] = str(mean_interval(values)) if len(values) > 1 else "-"
            rows.append(row)
    return pd.DataFrame(rows)


def report(
    frame: pd.DataFrame,
    attempts: int = 1,
    truth: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    table: Callable[[pd.DataFrame], pd.DataFrame] = score_table,
) -> Iterator[str]:
    """An evaluation as text for a terminal: scores, attempts, what was detected, errors, tokens and
    the audit, as far as there are any.

    Args:
        frame: of an `Evaluation`.
        attempts: at each incident.
        truth: adds what was true of each incident (see `strata.with_truth`), where that is known.
        table: makes the table of scores.
    """
    played = scored(frame)
    if len(frame):
        yield table(frame).to_string(index=False)
    if len(played) and attempts > 1:
        yield "\n" + attempts_table(frame, attempts).to_string(index=False)
    if len(played) and truth is not None:
        yield "\n" + detection_table(truth(played)).to_string(index=False)
    yield from describe_errors(frame)
    for name, group in frame[frame["prompt_tokens"].notna()].groupby("policy", sort=False):
        prompt, completion = group["prompt_tokens"].sum(), group["completion_tokens"].sum()
        yield (
            f"{visible(str(name))}: {prompt:,.0f} prompt and {completion:,.0f} completion tokens, "
            f"{(prompt + completion) / len(group):,.0f} per episode"
        )
    if "verdict" in frame and len(played):
        yield "audit: how likely each answer was, by the exact posterior, when it was given"
        judged = audit_table(frame)
        shares = judged["grounded_share_of_right"]
        judged["grounded_share_of_right"] = [str(share) if share else "-" for share in shares]
        yield judged.to_string(index=False, float_format="{:.3f}".format, na_rep="-")


def describe_errors(frame: pd.DataFrame) -> list[str]:
    """How many episodes of each policy have no score, and why: a line per policy and error."""
    lines = []
    for name, group in frame.groupby("policy", sort=False):
        kinds = Counter(error for error in group["error"] if error)
        if kinds:
            lines.append(
                f"{visible(str(name))}: {sum(kinds.values())} of {len(group)} episodes have no "
                "score, because of errors:"
            )
            common = kinds.most_common(MOST_ERRORS)
            lines += [f"  {count} x {visible(error)}" for error, count in common]
    return lines
