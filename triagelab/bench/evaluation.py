"""Evaluations that can be resumed: every episode is saved as it ends, and a rerun plays the rest.

    plan = Plan(["single_crash"], "test", episodes=200, attempts=4)
    with open_journal(Path("out.jsonl"), {"split": "test"}) as journal:
        done = evaluate([scripted("trace")], plan, journal)
    print("\\n".join(report(done.frame, plan)))

The model of a training run is evaluated by `bench.run_evaluation`.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd
from tqdm import tqdm

from logtriage.catalogue import (
    SUITES,
    check_coordinates,
    find_task,
    last_incident,
    recorded_task,
    suite_places,
)
from logtriage.play.actions import visible
from logtriage.play.episode import Episode, OpenEpisode
from logtriage.policies.policy import BATCH
from logtriage.world.tasks import check_split, check_tasks
from logtriage.world.topology import Topology

from ..real.real_episode import REAL, SCORED
from .intervals import mean_interval
from .journal import Journal, key_of
from .recorded_results import recorded_scores
from .registry import Player
from .rollouts import EPISODES, Judge, Plan, frame_of, rollout_each, scored
from .runs import out_of_memory
from .score_tables import attempts_table, audit_table, detection_table, score_table
from .strata import with_truth

MOST_ERRORS = 5  # kinds of errors that are listed
# Of a model at an incident, on average: answers, tokens read and tokens written. SmolLM2 needs so
# many after an expert's lessons (results/smollm2), where every answer reads all before it anew.
ANSWERS, READ, WRITTEN = 8, 7_600, 270


def make_plan(
    tasks: Sequence[str],
    split: str,
    episodes: int | None = None,
    first: int = 0,
    attempts: int = 1,
    topology: Topology | None = None,
) -> Plan:
    """Return a plan; `ValueError` if some of its incidents do not exist. By default it has
    `EPISODES` incidents of each task, or all real ones of a source (the split) from `first` on.
    """
    try:
        for task in tasks:
            if task != "all":
                find_task(task)
    except ValueError as error:
        raise ValueError(f"{error}, or all") from None
    names = [task for task in dict.fromkeys(tasks) if recorded_task(task)]
    if not names:
        check_split(split, topology)
        names = check_tasks(tasks)
    elif {*tasks} != {names[0]} or topology is not None:
        raise ValueError(
            f"{names[0]} incidents are scored by the root cause alone, and on call graphs of "
            "their own; leave out other tasks, and the topology"
        )
    else:
        check_coordinates(names[0], split, first)
    last = last_incident(names[0], split)
    episodes = episodes or (max(1, last + 1 - first) if names == [REAL] else EPISODES)
    if first < 0 or first + episodes - 1 > last:
        raise ValueError(
            f"{split} has the incidents 0 to {last}, and {episodes} from {first} on were asked "
            "for; choose some of these"
        )
    return Plan(names, split, episodes, first, attempts)


def suite_plan(suite: str, attempts: int = 1) -> Plan:
    """The plan of a suite; `ValueError` for an unknown one."""
    count = len(suite_places(suite)) // len(SUITES[suite])
    return Plan([*SUITES[suite]], "test", count, attempts=attempts, suite=suite)


def expected_cost(plan: Plan, at_once: int) -> str:
    """What a model will need for a plan with so many episodes at once, as a sentence."""
    count = len(plan.keys)
    rounds = ANSWERS * -(-count // at_once)
    return (
        f"{count} episodes; a model reads about {READ * count:,} tokens and writes "
        f"{WRITTEN * count:,}, more if it thinks aloud, and takes as long as {rounds} answers one "
        f"after the other ({at_once} at once)"
    )


class Evaluation(NamedTuple):
    # One row per episode played, now or before: `rollouts.COLUMNS`, and the columns of a judge.
    frame: pd.DataFrame
    unplayed: int  # episodes that were planned and never begun
    reason: str  # why


def evaluate(
    players: Sequence[Player],
    plan: Plan,
    journal: Journal | None = None,
    judge: Judge | None = None,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    deadline: float = math.inf,
) -> Evaluation:
    """Play the planned episodes that have no score in the journal, and write each to it as it ends.
    A player that has played the whole plan, or whose deadline has passed, is not made. See
    `rollout_each` for the other options.

    Raises:
        ValueError: if two players have one name, if one cannot be made or cannot play these tasks,
            or if the GPU runs out of memory.
    """
    names, keys = [player.name for player in players], plan.keys
    if len({*names}) < len(names):
        raise ValueError(f"two of the policies {', '.join(names)} have one name; name each once")
    before = {} if journal is None else journal.rows
    played = {
        name: {key: before[name, key] for key in keys if (name, key) in before} for name in names
    }
    policies = [  # make all before playing, since one may be missing
        player.make(len(played[player.name]))
        for player in players
        if len(played[player.name]) < len(keys) and time.perf_counter() < deadline
    ]
    reason = ""
    for policy in policies:
        rows = played[policy.name]
        results = rollout_each(policy, plan, batch, open_episode, {*rows}, judge, deadline)
        bar = tqdm(results, policy.name, len(keys), leave=False, initial=len(rows), disable=None)
        try:
            for result in bar:
                if journal is not None:
                    journal.add(result)
                rows[key_of(result.row)[1]] = result.row
        except ConnectionError as error:
            reason = str(error)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise ValueError(
                f"{batch} incidents of {policy.name} at once need more memory than the GPU has; "
                "lower --concurrency, or load the model in 4 bit"
            ) from error
    frame = pd.concat(
        [frame_of(rows.values(), plan.names) for rows in played.values()], ignore_index=True
    )
    return Evaluation(frame, len(names) * len(keys) - len(frame), reason)


def report(
    frame: pd.DataFrame, plan: Plan, topology: Topology | None = None, known: bool = True
) -> Iterator[str]:
    """Yield an evaluation as text for a terminal: scores, attempts, detection if the truth is
    `known`, errors, tokens and the audit, each only if there is any.
    """
    recorded, played = recorded_task(plan.names[0]) is not None, scored(frame)
    which = f"incidents {plan.indices[0]} to {plan.indices[-1]} of each task"
    if plan.suite:
        which = f"{plan.episodes} incidents of each task, which are the suite {plan.suite}"
    intervals = f"Wilson intervals\nscored: {SCORED}" if recorded else "bootstrap intervals"
    yield f"{plan.split}, {which}; 95 % {intervals}"
    if len(frame):
        yield (recorded_scores(frame) if recorded else score_table(frame)).to_string(index=False)
    for policy, group in played.groupby("policy", sort=False) if plan.suite else ():
        means = [own["score"] for _, own in group.groupby("task") if len(own) > 1]
        if len(means) == len(plan.names):
            yield f"{visible(str(policy))}: mean over the tasks {mean_interval(*means)}"
    if len(played) and plan.attempts > 1:
        yield "\n" + attempts_table(frame, plan.attempts).to_string(index=False)
    if len(played) and known and not recorded:
        yield "\n" + detection_table(with_truth(played, topology)).to_string(index=False)
    for policy, group in frame.groupby("policy", sort=False):
        name = visible(str(policy))
        errors = Counter(error for error in group["error"] if error)
        if errors:
            yield f"{name}: {errors.total()} of {len(group)} episodes have no score, because of:"
        for error, count in errors.most_common(MOST_ERRORS):
            yield f"  {count} x {visible(error)}"
        counted = group[group["prompt_tokens"].notna()]
        if len(counted):
            prompt, completion = counted[["prompt_tokens", "completion_tokens"]].sum()
            yield (
                f"{name}: {prompt:,.0f} prompt and {completion:,.0f} completion tokens, "
                f"{(prompt + completion) / len(counted):,.0f} per episode"
            )
    if "verdict" in frame and len(played):
        yield "audit: how likely each answer was, by the exact posterior, when it was given"
        yield audit_table(frame).to_string(index=False, float_format="{:.3f}".format)
