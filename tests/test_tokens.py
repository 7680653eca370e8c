"""What docs tell about tokens is counted anew."""

import pandas as pd
import pytest
import tokens


@pytest.fixture(scope="module")
def published():
    return pd.read_csv(tokens.RESULTS)


def test_the_tokenizer_is_qwens():
    # 151,643 merges and single bytes, 22 special tokens: the `len(tokenizer)` of Qwen2.5.
    assert tokens.tokenizer().n_vocab == 151_665
    assert tokens.tokenizer().encode("<|im_end|>", allowed_special="all") == [151_645]
    assert tokens.tokenizer().encode("<tool_call>", allowed_special="all") == [151_657]
    text = "<|im_start|>user\nWho pages 12 teams?<|im_end|>\n<|im_start|>assistant\n"
    assert tokens.count(text) == len(tokens.tokenizer().encode(text, allowed_special="all"))


def test_the_published_tokens_are_fresh(published):
    pd.testing.assert_frame_equal(tokens.counts(tokens.INCIDENTS), published, check_dtype=False)


def test_a_turn_reads_what_came_before_and_writes_what_comes_next():
    for make in (tokens.one_by_one, lambda one: tokens.transcript(tokens.TracePolicy(), one)):
        messages = make(tokens.Episode.open("cascading_failure", "train", 3))
        anew, kept = tokens.processed(messages, short=False)
        ends = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
        parts = [tokens.prompt_tokens(messages[:place]) for place in ends]
        parts += [tokens.written(messages[place]) for place in ends]
        assert anew == sum(parts) and len(ends) > 1
        # All of the conversation, but for the line break after its end.
        whole = tokens.rendered(messages, tokens.tool_schemas())
        assert kept == tokens.count(whole.removesuffix("\n"))


def test_an_episode_costs_a_third_of_the_reference(published):
    mean = published.set_index("what")["mean"]
    reference = mean[tokens.REFERENCE]
    for manner in ("packed", "packed, short tools"):
        assert mean[f"{manner}: read anew each turn"] <= reference / 3
        assert mean[f"{manner}: kept"] <= reference / 12


def test_the_short_template_prints_what_was_counted(published):
    mean = published.set_index("what")["mean"]
    saved = mean["system prompt with tools"] - mean["system prompt with short tools"]
    whole = mean["seven schemas, whole"]
    assert saved == whole - mean["seven schemas, types"]
    assert saved >= whole / 2
