"""Supervised training on conversations: what is learned, and in which batches."""

from random import Random

from logtriage.play.tools import tool_schemas
from logtriage.train import supervised
from logtriage.train.drills import novice_episode
from logtriage.train.tokenizer import build_tokenizer, tokenizer_texts


def test_only_what_the_assistant_writes_is_learned_in_full():
    tokenizer = build_tokenizer(tokenizer_texts(60))
    messages = novice_episode(3)
    ids, own = supervised.encode(tokenizer, messages, tool_schemas())
    written = tokenizer.decode([token for token, mine in zip(ids, own, strict=True) if mine])
    assert "<tool_call>" in written and "<tool_response>" not in written and "calls:" not in written
    turns = sum(message["role"] == "assistant" for message in messages)
    assert written.count("<|im_end|>") == turns


def test_batches_hold_every_example_once_and_similar_lengths():
    random = Random(0)
    examples = [([0] * random.randint(1, 500), []) for _ in range(100)]
    batches = supervised._batches(examples, 16, Random(1))
    held = [example for batch in batches for example in batch]
    assert sorted(map(id, held)) == sorted(map(id, examples))
    assert [len(batch) for batch in batches].count(16) == 6  # and one of 4
    assert batches == supervised._batches(examples, 16, Random(1))
    assert batches != supervised._batches(examples, 16, Random(2))
    lengths = [[len(tokens) for tokens, _ in batch] for batch in batches]
    assert max(max(each) - min(each) for each in lengths) < 200


def test_padding_weighs_nothing():
    ids, weight = supervised._padded([([5, 6, 7], [False, True, True]), ([8], [True])], 9, 0.25)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert weight.tolist() == [[0.25, 1.0, 1.0], [1.0, 0.0, 0.0]]
