"""Train on Unsloth's rewritten GRPOTrainer where there is no GPU: `test_unsloth` runs it as

    python tests/lab/train/unsloth_on_cpu.py BASE FOLDER '{"steps": 2}'

It trains the base in BASE into FOLDER with the preset `recommended` and the changes given.

Unsloth imports on a CPU when told to, and then leaves TRL's trainers as they are. Here they are
rewritten all the same. What does need a GPU is loading: `FastLanguageModel` is replaced by plain
transformers and PEFT, so that the two routes start from the same weights. Unsloth's kernels, its
4 bit and its generation are therefore not in this.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

os.environ.update(
    HF_HUB_OFFLINE="1",
    TORCH_COMPILE_DISABLE="1",  # compiling takes longer than the run
    UNSLOTH_ALLOW_CPU="1",
    UNSLOTH_COMPILE_DISABLE="1",
    UNSLOTH_DISABLE_STATISTICS="1",  # it would ask a hub which Unsloth this is
)

import unsloth  # isort: skip  (before TRL and transformers, which it patches)

import torch
from peft import LoraConfig, get_peft_model
from unsloth import FastLanguageModel
from unsloth.models import rl
from unsloth.models._trl_tool_templates import patch_trl_tool_chat_templates
from unsloth.models.llama import FastLlamaModel

from triagelab.language_models.loading import load_language_model
from triagelab.train.grpo import train
from triagelab.train.settings import make_config


def rewrite_trl() -> None:
    """What `PatchFastRL` does for GRPO where there is a GPU, in its order."""
    rl.PatchRL(FastLanguageModel)
    rl.patch_trl_disable_gradient_checkpointing()
    patch_trl_tool_chat_templates()
    rl._patch_trl_rl_trainers("grpo_trainer")


class PlainLoader:
    """Stands in for `FastLanguageModel`: takes what `train` hands to it, and needs no GPU."""

    @staticmethod
    def from_pretrained(source, max_seq_length, load_in_4bit, fast_inference, use_exact_model_name):
        model, tokenizer = load_language_model(source, load_in_4bit=load_in_4bit)
        model.max_seq_length = max_seq_length
        return model, tokenizer

    @staticmethod
    def get_peft_model(
        model, r, lora_alpha, target_modules, use_gradient_checkpointing, random_state
    ):
        torch.manual_seed(random_state)
        lora = LoraConfig(
            r=r, lora_alpha=lora_alpha, target_modules=target_modules, task_type="CAUSAL_LM"
        )
        adapted = get_peft_model(model, lora)
        # The trainer switches between the two by methods that Unsloth gives its models.
        adapted.for_training = partial(FastLlamaModel.for_training, adapted)
        adapted.for_inference = partial(FastLlamaModel.for_inference, adapted)
        adapted._unsloth_user_float32 = True  # or the trainer turns float16 on
        return adapted


if __name__ == "__main__":
    base, folder, changes = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    rewrite_trl()
    unsloth.FastLanguageModel = PlainLoader
    config = make_config("recommended", model=base, **changes)
    train(config, folder, progress=False)

    from triagelab.train import trainer  # not before `train`, as there

    assert trainer.GRPOTrainer.__name__ == "UnslothGRPOTrainer", trainer.GRPOTrainer
    built = trainer.grpo_arguments(config, folder)
    assert hasattr(built, "unsloth_num_chunks"), "Unsloth's GRPOConfig goes by the name of TRL's"
