"""What follows from a preset's settings when some of them are changed."""

import pytest

from logtriage.training.presets import PRESETS, TrainingConfig, make_config


@pytest.mark.parametrize("preset", PRESETS)
def test_fewer_or_more_incidents_need_no_more_memory(preset):
    # a backward pass over more episodes than the preset's runs out of memory on the GPU it is for
    own = make_config(preset, model="x")
    assert own == TrainingConfig(**{**PRESETS[preset], "model": "x"})
    most = own.incidents * own.group // own.micro_batches
    for incidents in (1, 2, 3, 5, 12, 17):
        config = make_config(preset, model="x", incidents=incidents)
        episodes = config.incidents * config.group
        at_once = episodes // config.micro_batches
        assert episodes % config.micro_batches == 0 and 1 <= at_once <= most
        larger = range(at_once + 1, most + 1)
        assert not any(episodes % size == 0 for size in larger)  # no slower than it must be


def test_micro_batches_asked_for_are_taken():
    assert make_config("mini", model="x", incidents=2, micro_batches=4).micro_batches == 4
