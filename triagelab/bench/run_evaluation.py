"""Evaluate the model of a training run (see `train.grpo`): before and after, beside scripts.

The rows are in the run's folder, one per episode. One that is there under the same key (see
`registry.Player`) is not played again.

| file | what |
|---|---|
| `evaluation.parquet` | base, trained and scripts on the same incidents |
| `checkpoints.parquet` | the same for the model at each checkpoint |
| `splits.parquet` | the same for base and trained, on the splits that hold something new |
| `audit.parquet` | whether what was seen supported the answers of both (see `bench.audit`) |
| `summary.json` | means, gains and strata before and after (see `bench.score_tables`) |
"""

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.world.tasks import SPLITS, TASKS

from ..language_models.language_models import RUN_TURN_TOKENS
from ..language_models.loading import is_adapter, quantised_name, runnable
from ..realistic.production_episode import PRODUCTION
from .audit import judge_result
from .evaluation import evaluate
from .journal import open_table
from .registry import POLICIES, Player, in_memory, scripted
from .rollouts import TUNING_INDEX, Judge, Plan
from .runs import settings_of, step_of, write_text
from .score_tables import REFERENCES, summarise

# -- players ---------------------------------------------------------------------------------------


def turn_tokens_of(settings: dict[str, Any]) -> int:
    """New tokens of a turn when a run's model is evaluated or used: no fewer than in training."""
    return max(RUN_TURN_TOKENS, int(settings["turn_tokens"]))


def model_player(run: Path, weights: Path | None, name: str) -> Player:
    """A run's model, greedy, with the weights or adapter in a folder, or as it started (None)."""
    settings = settings_of(run)
    base, in_4bit = runnable(settings["model"], settings["load_in_4bit"])
    # An adapter that was trained further names the model that both are for.
    adapter = weights if weights and is_adapter(weights) and not is_adapter(base) else None
    source = weights if weights and not adapter else base
    source = quantised_name(source) if in_4bit else source
    options = {"turn_tokens": turn_tokens_of(settings), "constrained": settings["constrained"]}
    return in_memory(source, name, in_4bit, adapter, **options)


def base_and_trained(run: Path) -> dict[str, Player]:
    """The run's model before GRPO (`base`) and, once training has ended, after it (`trained`)."""
    players = {"base": model_player(run, None, "base")}
    if (run / "model").exists():
        players["trained"] = model_player(run, run / "model", "trained")
    return players


# -- evaluations -----------------------------------------------------------------------------------


def _results(
    path: Path,
    players: Sequence[Player],
    splits: Sequence[str],
    episodes: int,
    batch: int = 100,
    judge: Judge | None = None,
    deadline: float = math.inf,
) -> pd.DataFrame:
    """The rows of all players on the first held-out incidents of the splits. Episodes that the file
    lacks are played; models share the time until the deadline equally.
    """
    frames = []
    for split in splits:
        # In `train`, take the slice for choosing settings, on which nothing is trained.
        plan = Plan(list(TASKS), split, episodes, TUNING_INDEX if split == "train" else 0)
        with open_table(path, players, plan, batch) as journal:
            models = [
                player.name
                for player in players
                if player.name not in POLICIES
                and any((player.name, key) not in journal.rows for key in plan.keys)
            ]
            for player in players:
                until, now = math.inf, time.perf_counter()
                if player.name in models:
                    until = now + (deadline - now) / len(models)
                    models.remove(player.name)
                frames.append(evaluate([player], plan, journal, judge, batch, deadline=until).frame)
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    hours: float = math.inf,
) -> pd.DataFrame:
    """Play the run's model and scripts (`references`) on `episodes` held-out incidents of each
    task, `batch` at once. The model plays as it was before training and, if that has ended, after
    it. The models share the `hours`: none begins a batch that would not end in its part. Returns
    the rows on the incidents that all have played.
    """
    run, deadline = Path(run), time.perf_counter() + 3600 * hours
    players = [*base_and_trained(run).values()]
    players += map(scripted, references)
    path = run / "evaluation.parquet"
    return same_incidents(_results(path, players, [split], episodes, batch, None, deadline))


def evaluate_checkpoints(run: str | Path, episodes: int = 200, batch: int = 100) -> pd.DataFrame:
    """Play every checkpoint on the first incidents of `test`."""
    path = Path(run) / "checkpoints.parquet"
    folders = sorted(path.parent.glob("checkpoint-*"), key=step_of)
    if not folders:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    players = [model_player(path.parent, folder, folder.name) for folder in folders]
    return _results(path, players, ["test"], episodes, batch)


def evaluate_splits(run: str | Path, episodes: int = 100, batch: int = 100) -> pd.DataFrame:
    """Play the run's model, before and after, on the splits that hold something new."""
    run, new = Path(run), [split for split in SPLITS if split.startswith("unseen")]
    players = [*base_and_trained(run).values()]
    return _results(run / "splits.parquet", players, new, episodes, batch)


def audit_run(run: str | Path, episodes: int = 100) -> pd.DataFrame:
    """Audit the run's model, before and after, on `test`."""
    run = Path(run)
    players = [*base_and_trained(run).values()]
    return _results(run / "audit.parquet", players, ["test"], episodes, 50, judge_result)


# -- what was played -------------------------------------------------------------------------------


def same_incidents(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the incidents that every policy of an evaluation has played."""
    players = frame.groupby(["task", "index"])["policy"].transform("nunique")
    return frame[players == frame["policy"].nunique()]


def incidents_played(run: Path) -> int:
    """How many incidents of `test` every policy of a run's evaluation has played, in the task with
    the fewest. `ValueError` if a task has none.
    """
    frame = pd.read_parquet(run / "evaluation.parquet")
    counts = same_incidents(frame[frame["split"] == "test"]).groupby("task")["index"].nunique()
    if counts.size < len(TASKS):
        raise ValueError(
            f"the hours did not suffice for a batch of each task in {run}; raise them, or lower "
            "what is played at once"
        )
    return int(counts.min())


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """`score_tables.summarise` of one run's evaluation, kept in `summary.json`."""
    rows = summarise([evaluation])
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_text(Path(run) / "summary.json", f"[\n{lines}\n]\n")
    return rows


def refuse_production(run: Path) -> None:
    """Raise `ValueError` for a run on `production`, which nothing here can measure."""
    if PRODUCTION in settings_of(run)["shares"]:
        raise ValueError(
            f"{run} was trained on {PRODUCTION}; play it by `evaluate --task {PRODUCTION} --model "
            f"BASE --adapter {run}/model`"
        )
