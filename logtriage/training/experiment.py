"""One whole experiment in a folder: base model, GRPO run, held-out evaluation, figures, summary.

    runs/demo/base/       the base model
    runs/demo/seed-0/     the run (see `training`), then
        evaluation.parquet  a row an episode of base, trained and scripted policies, all on the same
        incidents checkpoints.parquet likewise, of the model at each checkpoint, on the first few of
        them transcripts.json    the same incident before and after training
        summary.json        the table that is printed
        *.png               the figures

Every step is skipped when its result is there, so the same command continues what was interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..agents.language_models import TURN_TOKENS, LanguageModelPolicy, load_language_model
from ..agents.registry import make_policy
from ..measure.intervals import mean_interval, paired_gain
from ..measure.rollouts import rollout
from ..measure.runs import write_text
from ..play.episode import Episode
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, TASKS
from .grpo import model_of

REFERENCES = ("loudest", "trace", "oracle")


def read_jsonl(path: str | Path) -> pd.DataFrame:
    """A JSONL file as a frame; `FileNotFoundError` says which command makes it."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `make demo` or notebook 03 first")
    return pd.read_json(path, lines=True)


def run_policy(run: str | Path, weights: Path | None, name: str) -> LanguageModelPolicy:
    """A run's model as a greedy policy: with the weights (or the adapter) in a folder, or, for
    None, as it started.
    """
    settings = json.loads((Path(run) / "config.json").read_text())["settings"]
    base, in_4bit = model_of(run), settings["load_in_4bit"]
    if weights is not None and (weights / "adapter_config.json").exists():
        model, tokenizer = load_language_model(base, in_4bit, adapter=weights)
    else:
        model, tokenizer = load_language_model(weights or base, in_4bit)
    return LanguageModelPolicy(
        model, tokenizer, name=name, turn_tokens=max(TURN_TOKENS, settings["turn_tokens"])
    )


def _digest(folder: Path) -> str:
    """Digest of the weights in a folder: what a result about them belongs to."""
    files = sorted(folder.glob("*.safetensors"))
    return (
        hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
        if files
        else ""
    )


def _played(path: Path, name: str, weights: str, split: str, episodes: int) -> pd.DataFrame | None:
    """The rows that a file holds of a policy with these weights on these incidents; None when there
    are none.
    """
    frame = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    if not len(frame):
        return None
    rows = frame[
        (frame["policy"] == name) & (frame["weights"] == weights) & (frame["split"] == split)
    ]
    return rows if len(rows) == episodes * len(TASKS) else None


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of the run's model before and after, and of scripted policies, on the same
    held-out incidents.

    Kept in `evaluation.parquet`; what is there for the same weights is not played again.
    """
    run = Path(run)
    path, frames = run / "evaluation.parquet", []
    folders = {"base": Path(model_of(run)), "trained": run / "model"}
    for name in ("base", "trained", *references):
        weights = _digest(folders[name]) if name in folders else ""
        rows = _played(path, name, weights, split, episodes)
        if rows is None:
            scripted = name in references
            policy = (
                make_policy(name)
                if scripted
                else run_policy(run, None if name == "base" else folders[name], name)
            )
            rows = rollout(
                policy, list(TASKS), split, episodes, batch=batch, progress=progress
            ).assign(weights=weights)
        frames.append(rows)
    frame = pd.concat(frames, ignore_index=True)
    frame.to_parquet(path, index=False)
    return frame


def evaluate_checkpoints(
    run: str | Path,
    episodes: int = 60,
    split: str = "test",
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of every checkpoint on the first held-out incidents of each task, with the
    column `step`.

    Kept in `checkpoints.parquet`; what is there for the same weights is not played again.
    """
    run = Path(run)
    path, frames = run / "checkpoints.parquet", []
    for folder in sorted(
        run.glob("checkpoint-*"), key=lambda folder: int(folder.name.split("-")[1])
    ):
        weights = _digest(folder)
        rows = _played(path, folder.name, weights, split, episodes)
        if rows is None:
            policy = run_policy(run, folder, folder.name)
            rows = rollout(policy, list(TASKS), split, episodes, batch=batch, progress=progress)
            rows = rows.assign(weights=weights, step=int(folder.name.split("-")[1]))
        frames.append(rows)
    if not frames:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    frame = pd.concat(frames, ignore_index=True)
    frame.to_parquet(path, index=False)
    return frame


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """A row a task: base, trained, and the paired gain, each with its 95 % interval; written to
    `summary.json`.
    """
    rows = []
    for task, part in evaluation.groupby("task", sort=False):
        base, trained = (part[part.policy == name] for name in ("base", "trained"))
        rows.append(
            {
                "task": task,
                "benchmark": BENCHMARK_VERSION,
                "episodes": len(base),
                "base": mean_interval(base["score"]),
                "trained": mean_interval(trained["score"]),
                "gain": paired_gain(base, trained),
                "root_cause_base": base["root_cause"].mean(),
                "root_cause_trained": trained["root_cause"].mean(),
                **{
                    name: part[part.policy == name]["score"].mean()
                    for name in REFERENCES
                    if (part.policy == name).any()
                },
            }
        )
    write_text(Path(run) / "summary.json", json.dumps(rows, indent=1) + "\n")
    return rows


