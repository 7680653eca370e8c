"""What docs/t4.md says about tokens is what is counted."""

import pandas as pd
import pytest
import tokens


def test_the_tokenizer_is_qwens():
    # 151,643 merges and single bytes, 22 special tokens: the `len(tokenizer)` of Qwen2.5.
    assert tokens.tokenizer().n_vocab == 151_665
    assert tokens.tokenizer().encode("<tool_call>", allowed_special="all") == [151_657]
    text = "<|im_start|>user\nWho pages 12 teams?<|im_end|>\n<|im_start|>assistant\n"
    assert tokens.count(text) == len(tokens.tokenizer().encode(text, allowed_special="all"))


@pytest.mark.slow
def test_the_published_tokens_are_fresh():
    published = pd.read_csv(tokens.RESULTS)
    pd.testing.assert_frame_equal(tokens.counts(tokens.INCIDENTS), published, check_dtype=False)


def test_what_is_kept_is_the_whole_conversation():
    messages = tokens.one_by_one(tokens.Episode.open("cascading_failure", "train", 3))
    anew, kept = tokens.processed(messages, short=False)
    whole = tokens.rendered(messages, tokens.tool_schemas())
    assert kept == tokens.count(whole.removesuffix("\n")) < anew
