"""Supervised training of the embedded base model, and conversations in tokens for any model."""

import re
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from tqdm import tqdm

from logtriage.play.conversation import Message


class Example(NamedTuple):
    ids: list[int]  # of the tokens of a conversation to learn from
    own: list[bool]  # which of them the assistant wrote
    targets: list[tuple[int, int, float]]  # to be written, as (place, token, weight), by place


BATCH = 8  # conversations per update of the embedded model
# The model also predicts some tokens that the assistant did not write: this share, drawn at random,
# each with this weight. A token that it wrote weighs 1.
OBSERVED, OBSERVED_WEIGHT = 0.25, 0.4
ADAM_SHARE = 0.2  # AdamW's learning rate, as a share of Muon's


# What is equal in all calls of a kind, in Qwen's template.
FIXED = re.compile(
    r'<tool_call>\n\{"name": "|", "arguments": \{(?:"\w+": ")?|", "\w+": "|"?\}\}\n</tool_call>'
)


def encode(
    tokenizer: Any,
    messages: list[Message],
    schemas: list[dict[str, Any]] | None,
    fixed_weight: float = 1.0,
) -> Example:
    """Token ids of a conversation, and which the assistant wrote, its ends of turns included: these
    are its targets. A token that all calls have has the `fixed_weight`.
    """
    text = tokenizer.apply_chat_template(messages, tools=schemas, tokenize=False)
    spans, at = [], 0  # of the characters that the assistant wrote, as (first, after the last)
    opening, closing = "<|im_start|>assistant\n", "<|im_end|>"
    while (start := text.find(opening, at)) >= 0:
        at = text.index(closing, start) + len(closing)
        spans.append((start + len(opening), at))
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    own = [any(low <= left < high for low, high in spans) for left, _ in encoded["offset_mapping"]]
    ids = encoded["input_ids"]
    fixed = {at for match in FIXED.finditer(text) for at in range(*match.span())}
    targets = [
        (at, ids[at], fixed_weight if left in fixed else 1.0)
        for at, (left, _) in enumerate(encoded["offset_mapping"])
        if own[at]
    ]
    return Example(ids, own, targets)


def batches(examples: list[Example], random: Random) -> list[list[Example]]:
    """Batches in random order. Examples of a batch have similar length, which saves padding."""
    # Noise on the lengths (tokens) mixes neighbours.
    order = sorted(examples, key=lambda example: len(example.ids) + random.random() * 40)
    together = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    random.shuffle(together)
    return together


def _loss(model: Any, batch: list[Example], generator: Any) -> Any:
    """The weighted mean cross-entropy of the targets and of some tokens that are only read."""
    import torch

    longest = max(len(example.ids) for example in batch)
    ids = torch.full((len(batch), longest), model.config.pad_token_id)
    observed = torch.rand(ids.shape, generator=generator) < OBSERVED
    learned = []  # (row, place, token, weight), by row and place
    for row, (tokens, own, targets) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        seen = [not wrote and bool(observed[row, at]) for at, wrote in enumerate(own)]
        read = [(at, tokens[at], OBSERVED_WEIGHT) for at, wanted in enumerate(seen) if wanted]
        # Nothing stands before a conversation's first token to predict it from.
        learned += [(row, *target) for target in sorted(read + targets) if target[0]]
    row, place, token, weight = map(torch.tensor, zip(*learned, strict=True))
    # Sum the weights as a table: another order would change the last digits.
    table = torch.zeros(ids.shape).index_put((row, place), weight, accumulate=True)
    # Logits of other tokens are not computed.
    hidden = model.base_model(ids[:, :-1].to(model.device)).last_hidden_state[row, place - 1]
    losses = torch.nn.functional.cross_entropy(
        model.get_output_embeddings()(hidden), token.to(model.device), reduction="none"
    )
    return (losses * weight.to(model.device)).sum() / table[:, 1:].sum()


def train_on(
    model: Any,
    together: Iterable[list[Example]],
    steps: int,
    seed: int,
    learning_rate: float,
    label: str,
    log: list[dict[str, Any]],
) -> None:
    """Train with supervision, with a short warm-up of the rate and linear decay. Muon trains the
    matrices within the layers, AdamW the embeddings, norms and biases.

    Args:
        together: a batch for each of the `steps`, perhaps made by the model as trained so far.
        seed: for the choice of tokens that are only read.
        learning_rate: Muon's peak; AdamW's is `ADAM_SHARE` of it.
        label: of the progress bar and the log, which gets a row of losses every 20 steps.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    warmup = min(30, max(1, steps // 20))

    def rate(step: int) -> float:
        return min((step + 1) / warmup, max(0.0, (steps - step) / max(1, steps - warmup)))

    within = [p for p in model.base_model.layers.parameters() if p.ndim == 2]
    chosen = {id(p) for p in within}
    others = [p for p in model.parameters() if id(p) not in chosen]
    slower = {"lr": ADAM_SHARE * learning_rate, "betas": (0.9, 0.98), "weight_decay": 0.01}
    muon = torch.optim.Muon(within, lr=learning_rate, weight_decay=0.01)
    optimizers = [muon, torch.optim.AdamW(others, **slower)]
    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, rate) for optimizer in optimizers]
    for batch in tqdm(together, total=steps, desc=label, mininterval=5.0):
        model.train()
        loss = _loss(model, batch, generator)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        # Muon rounds to bfloat16, which is 20 times as slow on a processor that cannot compute it.
        with patch.object(torch.Tensor, "bfloat16", torch.Tensor.float):
            for part in (*optimizers, *schedules):
                part.step()
        step = schedules[0].last_epoch
        if step % 20 == 0:
            log.append({"phase": label, "step": step, "loss": loss.item()})
    model.eval()
