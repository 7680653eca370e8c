"""Settings of a training run, and the presets: settings by name."""

import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from logtriage.play.conversation import opening_messages
from logtriage.world.tasks import TASKS, check_task, check_tasks

from ..real.real_episode import MAX_STEPS
from ..realistic.production_episode import PRODUCTION
from .sft_tasks import SFT_TASK_INDEX

SHARES = {"single_crash": 0.35, "cascading_failure": 0.2, "silent_degradation": 0.45}
MOST_TOGETHER = 48  # most episodes of a step that `deal` makes: all are generated at once

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class TrainingConfig:
    """Settings of a run. The loss is a sum over the calls' tokens, divided by `completion_tokens`
    and by the number of episodes, so the norms of gradients are small.
    """

    model: str  # name (as smollm2), folder or hub name of the model to start from
    loader: Literal["transformers", "unsloth"] = "transformers"  # unsloth: NVIDIA GPUs only
    load_in_4bit: bool = False  # quantise the frozen weights
    lora_rank: Natural = 0  # of the adapter that is trained; 0 trains all weights
    lora_alpha: int = 32  # the adapter's scale
    seed: Natural = 0  # of sampling and of the order of incidents
    steps: Count = 120  # optimizer steps
    incidents: Count = 8  # different ones per step
    group: Annotated[int, Field(ge=2)] = 8  # episodes of an incident; one alone teaches nothing
    micro_batches: Count = 1  # parts that a step's episodes are split into for the backward pass
    learning_rate: NotNegative = 5e-4  # peak; linear decay to 0 after `warmup` steps
    warmup: Natural = 20
    max_grad_norm: NotNegative = 1.0  # what the gradient's norm is clipped to; 0 for no clip
    temperature: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0  # of sampling
    loop: Literal["kept", "trl"] = "kept"  # our own (see `loop`), or TRL's, which Unsloth needs
    # Credit every call with the episode's reward, or each answer with its own part (see `loop`).
    credit: Literal["episode", "part"] = "part"
    # Whether the model can only write calls that exist (see `language_models.grammar`). Unsloth
    # cannot do this: its kernels for log-probabilities take no mask.
    constrained: bool = True
    completion_tokens: Count = 1280  # of one episode, all turns and tool answers together
    turn_tokens: Count = 64  # new ones of a turn: room for five calls on services of a deep graph
    # Task to its share of the incidents.
    shares: dict[str, NotNegative] = dataclasses.field(default_factory=SHARES.copy)
    # Each incident's task is drawn by these shares, or tasks come in turn, in equal shares.
    deal: Literal["drawn", "in_turn"] = "drawn"
    # Vary the call graph, wording or both of three in five incidents (see `sft_tasks.open_varied`).
    varied: bool = False
    save_every: Count = 40  # steps between checkpoints
    keep_checkpoints: Natural = 0  # how many of the newest are kept; 0 for all

    @property
    def episodes(self) -> int:
        """Episodes of a step."""
        return self.incidents * self.group

    @property
    def at_once(self) -> int:
        """Episodes of one backward pass."""
        return self.episodes // self.micro_batches

    @property
    def incidents_in_all(self) -> int:
        """Incidents of the whole run, all different."""
        return self.steps * self.incidents

    @property
    def most_turns(self) -> int:
        """Most steps of an episode, and so its most turns."""
        if PRODUCTION in self.shares:
            return MAX_STEPS
        return max(TASKS[task].max_steps for task in self.shares)

    def __post_init__(self) -> None:
        if self.episodes % self.micro_batches:
            raise ValueError(
                f"micro_batches must divide incidents x group = {self.episodes}, got "
                f"{self.micro_batches}"
            )
        # All slices of seeds lie below the SFT tasks'.
        most_seeds = SFT_TASK_INDEX // self.incidents_in_all
        if self.seed >= most_seeds:
            raise ValueError(
                f"seed {self.seed} would reach the incidents of the base model's SFT tasks; with "
                f"{self.steps} steps of {self.incidents} incidents the highest is {most_seeds - 1}"
            )
        if PRODUCTION not in self.shares:
            for task in self.shares:
                check_task(task)
        elif len(self.shares) > 1 or self.varied or self.credit == "part":
            raise ValueError(
                f"{PRODUCTION} is scored by the root cause alone, on call graphs of its own; leave "
                "out other tasks, and choose varied=false and credit=episode"
            )
        if not sum(self.shares.values()):
            raise ValueError(f"shares must not all be 0, got {self.shares}")
        if self.deal == "in_turn" and len(set(self.shares.values())) > 1:
            raise ValueError(f"deal 'in_turn' needs equal shares, got {self.shares}")
        if self.loop == "kept" and self.loader == "unsloth":
            raise ValueError("the loader 'unsloth' needs the loop 'trl'; choose that")
        if self.loop == "trl" and self.credit == "part":
            raise ValueError("credit 'part' needs the loop 'kept'; choose 'episode', or that loop")
        if self.loop == "trl" and self.constrained:
            raise ValueError(
                "constrained needs the loop 'kept'; choose constrained=false, or that loop"
            )
        if not self.lora_rank and (self.load_in_4bit or self.loader == "unsloth"):
            raise ValueError(
                "lora_rank 0 trains all weights, which 4 bit and Unsloth freeze; choose another"
            )


