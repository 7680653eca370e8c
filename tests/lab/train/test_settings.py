"""Settings that are refused, presets, and what follows where some of their settings are changed."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triagelab.bench.published import RESULTS
from triagelab.bench.runs import settings_of
from triagelab.train import settings
from triagelab.train.grpo import LONGEST
from triagelab.train.settings import PRESETS, config_from_cli, deal, incident_rows, make_config

TRL = {"loop": "trl", "credit": "episode", "constrained": False}


@pytest.mark.parametrize(
    "changes, answer",
    [
        ({"group": 1}, "group: .* greater than or equal to 2, got 1"),
        ({"colour": 1}, "colour: Unexpected"),
        ({"preset": "expert"}, "preset: Unexpected"),  # `train --set` takes any word
        ({"temperature": float("nan")}, "temperature: .* finite"),
        ({"completion_tokens": -5}, "completion_tokens: .* greater than"),
        ({"warmup": -1}, "warmup: .* greater than or equal to 0"),
        # YAML reads 8e-4 as text, and a run would end in it only once its base was built.
        ({"learning_rate": "8e-4"}, "learning_rate: .* number, got '8e-4'"),
        ({"micro_batches": 7}, "micro_batches must divide"),
        ({"shares": {"nope": 1.0}}, "unknown task 'nope'"),
        ({"shares": {"production": 1.0}}, "choose varied=false and credit=episode"),
        ({"shares": {"production": 1.0, "single_crash": 1.0}}, "leave out other tasks"),
        ({"shares": {"single_crash": 0.0}}, "not all be 0"),
        ({"seed": 2840, "steps": 44}, "the highest is 2839"),
        ({"deal": "in_turn"}, "needs equal shares"),
        ({"load_in_4bit": True}, "lora_rank 0 trains all"),
        ({"loader": "unsloth"}, "needs the loop 'trl'"),
        ({**TRL, "loader": "unsloth"}, "lora_rank 0 trains all"),
        ({"loop": "trl"}, "credit 'part' needs the loop 'kept'"),
        ({**TRL, "constrained": True}, "constrained needs the loop 'kept'"),
    ],
)
def test_bad_settings_are_answered(changes, answer):
    with pytest.raises(ValueError, match=answer):
        make_config("novice", model="x", **changes)


def test_presets_are_those_of_published_runs_and_careful_where_nothing_was_tuned():
    for preset in ("novice", "expert"):
        published = settings_of(RESULTS / preset / "seed-1")
        made = asdict(make_config(preset, model=published["model"], seed=1))
        both = made.keys() & published
        assert {name: published[name] for name in both} == {name: made[name] for name in both}
    # On a T4 in fp16 rate and clip lie where others' recipes for it do, and every checkpoint that
    # is deleted stays in Google Drive's bin.
    for preset in ("recommended", "t4_qwen3"):
        config = make_config(preset)
        assert config.learning_rate <= 2e-5 and config.max_grad_norm == 0.1
        assert config.steps / config.save_every <= 8 and config.keep_checkpoints == 1


@pytest.mark.parametrize("preset", PRESETS)
def test_fewer_or_more_incidents_need_no_more_memory(preset):
    # a backward pass over more episodes than the preset's runs out of memory on the GPU it is for
    own = make_config(preset, model="x")
    assert own == settings.TrainingConfig(**{**PRESETS[preset], "model": "x"})
    assert own.completion_tokens + 1500 <= LONGEST  # and the longest opening
    for incidents in (1, 2, 3, 5, 12, 17):
        config = make_config(preset, model="x", incidents=incidents)
        assert config.episodes % config.micro_batches == 0 and 1 <= config.at_once <= own.at_once
        larger = range(config.at_once + 1, own.at_once + 1)
        assert not any(config.episodes % size == 0 for size in larger)  # no slower than it must be


@given(
    episodes=st.integers(2, 400),
    tasks=st.integers(1, 3),
    group=st.integers(2, 16),
    most=st.none() | st.integers(1, 50),
)
def test_episodes_are_dealt_to_the_last_one(episodes, tasks, group, most):
    try:
        sizes = deal(episodes, tasks, group, most)
    except ValueError as error:
        assert f"choose a multiple of {group}" in str(error)
        assert most is None or str(error).endswith(f"up to {most * group}")
        for way_out in range(group, group * (most or 3) + 1, group):
            assert way_out != episodes and deal(way_out, tasks, group, most)
        return
    assert sizes["steps"] * sizes["incidents"] * sizes["group"] == episodes * tasks
    assert 2 <= sizes["group"] <= group and sizes["incidents"] % tasks == 0
    assert most is None or sizes["steps"] <= most
    assert sizes["incidents"] * sizes["group"] <= settings.MOST_TOGETHER


def test_a_command_counts_episodes_of_each_task_and_leaves_the_rest_to_the_preset():
    # All tasks: see the card's command.
    # one task, in larger groups
    config = config_from_cli("recommended", ["single_crash"], 16, None, learning_rate=1e-4)
    assert [row["task"] for row in incident_rows(config)] == ["single_crash"] * 2
    assert config.group == 8 and config.at_once == 1 and config.learning_rate == 1e-4
    plain = make_config("novice", model="x")
    assert config_from_cli("novice", [], None, None, model="x", warmup=None) == plain
    config = config_from_cli("novice", [], None, None, steps=7, model="x", micro_batches=4)
    assert (config.steps, config.micro_batches) == (7, 4)


def test_steps_are_a_number_and_their_most_is_another_option():
    assert config_from_cli("recommended", [], None, 10).steps == 10
    assert config_from_cli("recommended", [], None, 99).steps == 40  # those of the preset
    assert config_from_cli("recommended", [], 30, 10).steps <= 10
    with pytest.raises(ValueError, match="give --grpo-max-steps for the most of them"):
        config_from_cli("recommended", [], 30, None, steps=10)


def test_each_seed_has_a_slice_of_its_own():
    # Published runs are of these incidents: seed x steps x incidents is the first.
    rows = [incident_rows(make_config("novice", model="x", seed=seed)) for seed in (0, 1, 2)]
    for row, first in zip(rows, (0, 640, 1280), strict=True):
        assert [incident["index"] for incident in row] == [*range(first, first + 640)]
    assert {incident["split"] for row in rows for incident in row} == {"train"}
