"""Play policies on incidents: a DataFrame with one row an episode."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd
from tqdm import tqdm

from ..agents.scripted import Policy
from ..play.episode import Episode, OpenEpisode, PlayableEpisode, final_score
from ..play.rewards import PARTS
from ..world.cluster import Cluster
from ..world.incidents import Incident
from ..world.tasks import BENCHMARK_VERSION, Task

COLUMNS = (
    *("task", "split", "index", "policy", "score"),
    *PARTS,
    *("cost", "gate", "steps", "closed_by", "confidence", "seconds", "benchmark"),
)


def episode_row(episode: PlayableEpisode, policy: str, seconds: float) -> dict[str, object]:
    """A closed episode as a row of `COLUMNS`; `seconds` is its wall-clock, the policy's thinking
    included.
    """
    incident, score = episode.incident, final_score(episode)
    return {
        "task": incident.task.name,
        "split": incident.split,
        "index": incident.index,
        "policy": policy,
        "score": score.total,
        **{part: getattr(score, part) for part in PARTS},
        "cost": score.cost,
        "gate": score.gate,
        "steps": episode.record.steps,
        "closed_by": episode.record.closed_by,
        "confidence": episode.record.confidence,
        "seconds": seconds,
        "benchmark": BENCHMARK_VERSION,
    }


def rollout(
    policy: Policy,
    tasks: Sequence[str | Task],
    split: str = "test",
    episodes: int = 200,
    first: int = 0,
    batch: int = 50,
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
        batch: incidents handed to the policy at once; a row's `seconds` is its batch's mean.
        progress: whether to show a bar.
        open_episode: makes the episodes from task, split and index: `remote.Server.open` plays them
            on a server, `functools.partial(Episode.open, topology=...)` on a call graph of one's
            own.

    Returns:
        A frame with the columns `COLUMNS`, one row an episode, tasks in the given order.
    """
    rows = []
    with tqdm(
        total=len(tasks) * episodes, desc=policy.name, disable=not progress, leave=False
    ) as bar:
        for task in tasks:
            policy.prepare(task, split)
            for start in range(first, first + episodes, batch):
                indices = range(start, min(start + batch, first + episodes))
                began = time.perf_counter()
                played = [open_episode(task, split, index) for index in indices]
                policy.play(played)
                seconds = (time.perf_counter() - began) / len(played)
                rows += [episode_row(episode, policy.name, seconds) for episode in played]
                bar.update(len(played))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"confidence": float})


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
