"""The embedded base model, which is built in minutes on a CPU: a demonstration should not depend on
a download.

A Qwen2 decoder of about one million parameters with its own tokenizer, built from text of `train`
only, on many call graphs and in many words; it reads services by path names. It first learns to
*read* (see `drills`), then imitates a *novice on-call* who knows the runbook but blames the loudest
service, and is often wrong. Neither shows it the right answer of an incident; what GRPO adds, it
learns from reward. An *expert* base is a finished one that `belief` has then taught, by its own
episodes first, and by what it would have done in the model's (see `distillation`).

The runbook facts in the drills (what a line proves, which remedy and team go with it) are true in
the simulated world: a runbook is what an on-call has. Results of this model must say so.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from joblib import Parallel, delayed

from ..bench.runs import locked, weights_digest, write_text
from ..play.conversation import Message
from ..play.tools import tool_schemas
from ..policies.llm.loading import load_language_model
from .distillation import own_examples
from .drills import drill, expert_episode, novice_episode
from .supervised import BATCH, Example, batches, encode, train_on
from .tokenizer import TOKENIZER_EXAMPLES, build_tokenizer, tokenizer_texts

DIGESTED = 40  # examples of each kind by which a finished model is recognised
LEARNING_RATE, EXPERT_RATE = 0.02, 0.01  # peaks; see `supervised.train_on`

Log = list[dict[str, Any]]  # rows of losses
Made = tuple[Any, Any]  # a model and its tokenizer


def new_model(tokenizer: Any, hidden: int, layers: int) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    # The wide initialisation is decisive: with the default of 0.02 it hardly learns to read.
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=3 * hidden,
            tie_word_embeddings=True,
            max_position_embeddings=2048,
            initializer_range=0.6 / math.sqrt(hidden),
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=True,
        )
    )


def build_base(
    folder: str | Path,
    seed: int = 0,
    hidden: int = 128,
    layers: int = 4,
    drills: int = 10_000,
    novices: int = 5500,
) -> Path:
    """Build the base model and save it; a finished folder is returned as it is.

    Args:
        folder: of the model, its tokenizer and `base.json` (settings, seconds, losses).
        seed: of initialisation and batch order.
        hidden, layers: the model's width (dimensions per token) and depth.
        drills, novices: how many to learn from, each read once.

    Raises:
        ValueError: when the folder holds another base.
    """
    import torch

    settings = {
        "seed": seed,
        "drills": drills,
        "novices": novices,
        "learning_rate": LEARNING_RATE,
        "hidden": hidden,
        "layers": layers,
        "examples": _digest(
            messages for i in range(DIGESTED) for messages in (drill(i), novice_episode(i))
        ),
    }

    def make(log: Log) -> Made:
        torch.manual_seed(seed)
        tokenizer = build_tokenizer(tokenizer_texts(TOKENIZER_EXAMPLES))
        model = new_model(tokenizer, hidden, layers)
        model.config.path_names = True
        schemas = tool_schemas()
        reading = [encode(tokenizer, drill(i), None) for i in range(drills)]
        triage = [encode(tokenizer, novice_episode(i), schemas) for i in range(novices)]
        _imitate(model, reading, seed, LEARNING_RATE, "drills", log)
        _imitate(model, triage, seed, LEARNING_RATE, "novice", log)
        return model, tokenizer

    return _finished(Path(folder), settings, make)


def build_expert(
    folder: str | Path, base: str | Path, seed: int = 0, shown: int = 1500, own: int = 10_000
) -> Path:
    """Teach a base model what `belief` would do, and save it; a finished folder is returned as it
    is. `ValueError` when it has other settings, or `base` is none.

    Args:
        base: the folder of the model to start from.
        shown: how many of the expert's own episodes it imitates first.
        own: how many it then plays itself, corrected by the expert (see `distillation`).
    """
    base = Path(base)
    weights = weights_digest(base)
    if not weights:
        raise ValueError(f"{base} holds no model; build one first, with `build-base`")
    settings = {
        "base": weights,
        "seed": seed,
        "shown": shown,
        "own": own,
        "learning_rate": EXPERT_RATE,
        "examples": _expert_digest(),
    }

    def make(log: Log) -> Made:
        model, tokenizer = load_language_model(base)
        model.float()  # on a GPU it comes in half precision, which is too little to train in
        schemas = tool_schemas()
        episodes = Parallel(n_jobs=-1)(delayed(expert_episode)(i) for i in range(shown))
        examples = [encode(tokenizer, one, schemas) for one in episodes]
        _imitate(model, examples, seed, EXPERT_RATE, "expert", log)
        together = own_examples(model, tokenizer, shown, own, seed)
        train_on(model, together, math.ceil(own / BATCH), seed, EXPERT_RATE, "own", log)
        return model, tokenizer

    return _finished(Path(folder), settings, make)


def _imitate(
    model: Any, examples: list[Example], seed: int, rate: float, label: str, log: Log
) -> None:
    """One pass over examples that are there already."""
    together = batches(examples, Random(f"batches/{seed}/{label}"))
    train_on(model, together, len(together), seed, rate, label, log)


def _finished(folder: Path, settings: dict[str, Any], make: Callable[[Log], Made]) -> Path:
    """The folder, once it holds what `make` returns; a second process waits for the first."""
    if _is_finished(folder, settings):  # no lock is needed: the folder may be read-only
        return folder
    with locked(folder, wait=True):
        if _is_finished(folder, settings):
            return folder
        began, cpu_began = time.perf_counter(), time.process_time()
        log: Log = []
        model, tokenizer = make(log)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        record = {
            "settings": settings,
            "log": log,
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - cpu_began, 1),
        }
        # Written last: a folder with it is finished.
        write_text(folder / "base.json", json.dumps(record, indent=1))
    return folder


def _is_finished(folder: Path, settings: dict[str, Any]) -> bool:
    """Whether the folder holds a finished model; `ValueError` for one with other settings."""
    if not (folder / "base.json").exists():
        return False
    found = json.loads((folder / "base.json").read_text())["settings"]
    if found != settings:
        raise ValueError(
            f"{folder} holds a base built with {found}, not {settings}; choose another folder"
        )
    return True


@cache  # the posteriors of so many episodes take seconds
def _expert_digest() -> str:
    """`_digest` of what an expert shows."""
    return _digest(expert_episode(i) for i in range(DIGESTED))


def _digest(conversations: Iterable[list[Message]]) -> str:
    """Digest of examples: a model that was made from others is another model."""
    return hashlib.sha256(json.dumps(list(conversations)).encode()).hexdigest()[:16]
