"""The embedded base model: its tokenizer, what it learns from, and its folder."""

import json
from random import Random

import pytest

from logtriage.agents.language_models import load_language_model
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.play.tools import tool_schemas
from logtriage.training import mini
from logtriage.training.drills import junior_episode


@pytest.fixture(scope="module")
def tokenizer():
    return mini.build_tokenizer(mini.tokenizer_texts(60))


def test_the_tokenizer_is_lossless_and_short(tokenizer):
    messages = junior_episode(0)
    text = tokenizer.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text) / 20  # the whole tool schema included
    assert all(
        len(tokenizer.encode(name, add_special_tokens=False)) == 1
        for name in mini.DEFAULT_TOPOLOGY.names
    )
    other = "step 0 of 12\nERROR zebra-svc 17 never seen: naïve ☃ text"
    assert tokenizer.decode(tokenizer.encode(other, add_special_tokens=False)) == other


def test_the_chat_template_is_trls_to_the_letter(tokenizer):
    from trl.chat_template_utils import qwen2_5_chat_template

    assert tokenizer.chat_template == qwen2_5_chat_template and tokenizer.eos_token == "<|im_end|>"


def test_a_saved_tokenizer_is_loaded_as_it_was(tiny_base):
    # AutoTokenizer would give a Qwen2 model Qwen's pre-tokenizer: the same text, other tokens, and
    # nothing works.
    _, loaded = load_language_model(tiny_base)
    built = mini.build_tokenizer(mini.tokenizer_texts(mini.TOKENIZER_EXAMPLES))
    episode = Episode.open("cascading_failure", "train", 1)
    text = render(episode.opening, episode.incident.topology)
    assert loaded.encode(text) == built.encode(text)


def test_only_what_the_assistant_writes_is_learned_in_full(tokenizer):
    messages = junior_episode(3)
    ids, own = mini.encode(tokenizer, messages, tool_schemas())
    written = tokenizer.decode([token for token, mine in zip(ids, own, strict=True) if mine])
    assert "<tool_call>" in written and "<tool_response>" not in written and "calls:" not in written
    turns = sum(message["role"] == "assistant" for message in messages)
    assert written.count("<|im_end|>") == turns


def test_batches_hold_every_example_once_and_similar_lengths():
    random = Random(0)
    examples = [([0] * random.randint(1, 500), []) for _ in range(100)]
    batches = mini._batches(examples, 16, Random(1))
    held = [example for batch in batches for example in batch]
    assert sorted(map(id, held)) == sorted(map(id, examples))
    assert [len(batch) for batch in batches].count(16) == 6  # and one of 4
    assert batches == mini._batches(examples, 16, Random(1))
    assert batches != mini._batches(examples, 16, Random(2))
    lengths = [[len(tokens) for tokens, _ in batch] for batch in batches]
    assert max(max(each) - min(each) for each in lengths) < 200


def test_padding_weighs_nothing():
    ids, weight = mini._padded([([5, 6, 7], [False, True, True]), ([8], [True])], 9, 0.25)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert weight.tolist() == [[0.25, 1.0, 1.0], [1.0, 0.0, 0.0]]


def test_a_base_is_built_once(tiny_base):
    before = (tiny_base / "base.json").stat().st_mtime_ns
    settings = json.loads((tiny_base / "base.json").read_text())["settings"]
    assert mini.build_base(tiny_base, **settings, parity=0.0) == tiny_base
    assert (tiny_base / "base.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="built with"):
        mini.build_base(tiny_base, **{**settings, "seed": 7})


def test_a_base_that_cannot_read_is_refused(tmp_path):
    toy = {
        "drills": 4,
        "drill_epochs": 1,
        "juniors": 4,
        "junior_epochs": 1,
        "hidden": 32,
        "layers": 1,
    }
    with pytest.raises(ValueError, match="has not learned what the junior knows"):
        mini.build_base(tmp_path / "toy", **toy)
    assert not (tmp_path / "toy" / "base.json").exists()
