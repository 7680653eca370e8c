"""The experiment of notebooks 03 and 04: from which base a run starts, and what came of it.

Evaluations are in `bench.run_evaluation`; the figures of notebook 04 join them in the run's folder.
"""

from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from logtriage.play.conversation import Message

from ..bench.run_evaluation import evaluate_checkpoints, evaluate_run, evaluate_splits
from ..language_models.loading import resolve_model
from ..language_models.smollm2 import SMOLLM2
from .base_model import build_base, build_expert
from .imitation import build_imitated


def base_for(preset: str, track: Path, base: str = "auto", **options: Any) -> str:
    """Name or folder of the base that the preset `novice`, `expert` or `smollm2` starts from. That
    of `smollm2` is made in `track`, or in the folder `base`, with `options` of `build_imitated`.

    Args:
        track: the folder of the track's runs; an expert is made in its `base/`.
        base: `built` is the one in `base/` of the novice's track, built by `options` if it is not
            there yet; `auto` is that one if it is there, else the package's; else it is a folder.
    """
    if preset == SMOLLM2:
        folder = track / "base" if base in ("auto", "built") else base
        return str(build_imitated(folder, SMOLLM2, "novice", **options))
    built = (track.parent / "novice" if preset == "expert" else track) / "base"
    if base == "auto" and not (built / "base.json").exists():
        name, start = "base", resolve_model("base")
    else:
        name = str(built if base in ("auto", "built") else base)
        start = build_base(name, **options)
    return str(build_expert(track / "base", start)) if preset == "expert" else name


# What notebook 4 shows of a run: rows of its episodes in training, on `test`, at each checkpoint
# and on the other splits.
Outcome: TypeAlias = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]


def play_out(run: Path, episodes: int, splits: int, curve: int, batch: int) -> Outcome:
    """The outcome of a finished run, from `episodes` incidents of each task of `test`, `splits` of
    each other split, and `curve` at each checkpoint.
    """
    return (
        pd.read_json(run / "episodes.jsonl", lines=True),
        evaluate_run(run, episodes, batch=batch),
        evaluate_checkpoints(run, curve, batch),
        evaluate_splits(run, splits, batch),
    )


def published(run: Path) -> Outcome:
    """The outcome of a published run, in a folder such as `results/novice/seed-1`."""
    names = ("episodes", "evaluation", "checkpoints", "splits")
    training, test, curve, splits = (pd.read_parquet(run / f"{name}.parquet") for name in names)
    return training, test, curve, splits


def conversation_text(messages: list[Message]) -> str:
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
