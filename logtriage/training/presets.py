"""Settings of a training run: what they mean, five presets, and the incidents that follow from
them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ..play.prompts import SYSTEM_PROMPT
from ..world.tasks import TASKS, check_task, is_whole
from .credit import CREDITS
from .drills import DRILL_INDEX

# Settings that are one of a few words.
CHOICES = {
    "loader": ("transformers", "unsloth"),
    "loop": ("kept", "trl"),
    "credit": CREDITS,
    "scale_rewards": ("none", "group", "batch"),
}
MAX_SEED = 2**32 - 1  # the largest that numpy takes


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a run.

    Attributes:
        model: folder or hub name of the model to start from.
        loader: `transformers` or `unsloth` (NVIDIA GPUs only).
        load_in_4bit: quantise the frozen weights to 4 bit.
        lora_rank: rank of the adapter that is trained; 0 trains all weights.
        lora_alpha: its scale.
        seed: of sampling and of the order of incidents.
        steps: optimizer steps.
        incidents: different incidents a step.
        group: completions (episodes) of each incident.
        micro_batches: parts a step's episodes are split into for the backward pass.
        learning_rate: peak; linear decay to 0 after `warmup` steps.
        max_grad_norm: what the gradient's norm is clipped to; 0 for no clip. The loss is a sum over
            the calls' tokens, divided by `completion_tokens` and the episodes: norms are small.
        temperature: of sampling.
        scale_rewards: what advantages are divided by: `none`, or the standard deviation of the
            rewards of the `group` or of the whole `batch`.
        loop: `kept`, ours, for models of `transformers` (see `loop`), or `trl`, which has every
            conversation read anew at each turn, and which Unsloth needs.
        credit: `episode` gives all calls of an episode its reward; `part` each call what follows
            from it (see `credit`); that needs the loop `kept`.
        completion_tokens: of one episode, all turns and tool answers together.
        turn_tokens: new tokens of one turn.
        shares: task to its share of the incidents.
        varied: play half of them on random call graphs, or in other words (see
            `drills.open_varied`).
        save_every: steps between checkpoints.
    """

    model: str
    loader: str = "transformers"
    load_in_4bit: bool = False
    lora_rank: int = 0
    lora_alpha: int = 32
    seed: int = 0
    steps: int = 200
    incidents: int = 8
    group: int = 8
    micro_batches: int = 1
    learning_rate: float = 4e-4
    warmup: int = 20
    max_grad_norm: float = 1.0
    temperature: float = 1.0
    scale_rewards: str = "none"
    loop: str = "kept"
    credit: str = "part"
    completion_tokens: int = 640
    turn_tokens: int = 40
    shares: dict[str, float] = field(
        default_factory=lambda: {
            "single_crash": 0.35,
            "cascading_failure": 0.2,
            "silent_degradation": 0.45,
        }
    )
    varied: bool = False
    save_every: int = 40

    def __post_init__(self) -> None:
        for setting, known in CHOICES.items():
            if getattr(self, setting) not in known:
                value = getattr(self, setting)
                raise ValueError(f"unknown {setting} {value!r}; choose one of {', '.join(known)}")
        if self.loop == "trl" and self.credit == "part":
            raise ValueError(
                "credit 'part' needs the loop 'kept'; choose credit 'episode', or that"
            )
        if self.scale_rewards != "none" and self.credit == "part":
            raise ValueError(
                "credit 'part' has advantages of its own, which are not scaled; choose credit "
                "'episode', or scale_rewards 'none'"
            )
        if self.loop == "kept" and self.loader == "unsloth":
            raise ValueError("the loader 'unsloth' needs the loop 'trl'; choose that")
        if self.steps < 1 or self.incidents < 1 or self.group < 2:
            raise ValueError(
                f"steps and incidents must be >= 1 and group >= 2, got {self.steps}, "
                f"{self.incidents}, {self.group}; a group of one has no advantage to learn from"
            )
        if not self.max_grad_norm >= 0.0:
            raise ValueError(f"max_grad_norm must be >= 0 (0: no clip), got {self.max_grad_norm}")
        episodes = self.incidents * self.group
        if episodes % self.micro_batches:
            raise ValueError(
                f"micro_batches {self.micro_batches} must divide incidents x group = {episodes}"
            )
        for task in self.shares:
            check_task(task)
        if not self.shares or min(self.shares.values()) < 0 or sum(self.shares.values()) <= 0:
            raise ValueError(f"shares must be >= 0 and not all 0, got {self.shares}")
        if not is_whole(self.seed, 0, MAX_SEED):
            raise ValueError(
                f"seed must be a whole number from 0 to {MAX_SEED}, got {self.seed!r:.60}"
            )
        # Every seed has a slice of `train` of its own (see `incident_rows`), below the drills'.
        played = self.steps * self.incidents
        if (self.seed + 1) * played > DRILL_INDEX:
            raise ValueError(
                f"seed {self.seed} would reach the incidents of the base model's drills; with "
                f"{self.steps} steps of {self.incidents} incidents the highest is "
                f"{DRILL_INDEX // played - 1}"
            )


