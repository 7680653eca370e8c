"""Which weights stand for a model, in 4 bit and whole, on which machine."""

from types import SimpleNamespace

import pytest
import torch
from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import qwen2_5_chat_template

from logtriage.policies.llm.chat_template import short_template
from logtriage.policies.llm.loading import (
    QUANTISED,
    computed_in_half,
    load_language_model,
    quantised_name,
    runnable,
    with_tool_calls,
)

WHOLE, IN_4_BIT = "Qwen/Qwen2.5-3B-Instruct", "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"


def test_training_and_evaluation_start_from_the_same_4_bit_weights():
    assert quantised_name(WHOLE) == IN_4_BIT and quantised_name("mine") == "mine"
    assert len(set(QUANTISED.values())) == len(QUANTISED)


@pytest.mark.parametrize("gpu", [True, False])
def test_4_bit_is_run_where_there_is_a_gpu(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert runnable(WHOLE, True) == (WHOLE, gpu)
    for name in (IN_4_BIT, IN_4_BIT.lower()):  # as an adapter's record has it
        assert runnable(name, False) == ((name, True) if gpu else (WHOLE, False))
    assert runnable("mine", False) == ("mine", False)
    assert runnable("mine", True) == ("mine", gpu)


def test_qwens_own_tokenizer_prints_the_tools_in_fewer_tokens(tiny_base):
    _, embedded = load_language_model(tiny_base)
    assert embedded.chat_template == qwen2_5_chat_template

    class Qwens(PreTrainedTokenizerFast):  # as any tokenizer but the embedded model's
        pass

    theirs = with_tool_calls(Qwens.from_pretrained(tiny_base))
    assert theirs.chat_template == short_template(qwen2_5_chat_template)


def test_weights_in_4_bit_are_computed_with_in_fp16_on_a_t4():
    quantised = SimpleNamespace(quantization_config={"bnb_4bit_compute_dtype": "bfloat16", "x": 1})
    config = computed_in_half(quantised)
    assert config.quantization_config == {"bnb_4bit_compute_dtype": "float16", "x": 1}
    plain = SimpleNamespace()
    assert computed_in_half(plain) is plain
