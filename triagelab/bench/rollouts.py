"""Play any policy on incidents, here or on a server: one row per episode.

Scripted policies, language models and endpoints all go through `rollout_each`. An episode that
could not be played to its end has a row too, with `closed_by` = `error` and no score.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import pandas as pd
from tqdm import tqdm

from logtriage.catalogue import SUITES
from logtriage.play.episode import BaseEpisode, Episode, OpenEpisode, final_score
from logtriage.play.scoring import PARTS
from logtriage.policies.policy import BATCH, Played, Policy
from logtriage.world.tasks import BENCHMARK_VERSION, Task

EPISODES = 200  # incidents of each task, unless asked otherwise
TUNING_INDEX = 3_600_000  # in `train`: settings are chosen on incidents from here on
ERROR = "error"  # what closed an episode that could not be played to its end
MAX_CONSECUTIVE_ERRORS = 10  # no further episode is begun after so many

# Identifies an episode of a policy and split: task, index of the incident, attempt.
Key = tuple[str, int, int]

OF_THE_SCORE = ("score", *PARTS, "cost", "gate")  # None for an episode without a score
# Columns of an attempt that was played to its end; see `Score` for its parts.
CORE = (
    *("task", "split", "index", "policy", *OF_THE_SCORE, "steps", "closed_by"),
    "confidence",  # stated with the first service blamed, or with `ignore`
    "seconds",  # wall-clock, thinking included; the mean over episodes played together
    "benchmark",
)
COLUMNS = (
    *CORE,
    *("attempt", "solved"),  # attempts at an incident are numbered from 0
    "blamed",  # the services blamed, in order, separated by spaces
    "error",
    *("prompt_tokens", "completion_tokens"),  # None if not counted
)


class Plan(NamedTuple):
    """Which episodes to play: `attempts` at each of `episodes` incidents of each task, from `first`
    on, or those that `suite` has (`catalogue.SUITES`).
    """

    tasks: Sequence[str | Task]
    split: str = "test"
    episodes: int = EPISODES
    first: int = 0
    attempts: int = 1
    suite: str = ""

    @property
    def indices(self) -> range:
        return range(self.first, self.first + self.episodes)

    @property
    def names(self) -> list[str]:
        return [task.name if isinstance(task, Task) else task for task in self.tasks]

    @property
    def keys(self) -> list[Key]:
        """The keys of all episodes that a policy plays."""
        return [
            (name, *place)
            for name in self.names
            for place in product(self.indices_of(name), range(self.attempts))
        ]

    def indices_of(self, task: str) -> Sequence[int]:
        """The incidents of a task."""
        return SUITES[self.suite][task] if self.suite else self.indices


class Result(NamedTuple):
    row: dict[str, Any]
    episode: BaseEpisode  # as it was played
    messages: Sequence[Any]  # of the conversation, if there is one


# Makes further columns of a row from its result.
Judge = Callable[[Result], dict[str, Any]]


def result_row(played: Played, policy: str, attempt: int = 0) -> dict[str, Any]:
    """The row of an episode that is closed, or that ended in an error and has no score."""
    episode, error, tokens = played.episode, played.error, played.tokens
    incident, record = episode.incident, episode.record
    score = None if error else final_score(episode)
    return {
        "task": incident.task_name,
        "split": incident.split,
        "index": incident.index,
        "policy": policy,
        "score": score and score.total,
        **{name: score and getattr(score, name) for name in (*PARTS, "cost", "gate")},
        "steps": record.steps,
        "closed_by": ERROR if error else record.closed_by,
        "confidence": record.confidence,
        "seconds": played.seconds,
        "benchmark": BENCHMARK_VERSION,
        "attempt": attempt,
        "solved": score and bool(score.solved),
        "blamed": " ".join(dict.fromkeys(record.root_causes)),
        "error": error,
        "prompt_tokens": tokens and tokens.prompt,
        "completion_tokens": tokens and tokens.completion,
    }


def rollout_each(
    policy: Policy,
    plan: Plan,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    skip: Collection[Key] = (),
    judge: Judge | None = None,
    deadline: float = math.inf,
) -> Iterator[Result]:
    """Play `policy` and yield every episode as it ends, in whatever order they end.

    Args:
        plan: which episodes; those in `skip` are not played.
        batch: the most episodes that are open at once.
        open_episode: makes the episodes from task, split and index: `remote.Server.open` plays them
            on a server, `functools.partial(Episode.open, topology=...)` on a custom call graph.
        judge: adds columns to each row, see `audit.judge_result`.
        deadline: a time of `time.perf_counter`. If given, tasks take turns, a batch each, until a
            batch that takes as long as the longest so far would end too late.

    Raises:
        ConnectionError: after `MAX_CONSECUTIVE_ERRORS`, once the episodes under way have ended.
    """
    errors, longest = 0, 0.0
    part = max(1, plan.episodes) if deadline == math.inf else batch

    def opened(task: str | Task, name: str, first: int, attempt: int) -> Iterator[BaseEpisode]:
        for index in plan.indices_of(name)[first : first + part]:
            if errors >= MAX_CONSECUTIVE_ERRORS:
                return
            if (name, index, attempt) not in skip:
                yield open_episode(task, plan.split, index)

    named = [*zip(plan.tasks, plan.names, strict=True)]
    for first, (task, name) in product(range(0, plan.episodes, part), named):
        began = time.perf_counter()
        if began + longest >= deadline:
            return
        policy.prepare(task, plan.split)
        for attempt in range(plan.attempts):
            for played in policy.play_each(opened(task, name, first, attempt), batch, attempt):
                errors = errors + 1 if played.error else 0
                row = result_row(played, policy.name, attempt)
                result = Result(row, played.episode, played.messages)
                if judge is not None:
                    row.update(judge(result))
                yield result
                if played.error:
                    played.episode.leave()
            if errors >= MAX_CONSECUTIVE_ERRORS:
                raise ConnectionError(
                    f"{policy.name}: {errors} errors in a row, the last one: {played.error}"
                )
        longest = max(longest, time.perf_counter() - began)


def frame_of(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame, sorted by task (in the order of `names`), then by attempt and index."""
    ordered = sorted(rows, key=lambda row: (names.index(row["task"]), row["attempt"], row["index"]))
    frame = pd.DataFrame(ordered, columns=None if ordered else COLUMNS)
    numbers = (*OF_THE_SCORE, "confidence", "prompt_tokens", "completion_tokens")
    return frame.astype(dict.fromkeys(numbers, float))


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of episodes that were played to their end: only those have a score."""
    return frame[frame["closed_by"] != ERROR]


def rollout(
    policy: Policy,
    tasks: Sequence[str | Task],
    split: str = "test",
    episodes: int = EPISODES,
    first: int = 0,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """Run `rollout_each` with a progress bar (in a terminal). Return a frame with one row per
    episode and the columns `COLUMNS`; tasks (names, or custom tasks) keep their order.
    """
    plan = Plan(tasks, split, episodes, first)
    played = rollout_each(policy, plan, batch, open_episode, judge=judge)
    bar = tqdm(played, policy.name, len(plan.keys), leave=False, disable=None)
    return frame_of([result.row for result in bar], plan.names)
