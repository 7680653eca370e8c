"""Stands in for Unsloth where there is no GPU: the same two functions, on plain transformers and
PEFT, and a folder of the working directory for each model of the Hub.
"""

from pathlib import Path

from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast


class FastLanguageModel:
    @staticmethod
    def from_pretrained(name, max_seq_length, load_in_4bit, fast_inference):
        assert Path(name).is_dir(), f"the stand-in for the Hub holds no {name}"
        assert load_in_4bit == name.endswith("-bnb-4bit") and not fast_inference
        tokenizer = PreTrainedTokenizerFast.from_pretrained(name)
        return AutoModelForCausalLM.from_pretrained(name), tokenizer

    @staticmethod
    def get_peft_model(model, use_gradient_checkpointing, random_state, **settings):
        return get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))
