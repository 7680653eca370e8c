"""Evaluations that can be resumed: every episode is saved as it ends, and a rerun plays the rest.

    plan = Plan(["single_crash"], "test", episodes=200, attempts=4)
    with open_journal(Path("out.jsonl"), {"split": "test"}) as journal:
        found = evaluate([scripted("trace")], plan, journal)
    print("\\n".join(report(found.frame, plan)))

`make_report` plays the benchmark: every script on every task and split. `results/benchmark` also
keeps the tables of four finished studies. Commit 264b8c9 has the code of `exploits.json` (the best
rules without diagnosis, found by hill climbing) and `dials.parquet` (scores against each setting of
a task); d1e2645 has that of `power.json` (how many episodes show a gain) and `hops.json` (how often
a root is found, by its distance from an alert).
"""

import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from logtriage.catalogue import check_coordinates, last_incident, recorded_task
from logtriage.play.actions import visible
from logtriage.play.episode import Episode, OpenEpisode
from logtriage.policies.policy import BATCH
from logtriage.registry import make_policy
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS, check_split, check_tasks
from logtriage.world.topology import DEFAULT_TOPOLOGY, Topology

from ..real.real_episode import REAL, SCORED
from ..reference.posterior import Posterior
from ..reference.prior import prior_of
from .audit import judge_result
from .recorded_results import recorded_scores
from .registry import POLICIES, Player
from .replay import key_of
from .rollouts import (
    COLUMNS,
    CORE,
    EPISODES,
    Judge,
    Plan,
    Store,
    frame_of,
    rollout,
    rollout_each,
    scored,
)
from .runs import out_of_memory, write_text
from .score_tables import (
    attempts_table,
    audit_table,
    calibration_table,
    detection_table,
    policy_scores,
    score_table,
)
from .strata import with_truth

PART = 100  # incidents of the benchmark that one process plays at a time
AUDITED = ("random", "loudest", "novice", "trace", "belief")
MOST_ERRORS = 5  # kinds of errors that are shown


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


class Evaluation(NamedTuple):
    # One row per episode played, now or before: `rollouts.COLUMNS`, and the columns of a judge.
    frame: pd.DataFrame
    unplayed: int  # episodes that were planned and never begun
    reason: str  # why


def evaluate(
    players: Sequence[Player],
    plan: Plan,
    journal: Store | None = None,
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
    names, keys = [one.name for one in players], plan.keys
    if len({*names}) < len(names):
        raise ValueError(f"two of the policies {', '.join(names)} have one name; name each once")
    before = {} if journal is None else journal.rows
    found = {
        name: {key: before[name, key] for key in keys if (name, key) in before} for name in names
    }
    policies = [  # make all before playing, since one may be missing
        one.make(len(found[one.name]))
        for one in players
        if len(found[one.name]) < len(keys) and time.perf_counter() < deadline
    ]
    reason = ""
    for policy in policies:
        rows = found[policy.name]
        played = rollout_each(policy, plan, batch, open_episode, {*rows}, judge, deadline)
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


def report(
    frame: pd.DataFrame, plan: Plan, topology: Topology | None = None, known: bool = True
) -> Iterator[str]:
    """Yield an evaluation as text for a terminal: scores, attempts, detection if the truth is
    `known`, errors, tokens and the audit, each only if there is any.
    """
    recorded, played = recorded_task(plan.names[0]) is not None, scored(frame)
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
        judged = audit_table(frame).astype({"grounded_share_of_right": str})
        judged = judged.replace({"grounded_share_of_right": {"None": "-"}})
        yield judged.to_string(index=False, float_format="{:.3f}".format, na_rep="-")


# -- the benchmark ---------------------------------------------------------------------------------


def _play(
    policy: str, task: str, split: str, first: int, count: int, judge: Judge | None
) -> pd.DataFrame:
    rows = rollout(make_policy(policy, first), [task], split, count, first, judge=judge)
    # Seconds mean nothing when processes share cores, and are never the same twice.
    return rows.drop(columns=["seconds", *(name for name in COLUMNS if name not in CORE)])


def run_benchmark(
    policies: Iterable[str],
    splits: Iterable[str],
    incidents: int,
    processes: int,
    part: int = PART,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """Play `incidents` incidents of every task and split by every policy: one row per episode, with
    the columns that `judge` adds. Policies are seeded anew for each `part` incidents.
    """
    calls = [
        delayed(_play)(policy, task, split, first, min(part, incidents - first), judge)
        for policy, task, split, first in product(
            policies, TASKS, splits, range(0, incidents, part)
        )
    ]
    played = Parallel(n_jobs=processes, return_as="generator")(calls)
    bar = tqdm(played, "benchmark", len(calls), mininterval=2.0)
    return pd.concat(bar, ignore_index=True)


def opening_beliefs(task: str, incidents: int) -> pd.DataFrame:
    """What `belief` states at the opening of each incident: the `confidence` of the likeliest root
    (or of a false alarm), and whether that is `correct`. It shows calibration over the whole range.
    """
    rows = []
    for index in range(incidents):
        episode = Episode(sample_incident(task, "test", index))
        belief = Posterior(prior_of(DEFAULT_TOPOLOGY, TASKS[task], "test"))
        belief.see(episode.opening, None)
        roots = belief.roots()
        best = int(roots.argmax())
        correct = (*episode.incident.topology.names, None)[best] == episode.incident.root
        rows.append({"task": task, "confidence": min(1.0, roots[best]), "correct": correct})
    return pd.DataFrame(rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [round(end, 6) for end in value]
    return round(value, 6) if isinstance(value, float) else value


def make_report(results: str | Path, incidents: int = 500, processes: int = 2) -> None:
    """Play the benchmark with `incidents` incidents per policy, task and split. Write its episodes
    and every table (as JSON) to the folder `results`. The audit uses two fifths of the incidents.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    frame = run_benchmark(POLICIES, SPLITS, incidents, processes)
    openings = pd.concat([opening_beliefs(task, incidents) for task in TASKS])
    some = max(2, incidents * 2 // 5)
    audited = run_benchmark(AUDITED, ["test"], some, processes, part=some, judge=judge_result)
    for name, played in {"episodes": frame, "openings": openings, "audit": audited}.items():
        played.to_parquet(results / f"{name}.parquet", index=False)
    tables = {"scores": policy_scores(frame), "calibration": calibration_table(frame, openings)}
    for name, table in tables.items():
        rows = table.map(_rounded).to_dict("records")
        report = {"benchmark": BENCHMARK_VERSION, "incidents": incidents, "rows": rows}
        write_text(results / f"{name}.json", json.dumps(report, indent=1) + "\n")


def read_table(results: str | Path, name: str) -> pd.DataFrame:
    """A table of the report; intervals are lists of mean, low, high."""
    return pd.DataFrame(json.loads((Path(results) / f"{name}.json").read_text())["rows"])
