"""One whole experiment in a folder: base model, GRPO run, held-out evaluation, figures, summary.

    runs/novice/base/   the base model (see `base_model`)
    runs/novice/seed-0/ the run (see `grpo`), and then

| file | what |
|---|---|
| `evaluation.parquet` | a row an episode of base, trained and scripted policies, same incidents |
| `checkpoints.parquet` | likewise, of the model at each checkpoint, on the first few of them |
| `splits.parquet` | likewise, of base and trained on the splits that hold something new |
| `audit.parquet` | whether base and trained knew what they answered (see `measure.audit`) |
| `transcripts.json` | the same incident before and after training |
| `summary.json` | the table that is printed, and every stratum before and after (see `summaries`) |
| `*.png` | the figures |

Every step is skipped when its result is there, so the same command continues what was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch import OutOfMemoryError

from ..bench.audit import audit
from ..bench.registry import make_policy
from ..bench.rollouts import rollout
from ..bench.runs import model_of, record_of, step_of, weights_digest, write_text
from ..play.conversation import Message
from ..play.episode import Episode, final_score
from ..policies.llm.language_models import TURN_TOKENS, LanguageModelPolicy
from ..policies.llm.loading import load_language_model, runnable
from ..policies.scripted import Policy
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from .base_model import build_base, build_expert
from .drills import TUNING_INDEX
from .grpo import free_memory

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


def run_policy(run: str | Path, weights: Path | None, name: str) -> LanguageModelPolicy:
    """A run's model as a greedy policy: with the weights (or the adapter) in a folder, or, for
    None, as it started.
    """
    settings = record_of(run)["settings"]
    base, in_4bit = runnable(model_of(run), settings["load_in_4bit"])
    if weights is not None and (weights / "adapter_config.json").exists():
        model, tokenizer = load_language_model(base, in_4bit, adapter=weights)
    else:
        model, tokenizer = load_language_model(weights or base, in_4bit)
    turn_tokens = max(TURN_TOKENS, settings["turn_tokens"])
    return LanguageModelPolicy(model, tokenizer, name=name, turn_tokens=turn_tokens)


def _played(path: Path, name: str, weights: str, split: str, episodes: int) -> pd.DataFrame | None:
    """The rows that a run's file, or that of another seed or row of its sweep, holds of a policy
    with these weights on these incidents, as the benchmark now is; None when there are none.
    """
    last = first_of(split) + episodes
    sweep = path.resolve().parents[:3][-1]  # sweep/row/run/file
    for file in (path, *sorted(sweep.glob(f"*/seed-*/{path.name}"))):
        if not file.exists():
            continue
        frame = pd.read_parquet(file)
        same = (frame["policy"] == name) & (frame["weights"] == weights) & (frame["split"] == split)
        same &= (frame["benchmark"] == BENCHMARK_VERSION) & (frame["index"] < last)
        if same.sum() == episodes * len(TASKS):
            return frame[same]
    return None


def _played_or(
    path: Path, name: str, weights: str, split: str, episodes: int, play: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """`_played`'s rows, or where there are none those that `play` makes, with their weights."""
    rows = _played(path, name, weights, split, episodes)
    return play().assign(weights=weights) if rows is None else rows


