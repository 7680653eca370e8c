"""The cost of a run, computed: shapes as published, more of anything never costs less, and the run
that is meant for a T4 fits it.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from logtriage.train import cost
from logtriage.train.cost import A100, L4, MODELS, T4, estimate
from logtriage.train.presets import make_config

ROOT = Path(__file__).parents[2]
SESSION = make_config("recommended")


@pytest.mark.parametrize(
    "model, billions, adapter",
    # parameters as the models' cards have them; adapters as PEFT counts them
    [("Qwen2.5-0.5B-Instruct", 0.49, 8_798_208), ("Qwen2.5-3B-Instruct", 3.09, 29_933_568)],
)
def test_shapes_give_the_published_sizes(model, billions, adapter):
    assert round(MODELS[model].parameters / 1e9, 2) == billions
    assert MODELS[model].adapter(16) == adapter


def test_the_run_for_a_t4_fits():
    # What docs/t4.md and notebook 08 promise, evaluations included.
    run = estimate(SESSION, T4, held_out=40)
    assert str(run) == "1.6 to 4.4 h and 7.4 to 12.2 GiB" and run.fits


def test_what_does_not_fit_is_reported():
    assert not estimate(SESSION, T4, held_out=40, batch=100).fits
    assert not estimate(replace(SESSION, micro_batches=1), T4).fits


@pytest.mark.parametrize(
    "more",
    [
        {"steps": 41},
        {"incidents": 6, "micro_batches": 24},  # of one size, so that only reading needs more
        {"turn_tokens": 256},
    ],
    ids=str,
)
def test_more_never_costs_less(more):
    less, most = estimate(SESSION), estimate(replace(SESSION, **more))
    assert less.seconds.low < most.seconds.low and less.seconds.high < most.seconds.high
    assert less.gib.low <= most.gib.low and less.gib.high <= most.gib.high


def test_time_and_memory_follow_the_settings():
    usual = estimate(SESSION)
    in_16_bit = estimate(replace(SESSION, load_in_4bit=False)).gib
    assert in_16_bit.low - usual.gib.low > 3  # 2.77 billion weights, and 1.5 bytes more of each
    kept = replace(SESSION, loader="transformers", loop="kept")
    assert estimate(kept).seconds.high < usual.seconds.high  # nothing is read twice
    assert estimate(SESSION, L4).seconds.high < usual.seconds.high
    # All weights trained: 16 bytes each, and a gradient for each.
    whole = estimate(replace(SESSION, lora_rank=0, load_in_4bit=False, loader="transformers"), A100)
    assert whole.gib.low > 45 and whole.seconds.low > estimate(SESSION, A100).seconds.low


def test_episodes_are_as_long_as_was_counted():
    counted = pd.read_csv(ROOT / "results" / "tokens" / "tokens.csv").set_index("what")["mean"]
    assert round(counted["prompt with short tools"]) == cost.PROMPT
    replies = counted["packed: kept"] - counted["prompt"] - counted["packed: written"]
    assert round(replies / (counted["packed: turns"] - 1)) == cost.REPLY


def test_a_model_is_known_by_its_name_whoever_quantised_it():
    name = "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"
    assert estimate(replace(SESSION, model=name)) == estimate(SESSION)
    with pytest.raises(ValueError, match=r"'runs/base'; choose one of Qwen2\.5-0\.5B-Instruct"):
        estimate(replace(SESSION, model="runs/base"))
