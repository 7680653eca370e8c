"""The whole of it on one page: the environment, TRL's GRPOTrainer, and a held-out score.

    python examples/train.py  # the base in triagelab/agent, about 3 minutes on two CPU cores

In each step, four incidents are played eight times by tool calls; what scores above the others of
its incident becomes likelier. Before and after, the model plays incidents of `test` once each,
sampled as in training. A malformed call costs 0.05. The first argument names another model.
"""

import statistics
import sys
from pathlib import Path

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from logtriage.play.conversation import opening_messages
from logtriage.play.observation import CLOSED
from logtriage.play.tools import TriageTools
from triagelab.language_models.path_names import names_for

BASE = Path(__file__).parents[1] / "triagelab" / "agent" / "base"
TASK, STEPS, INCIDENTS, GROUP, HELD_OUT = "single_crash", 20, 4, 8, 120
source = sys.argv[1] if sys.argv[1:] else str(BASE)
tokenizer = PreTrainedTokenizerFast.from_pretrained(source)
model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
rewards: list[float] = []  # of all episodes that have ended


class Incident(TriageTools):
    """The seven actions as tools, for TRL."""

    def get_reward(self) -> float:
        rewards.append(super().get_reward())
        return rewards[-1]


def incidents(split: str, count: int) -> Dataset:
    """One row for each incident; TRL appends to the prompt what `reset` returns."""
    row = {"prompt": opening_messages(""), "task": TASK, "split": split}
    return Dataset.from_list([{**row, "index": index} for index in range(count)])


def held_out_score() -> str:
    """The mean score on incidents of `test`, with a 95 % interval."""
    rewards.clear()
    trainer.evaluate()
    mean, wide = statistics.mean(rewards), 1.96 * statistics.stdev(rewards) / HELD_OUT**0.5
    return f"{mean:.3f} [{mean - wide:.3f}, {mean + wide:.3f}], n={HELD_OUT}"


class Trainer(GRPOTrainer):
    """TRL has no way to say that an episode is over: it stops where an answer does not fit."""

    def _get_tool_suffix_ids(self, messages: list[dict[str, str]]) -> list[int]:
        if any(message["content"].endswith(CLOSED) for message in messages):
            return [tokenizer.pad_token_id] * (self.max_completion_length + 1)
        return super()._get_tool_suffix_ids(messages)


trainer = Trainer(
    model=model,
    processing_class=tokenizer,
    environment_factory=lambda: Incident(names=names_for(model.config.to_dict())),
    train_dataset=incidents("train", STEPS * INCIDENTS),
    eval_dataset=incidents("test", HELD_OUT),
    args=GRPOConfig(
        output_dir="runs/example", max_steps=STEPS, num_generations=GROUP, num_generations_eval=1,
        per_device_train_batch_size=INCIDENTS * GROUP, per_device_eval_batch_size=HELD_OUT,
        learning_rate=1e-3, loss_type="dr_grpo", scale_rewards="none", beta=0.0,
        max_completion_length=1100, generation_kwargs={"max_new_tokens": 64},
        max_tool_calling_iterations=16, use_cpu=not torch.cuda.is_available(), bf16=False,
        logging_steps=1, save_strategy="no", report_to=[], remove_unused_columns=False,
    ),
)  # fmt: skip
before = held_out_score()
trainer.train()
print("before:", before, "\nafter: ", held_out_score())
