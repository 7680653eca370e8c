"""What docs/t4.md says about tokens is what is counted."""

import pandas as pd
import pytest
import tokens


def test_the_tokenizer_is_qwens():
    # 151,643 merges and single bytes, 22 special tokens: the `len(tokenizer)` of Qwen2.5.
    qwen = tokens.tokenizer()
    assert len(qwen) == 151_665 and type(qwen).__name__ == "Qwen2Tokenizer"
    ids = qwen.encode("<|im_start|><tool_call>")
    assert ids == [151_644, 151_657]
    assert qwen.decode(ids, skip_special_tokens=True) == "<tool_call>"


@pytest.mark.slow
def test_the_published_tokens_are_fresh():
    published = pd.read_csv(tokens.RESULTS)
    pd.testing.assert_frame_equal(tokens.counts(tokens.INCIDENTS), published, check_dtype=False)


def test_what_is_kept_is_the_whole_conversation():
    messages = tokens.one_by_one(tokens.Episode.open("cascading_failure", "train", 3))
    anew, kept = tokens.processed(messages, short=False)
    whole = tokens.rendered(messages, tokens.tool_schemas())
    assert kept == tokens.count(whole.removesuffix("\n")) < anew
