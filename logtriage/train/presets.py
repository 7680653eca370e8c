"""The presets: settings of training runs by name, and what follows where some are changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..world.tasks import TASKS, check_tasks
from .settings import TrainingConfig

MOST_TOGETHER = 48  # episodes of a step that `deal` makes: all are generated at once


def deal(episodes: int, tasks: int, group: int, most_steps: int | None = None) -> dict[str, int]:
    """Sizes of a run that plays exactly so many episodes of each task: steps, incidents, group.

    Every step plays the same number of incidents of each task, each by a group: one, or as few as
    keep to `most_steps`, and not more than `MOST_TOGETHER` episodes in all.

    Args:
        episodes: of each task.
        tasks: number of them.
        group: episodes of an incident, or the next fewer that divide.
        most_steps: None for any number.

    Raises:
        ValueError: when there are no such sizes; the message names the nearest number that has.
    """
    sizes = _sizes(episodes, tasks, group, most_steps)
    if sizes is None:
        limit = "" if most_steps is None else f" of at most {most_steps} steps"
        most = (most_steps or episodes) * MOST_TOGETHER // tasks
        near = sorted(range(2, 2 * max(episodes, 2)), key=lambda one: (abs(one - episodes), one))
        found = next((one for one in near if _sizes(one, tasks, group, most_steps)), most)
        raise ValueError(
            f"{episodes} episodes per task make no run{limit} in which each step plays as many "
            f"incidents of each task, in groups of 2 to {group} and at most {MOST_TOGETHER} "
            f"episodes; choose {found}"
        )
    return sizes


def _sizes(episodes: int, tasks: int, group: int, most_steps: int | None) -> dict[str, int] | None:
    """What `deal` returns; None where there are no such sizes."""
    for size in range(group, 1, -1):
        rounds = episodes // size
        for each in range(1, MOST_TOGETHER // (tasks * size) + 1):
            if (
                episodes % size == rounds % each == 0
                and rounds
                and (most_steps is None or rounds // each <= most_steps)
            ):
                return {"steps": rounds // each, "incidents": each * tasks, "group": size}
    return None


# Shared by the presets for a GPU. They fit a free session on a T4 by `cost`; see docs/t4.md.
_GPU: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "lora_rank": 16,
    "lora_alpha": 32,
    "loop": "trl",
    "credit": "episode",
    "completion_tokens": 2048,
    "turn_tokens": 128,
    "shares": dict.fromkeys(TASKS, 1.0),
    "deal": "in_turn",
    # Between TRL's table for a T4 (2e-5) and Unsloth's notebook (5e-6, clip 0.1); untested.
    "learning_rate": 1e-5,
    "max_grad_norm": 0.1,
    "steps": 40,
    "warmup": 3,
    "incidents": 3,
    "group": 8,
    "micro_batches": 12,
    # A checkpoint has 360 MB, and Drive's bin keeps those that are deleted: 2.9 GB in a run.
    "save_every": 5,
    "keep_checkpoints": 1,
}
_T4 = {**_GPU, "loader": "unsloth", "load_in_4bit": True}

PRESETS: dict[str, dict[str, Any]] = {
    "novice": {},
    # A few large steps are enough to ruin these two: the clip is a little above their median norm.
    "expert": {"learning_rate": 3e-4, "max_grad_norm": 0.006},
    # Names and words are spelled, and graphs are larger, which takes more than twice the tokens.
    "general": {
        "learning_rate": 3e-4,
        "max_grad_norm": 0.006,
        "varied": True,
        "completion_tokens": 1280,
    },
    "recommended": _T4,
    # Plain transformers in bf16, which these GPUs have and a T4 has not.
    "l4": {**_GPU, "micro_batches": 8},
    "a100": {**_GPU, "micro_batches": 4},
    # A small model hardly calls tools by itself, so it imitates `trace` before GRPO.
    "t4_starter": {
        **_T4,
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "load_in_4bit": False,
        "warm_up": "trace:200",
        "steps": 20,
    },
    # A reproduction of the model card that this project starts from: 30 episodes per task, 10
    # steps, at most 4 episodes at once. At this rate Adam moves no entry of the adapter by more
    # than 1e-4.
    "model_card": {
        **_T4,
        "max_grad_norm": 1.0,
        "warmup": 0,
        **deal(30, tasks=3, group=4, most_steps=10),
        "micro_batches": 9,
    },
}


def make_config(preset: str, at_once: int | None = None, **changes: Any) -> TrainingConfig:
    """A preset with changes.

    Without `micro_batches` among the changes, a micro-batch holds as many episodes as the preset's,
    or `at_once`, or the next fewer that divide a step.

    Raises:
        ValueError: for an unknown preset or setting, naming the valid ones, and as `TrainingConfig`
            itself.
    """
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    known = [one.name for one in dataclasses.fields(TrainingConfig)]
    for name in changes:
        if name not in known:
            raise ValueError(f"unknown setting {name!r}; choose one of {', '.join(known)}")
    plain = TrainingConfig(**{"model": "", **PRESETS[preset]})
    settings = {**PRESETS[preset], "micro_batches": 1, **changes}
    config = TrainingConfig(**settings)
    if "micro_batches" in changes:
        return config
    most = at_once or plain.at_once
    parts = range(1, config.episodes + 1)
    fewest = next(n for n in parts if config.episodes % n == 0 and config.episodes // n <= most)
    return dataclasses.replace(config, micro_batches=fewest)


def asked_config(
    preset: str,
    tasks: Sequence[str],
    episodes: int | None,
    steps: int | None,
    batch: int | None,
    changes: dict[str, Any],
) -> TrainingConfig:
    """A preset as a command asks for it.

    Args:
        preset: its name.
        tasks: names, or `all`, to be played in equal shares; none for the preset's shares.
        episodes: of each task, dealt in turn (see `deal`); None for the preset's number.
        steps: optimizer steps, with `episodes` the most of them; None for the preset's.
        batch: episodes at once in the backward pass; None for the preset's.
        changes: other settings; None leaves one as it is in the preset.

    Raises:
        ValueError: as `make_config` and `deal`, and for an unknown task.
    """
    asked = {name: value for name, value in changes.items() if value is not None}
    if tasks:
        asked["shares"] = dict.fromkeys(check_tasks(tasks), 1.0)
    if steps is not None:
        asked["steps"] = steps
    if episodes is not None:
        plain = make_config(preset, **asked)
        sizes = deal(episodes, len(plain.shares), plain.group, steps)
        shares = dict.fromkeys(plain.shares, 1.0)
        asked |= {**sizes, "shares": shares, "deal": "in_turn"}
    return make_config(preset, at_once=batch, **asked)
