"""Stands in for Unsloth where there is no GPU: the same two functions, on plain transformers and
PEFT.
"""

import sys

# The real one patches these, and what has been imported before stays as it was.
early = {"transformers", "trl", "peft", "datasets"} & set(sys.modules)
assert not early, f"imported before Unsloth: {early}"

from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: E402


class FastLanguageModel:
    @staticmethod
    def from_pretrained(name, max_seq_length, load_in_4bit, fast_inference, use_exact_model_name):
        assert load_in_4bit == name.endswith("-bnb-4bit")
        assert use_exact_model_name and not fast_inference
        tokenizer = PreTrainedTokenizerFast.from_pretrained(name)
        return AutoModelForCausalLM.from_pretrained(name), tokenizer

    @staticmethod
    def get_peft_model(model, use_gradient_checkpointing, random_state, **settings):
        return get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))

    @staticmethod
    def for_inference(model):
        return model.eval()
