"""Play policies on incidents: a row an episode, as each ends, or a DataFrame of all.

Scripted policies, language models and endpoints all come through `rollout_each`. An episode that
could not be played to its end has a row, too: `closed_by` is `error`, and there is no score.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd
from tqdm import tqdm

from ..play.episode import BaseEpisode, Episode, OpenEpisode, final_score
from ..play.scoring import PARTS, Score
from ..policies.policy import BATCH, Played, Policy
from ..world.cluster import Cluster
from ..world.incidents import Incident
from ..world.tasks import BENCHMARK_VERSION, Task

COLUMNS = (
    *("task", "split", "index", "policy", "score"),
    *PARTS,
    *("cost", "gate", "steps", "closed_by", "confidence", "seconds", "benchmark"),
)
# What `rollout_each` tells besides: `blamed` are the services blamed, in order, with spaces
# between; tokens are None where nobody counted.
EXTRAS = ("attempt", "solved", "blamed", "error", "prompt_tokens", "completion_tokens")
ERROR = "error"  # what closed an episode that could not be played to its end
HOPELESS = 10  # errors in a row after which no further episode is begun
NO_SCORE = float("nan")

# An episode among those of one policy and split: task, index of the incident, attempt.
Key = tuple[str, int, int]


class Result(NamedTuple):
    """An episode that was played.

    Attributes:
        row: a value for each of `COLUMNS` and `EXTRAS`.
        episode: all that was done and seen.
        played: what the policy told.
    """

    row: dict[str, object]
    episode: BaseEpisode
    played: Played


class Brake:
    """Says when no further episode may be begun: the tokens are spent, or all is in vain.

    Args:
        budget: tokens that may be spent, prompts and completions together; None for no bound.
        spent: those that are gone already.

    Attributes:
        reason: why nothing more may be begun; empty while something may.
        spent: so far.
    """

    def __init__(self, budget: int | None = None, spent: int = 0) -> None:
        self.budget, self.spent, self.reason = budget, spent, ""
        self._errors = 0
        self._check()

    def see(self, played: Played) -> None:
        """Take note of an episode."""
        self._errors = self._errors + 1 if played.error else 0
        if played.tokens is not None:
            self.spent += sum(played.tokens)
        elif self.budget is not None and not played.error:
            self.reason = (
                "nobody tells how many tokens an episode took, so no budget can be kept; "
                "leave out --budget-tokens"
            )
        if self._errors >= HOPELESS:
            self.reason = f"{self._errors} errors in a row, the last one: {played.error}"
        self._check()

    def check_through(self, policy: str) -> None:
        """Raise `ConnectionError` with the reason, if there is one: episodes are missing."""
        if self.reason:
            raise ConnectionError(f"{policy}: {self.reason}; see what `evaluate` can do about it")

    def _check(self) -> None:
        if self.budget is not None and self.spent >= self.budget:
            self.reason = f"{self.spent} tokens are spent, of a budget of {self.budget}"


def solved(score: Score) -> bool:
    """Whether the incident was solved: the root cause right, the fault gone or the false alarm
    dismissed, and the gate passed.

    The fault is gone where the right remedy came first, or where speed is paid. A score that knows
    no remedies is full when it is solved.
    """
    gone = score.remediation == 1.0 or score.speed > 0.0 or score.total == 1.0
    return score.root_cause == 1.0 and score.gate == 1.0 and gone


def episode_row(
    episode: BaseEpisode, policy: str, seconds: float, failed: bool = False
) -> dict[str, object]:
    """An episode as a row of `COLUMNS`; `seconds` is its wall-clock, the policy's thinking
    included.

    Args:
        episode: closed, unless it `failed`: then it has no score, and every part of that is nan.
    """
    incident = episode.incident
    score = Score(*[NO_SCORE] * len(Score._fields)) if failed else final_score(episode)
    return {
        "task": incident.task_name,
        "split": incident.split,
        "index": incident.index,
        "policy": policy,
        "score": score.total,
        **{part: getattr(score, part) for part in PARTS},
        "cost": score.cost,
        "gate": score.gate,
        "steps": episode.record.steps,
        "closed_by": ERROR if failed else episode.record.closed_by,
        "confidence": episode.record.confidence,
        "seconds": seconds,
        "benchmark": BENCHMARK_VERSION,
    }


def rollout_each(
    policy: Policy,
    tasks: Sequence[str | Task],
    split: str,
    indices: Sequence[int],
    attempts: int = 1,
    batch: int = BATCH,
    open_episode: OpenEpisode = Episode.open,
    skip: Collection[Key] = (),
    brake: Brake | None = None,
) -> Iterator[Result]:
    """Play `policy`, and tell of every episode as it ends, in whatever order they end.

    Args:
        policy, tasks, split, batch, open_episode: as in `rollout`.
        indices: of the incidents of each task.
        attempts: at each incident.
        skip: episodes that are not played, as they were before.
        brake: asked before an episode is begun; by default one without a budget. Those under way
            are played to their ends.
    """
    brake = brake or Brake()
    opening: dict[int, float] = {}  # seconds that it took to open an episode, by its id

    def opened(task: str | Task, attempt: int) -> Iterator[BaseEpisode]:
        name = task.name if isinstance(task, Task) else task
        for index in indices:
            if brake.reason:
                return
            if (name, index, attempt) in skip:
                continue
            began = time.perf_counter()
            episode = open_episode(task, split, index)
            opening[id(episode)] = time.perf_counter() - began
            yield episode

    for task in tasks:
        if brake.reason:
            return
        policy.prepare(task, split)
        for attempt in range(attempts):
            for played in policy.play_each(opened(task, attempt), batch, attempt):
                brake.see(played)
                episode = played.episode
                seconds = opening.pop(id(episode)) + played.seconds
                yield Result(_row(played, policy.name, seconds, attempt), episode, played)
                if played.error:
                    episode.leave()


def _row(played: Played, policy: str, seconds: float, attempt: int) -> dict[str, object]:
    """A row of `COLUMNS` and `EXTRAS`."""
    episode, failed, tokens = played.episode, bool(played.error), played.tokens
    return {
        **episode_row(episode, policy, seconds, failed),
        "attempt": attempt,
        "solved": None if failed else solved(final_score(episode)),
        "blamed": blamed(episode),
        "error": played.error,
        "prompt_tokens": tokens.prompt if tokens else None,
        "completion_tokens": tokens.completion if tokens else None,
    }


def blamed(episode: BaseEpisode) -> str:
    """The services that were blamed, in order and each once, with spaces between."""
    return " ".join(dict.fromkeys(episode.record.root_causes))


def rows_of(
    rows: Iterable[dict[str, object]], tasks: Sequence[str | Task], columns: Sequence[str]
) -> pd.DataFrame:
    """Rows as a frame with these columns: tasks in the given order, then by attempt and index."""
    names = [task.name if isinstance(task, Task) else task for task in tasks]

    def place(row: dict[str, object]) -> tuple[object, ...]:
        return names.index(str(row["task"])), row.get("attempt", 0), row["index"]

    frame = pd.DataFrame(sorted(rows, key=place), columns=list(columns))
    return frame.astype({"confidence": float})


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of episodes that were played to their end: only those have a score."""
    return frame[frame["closed_by"] != ERROR]


