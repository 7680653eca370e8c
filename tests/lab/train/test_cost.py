"""The cost of a run, computed: shapes as published, and the run that is meant for a T4 fits it.

The table of docs/t4.md, which a test holds fresh, pins the numbers of every preset.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from triagelab.train import cost
from triagelab.train.cost import MODELS, T4, estimate
from triagelab.train.settings import make_config

ROOT = Path(__file__).parents[3]
SESSION = make_config("recommended")


def test_shapes_give_the_published_sizes():
    # parameters as the models' cards have them; adapters as PEFT counts them
    assert {
        name: (round(shape.weights / 1e9, 2), shape.adapter(16)) for name, shape in MODELS.items()
    } == {
        "Qwen2.5-0.5B-Instruct": (0.49, 8_798_208),
        "Qwen2.5-3B-Instruct": (3.09, 29_933_568),
        "Qwen3-4B-Instruct-2507": (4.02, 33_030_144),
    }
    name = "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"
    assert estimate(replace(SESSION, model=name)) == estimate(SESSION)
    with pytest.raises(ValueError, match=r"'runs/base'; choose one of Qwen2\.5-0\.5B-Instruct"):
        estimate(replace(SESSION, model="runs/base"))


def test_what_does_not_fit_is_reported():
    assert not estimate(SESSION, held_out=40, batch=100).fits
    assert not estimate(replace(SESSION, micro_batches=1)).fits
    # Why Qwen3-4B is not tried in 16 bit, and why half as many episodes of it are played at once.
    qwen3 = make_config("t4_qwen3")
    assert estimate(qwen3).fits and not estimate(replace(qwen3, load_in_4bit=False)).fits
    assert not estimate(replace(qwen3, incidents=4, micro_batches=24)).fits


def test_what_costs_more():
    # A measured decode step, of this model, takes the place of the assumed one of the 3B.
    assert estimate(SESSION, decode=T4.decode.low).hours.low == estimate(SESSION).hours.low
    assert estimate(SESSION, decode=0.1).hours.high < estimate(SESSION).hours.high
    starter = make_config("t4_starter")
    assert estimate(starter, decode=T4.decode.low).hours.low > estimate(starter).hours.low
    # A warm-up is one more evaluation, and all weights need optimizer state.
    both = [estimate(replace(starter, warm_up=n), held_out=40).hours.low for n in (0, 200)]
    training = estimate(starter).hours.low
    assert both[1] - training == pytest.approx(1.5 * (both[0] - training))
    whole = estimate(replace(SESSION, lora_rank=0, load_in_4bit=False, loader="transformers"))
    assert whole.gib.low > 45  # 16 bytes of each of 3.09 billion
    assert whole.hours.low > estimate(SESSION).hours.low


def test_episodes_are_as_long_as_was_counted():
    counted = pd.read_csv(ROOT / "results" / "tokens" / "tokens.csv").set_index("what")["mean"]
    assert round(counted["prompt with short tools"]) == cost.PROMPT
    replies = counted["packed: kept"] - counted["prompt"] - counted["packed: written"]
    assert round(replies / (counted["packed: turns"] - 1)) == cost.REPLY
