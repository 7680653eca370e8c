"""The base of a pretrained language model: an adapter that `imitation` teaches, and its folder.

It learns until two evaluations on a slice of `train` are nearly equal, or from a number of
examples, and later goes on from there.
"""

import json
import math
import time
from pathlib import Path
from typing import Any

from ..bench.runs import environment_record, locked, write_text
from ..language_models import loading
from .base_model import base_record
from .grpo import load_to_train
from .imitation import FIRST_READING, ON_POLICY, Imitator, Lessons, OnPolicyImitator
from .settings import TrainingConfig

EVALUATED, EVERY = 20, 8  # incidents of each task that are played, after so many pools
ENOUGH = 0.01  # evaluations differ by less when the base has learned what it will learn


def build_imitated(
    folder: str | Path,
    model: str,
    lessons: str,
    seed: int = 0,
    examples: int | None = None,
    hours: float = math.inf,
) -> Path:
    """Teach an adapter of `model` some `lessons`, and save it in `folder` with its tokenizer,
    `base.json` (settings, log, machine, seconds) and `state.pt`, to go on from. A base that lacks
    the last, as a published one, is taught further with a new optimizer.

    Args:
        model: see `resolve_model`; or the folder of a base, which is taught further in another.
        lessons: `novice` or `expert`, who plays the episodes, or `on-policy`, the model itself.
        seed: of the adapter's first weights and of the order of examples.
        examples: how many to learn from, rounded up to whole pools, by an earlier call too; None
            goes on until two evaluations differ by less than `ENOUGH`.
        hours: stop after so many, wherever that is; the same call goes on from there.

    Raises:
        ValueError: if the folder holds another base.
    """
    folder, began = Path(folder), time.perf_counter()
    settings = {"model": model, "lessons": lessons, "seed": seed}
    with locked(folder, wait=True):
        record = base_record(folder, settings) or {"examples": 0, "finished": False}
        if record["finished"] if examples is None else record["examples"] >= examples:
            return folder
        config = TrainingConfig(model=model, lora_rank=16, lora_alpha=32, seed=seed)
        adapted, tokenizer = load_to_train(config)
        taught = base_record(Path(model)) if loading.is_adapter(model) else None
        known = taught["examples"] if taught else 0
        kind = OnPolicyImitator if lessons == ON_POLICY else Imitator
        imitator = kind(adapted, tokenizer, Lessons(tokenizer, lessons, seed, known))
        if (folder / "state.pt").exists():
            imitator.load(folder / "state.pt")
        elif record["examples"]:
            imitator.load_published(folder, record)
        longest = 0.0
        while not _done(imitator, examples):
            pool_began = time.perf_counter()
            if pool_began - began + longest > 3600 * hours:
                break
            imitator.learn_pool()
            _save(imitator, folder, settings)
            # After reading alone it does not know how to end an episode.
            if imitator.pool > FIRST_READING and imitator.pool % EVERY == 0:
                imitator.evaluate(EVALUATED)
                _save(imitator, folder, settings)
            longest = max(longest, time.perf_counter() - pool_began)
    return folder


def _done(imitator: Imitator, examples: int | None) -> bool:
    """Whether the base has learned from enough examples, or will not become better."""
    if examples is not None:
        return imitator.examples >= examples
    scores = [row["score"] for row in imitator.log if "score" in row]
    return len(scores) > 1 and abs(scores[-1] - scores[-2]) < ENOUGH


def _save(imitator: Imitator, folder: Path, settings: dict[str, Any]) -> None:
    """Save a checkpoint and the base: in 16 bit, since the adapter is to be shipped."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    imitator.save(folder / "state.pt")
    with imitator.averaged():
        options = {"save_embedding_layers": False}  # else PEFT asks the hub for `smollm2`
        weights = get_peft_model_state_dict(imitator.model, **options)
        half = {name: weight.half() for name, weight in weights.items()}
        imitator.model.save_pretrained(folder, state_dict=half, **options)
    imitator.tokenizer.save_pretrained(folder)
    record = {
        "settings": settings,
        "examples": imitator.examples,
        "finished": _done(imitator, None),
        "log": imitator.log,
        "machine": environment_record()["machine"],
        "seconds": round(imitator.seconds, 1),
    }
    write_text(folder / "base.json", json.dumps(record, indent=1))