def rollout(
    policy: Policy,
    tasks: Sequence[str | Task],
    split: str = "test",
    episodes: int = 200,
    first: int = 0,
    batch: int = BATCH,
    progress: bool = True,
    open_episode: OpenEpisode = Episode.open,
) -> pd.DataFrame:
    """Play `policy` on incidents `first` to `first + episodes - 1` of each task.

    Args:
        policy: any `Policy`.
        tasks: names, or tasks of one's own.
        split: split name.
        episodes: incidents per task.
        first: first index.
        batch: most incidents handed to the policy at once; a row's `seconds` is the mean over those
            that it played together.
        progress: whether to show a bar.
        open_episode: makes the episodes from task, split and index: `remote.Server.open` plays them
            on a server, `functools.partial(Episode.open, topology=...)` on a call graph of one's
            own.

    Returns:
        A frame with the columns `COLUMNS`, one row an episode, tasks in the given order. What could
        not be played to its end is `closed_by` `error`, and has no score: see `scored`.

    Raises:
        ConnectionError: when an endpoint failed `HOPELESS` times in a row.
    """
    indices, brake = range(first, first + episodes), Brake()
    played = rollout_each(
        policy, tasks, split, indices, batch=batch, open_episode=open_episode, brake=brake
    )
    told = tqdm(played, policy.name, len(tasks) * episodes, disable=not progress, leave=False)
    frame = rows_of((result.row for result in told), tasks, COLUMNS)
    brake.check_through(policy.name)
    return frame


def user_errors(
    incident: Incident, remedy: str = "", service: str = "", ticks: int = 10
) -> list[float]:
    """Share of user requests that fail (the worse of the edges), a value a tick from onset to
    `ticks` after arrival.

    With `remedy`, it is applied to `service` when the agent arrives; without, nobody does anything.
    """
    topology = incident.topology
    cluster = Cluster(
        topology, incident.injections, incident.untreated, incident.arrival, incident.task.lag
    )
    if remedy:
        cluster.remediate(remedy, topology.position[service])
    for _ in range(ticks):
        cluster.advance()
    return [
        max(state.errors[i] for i in topology.edges) for state in cluster.states[: cluster.tick + 1]
    ]
