"""The embedded base model, which is built in minutes on a CPU: a demonstration should not depend on
a download.

A Qwen2 decoder of about one million parameters with its own tokenizer, built from text of `train`
only. It first learns to *read* (see `drills`), then imitates a *novice on-call* who knows the
runbook but blames the loudest service, and is often wrong. Neither shows it the right answer of an
incident; what GRPO adds, it learns from reward. A *general* base learns from other call graphs and
words, too, and reads services by path names. An *expert* base is a finished one that has then
imitated `trace`.

The runbook facts in the drills (what a line proves, which remedy and team go with it) are true in
the simulated world: a runbook is what an on-call has. Results of this model must say so.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from ..bench.runs import locked, weights_digest, write_text
from ..play.conversation import Message
from ..play.episode import Episode, OpenEpisode, final_score
from ..play.tools import tool_schemas
from ..policies.llm.language_models import LanguageModelPolicy
from ..policies.llm.loading import load_language_model
from ..policies.novice import NovicePolicy
from ..world.tasks import TASKS
from .drills import HOLDOUT_INDEX, drill, expert_episode, novice_episode, open_varied
from .supervised import encode, train_on
from .tokenizer import TOKENIZER_EXAMPLES, build_tokenizer, tokenizer_texts

DIGESTED = 40  # examples of each kind by which a finished model is recognised
# Numbers of examples, and passes over them. General ones teach more, so none is read twice.
PLAIN_SIZES = {"drills": 3000, "drill_epochs": 2, "novices": 3000, "novice_epochs": 2}
GENERAL_SIZES = {"drills": 10_000, "drill_epochs": 1, "novices": 5500, "novice_epochs": 1}
# Peak, and the width at which it was chosen. It goes by 1 / width, as muP has it for hidden weights
# (Yang et al. 2022).
LEARNING_RATE, TUNED_WIDTH = 2.5e-3, 128
EXPERT_EPOCHS, EXPERT_RATE = 1, 1e-3

Log = list[dict[str, Any]]  # rows of losses
Made = tuple[Any, Any, dict[str, Any]]  # a model, its tokenizer, and facts to record


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


def compare_with_novice(model: Any, tokenizer: Any, open_episode: OpenEpisode) -> dict[str, float]:
    """Mean scores of the base model (greedy) and of the novice, on 32 incidents of each task, of a
    slice of `train` that nothing was trained on.
    """
    base = LanguageModelPolicy(model, tokenizer, name="base")
    scores, numbers = {}, range(HOLDOUT_INDEX, HOLDOUT_INDEX + 32)
    for policy in (base, NovicePolicy(Random("parity"))):
        played = [open_episode(task, "train", index) for task in TASKS for index in numbers]
        policy.play(played)
        total = sum(final_score(episode).total for episode in played)
        scores[policy.name] = round(total / len(played), 3)
    return scores


def build_base(
    folder: str | Path,
    seed: int = 0,
    hidden: int = 128,
    layers: int = 4,
    parity: float = 0.9,
    general: bool = False,
    **sizes: int,
) -> Path:
    """Build the base model and save it; a finished folder is returned as it is.

    Args:
        folder: of the model, its tokenizer and `base.json` (settings, seconds, losses).
        seed: of initialisation and batch order.
        hidden, layers: the model's width (dimensions per token) and depth.
        parity: share of the novice's mean score that the model must reach, played greedily.
        general: whether to learn from general examples, and to reach `parity` on such.
        sizes: changes of `PLAIN_SIZES`, or `GENERAL_SIZES`; negative ones change nothing.

    Raises:
        ValueError: when the folder holds another base, or the model fails to reach `parity`.
    """
    import torch

    usual = GENERAL_SIZES if general else PLAIN_SIZES
    if unknown := sizes.keys() - usual:
        raise TypeError(f"unknown sizes {sorted(unknown)}; choose of {', '.join(usual)}")
    sizes = usual | {name: size for name, size in sizes.items() if size >= 0}
    settings: dict[str, Any] = {
        "seed": seed,
        **sizes,
        "learning_rate": LEARNING_RATE * (TUNED_WIDTH / hidden),
        "hidden": hidden,
        "layers": layers,
        "examples": _digest(
            messages
            for i in range(DIGESTED)
            for messages in (drill(i, general), novice_episode(i, general))
        ),
    }
    if general:
        settings["general"] = True

    def make(log: Log) -> Made:
        torch.manual_seed(seed)
        tokenizer = build_tokenizer(tokenizer_texts(TOKENIZER_EXAMPLES, general), general=general)
        model = new_model(tokenizer, hidden, layers)
        model.config.path_names = general
        schemas = tool_schemas()
        rate = settings["learning_rate"]
        teach = partial(train_on, model, seed=seed, learning_rate=rate, log=log)
        reading = [encode(tokenizer, drill(i, general), None) for i in range(sizes["drills"])]
        novices = [novice_episode(i, general) for i in range(sizes["novices"])]
        triage = [encode(tokenizer, messages, schemas) for messages in novices]
        teach(examples=reading, epochs=sizes["drill_epochs"], label="drills")
        teach(examples=triage, epochs=sizes["novice_epochs"], label="novice", stream="junior")
        check = compare_with_novice(model, tokenizer, open_varied if general else Episode.open)
        if check["base"] < parity * check["novice"]:
            raise ValueError(
                f"the base model has not learned what the novice knows: mean scores {check}; train "
                "it on more, or longer"
            )
        return model, tokenizer, {"check": check}

    return _finished(Path(folder), settings, make)


def build_expert(folder: str | Path, base: str | Path, seed: int = 0, episodes: int = 3000) -> Path:
    """Fine-tune a base model on so many episodes of `trace` and save it; a finished folder is
    returned as it is. `ValueError` when it has other settings, or `base` is none.
    """
    base = Path(base)
    weights = weights_digest(base)
    if not weights:
        raise ValueError(f"{base} holds no model; build one first, with `build-base`")
    settings = {
        "base": weights,
        "seed": seed,
        "episodes": episodes,
        "epochs": EXPERT_EPOCHS,
        "learning_rate": EXPERT_RATE,
        "examples": _digest(expert_episode(i) for i in range(DIGESTED)),
    }

    def make(log: Log) -> Made:
        model, tokenizer = load_language_model(base)
        model.float()  # on a GPU it comes in half precision, which is too little to train in
        schemas = tool_schemas()
        examples = [encode(tokenizer, expert_episode(i), schemas) for i in range(episodes)]
        train_on(model, examples, EXPERT_EPOCHS, seed, EXPERT_RATE, "expert", log, stream="teacher")
        return model, tokenizer, {}

    return _finished(Path(folder), settings, make)


def _finished(folder: Path, settings: dict[str, Any], make: Callable[[Log], Made]) -> Path:
    """The folder, once it holds what `make` returns; a second process waits for the first."""
    if _is_finished(folder, settings):  # no lock is needed: the folder may be read-only
        return folder
    with locked(folder, wait=True):
        if _is_finished(folder, settings):
            return folder
        began, cpu_began = time.perf_counter(), time.process_time()
        log: Log = []
        model, tokenizer, facts = make(log)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        record = {
            "settings": settings,
            **facts,
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


def _digest(conversations: Iterable[list[Message]]) -> str:
    """Digest of examples: a model that was made from others is another model."""
    return hashlib.sha256(json.dumps(list(conversations)).encode()).hexdigest()[:16]
