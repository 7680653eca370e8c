"""Entries of the leaderboard: scores of a file of trajectories, with the actions that prove them.

An entry is made from a file that `replay` has confirmed. It holds the score and the actions of
every episode, so anyone who has the entries can replay the whole table.

An invalid action is kept as `?`: it cost a step and changed nothing. An episode that ended in an
error counts as 0, so that an agent does not gain by leaving out what is hard. `production` has a
table of its own because it is scored differently; its answers are not judged as grounded or not.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, Field, ValidationError

from logtriage.catalogue import open_incident
from logtriage.play.actions import Action
from logtriage.play.episode import BaseEpisode, final_score
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS

from ..realistic.production_episode import PRODUCTION
from .audit import judge
from .intervals import KEYS
from .replay import FORGED, MATCH, UNSCORED, Replayed, first_fault, read_trajectories

SPLIT, FEWEST = "test", 200  # an entry has at least incidents 0 to 199 of each task
MAIN, PRODUCTION_ALONE = tuple(TASKS), (PRODUCTION,)  # tasks that an entry holds together
REFUSED = "?"  # stands for an invalid action


class Entry(BaseModel, extra="forbid", allow_inf_nan=False):
    """An entry of the leaderboard.

    Attributes:
        name: of the policy, in printable ASCII, since names in other scripts can look alike.
        about: what the policy is, or where to read about it.
        trajectories: SHA-256 of the file that the entry was made from.
        grounded: share of the episodes with that verdict (see `audit`); None for `production`.
        tokens: prompt and completion tokens per episode; None if they were not counted.
        episodes: task, index, attempt, score (None for an error), solved (0 or 1), and the actions.
    """

    name: str = Field(min_length=1, max_length=80, pattern=r"^[!-~]+( [!-~]+)*$")
    about: str = Field(max_length=300)
    benchmark: str
    split: str
    settings: dict[str, Any]
    trajectories: str
    grounded: float | None = Field(ge=0.0, le=1.0)
    tokens: float | None = Field(ge=0.0)
    episodes: list[tuple[str, int, int, float | None, int, str]]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the entry must hold."""
        alone = any(task == PRODUCTION for task, *_ in self.episodes)
        return PRODUCTION_ALONE if alone else MAIN

    @property
    def attempts(self) -> int:
        """The number of attempts at each incident."""
        return 1 + max((attempt for _, _, attempt, *_ in self.episodes), default=0)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per incident: the mean score over attempts (an error counts as 0), and the number
        of attempts that solved it.
        """
        rows = [
            (task, self.split, at, score or 0.0, won)
            for task, at, _, score, won, _ in self.episodes
        ]
        incidents = pd.DataFrame(rows, columns=[*KEYS, "score", "solved"]).groupby(
            KEYS, sort=False, as_index=False
        )
        return incidents.agg({"score": "mean", "solved": "sum"})


def make_entry(path: Path, replayed: Sequence[Replayed], name: str, about: str) -> Entry:
    """Make the entry of a file. `ValueError` unless `replay` has confirmed every episode, all are
    of one policy, and none is missing. Without a name, the entry has the policy's.
    """
    wrong = [one.verdict for one in replayed if one.verdict not in (MATCH, UNSCORED)]
    if wrong:
        raise ValueError(f"{len(wrong)} episodes of {path} are {wrong[0]}: no entry is made")
    names = sorted({one.row["policy"] for one in replayed if one.row})
    if len(names) != 1:
        raise ValueError(f"an entry is of one policy, {path} holds {', '.join(names) or 'none'}")
    episodes, grounded, tokens, splits = [], [], [], set()
    for one in replayed:
        row, episode = one.row, one.episode
        assert row is not None and episode is not None  # it was confirmed
        actions = [action for action, _ in episode.history]
        done = [f"{one.type} {one.value}".rstrip() if one else REFUSED for one in actions]
        where = (row["task"], row["index"], row["attempt"])
        episodes.append((*where, row["score"], int(row["solved"] or 0), ", ".join(done)))
        if row["task"] in MAIN:
            grounded.append(not row["error"] and _is_grounded(episode))
        splits.add(row["split"])
        if row["prompt_tokens"] is not None:
            tokens.append(row["prompt_tokens"] + (row["completion_tokens"] or 0))
    order = {task: place for place, task in enumerate(MAIN)}
    episodes.sort(key=lambda one: (order.get(one[0], len(order)), one[2], one[1]))
    fields = {
        "name": name or names[0],
        "about": about,
        "benchmark": BENCHMARK_VERSION,
        "split": ", ".join(sorted(splits)),
        "settings": read_trajectories(path)[0],
        "trajectories": hashlib.sha256(path.read_bytes()).hexdigest(),
        "grounded": _share(grounded),
        "tokens": round(sum(tokens) / len(tokens), 1) if tokens else None,
        "episodes": episodes,
    }
    return _parsed(json.dumps(fields), "this entry")


def _is_grounded(episode: BaseEpisode) -> bool:
    return bool(judge(episode, regrets=False)["verdict"] == "grounded")


def _share(grounded: Sequence[bool]) -> float | None:
    return round(sum(grounded) / len(grounded), 4) if grounded else None


def as_text(entry: Entry) -> str:
    """An entry as the text of its file, with one line per episode."""
    fields = entry.model_dump()
    lines = ",\n".join(json.dumps(one) for one in fields.pop("episodes"))
    return f'{json.dumps(fields, indent=1)[:-2]},\n "episodes": [\n{lines}\n ]\n}}\n'


def read_entry(path: Path) -> Entry:
    """Read an entry from a file; `ValueError` if it is not a valid and complete one."""
    return _parsed(path.read_bytes(), path)


def _parsed(text: str | bytes, what: str | Path) -> Entry:
    try:
        entry = Entry.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{what} is no entry: {first_fault(error)}") from None
    played = {(task, index, attempt) for task, index, attempt, *_ in entry.episodes}
    last = max([FEWEST, *(index + 1 for _, index, _ in played)])
    # Episodes are counted and not listed, since an index or attempt may be any number.
    tasks = entry.tasks
    if (entry.grounded is None) != (tasks == PRODUCTION_ALONE):
        raise ValueError(f"{what} is no entry: grounded is a share, of {PRODUCTION} alone null")
    asked = len(tasks) * last * entry.attempts
    right = sum(
        task in tasks and 0 <= index < last and attempt >= 0 for task, index, attempt in played
    )
    if entry.split != SPLIT or not asked == right == len(entry.episodes):
        raise ValueError(
            f"an entry holds incidents 0 to at least {FEWEST - 1} of {', '.join(MAIN)}, or of "
            f"{PRODUCTION} alone, of split {SPLIT}, each with as many attempts and once; "
            f"{asked - right} are missing and {len(entry.episodes) - right} too many, of split "
            f"{entry.split}"
        )
    return entry


def check_entry(entry: Entry, every: int = 1) -> Iterator[str]:
    """Replay one in `every` episodes, and yield a line for each claim of the entry that is false.
    `grounded` can be checked only if all episodes are replayed.
    """
    grounded, main = [], entry.tasks == MAIN
    for task, index, attempt, score, won, done in entry.episodes[::every]:
        episode = open_incident(task, entry.split, index)
        differs = _differs(episode, done, score, won)
        if differs:
            yield f"{entry.name}, {task} {index}, attempt {attempt}: {FORGED}, {differs}"
        elif every == 1 and main:
            grounded.append(score is not None and _is_grounded(episode))
    own = _share(grounded)
    if len(grounded) == len(entry.episodes) and own != entry.grounded:
        yield f"{entry.name}: {FORGED}, grounded is {own}, the entry says {entry.grounded}"


def _differs(episode: BaseEpisode, done: str, score: float | None, won: int) -> str:
    """Replay an episode's actions; return how its result differs from the entry, or nothing."""
    for action in done.split(", ") if done else ():
        if episode.done:
            return "it goes on after the end"
        name, _, value = action.partition(" ")
        if action == REFUSED:
            episode.refuse("")
        else:
            episode.act(Action.parse(name, value))
    if score is None:
        return "it ended in an error, and the entry says that it was solved" if won else ""
    episode.abandon()
    own = final_score(episode)
    if (own.total, own.solved) == (score, won):
        return ""
    return f"score and solved are {own.total}, {own.solved:g}, the entry says {score}, {won}"
