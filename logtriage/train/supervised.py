"""Supervised training on conversations: of the embedded base model, and of an adapter before GRPO.

A large model that hardly calls tools earns nothing that GRPO could learn from. In a warm-up its
adapter imitates a script on incidents of `train`, in the model's own chat template. That shows how
to call tools, and also what to look for: such a run is SFT, then RL, and its results must say so.
"""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

from tqdm import tqdm

from ..play.conversation import Message
from ..play.tools import tool_schemas
from .drills import TEACHERS
from .settings import TrainingConfig

Example = tuple[list[int], list[bool]]  # token ids, and which of them the assistant wrote
WARM_UP_RATE = 2e-4  # peak learning rate, the standard one for adapters of this rank
WARM_UP_BATCH = 8  # conversations per update, read one by one: their logits take much memory


def encode(
    tokenizer: Any, messages: list[Message], schemas: list[dict[str, Any]] | None
) -> Example:
    """Token ids of a conversation, and which of them the assistant wrote, its ends of turn too."""
    text = tokenizer.apply_chat_template(messages, tools=schemas, tokenize=False)
    spans, at = [], 0  # of the characters that the assistant wrote, as (first, after the last)
    opening, closing = "<|im_start|>assistant\n", "<|im_end|>"
    while (start := text.find(opening, at)) >= 0:
        at = text.index(closing, start) + len(closing)
        spans.append((start + len(opening), at))
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    own = [any(low <= left < high for low, high in spans) for left, _ in encoded["offset_mapping"]]
    return encoded["input_ids"], own


def _batches(examples: list[Example], size: int, random: Random) -> list[list[Example]]:
    """Batches of examples of similar length, which spares padding, in random order."""
    # Noise on the lengths (tokens) lets neighbours change from epoch to epoch.
    order = sorted(examples, key=lambda example: len(example[0]) + random.random() * 40)
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    random.shuffle(batches)
    return batches


def _padded(batch: list[Example], pad: int, observation_weight: float) -> tuple[Any, Any]:
    """Token ids and their weights in the loss, (examples, longest); padding weighs nothing."""
    import torch

    longest = max(len(tokens) for tokens, _ in batch)
    ids = torch.full((len(batch), longest), pad)
    weight = torch.zeros(len(batch), longest)
    for row, (tokens, own) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        weight[row, : len(tokens)] = torch.where(torch.tensor(own), 1.0, observation_weight)
    return ids, weight


def train_on(
    model: Any,
    examples: list[Example],
    epochs: int,
    seed: int,
    learning_rate: float,
    label: str,
    log: list[dict[str, Any]],
    stream: str = "",
    batch_size: int = 16,
    observation_weight: float = 0.1,
) -> None:
    """Supervised training with AdamW, a short warm-up of the rate and linear decay.

    Args:
        model: a causal language model.
        examples: from `encode`; read `epochs` times, `batch_size` a step.
        seed: of the order of batches, together with `stream`, by default the label.
        learning_rate: peak.
        label: of the progress bar and the log, which gets a row of losses every 20 steps.
        observation_weight: in the loss, of a token that the assistant did not write.
    """
    import torch

    random = Random(f"batches/{seed}/{stream or label}")
    steps = epochs * math.ceil(len(examples) / batch_size)
    warmup = min(30, max(1, steps // 20))

    def rate(step: int) -> float:
        return min((step + 1) / warmup, max(0.0, (steps - step) / max(1, steps - warmup)))

    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    model.train()
    with tqdm(total=steps, desc=label, mininterval=5.0) as bar:
        for _ in range(epochs):
            for batch in _batches(examples, batch_size, random):
                padded = _padded(batch, model.config.pad_token_id, observation_weight)
                ids, weight = (each.to(model.device) for each in padded)
                logits = model(ids[:, :-1]).logits
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
                )
                weight = weight[:, 1:].flatten()
                loss = (loss * weight).sum() / weight.sum()
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                bar.update()
                if bar.n % 20 == 0:
                    log.append({"phase": label, "step": bar.n, "loss": loss.item()})
    model.eval()


def warm_up(model: Any, tokenizer: Any, config: TrainingConfig, folder: Path) -> None:
    """Train a model's adapter on the conversations that `config.warm_up` names, once each, and save
    it in `<folder>/warm-up`; one that is there is loaded instead. Works on Unsloth's models, too.
    """
    from peft import set_peft_model_state_dict
    from peft.utils import load_peft_weights
    from torch import tensor
    from transformers import Trainer, TrainingArguments

    from .trainer import precision

    saved = folder / "warm-up"
    if saved.exists():
        set_peft_model_state_dict(model, load_peft_weights(str(saved)))
        return
    teacher, count = config.lessons
    schemas = tool_schemas()
    rows = []
    for index in range(count):
        ids, own = encode(tokenizer, TEACHERS[teacher](index), schemas)
        labels = [token if wrote else -100 for token, wrote in zip(ids, own, strict=True)]
        rows.append({"input_ids": ids, "labels": labels})

    def one(batch: list[dict[str, list[int]]]) -> dict[str, Any]:
        return {name: tensor([row[name] for row in batch]) for name in batch[0]}

    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=config.seed,
        num_train_epochs=1,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=WARM_UP_BATCH,
        learning_rate=WARM_UP_RATE,
        optim="adamw_torch",
        save_strategy="no",
        logging_steps=5,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        **precision(config),
    )
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=one).train()
    # Renamed when whole, as a run's model is.
    model.save_pretrained(str(saved.with_suffix(".partial")))
    saved.with_suffix(".partial").rename(saved)
