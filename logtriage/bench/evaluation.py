"""Evaluations that survive: every episode is kept as it ends, and the same command plays the rest.

plan = Plan(["single_crash"], "test", episodes=200, attempts=4)
with open_journal(Path("out.jsonl"), {"split": "test"}) as journal:
    found = evaluate([scripted("trace")], plan, journal)
print("\\n".join(report(found.frame, plan)))
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

import pandas as pd
from tqdm import tqdm

from ..catalogue import RECORDED, check_coordinates, last_incident
from ..logs.lines import visible
from ..play.episode import Episode, OpenEpisode
from ..policies.policy import BATCH
from ..real.real_episode import REAL, SCORED
from ..world.tasks import check_split, check_tasks
from ..world.topology import Topology
from .audit import audit_table
from .episode_log import Journal, key_of
from .intervals import KEYS, mean_interval
from .real_results import recorded_scores
from .registry import Player
from .rollouts import EPISODES, Judge, Plan, frame_of, rollout_each, scored
from .runs import out_of_memory
from .score_tables import as_text, detection_table, score_table
from .strata import with_truth

MOST_ERRORS = 5  # kinds of errors that are shown


def make_plan(
    tasks: Sequence[str],
    split: str,
    episodes: int | None = None,
    first: int = 0,
    attempts: int = 1,
    topology: Topology | None = None,
) -> Plan:
    """A plan of incidents that there are; `ValueError` for others. Without `episodes` it is of
    `EPISODES` of each task, or of all real ones of a source, which is their split.
    """
    recorded = [task for task in RECORDED if task in tasks]
    if not recorded:
        check_split(split, topology)
        names = check_tasks(tasks)
        episodes = episodes or EPISODES
    elif {*tasks} != {recorded[0]} or topology is not None:
        raise ValueError(
            f"{recorded[0]} incidents are scored by the root cause alone, and on call graphs of "
            "their own; leave out other tasks, and the topology"
        )
    else:
        names = recorded
        check_coordinates(names[0], split, first)
        every = last_incident(names[0], split) + 1 - first
        episodes = episodes or (max(1, every) if names == [REAL] else EPISODES)
    last = last_incident(names[0], split)
    if first < 0 or first + episodes - 1 > last:
        raise ValueError(
            f"{split} has the incidents 0 to {last}, and {episodes} from {first} on were asked "
            "for; choose some of these"
        )
    return Plan(names, split, episodes, first, attempts)


class Evaluation(NamedTuple):
    """What an evaluation came to: one row (`rollouts.COLUMNS`, and those of a judge) per episode
    that was played, now or before; how many were planned and never begun, and why.
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
) -> Evaluation:
    """Play what is planned and has no score in the journal, and write every episode there as it
    ends. A player that has played the whole plan is not made; options as of `rollout_each`.

    Raises:
        ValueError: for two players of one name, for one that cannot be had or cannot play this, and
            when a GPU's memory ends.
    """
    names, keys = [one.name for one in players], plan.keys
    if len({*names}) < len(names):
        raise ValueError(f"two of the policies {', '.join(names)} have one name; name each once")
    before = {} if journal is None else journal.rows
    found = {
        name: {key: before[name, key] for key in keys if (name, key) in before} for name in names
    }
    policies = [  # all of them before anything is played: one may not be there
        one.make(len(found[one.name])) for one in players if len(found[one.name]) < len(keys)
    ]
    reason = ""
    for policy in policies:
        rows = found[policy.name]
        played = rollout_each(policy, plan, batch, open_episode, {*rows}, judge)
        bar = tqdm(played, policy.name, len(keys), leave=False, initial=len(rows), disable=None)
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
                "lower --concurrency (evaluate-run: --batch), or load the model in 4 bit"
            ) from error
    frame = pd.concat(
        [frame_of(rows.values(), plan.names) for rows in found.values()], ignore_index=True
    )
    return Evaluation(frame, len(names) * len(keys) - len(frame), reason)


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
    """One row per policy, task and k (1, 2, 4 and so on, and all `attempts`): pass@k and pass^k as
    text, each the mean over incidents with its 95 % interval.

    Attempts that ended in an error are none; an incident with fewer than k others is left out, and
    `incidents` counts the rest.
    """
    rows: list[dict[str, object]] = []
    ks = sorted({attempts, *(2**n for n in range(attempts.bit_length()))})
    ended = frame[frame["solved"].notna()].astype({"solved": int})
    for (policy, task), group in ended.groupby(["policy", "task"], sort=False):
        counted = group.groupby(KEYS)["solved"].agg(["size", "sum"])
        for k in ks:
            enough = counted[counted["size"] >= k].to_numpy()
            row = {"policy": policy, "task": task, "k": k, "incidents": len(enough)}
            for name, estimate in (("pass@k", pass_at), ("pass^k", pass_all)):
                values = pd.Series([estimate(k, int(n), int(won)) for n, won in enough])
                row[name] = str(mean_interval(values)) if len(values) > 1 else "-"
            rows.append(row)
    return pd.DataFrame(rows)


def report(
    frame: pd.DataFrame, plan: Plan, topology: Topology | None = None, known: bool = True
) -> Iterator[str]:
    """An evaluation as text for a terminal: scores, attempts, what was detected, errors, tokens and
    the audit, as far as there are any.

    Args:
        frame: of an `Evaluation` of the plan, on a custom call graph or not.
        known: whether the truth of the incidents is.
    """
    recorded, played = plan.names[0] in RECORDED, scored(frame)
    first, last = plan.indices[0], plan.indices[-1]
    intervals = f"Wilson intervals\nscored: {SCORED}" if recorded else "bootstrap intervals"
    yield f"{plan.split}, incidents {first} to {last} of each task; 95 % {intervals}"
    if len(frame):
        yield (recorded_scores(frame) if recorded else score_table(frame)).to_string(index=False)
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
        judged = as_text(audit_table(frame)).fillna({"grounded_share_of_right": "-"})
        yield judged.to_string(index=False, float_format="{:.3f}".format, na_rep="-")
