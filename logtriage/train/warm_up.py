"""A warm-up before reward: an adapter imitates a script's conversations on incidents of `train`,
rendered by the model's own chat template.

A large model that hardly calls tools has nothing to be rewarded for. Two hundred conversations of
`trace` show it how to, and also what to look for: what such a run reaches is taught, then rewarded,
and must be told as that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..play.tools import tool_schemas
from .drills import TEACHERS
from .settings import TrainingConfig, lessons_of
from .supervised import encode

RATE = 2e-4  # peak; what is usual for adapters of this rank
TOGETHER = 8  # conversations an update, read one by one: their logits take much memory


def warm_up(model: Any, tokenizer: Any, config: TrainingConfig, folder: Path) -> None:
    """Teach a model's adapter the conversations that `config.warm_up` names, once each, and save it
    in `<folder>/warm-up`; one that is there is loaded instead.

    The loss is of what the assistant wrote. Works on a model of Unsloth as on one of PEFT.
    """
    from peft import set_peft_model_state_dict
    from peft.utils import load_peft_weights
    from torch import tensor
    from transformers import Trainer

    taught = folder / "warm-up"
    if taught.exists():
        set_peft_model_state_dict(model, load_peft_weights(str(taught)))
        return
    teacher, count = lessons_of(config.warm_up)
    schemas = tool_schemas()
    rows = []
    for index in range(count):
        ids, own = encode(tokenizer, TEACHERS[teacher](index), schemas)
        labels = [token if wrote else -100 for token, wrote in zip(ids, own, strict=True)]
        rows.append({"input_ids": ids, "labels": labels})

    def one(batch: list[dict[str, list[int]]]) -> dict[str, Any]:
        return {name: tensor([row[name] for row in batch]) for name in batch[0]}

    trainer = Trainer(
        model=model, args=_arguments(config, folder), train_dataset=rows, data_collator=one
    )
    trainer.train()
    # Renamed when whole, as a run's model is.
    model.save_pretrained(str(taught.with_suffix(".partial")))
    taught.with_suffix(".partial").rename(taught)


def _arguments(config: TrainingConfig, folder: Path) -> Any:
    """Settings of `transformers.Trainer` for one pass."""
    from transformers import TrainingArguments

    from .trainer import precision

    return TrainingArguments(
        output_dir=str(folder),
        seed=config.seed,
        num_train_epochs=1,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=TOGETHER,
        learning_rate=RATE,
        lr_scheduler_type="linear",
        warmup_steps=0,
        optim="adamw_torch",
        weight_decay=0.0,
        max_grad_norm=1.0,
        save_strategy="no",
        logging_steps=5,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        **precision(config),
    )
