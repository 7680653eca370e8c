"""Qwen2.5's tokenizer, without a model hub."""

from functools import cache
from importlib.metadata import files
from typing import Any

# Those of Qwen2.5's added tokens that a conversation holds. As in Qwen's own, the tags around a
# call are not special, so decoding keeps them. The merges are those of Qwen's first tokenizer.
SPECIAL, TAGS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), ("<tool_call>", "</tool_call>")


@cache
def qwen_tokenizer() -> Any:
    """Qwen2.5's tokenizer with TRL's template. Its vocabulary is a file of the package `dashscope`,
    so no model hub is asked.
    """
    from transformers import AddedToken, Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter
    from trl.chat_template_utils import qwen2_5_chat_template

    path = next(file for file in files("dashscope") or () if file.name == "qwen.tiktoken").locate()
    vocabulary, merges = TikTokenConverter().extract_vocab_merges_from_model(str(path))
    qwen = Qwen2Tokenizer(vocabulary, merges, additional_special_tokens=[])
    for text in (*SPECIAL, *TAGS):
        qwen.add_tokens(AddedToken(text, special=text in SPECIAL, normalized=False))
    qwen.eos_token, qwen.pad_token = "<|im_end|>", "<|endoftext|>"
    qwen.chat_template = qwen2_5_chat_template
    return qwen