def _written(path: Path, frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The frames as one, which is kept in a file; a file that holds all of them, and more of the
    same, stays as it is.
    """
    frame = pd.concat(frames, ignore_index=True)
    if path.exists():
        before = pd.read_parquet(path)
        of_these = before[before["split"].isin(frame["split"].unique())]
        if len(frame) < len(of_these) and not set(_played_rows(frame)) - set(_played_rows(before)):
            return frame
    partial = path.with_name(path.name + ".partial")  # another point may read it meanwhile
    frame.to_parquet(partial, index=False)
    partial.replace(path)
    return frame


def _played_rows(frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """What each row is of: policy, weights and incident."""
    columns = ["policy", "weights", "benchmark", "task", "split", "index"]
    return frame[columns].itertuples(index=False, name=None)


def _before_and_after(run: Path) -> dict[str, tuple[Path | None, str]]:
    """Name to the folder of the model's weights (None: as it started), and their digest; a model of
    a hub is known by its name. Before the end of training there is no `trained`.
    """
    base, trained = model_of(run), run / "model"
    models: dict[str, tuple[Path | None, str]] = {
        "base": (None, weights_digest(Path(base)) or base)
    }
    if trained.exists():
        models["trained"] = (trained, weights_digest(trained))
    return models


def _rollout(policy: Policy, split: str, episodes: int, batch: int, progress: bool) -> pd.DataFrame:
    """`rollout` on all tasks; where a GPU's memory ends, once more with half as many at once."""
    while True:
        try:
            return rollout(policy, list(TASKS), split, episodes, first_of(split), batch, progress)
        except OutOfMemoryError:
            if batch == 1:
                raise
        print(f"out of memory with {batch} episodes at once; playing {batch // 2}")
        batch //= 2
        free_memory()


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of the run's model before training and, where that has ended, after, and of
    scripted policies, on the same held-out incidents.

    Kept in `evaluation.parquet`; what is there for the same weights and benchmark is not played
    again.

    Args:
        run: the run's folder.
        episodes: incidents of each task.
        split: of the incidents; of `train` it is the tuning slice, which nothing is trained on (see
            `first_of`).
        references: names of scripted policies.
        batch: incidents handed to a policy at once.
        progress: whether to show bars.

    Returns:
        `rollout`'s rows of `base`, `trained` and the references, with the column `weights`, a
        digest (empty for what has none).
    """
    run = Path(run)
    path, frames, models = run / "evaluation.parquet", [], _before_and_after(run)
    for name in (*models, *references):
        folder, weights = models.get(name, (None, ""))

        def play(name: str = name, folder: Path | None = folder) -> pd.DataFrame:
            policy = run_policy(run, folder, name) if name in models else make_policy(name)
            return _rollout(policy, split, episodes, batch, progress)

        frames.append(_played_or(path, name, weights, split, episodes, play))
    return _written(path, frames)


def evaluate_checkpoints(
    run: str | Path,
    episodes: int = 60,
    split: str = "test",
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of every checkpoint on the first held-out incidents of each task, with the
    column `step`.

    Kept in `checkpoints.parquet`; what is there for the same weights and benchmark is not played
    again. The arguments are those of `evaluate_run`.

    Raises:
        FileNotFoundError: the run has no checkpoints.
    """
    run = Path(run)
    path, frames = run / "checkpoints.parquet", []
    steps = {step_of(folder): folder for folder in run.glob("checkpoint-*")}
    for step, folder in sorted(steps.items()):

        def play(folder: Path = folder) -> pd.DataFrame:
            policy = run_policy(run, folder, folder.name)
            return _rollout(policy, split, episodes, batch, progress)

        rows = _played_or(path, folder.name, weights_digest(folder), split, episodes, play)
        frames.append(rows.assign(step=step))
    if not frames:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    return _written(path, frames)


def evaluate_splits(
    run: str | Path, episodes: int = 100, batch: int = 100, progress: bool = True
) -> pd.DataFrame:
    """Greedy rollouts of the run's model, before and after, on the splits that hold something new.

    Kept in `splits.parquet`; what is there for the same weights and benchmark is not played again.
    The arguments are those of `evaluate_run`.
    """
    run = Path(run)
    path, frames, models = run / "splits.parquet", [], _before_and_after(run)
    for split in (split for split in SPLITS if split.startswith("unseen")):
        for name, (folder, weights) in models.items():

            def play(
                name: str = name, folder: Path | None = folder, split: str = split
            ) -> pd.DataFrame:
                policy = run_policy(run, folder, name)
                return _rollout(policy, split, episodes, batch, progress)

            frames.append(_played_or(path, name, weights, split, episodes, play))
    return _written(path, frames)


def audit_run(run: str | Path, episodes: int = 200, progress: bool = True) -> pd.DataFrame:
    """Whether the run's model, before and after, knew what it answered: `measure.audit` of greedy
    play on `test`.

    Kept in `audit.parquet`; what is there for the same weights and benchmark is not played again.
    The arguments are those of `evaluate_run`.
    """
    run = Path(run)
    path, frames = run / "audit.parquet", []
    for name, (folder, weights) in _before_and_after(run).items():

        def play(name: str = name, folder: Path | None = folder) -> pd.DataFrame:
            policy = run_policy(run, folder, name)
            return audit(policy, list(TASKS), episodes=episodes, progress=progress)

        frames.append(_played_or(path, name, weights, "test", episodes, play))
    return _written(path, frames)


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
    path, models = run / "transcripts.json", _before_and_after(run)
    weights = {name: digest for name, (_, digest) in models.items()}
    asked = {"task": task, "split": split, "weights": weights, "benchmark": BENCHMARK_VERSION}
    if path.exists():
        kept = json.loads(path.read_text())
        if all(kept.get(key) == value for key, value in asked.items()):
            return kept
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    scores = evaluation[evaluation.task == task].pivot_table(
        index="index", columns="policy", values="score"
    )
    solved = scores[(scores.trained > SOLVED_ABOVE) & (scores.base < FAILED_BELOW)]
    index = int((solved if len(solved) else scores).index[0])
    comparison: dict[str, Any] = {**asked, "index": index, "telling": bool(len(solved))}
    incident = sample_incident(task, split, index)
    for name, (folder, _) in models.items():
        policy, episode = run_policy(run, folder, name), Episode(incident)
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
