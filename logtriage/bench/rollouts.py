"""Play a policy on incidents: one row per episode, whoever plays and wherever.

Scripted policies, language models and endpoints all come through `rollout_each`. An episode that
could not be played to its end has a row too: `closed_by` is `error`, and there is no score.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import pandas as pd
from tqdm import tqdm

from ..play.episode import BaseEpisode, Episode, OpenEpisode, final_score
from ..play.scoring import PARTS, solved
from ..policies.policy import BATCH, Played, Policy
from ..world.tasks import BENCHMARK_VERSION, Task

EPISODES = 200  # incidents of each task, unless asked otherwise
ERROR = "error"  # what closed an episode that could not be played to its end
HOPELESS = 10  # errors in a row after which no further episode is begun

# An episode among those of one policy and split: task, index of the incident, attempt.
Key = tuple[str, int, int]

OF_THE_SCORE = ("score", *PARTS, "cost", "gate")  # None for an episode without a score
# What a row holds of one attempt that was played to its end; see `Score` for its parts.
CORE = (
    *("task", "split", "index", "policy", *OF_THE_SCORE, "steps", "closed_by"),
    "confidence",  # stated with the first service blamed, or with `ignore`
    "seconds",  # wall-clock, thinking included; the mean over those played together
    "benchmark",
)
COLUMNS = (
    *CORE,
    *("attempt", "solved"),  # attempts at an incident are numbered from 0
    "blamed",  # the services blamed, in order, with spaces between
    "error",
    *("prompt_tokens", "completion_tokens"),  # None where nobody counted
)


class Plan(NamedTuple):
    """Which episodes are to be played: of each task so many incidents, each in so many attempts."""

    tasks: Sequence[str | Task]
    split: str = "test"
    episodes: int = EPISODES
    first: int = 0
    attempts: int = 1

    @property
    def indices(self) -> range:
        return range(self.first, self.first + self.episodes)

    @property
    def names(self) -> list[str]:
        return [task.name if isinstance(task, Task) else task for task in self.tasks]

    @property
    def keys(self) -> list[Key]:
        """Every episode of a policy."""
        return [*product(self.names, self.indices, range(self.attempts))]


class Result(NamedTuple):
    row: dict[str, Any]
    episode: BaseEpisode  # that was played
    messages: Sequence[Any]  # of a conversation


# What a row holds besides `COLUMNS`, judged from the result.
Judge = Callable[[Result], dict[str, Any]]


class Store(Protocol):
    """Where episodes are kept as they end: the rows that have a score, by policy and `Key`."""

    rows: dict[tuple[str, Key], dict[str, Any]]

    def add(self, result: Result) -> None: ...


def result_row(played: Played, policy: str, attempt: int = 0) -> dict[str, Any]:
    """An episode as a row; it is closed, or ended in an error and has no score."""
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
        "solved": score and solved(score),
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
        batch: most episodes that are open at once.
        open_episode: makes the episodes from task, split and index: `remote.Server.open` plays them
            on a server, `functools.partial(Episode.open, topology=...)` on a custom call graph.
        judge: adds columns to each row, see `audit.judge_result`.
        deadline: in seconds of `time.perf_counter`. With one, tasks are played in turn, a batch of
            each, as long as a batch like the longest so far would end before it.

    Raises:
        ConnectionError: after `HOPELESS` errors in a row, once the episodes under way have ended.
    """
    errors, longest = 0, 0.0
    part = max(1, plan.episodes) if deadline == math.inf else batch

    def opened(task: str | Task, name: str, first: int, attempt: int) -> Iterator[BaseEpisode]:
        for index in range(first, min(first + part, plan.indices.stop)):
            if errors >= HOPELESS:
                return
            if (name, index, attempt) not in skip:
                yield open_episode(task, plan.split, index)

    named = [*zip(plan.tasks, plan.names, strict=True)]
    for first, (task, name) in product(plan.indices[::part], named):
        began = time.perf_counter()
        if began + longest >= deadline:
            return
        policy.prepare(task, plan.split)
        for attempt in range(plan.attempts):
            for one in policy.play_each(opened(task, name, first, attempt), batch, attempt):
                errors = errors + 1 if one.error else 0
                result = Result(result_row(one, policy.name, attempt), one.episode, one.messages)
                if judge is not None:
                    result.row.update(judge(result))
                yield result
                if one.error:
                    one.episode.leave()
            if errors >= HOPELESS:
                raise ConnectionError(
                    f"{policy.name}: {errors} errors in a row, the last one: {one.error}"
                )
        longest = max(longest, time.perf_counter() - began)


def frame_of(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame: tasks in the given order, then by attempt and index."""
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
    """`rollout_each` as a frame, with a bar in a terminal: one row per episode, with the columns
    `COLUMNS`, tasks (names, or custom tasks) in the given order.
    """
    plan = Plan(tasks, split, episodes, first)
    played = rollout_each(policy, plan, batch, open_episode, judge=judge)
    bar = tqdm(played, policy.name, len(plan.keys), leave=False, disable=None)
    return frame_of([result.row for result in bar], plan.names)
