"""What follows from a preset's settings when some of them are changed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.train.grpo import incident_rows
from logtriage.train.presets import MOST_TOGETHER, PRESETS, asked_config, deal, make_config
from logtriage.train.settings import TrainingConfig
from logtriage.world.tasks import TASKS


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
    assert make_config("novice", model="x", incidents=2, micro_batches=4).micro_batches == 4


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
        found = int(str(error).rsplit("choose ", 1)[1])
        assert found != episodes and deal(found, tasks, group, most)  # the way out leads out
        return
    assert sizes["steps"] * sizes["incidents"] * sizes["group"] == episodes * tasks
    assert 2 <= sizes["group"] <= group and sizes["incidents"] % tasks == 0
    assert most is None or sizes["steps"] <= most
    assert sizes["incidents"] * sizes["group"] <= MOST_TOGETHER


def test_episodes_that_make_no_group_are_refused():
    with pytest.raises(ValueError, match=r"31 episodes per task make no run .* choose 30"):
        deal(31, 3, 4)
    # one step of 97 incidents a task would be all there is
    with pytest.raises(ValueError, match=r"no run of at most 10 steps .* choose 160"):
        deal(194, 3, 8, 10)


def test_a_command_counts_episodes_of_each_task():
    # the numbers of the card's own command
    config = asked_config("model_card", ["all"], 30, 10, None, {"model": "x"})
    dealt = Counter(row["task"] for row in incident_rows(config))
    assert {task: count * config.group for task, count in dealt.items()} == dict.fromkeys(TASKS, 30)
    assert config.steps == 10 and config.model == "x"
    # one task, larger groups, and never more at once than asked
    config = asked_config("recommended", ["single_crash"], 16, None, 4, {"learning_rate": 1e-4})
    assert [row["task"] for row in incident_rows(config)] == ["single_crash"] * 2
    assert config.group == 8 and config.micro_batches == 2 and config.learning_rate == 1e-4


def test_steps_without_episodes_are_as_many_as_asked():
    assert asked_config("novice", [], None, 7, None, {"model": "x"}).steps == 7
    assert asked_config("novice", [], None, None, None, {"model": "x"}) == make_config(
        "novice", model="x"
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [("learning_rate", "8e-4"), ("steps", 2.5), ("group", True), ("varied", 1), ("credit", None)],
)
def test_a_setting_of_another_type_is_refused(setting, value):
    # YAML reads 8e-4 as text, and a run would end in it only once its base was built
    with pytest.raises(ValueError, match=f"{setting} must be of type "):
        make_config("novice", model="", **{setting: value})


def test_the_presets_for_a_gpu_learn_carefully_and_keep_little():
    # On a T4 in fp16 nothing was tuned: rate and clip lie where others' recipes for it do, and
    # every checkpoint that is deleted stays in Google Drive's bin.
    for preset in ("recommended", "l4", "a100", "t4_starter"):
        config = make_config(preset)
        assert config.learning_rate <= 2e-5 and config.max_grad_norm == 0.1, preset
        assert config.steps / config.save_every <= 8 and config.keep_checkpoints == 1, preset
