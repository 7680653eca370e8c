"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..world.tasks import check_task, is_whole
from .credit import CREDITS
from .drills import DRILL_INDEX, TEACHERS

CHOICES = {
    "loader": ("transformers", "unsloth"),
    "loop": ("kept", "trl"),
    "credit": CREDITS,
    "deal": ("drawn", "in_turn"),
}
MOST_LESSONS = 10_000  # of a warm-up
MAX_SEED = 2**32 - 1  # the largest that numpy takes

# Python types that a setting may have, by its annotation; `seed` has a rule of its own.
KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
}


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
        incidents: different incidents per step.
        group: completions (episodes) of each incident.
        micro_batches: parts a step's episodes are split into for the backward pass.
        learning_rate: peak; linear decay to 0 after `warmup` steps.
        max_grad_norm: what the gradient's norm is clipped to; 0 for no clip. The loss is a sum over
            the calls' tokens, divided by `completion_tokens` and the episodes: norms are small.
        temperature: of sampling.
        loop: `kept`, our own, for models of `transformers` (see `loop`), or `trl`, which reads the
            whole conversation again at each turn, and which Unsloth needs.
        credit: `episode` gives all calls of an episode its reward, `part` gives each answer its own
            part of the score (see `credit`) and needs the loop `kept`.
        completion_tokens: of one episode, all turns and tool answers together.
        turn_tokens: new tokens of one turn.
        shares: task to its share of the incidents.
        deal: `drawn` draws each incident's task by these shares, `in_turn` deals the tasks out in
            turn, which takes equal shares.
        warm_up: supervised training before GRPO, as `trace:200`: a policy, and how many of its
            conversations to imitate; empty for none.
        varied: play half of the incidents on random call graphs, or in other words (see
            `drills.open_varied`).
        save_every: steps between checkpoints.
        keep_checkpoints: how many of the newest are kept; 0 for all.
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
    deal: str = "drawn"
    warm_up: str = ""
    varied: bool = False
    save_every: int = 40
    keep_checkpoints: int = 0

    @property
    def episodes(self) -> int:
        """Episodes of a step."""
        return self.incidents * self.group

    @property
    def at_once(self) -> int:
        """Episodes of one backward pass."""
        return self.episodes // self.micro_batches

    def __post_init__(self) -> None:
        self._check_kinds()
        self._check_sizes()
        self._check_tasks()
        if self.loop == "kept" and self.loader == "unsloth":
            raise ValueError("the loader 'unsloth' needs the loop 'trl'; choose that")
        if self.loop == "trl" and self.credit != "episode":
            raise ValueError(
                f"credit {self.credit!r} needs the loop 'kept'; choose credit 'episode', or that"
            )
        if not self.lora_rank and (self.load_in_4bit or self.loader == "unsloth"):
            raise ValueError(
                "lora_rank 0 trains all weights, which are frozen in 4 bit and by Unsloth; choose "
                "a lora_rank > 0, or a preset for another GPU (l4, a100)"
            )
        if self.warm_up:
            lessons_of(self.warm_up)
            if not self.lora_rank:
                raise ValueError(
                    "a warm-up trains an adapter; choose a lora_rank > 0, or start from an expert "
                    "base (`build-base --expert`)"
                )

    def _check_kinds(self) -> None:
        for one in fields(self):
            kinds = KINDS.get(str(one.type)) if one.name != "seed" else None
            value = getattr(self, one.name)
            if kinds and (
                not isinstance(value, kinds) or (type(value) is bool and bool not in kinds)
            ):
                raise ValueError(f"{one.name} must be of type {one.type}, got {value!r:.60}")
        for setting, known in CHOICES.items():
            value = getattr(self, setting)
            if value not in known:
                raise ValueError(f"unknown {setting} {value!r}; choose one of {', '.join(known)}")

    def _check_sizes(self) -> None:
        if self.steps < 1 or self.incidents < 1 or self.group < 2:
            raise ValueError(
                f"steps and incidents must be >= 1 and group >= 2, got {self.steps}, "
                f"{self.incidents}, {self.group}; a group of one has no advantage to learn from"
            )
        if not self.max_grad_norm >= 0.0:
            raise ValueError(f"max_grad_norm must be >= 0 (0: no clip), got {self.max_grad_norm}")
        if self.micro_batches < 1 or self.episodes % self.micro_batches:
            raise ValueError(
                f"micro_batches must divide incidents x group = {self.episodes}, got "
                f"{self.micro_batches}"
            )
        if not is_whole(self.seed, 0, MAX_SEED):
            raise ValueError(
                f"seed must be a whole number from 0 to {MAX_SEED}, got {self.seed!r:.60}"
            )
        # Every seed has its own slice of `train`, below the drills' (`grpo.incident_rows`).
        played = self.steps * self.incidents
        if (self.seed + 1) * played > DRILL_INDEX:
            raise ValueError(
                f"seed {self.seed} would reach the incidents of the base model's drills; with "
                f"{self.steps} steps of {self.incidents} incidents the highest is "
                f"{DRILL_INDEX // played - 1}"
            )

    def _check_tasks(self) -> None:
        for task in self.shares:
            check_task(task)
        if not self.shares or min(self.shares.values()) < 0 or sum(self.shares.values()) <= 0:
            raise ValueError(f"shares must be >= 0 and not all 0, got {self.shares}")
        if self.deal == "in_turn" and len(set(self.shares.values())) > 1:
            raise ValueError(
                f"tasks that are dealt in turn have equal shares, got {self.shares}; choose deal "
                "'drawn', or equal shares"
            )


def lessons_of(warm_up: str) -> tuple[str, int]:
    """The teacher (see `drills.TEACHERS`) and the number of conversations that a `warm_up` names.

    Raises:
        ValueError: for another form, an unknown teacher, or a number out of range.
    """
    teacher, _, count = warm_up.partition(":")
    if teacher not in TEACHERS or not count.isdecimal() or not 1 <= int(count) <= MOST_LESSONS:
        raise ValueError(
            f"warm_up must be a teacher ({', '.join(TEACHERS)}), a colon and 1 to {MOST_LESSONS} "
            f"conversations, as trace:200; got {warm_up!r:.60}"
        )
    return teacher, int(count)