def incident_rows(config: TrainingConfig) -> list[dict[str, Any]]:
    """The run's dataset: one row per incident, all different, in the order of training."""
    tasks, count = list(config.shares), config.incidents_in_all
    # TRL appends what `TriageTools.reset` returns, the opening, to the last message.
    prompt = opening_messages("")
    if config.deal == "in_turn":
        dealt = [tasks[i % len(tasks)] for i in range(count)]
    else:
        random = Random(f"training/{config.seed}")
        dealt = random.choices(tasks, list(config.shares.values()), k=count)
    # Seeds share no incident if they have the same `steps` and `incidents`.
    first = config.seed * count
    return [
        {"prompt": prompt, "task": task, "split": "train", "index": index}
        for index, task in enumerate(dealt, first)
    ]


def deal(episodes: int, tasks: int, group: int, most_steps: int | None = None) -> dict[str, int]:
    """Steps, incidents and group of a run that plays exactly `episodes` episodes of each task. Each
    step has the same number of incidents of each task: one, or as few as keep to `most_steps`. A
    group has `group` episodes, or the next fewer that divide. `ValueError` if no sizes fit.
    """
    for size in range(group, 1, -1):
        for each in range(1, MOST_TOGETHER // (tasks * size) + 1):
            steps, left = divmod(episodes, size * each)
            if steps and not left and (most_steps is None or steps <= most_steps):
                return {"steps": steps, "incidents": each * tasks, "group": size}
    most = "" if most_steps is None else f" up to {most_steps * group}"
    raise ValueError(
        f"{episodes} episodes per task make no steps of as many incidents of each task, in groups "
        f"of 2 to {group} and at most {MOST_TOGETHER} episodes; choose a multiple of {group}{most}"
    )


# Gradients are clipped a little above their median norm: a few large steps can ruin a run.
_CPU: dict[str, Any] = {"varied": True, "max_grad_norm": 0.006}
# Shared by the presets for a GPU, which fit a free session on a T4 (see docs/t4.md).
_T4: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "loader": "unsloth",
    "load_in_4bit": True,
    "lora_rank": 16,
    "lora_alpha": 32,
    "loop": "trl",
    "credit": "episode",
    "constrained": False,
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
    # One episode at a time in the backward pass: its tokens alone keep a T4 busy.
    "micro_batches": 24,
    # A checkpoint has 360 MB, and Drive's bin keeps those that are deleted: 2.9 GB in a run.
    "save_every": 5,
    "keep_checkpoints": 1,
}

