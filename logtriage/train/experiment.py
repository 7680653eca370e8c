"""A whole experiment in a folder: base model, GRPO run, evaluation on held-out incidents, summary.

    runs/novice/base/   the base model (see `base_model`)
    runs/novice/seed-0/ the run (see `grpo`), and then

| file | what |
|---|---|
| `evaluation.parquet` | one row per episode: base, trained and scripts on the same incidents |
| `checkpoints.parquet` | likewise, of the model at each checkpoint, on the first few of them |
| `splits.parquet` | likewise, of base and trained on the splits that hold something new |
| `audit.parquet` | whether base and trained knew what they answered (see `bench.audit`) |
| `transcripts.json` | the same incident before and after training |
| `summary.json` | the table that is printed, and every stratum before and after (see `summaries`) |
| `*.png` | the figures |

An episode that is there with the same key (see `bench.registry.Player`) is not played again, so the
same command continues what was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..bench.audit import judge_result
from ..bench.evaluation import Plan, evaluate
from ..bench.registry import Player, in_memory, scripted
from ..bench.rollouts import Judge
from ..bench.runs import model_of, record_of, step_of, write_text
from ..play.conversation import Message
from ..play.episode import Episode, final_score
from ..policies.llm.language_models import TURN_TOKENS
from ..policies.llm.loading import quantised_name, runnable
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from .base_model import build_base, build_expert
from .drills import TUNING_INDEX

REFERENCES = ("novice", "loudest", "trace", "belief", "oracle")
# Scores that make an incident worth showing before and after training: the base fails at it below
# the first, the trained model solves it above the second.
FAILED_BELOW, SOLVED_ABOVE = 0.4, 0.8


def first_of(split: str) -> int:
    """The first held-out incident of a split: of `train`, that of a slice which settings are chosen
    on, and nothing is trained on.
    """
    return TUNING_INDEX if split == "train" else 0


def base_for(preset: str, folder: str | Path, base: str | Path = "", **options: Any) -> Path:
    """The embedded base model that a preset for a CPU starts from, built where it is not there yet.

    Args:
        preset: `novice`, `expert` or `general`.
        folder: of the track; its base is `base/` in there.
        base: folder of another base to start from, or to make an expert of; empty for one in
            `folder`.
        options: of `build_base`.
    """
    folder = Path(folder)
    if preset == "expert":
        return build_expert(folder / "base", build_base(base or folder / "novice", **options))
    return build_base(base or folder / "base", general=preset == "general", **options)


def model_player(run: Path, weights: Path | None, name: str) -> Player:
    """A run's model as a greedy policy: with the weights (or the adapter) in a folder, or, for
    None, as it started.
    """
    settings = record_of(run)["settings"]
    base, in_4bit = runnable(model_of(run), settings["load_in_4bit"])
    source, adapter = (weights or base), None
    if weights is not None and (weights / "adapter_config.json").exists():
        source, adapter = base, weights
    return in_memory(
        quantised_name(source) if in_4bit else source,
        name,
        in_4bit,
        adapter,
        turn_tokens=max(TURN_TOKENS, settings["turn_tokens"]),
    )


def before_and_after(run: Path) -> dict[str, Player]:
    """The run's model before GRPO, and, where training has ended, as it is now. Before GRPO means
    after the warm-up, where there was one: the gain is GRPO's alone.
    """
    warm = run / "warm-up"
    players = {"base": model_player(run, warm if warm.exists() else None, "base")}
    if (run / "model").exists():
        players["trained"] = model_player(run, run / "model", "trained")
    return players


def _results(
    path: Path,
    players: Sequence[Player],
    splits: Sequence[str],
    episodes: int,
    batch: int,
    progress: bool,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """The rows of all players on the first held-out incidents of the splits: those that a file
    holds, or the same file of another run of its sweep, and else those of episodes that are played
    now. The file then holds them all, and what else it held of the same models.
    """
    kept, frames, added = _read(path), [], False
    for split in splits:
        plan = Plan(list(TASKS), split, episodes, first_of(split))
        for player in players:
            rows = _planned(kept, player.key, plan)
            if rows is None:
                rows, added = _beside(path, player.key, plan), True
            if rows is None:
                rows = evaluate([player], plan, None, judge, batch, progress=progress).frame
                rows = rows.assign(weights=weights_of(player), key=player.key)
                if player.name.startswith("checkpoint-"):
                    rows = rows.assign(step=step_of(player.name))
            frames.append(rows)
    found = pd.concat(frames, ignore_index=True)
    if added:
        keys = {player.name: player.key for player in players}
        stale = [keys.get(row.policy, row.key) != row.key for row in kept.itertuples()]
        everything = pd.concat([found, kept[~np.array(stale, bool)]], ignore_index=True)
        everything = everything.drop_duplicates(["policy", "task", "split", "index"])
        partial = path.with_name(path.name + ".partial")  # another run may read it meanwhile
        everything.to_parquet(partial, index=False)
        partial.replace(path)
    return found


def _read(path: Path) -> pd.DataFrame:
    """The rows of a file that have a key; none where there is no file."""
    frame = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    return frame if "key" in frame else frame.head(0)


def _planned(frame: pd.DataFrame, key: str, plan: Plan) -> pd.DataFrame | None:
    """The rows of a plan; None when any is missing."""
    if not len(frame):
        return None
    same = (frame["key"] == key) & (frame["split"] == plan.split)
    same &= frame["index"].isin(plan.indices)
    return frame[same] if same.sum() == len(plan.keys) else None


def _beside(path: Path, key: str, plan: Plan) -> pd.DataFrame | None:
    """The rows of a plan in the same file of another run of the sweep; None when there are none."""
    sweep = path.resolve().parents[:3][-1]  # sweep/row/run/file
    found = (_planned(_read(file), key, plan) for file in sweep.glob(f"*/seed-*/{path.name}"))
    return next((rows for rows in found if rows is not None), None)


def weights_of(player: Player) -> str:
    """What a card knows a model by: the digest of the weights that were trained; empty for a
    script.
    """
    return player.settings.get("adapter") or player.settings.get("weights", "")


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of the run's model before training and, where that has ended, after, and of
    scripted policies, on the same held-out incidents. Kept in `evaluation.parquet`.

    Args:
        run: the run's folder.
        episodes: incidents of each task.
        split: of the incidents; of `train` it is the tuning slice, which nothing is trained on (see
            `first_of`). Results on other splits stay in the file.
        references: names of scripted policies.
        batch: incidents handed to a policy at once.
        progress: whether to show bars.

    Returns:
        The rows of `base`, `trained` and the references on this split, with the columns `weights`
        (see `weights_of`) and `key`.
    """
    run = Path(run)
    players = [*before_and_after(run).values(), *map(scripted, references)]
    path = run / "evaluation.parquet"
    return _results(path, players, [split], episodes, batch, progress)


