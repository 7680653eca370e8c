"""Qwen2.5's tokenizer, without a model hub."""

from functools import cache
from importlib.metadata import files
from typing import Any

# Qwen2.5's special tokens in the order of their ids, as in `tokenizer.json` of
# Qwen/Qwen2.5-3B-Instruct. The merges are those of Qwen's first tokenizer.
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"),
    *("<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
)


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
    # As in Qwen's own, the tags around a call are not special tokens, so decoding keeps them.
    first_plain = SPECIAL.index("<tool_call>")
    for place, text in enumerate(SPECIAL):
        qwen.add_tokens(AddedToken(text, special=place < first_plain, normalized=False))
    qwen.eos_token, qwen.pad_token = "<|im_end|>", "<|endoftext|>"
    qwen.chat_template = qwen2_5_chat_template
    return qwen