PRESETS: dict[str, dict[str, Any]] = {
    "novice": {**_CPU, "steps": 80, "save_every": 20},
    # Its base has already been taught, so it takes half as many steps.
    "expert": {**_CPU, "learning_rate": 3e-4, "steps": 60, "warmup": 10},
    # Its base is an adapter (see `imitation`), which is trained further. In its tokens episodes are
    # several times as long as in the embedded model's.
    "smollm2": {
        "lora_rank": 16,
        "lora_alpha": 32,
        "learning_rate": 3e-4,
        "steps": 36,
        "warmup": 3,
        "incidents": 2,
        "group": 8,
        "micro_batches": 8,  # two episodes take 8 GB
        "completion_tokens": 2048,
        "turn_tokens": 192,  # five calls on a deep call graph
        "save_every": 5,
        "keep_checkpoints": 2,
    },
    "recommended": _T4,
    # Apache-2.0, and it never thinks. Its keys and values take four times the 3B's memory, so half
    # as many episodes are played at once.
    "t4_qwen3": {
        **_T4,
        "model": "Qwen/Qwen3-4B-Instruct-2507",
        "incidents": 2,
        "group": 6,
        "micro_batches": 12,
    },
    # From the model card that this project starts from: 30 episodes per task, 10 steps, at most 4
    # episodes at once. At this rate Adam moves no entry of the adapter by more than 1e-4.
    "model_card": {
        **_T4,
        "max_grad_norm": 1.0,
        "warmup": 0,
        **deal(30, tasks=3, group=4, most_steps=10),
        "micro_batches": 9,
    },
}


def make_config(preset: str, /, **changes: Any) -> TrainingConfig:
    """A preset with changes; `ValueError` for an unknown preset or impossible settings.

    If `micro_batches` is not among the changes, a micro-batch holds as many episodes as in the
    preset, or the next fewer that divide a step.
    """
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    own = {"model": "", **PRESETS[preset]}
    try:
        most = TrainingConfig(**own).at_once
        config = TrainingConfig(**{**own, "micro_batches": 1, **changes})
    except ValidationError as error:
        raise ValueError("; ".join(map(_line, error.errors()))) from None
    if "micro_batches" in changes:
        return config
    parts = range(1, config.episodes + 1)
    fewest = next(n for n in parts if config.episodes % n == 0 and config.episodes // n <= most)
    return dataclasses.replace(config, micro_batches=fewest)


def _line(error: Any) -> str:
    """One of pydantic's errors, in a line."""
    if error["type"] == "value_error":  # of `__post_init__`
        return str(error["ctx"]["error"])
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}, got {error['input']!r:.60}"


def config_from_cli(
    preset: str,
    tasks: Sequence[str],
    episodes: int | None,
    most_steps: int | None,
    /,
    **settings: Any,
) -> TrainingConfig:
    """A preset with what a command asks for; None, or no tasks, keeps what the preset has.

    Args:
        tasks: names, or `all`, to be played in equal shares; or `production`.
        episodes: of each task, dealt in turn (see `deal`), which decides on `steps`.
        most_steps: most optimizer steps; those of the preset, or as `episodes` are dealt.
        settings: other settings, by name.
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    if episodes is not None and "steps" in settings:
        raise ValueError("episodes decide on the steps; give --grpo-max-steps for the most of them")
    if tasks:
        names = tasks if PRODUCTION in tasks else check_tasks(tasks)
        settings["shares"] = dict.fromkeys(names, 1.0)
    plain = make_config(preset, **settings)
    if episodes is not None:
        settings |= deal(episodes, len(plain.shares), plain.group, most_steps)
        settings |= {"shares": dict.fromkeys(plain.shares, 1.0), "deal": "in_turn"}
    elif most_steps is not None:
        settings["steps"] = min(plain.steps, most_steps)
    return make_config(preset, **settings)