_T4 = {
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "loader": "unsloth",
    "load_in_4bit": True,
    "lora_rank": 16,
    "lora_alpha": 32,
    "loop": "trl",
    "credit": "episode",
    "completion_tokens": 2048,
    "turn_tokens": 256,
}

# `model_card` repeats the hyperparameters of the card that this project starts from: 30 episodes a
# task in batches of 4.
PRESETS: dict[str, dict[str, Any]] = {
    "mini": {},
    # A few large steps are enough to ruin these two: the clip is a little above their median norm.
    "taught": {"learning_rate": 3e-4, "max_grad_norm": 0.006},
    # Names and words are spelled, and graphs are larger, which takes more than twice the tokens.
    "general": {
        "learning_rate": 3e-4,
        "max_grad_norm": 0.006,
        "varied": True,
        "completion_tokens": 1280,
    },
    "model_card": {
        **_T4,
        "learning_rate": 1e-5,
        "steps": 23,
        "incidents": 1,
        "group": 4,
        "micro_batches": 4,
        "warmup": 0,
        "shares": dict.fromkeys(TASKS, 1.0),
    },
    "recommended": {
        **_T4,
        "learning_rate": 2e-5,
        "steps": 60,
        "warmup": 3,
        "incidents": 4,
        "group": 8,
        "micro_batches": 16,
    },
}


def make_config(preset: str, **changes: Any) -> TrainingConfig:
    """A preset with changes.

    Without `micro_batches` among the changes, a micro-batch holds as many episodes as the preset's,
    or the next fewer that divide a step.

    Raises:
        ValueError: for an unknown preset or setting, naming the valid ones, and as `TrainingConfig`
            itself.
    """
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    known = [f.name for f in dataclasses.fields(TrainingConfig)]
    for name in changes:
        if name not in known:
            raise ValueError(f"unknown setting {name!r}; choose one of {', '.join(known)}")
    settings = {**PRESETS[preset], **changes}
    if "micro_batches" not in changes:  # as many episodes at once as the preset, or fewer
        own = TrainingConfig(**{"model": "", **PRESETS[preset]})
        most = own.incidents * own.group // own.micro_batches
        episodes = settings.get("incidents", own.incidents) * settings.get("group", own.group)
        settings["micro_batches"] = next(
            (n for n in range(1, episodes) if episodes % n == 0 and episodes // n <= most), episodes
        )
    return TrainingConfig(**settings)


def incident_rows(config: TrainingConfig) -> list[dict[str, Any]]:
    """The run's dataset: a row an incident, in the order of training; every index is played in one
    step only.
    """
    random = Random(f"training/{config.seed}")
    tasks, weights = list(config.shares), list(config.shares.values())
    # TRL appends what `TriageTools.reset` returns, the opening, to the last message.
    prompt = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": ""}]
    count = config.steps * config.incidents
    first = config.seed * count
    return [
        {
            "prompt": prompt,
            "task": random.choices(tasks, weights)[0],
            "split": "train",
            "index": first + i,
        }
        for i in range(count)
    ]