def summary_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """`summarise_run`'s rows (or `summary.json` read back) as text cells."""

    def cell(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return "{:.2f} [{:.2f}, {:.2f}]".format(*value)
        return f"{value:.2f}" if isinstance(value, float) else value

    return pd.DataFrame(
        [{key.replace("_", " "): cell(value) for key, value in row.items()} for row in rows]
    )


def first_and_last(episodes: pd.DataFrame, count: int = 10) -> pd.DataFrame:
    """The model card's table: mean training score of the first and the last `count` incidents of
    each task.

    One completion of each incident counts, so that the ten are ten different ones.
    """
    rows = []
    for task, group in episodes.drop_duplicates(["task", "index"]).groupby("task", sort=False):
        first, last = group["score"].iloc[:count].mean(), group["score"].iloc[-count:].mean()
        rows.append(
            {
                "task": task,
                f"first {count}": first,
                f"last {count}": last,
                "change": last - first,
                "incidents": len(group),
            }
        )
    return pd.DataFrame(rows)


def compare_transcripts(
    run: str | Path, task: str = "cascading_failure", split: str = "test"
) -> dict[str, Any]:
    """The same held-out incident told twice, before and after training; kept in `transcripts.json`.

    It is the first one that the trained model scores above 0.8 and the base below 0.4: a choice
    made to show a difference, and `telling` is False when there is none such and the first incident
    stands in. Averages are in `evaluation.parquet`.
    """
    run = Path(run)
    path, weights = run / "transcripts.json", _digest(run / "model")
    if path.exists():
        comparison = json.loads(path.read_text())
        if (comparison["task"], comparison["split"], comparison["weights"]) == (
            task,
            split,
            weights,
        ):
            return comparison
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    scores = evaluation[evaluation.task == task].pivot_table(
        index="index", columns="policy", values="score"
    )
    telling = scores[(scores.trained > 0.8) & (scores.base < 0.4)]
    index = int((telling if len(telling) else scores).index[0])
    comparison = {
        "task": task,
        "split": split,
        "index": index,
        "weights": weights,
        "telling": bool(len(telling)),
    }
    for name, folder in (("base", None), ("trained", run / "model")):
        policy, episode = (
            run_policy(run, folder, name),
            Episode(sample_incident(task, split, index)),
        )
        policy.play([episode])
        comparison[name] = {"score": episode.score._asdict(), "messages": policy.transcripts[0]}
    incident = episode.incident
    comparison["truth"] = {
        name: getattr(incident, name) for name in ("root", "severity", "remedy", "team")
    }
    write_text(path, json.dumps(comparison, indent=1) + "\n")
    return comparison


def tell(messages: list[dict[str, Any]]) -> str:
    """A conversation as plain text, without the system prompt."""
    lines = []
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            lines.append(
                f">>> {function['name']}({', '.join(map(str, function['arguments'].values()))})"
            )
        if message["content"]:
            indent = "    " if message["role"] != "assistant" else ">>> "
            lines += [indent + line for line in message["content"].splitlines()]
    return "\n".join(lines)