def evaluate_checkpoints(
    run: str | Path,
    episodes: int = 60,
    split: str = "test",
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of every checkpoint on the first held-out incidents of each task, with the
    column `step`. Kept in `checkpoints.parquet`; the arguments are those of `evaluate_run`.

    Raises:
        FileNotFoundError: the run has no checkpoints.
    """
    run = Path(run)
    folders = sorted(run.glob("checkpoint-*"), key=step_of)
    if not folders:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    players = [model_player(run, folder, folder.name) for folder in folders]
    path = run / "checkpoints.parquet"
    return _results(path, players, [split], episodes, batch, progress)


def evaluate_splits(
    run: str | Path, episodes: int = 100, batch: int = 100, progress: bool = True
) -> pd.DataFrame:
    """Greedy rollouts of the run's model, before and after, on the splits that hold something new.
    Kept in `splits.parquet`; the arguments are those of `evaluate_run`.
    """
    run = Path(run)
    new = [split for split in SPLITS if split.startswith("unseen")]
    players = list(before_and_after(run).values())
    return _results(run / "splits.parquet", players, new, episodes, batch, progress)


def audit_run(run: str | Path, episodes: int = 200, progress: bool = True) -> pd.DataFrame:
    """Whether the run's model, before and after, knew what it answered (see `bench.audit`) in
    greedy play on `test`. Kept in `audit.parquet`; the arguments are those of `evaluate_run`.
    """
    run = Path(run)
    players = list(before_and_after(run).values())
    path = run / "audit.parquet"
    return _results(path, players, ["test"], episodes, 50, progress, judge_result)


def compare_transcripts(
    run: str | Path, task: str = "cascading_failure", split: str = "test"
) -> dict[str, Any]:
    """Conversations about the same held-out incident, before and after training; kept in
    `transcripts.json`.

    It is the first one that the base fails and the trained model solves: a choice made to show a
    difference. `telling` is False when there is none such, and the first incident stands in.
    Averages are in `evaluation.parquet`.
    """
    run = Path(run)
    path, models = run / "transcripts.json", before_and_after(run)
    weights = {name: weights_of(player) for name, player in models.items()}
    asked = {"task": task, "split": split, "weights": weights, "benchmark": BENCHMARK_VERSION}
    if path.exists():
        kept = json.loads(path.read_text())
        if all(kept.get(key) == value for key, value in asked.items()):
            return kept
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    evaluation = evaluation[(evaluation.task == task) & (evaluation.split == split)]
    scores = evaluation.pivot_table(index="index", columns="policy", values="score")
    solved = scores[(scores.trained > SOLVED_ABOVE) & (scores.base < FAILED_BELOW)]
    index = int((solved if len(solved) else scores).index[0])
    comparison: dict[str, Any] = {**asked, "index": index, "telling": bool(len(solved))}
    incident = sample_incident(task, split, index)
    for name, player in models.items():
        policy, episode = player.make(0), Episode(incident)
        (played,) = policy.play([episode])
        comparison[name] = {
            "score": final_score(episode)._asdict(),
            "messages": list(played.messages),
        }
    comparison["truth"] = {
        "root": incident.root,
        "severity": incident.severity,
        "remedy": incident.remedy,
        "team": incident.team,
    }
    write_text(path, json.dumps(comparison, indent=1) + "\n")
    return comparison


def tell(messages: list[Message]) -> str:
    """A conversation as plain text, without the system prompt."""
    lines = []
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            values = ", ".join(map(str, function["arguments"].values()))
            lines.append(f">>> {function['name']}({values})")
        if message["content"]:
            indent = "    " if message["role"] != "assistant" else ">>> "
            lines += [indent + line for line in message["content"].splitlines()]
    return "\n".join(lines)
