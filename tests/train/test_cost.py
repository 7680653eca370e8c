"""The cost of a run, computed: shapes as published, more of anything never costs less, and the run
that is meant for a T4 fits it.
"""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from logtriage.train import cost
from logtriage.train.cost import (
    A100,
    L4,
    QWEN_05B,
    QWEN_3B,
    QWEN_15B,
    T4,
    TERSE,
    USUAL,
    WORDY,
    EpisodeShape,
    Range,
    estimate,
    known_model,
)
from logtriage.train.presets import make_config

ROOT = Path(__file__).parents[2]
SESSION = make_config("recommended")


@pytest.mark.parametrize(
    "model, billions, key_value_bytes, adapter",
    # parameters as the models' cards have them; bytes of a token: 2 x layers x heads x size x 2
    [
        (QWEN_05B, 0.49, 12_288, 8_798_208),
        (QWEN_15B, 1.54, 28_672, 18_464_768),
        (QWEN_3B, 3.09, 36_864, 29_933_568),
    ],
)
def test_shapes_give_the_published_sizes(model, billions, key_value_bytes, adapter):
    assert round(model.parameters / 1e9, 2) == billions
    assert model.key_value_bytes == key_value_bytes
    assert model.adapter(16) == adapter  # as PEFT counts an adapter of rank 16


def test_the_models_are_what_transformers_builds():
    torch = pytest.importorskip("torch")
    from transformers import Qwen2Config, Qwen2ForCausalLM

    for model in (QWEN_05B, QWEN_3B):
        config = Qwen2Config(
            vocab_size=model.vocabulary,
            hidden_size=model.hidden,
            intermediate_size=model.intermediate,
            num_hidden_layers=model.layers,
            num_attention_heads=model.heads,
            num_key_value_heads=model.key_value_heads,
            tie_word_embeddings=True,
        )
        with torch.device("meta"):  # shapes without memory
            built = Qwen2ForCausalLM(config)
        assert built.num_parameters() == model.parameters


def test_the_run_for_a_t4_fits():
    # What the notebook promises: two and a half hours, evaluations included, and 14.6 GiB.
    assert SESSION.incidents * SESSION.group == 24 and SESSION.lora_rank == 16
    assert SESSION.completion_tokens == 2048 and SESSION.load_in_4bit
    run = estimate(SESSION, T4, held_out=40)
    assert run.seconds.high <= 2.5 * 3600
    assert run.gib.high <= 14.6 and run.fits
    assert re.fullmatch(r"\d\.\d to \d\.\d h and \d+\.\d to \d+\.\d GiB", str(run))
    assert str(run) in cost.__doc__


def test_what_does_not_fit_is_told():
    assert not estimate(SESSION, T4, held_out=40, batch=100).fits
    assert estimate(SESSION, T4, WORDY, held_out=40).seconds.high > 2.5 * 3600
    assert not estimate(replace(SESSION, micro_batches=1), T4).fits


MORE = [
    {"steps": 41},
    {"incidents": 6, "micro_batches": 24},  # of one size, so that only reading needs more
    {"group": 16, "micro_batches": 24},
    {"turn_tokens": 256},
]


@pytest.mark.parametrize("more", MORE, ids=str)
def test_more_never_costs_less(more):
    less, most = estimate(SESSION), estimate(replace(SESSION, **more))
    assert less.seconds.low < most.seconds.low and less.seconds.high < most.seconds.high
    assert less.gib.low <= most.gib.low and less.gib.high <= most.gib.high


@pytest.mark.parametrize("more", ["turns", "answer_tokens", "prompt_tokens", "reply_tokens"])
def test_longer_episodes_cost_more(more):
    longer = replace(USUAL, **{more: getattr(USUAL, more) + 1})
    less, most = estimate(SESSION), estimate(SESSION, episode=longer)
    assert less.seconds.low < most.seconds.low and less.seconds.high < most.seconds.high
    assert less.gib.low < most.gib.low


def test_memory_follows_the_settings():
    usual = estimate(SESSION).gib
    in_16_bit = estimate(replace(SESSION, load_in_4bit=False)).gib
    assert in_16_bit.low - usual.low > 3  # 2.77 billion weights, and 1.5 bytes more of each
    assert estimate(replace(SESSION, completion_tokens=4096)).gib.high > 14.6
    smaller = estimate(replace(SESSION, model="Qwen/Qwen2.5-0.5B-Instruct")).gib
    assert smaller.low < usual.low - 3 and smaller.high < usual.high - 3
    halved = replace(SESSION, micro_batches=24)
    assert estimate(halved).gib.high <= usual.high
    # All weights trained: 16 bytes each, and a gradient for each.
    whole = estimate(replace(SESSION, lora_rank=0, load_in_4bit=False, loader="transformers"), A100)
    assert whole.gib.low > 45 and whole.seconds.low > estimate(SESSION, A100).seconds.low


def test_evaluations_are_counted_and_kept_keys_save():
    without, with_some = estimate(SESSION), estimate(SESSION, held_out=40)
    assert without.step_seconds == with_some.step_seconds
    assert without.seconds.low < with_some.seconds.low < without.seconds.low * 1.3
    kept = replace(SESSION, loader="transformers", loop="kept")
    assert estimate(kept).seconds.high < estimate(SESSION).seconds.high
    assert estimate(SESSION, L4).seconds.high < estimate(SESSION, T4).seconds.high
    assert TERSE.read(60, 2048, anew=False) == TERSE.length(60, 2048)
    one_turn = EpisodeShape(turns=1, most_turns=1)
    assert one_turn.read(60, 2048, anew=True) == one_turn.prompt_tokens


def test_episodes_are_as_long_as_was_counted():
    counted = pd.read_csv(ROOT / "results" / "tokens" / "tokens.csv").set_index("what")["mean"]
    assert USUAL.prompt_tokens == round(counted["prompt with short tools"])
    replies = counted["packed: kept"] - counted["prompt"] - counted["packed: written"]
    assert USUAL.reply_tokens == round(replies / (counted["packed: turns"] - 1))


def test_a_model_is_known_by_its_name_whoever_quantised_it():
    assert known_model("unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit") is QWEN_3B
    with pytest.raises(ValueError, match=r"'runs/base'; choose one of Qwen2\.5-0\.5B-Instruct"):
        estimate(replace(SESSION, model="runs/base"))
    assert estimate(replace(SESSION, model="runs/base"), model=QWEN_05B).fits


def test_bad_input_is_told():
    with pytest.raises(ValueError, match="held_out must be >= 0 and batch >= 1, got -1 and 24"):
        estimate(SESSION, held_out=-1)
    with pytest.raises(ValueError, match="got 0 and 0; held_out=0 is no evaluation"):
        estimate(SESSION, batch=0)
    with pytest.raises(ValueError, match="at least one turn"):
        EpisodeShape(turns=9)
    with pytest.raises(ValueError, match="reply_tokens must be >= 0, got -1"):
        EpisodeShape(reply_tokens=-1)
    with pytest.raises(ValueError, match=r"low <= high, got 3 to 2"):
        Range(3, 2)
