"""Settings of a training run: what they mean, and which do not go together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..play.scoring import LEFT_OUT
from ..world.tasks import check_task, is_number, is_whole
from .credit import CREDITS
from .drills import DRILL_INDEX, TEACHERS

# Settings that are one of a few words.
CHOICES = {
    "loader": ("transformers", "unsloth"),
    "loop": ("kept", "trl"),
    "credit": CREDITS,
    "reward": ("score", *LEFT_OUT, "stored"),
    "choose": ("drawn", "learnable"),
    "scale_rewards": ("none", "group", "batch"),
    "deal": ("drawn", "in_turn"),
}
MOST_LESSONS = 10_000  # of a warm-up
# Settings that the first runs were made before, with the values that they were made with.
NEWER = {
    "deal": "drawn",
    "warm_up": "",
    "keep_checkpoints": 0,
    "reward": "score",
    "false_alarms": True,
    "entropy_bonus": 0.0,
    "answers_in_loss": False,
    "choose": "drawn",
}
MAX_SEED = 2**32 - 1  # the largest that numpy takes

# What a setting may be, by its annotation; `seed` has a rule of its own.
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
        credit: `episode` gives all calls of an episode its reward; `part` each answer what follows
            from it; `to_go` each call what is earned from it on; `anchor` compares calls made in
            the same state; `belief` gives what a call changes in the value that privileged
            knowledge of the simulator sees (see `credit`). All but the first need the loop `kept`.
        reward: what is paid: the `score`; `no_speed`, `no_gate` or `no_paging`, the score without
            one of its rules (see `rewards.paid`); `stored`, a mistake (see `payment`), which needs
            the loop `kept`. Results are told in scores all the same.
        entropy_bonus: how much of the entropy of what is written, in nats, a mean over tokens, is
            added to what is learned for.
        answers_in_loss: learn the tools' answers, too, as if the model had written them, which is a
            mistake; needs the loop `kept`.
        completion_tokens: of one episode, all turns and tool answers together.
        turn_tokens: new tokens of one turn.
        shares: task to its share of the incidents.
        deal: `drawn` draws each incident's task by these shares, `in_turn` deals the tasks out in
            turn, which takes equal shares.
        false_alarms: whether they are played; else real faults of the same task are in their place.
        choose: `drawn` plays every incident once; `learnable` plays earlier ones again in place of
            half of a step's (see `choice`); needs the loop `kept`.
        warm_up: what is imitated before reward, as `trace:200`: a policy, and how many of its
            conversations; empty for nothing.
        varied: play half of them on random call graphs, or in other words (see
            `drills.open_varied`).
        save_every: steps between checkpoints.
        keep_checkpoints: how many are kept, the newest; 0 for all.
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
    reward: str = "score"
    entropy_bonus: float = 0.0
    answers_in_loss: bool = False
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
    false_alarms: bool = True
    choose: str = "drawn"
    warm_up: str = ""
    varied: bool = False
    save_every: int = 40
    keep_checkpoints: int = 0

    @property
    def episodes(self) -> int:
        """Of a step."""
        return self.incidents * self.group

    @property
    def at_once(self) -> int:
        """Episodes of one backward pass."""
        return self.episodes // self.micro_batches

    def __post_init__(self) -> None:
        for one in fields(self):
            kinds = KINDS.get(str(one.type)) if one.name != "seed" else None
            value = getattr(self, one.name)
            if kinds and (
                not isinstance(value, kinds) or (type(value) is bool and bool not in kinds)
            ):
                raise ValueError(f"{one.name} must be a {one.type}, got {value!r:.60}")
        for setting, known in CHOICES.items():
            if getattr(self, setting) not in known:
                value = getattr(self, setting)
                raise ValueError(f"unknown {setting} {value!r}; choose one of {', '.join(known)}")
        self._check_what_is_learned()
        if self.loop == "kept" and self.loader == "unsloth":
            raise ValueError("the loader 'unsloth' needs the loop 'trl'; choose that")
        if self.steps < 1 or self.incidents < 1 or self.group < 2:
            raise ValueError(
                f"steps and incidents must be >= 1 and group >= 2, got {self.steps}, "
                f"{self.incidents}, {self.group}; a group of one has no advantage to learn from"
            )
        if not self.max_grad_norm >= 0.0:
            raise ValueError(f"max_grad_norm must be >= 0 (0: no clip), got {self.max_grad_norm}")
        if self.episodes % self.micro_batches:
            raise ValueError(
                f"micro_batches {self.micro_batches} must divide incidents x group = "
                f"{self.episodes}"
            )
        if not self.lora_rank and (self.load_in_4bit or self.loader == "unsloth"):
            raise ValueError(
                "lora_rank 0 trains all weights, which are frozen in 4 bit and by Unsloth; choose "
                "a lora_rank > 0, or the loader 'transformers' without load_in_4bit"
            )
        for task in self.shares:
            check_task(task)
        if not self.shares or min(self.shares.values()) < 0 or sum(self.shares.values()) <= 0:
            raise ValueError(f"shares must be >= 0 and not all 0, got {self.shares}")
        if self.deal == "in_turn" and len(set(self.shares.values())) > 1:
            raise ValueError(
                f"tasks that are dealt in turn have equal shares, got {self.shares}; choose deal "
                "'drawn', or equal shares"
            )
        if self.warm_up:
            lessons_of(self.warm_up)
            if not self.lora_rank:
                raise ValueError(
                    "a warm-up teaches an adapter; choose a lora_rank > 0, or start from a base "
                    "that was taught (`build-base --taught`)"
                )
        if not is_whole(self.seed, 0, MAX_SEED):
            raise ValueError(
                f"seed must be a whole number from 0 to {MAX_SEED}, got {self.seed!r:.60}"
            )
        # Every seed has a slice of `train` of its own, below the drills' (`choice.incident_rows`).
        played = self.steps * self.incidents
        if (self.seed + 1) * played > DRILL_INDEX:
            raise ValueError(
                f"seed {self.seed} would reach the incidents of the base model's drills; with "
                f"{self.steps} steps of {self.incidents} incidents the highest is "
                f"{DRILL_INDEX // played - 1}"
            )

    def _check_what_is_learned(self) -> None:
        """Raise `ValueError` for credits, rewards and the like that do not go together."""
        if self.loop == "trl":
            plain = {"credit": "episode", "answers_in_loss": False, "choose": "drawn"}
            if self.reward == "stored":
                plain["reward"] = "score"
            for setting, value in plain.items():
                if getattr(self, setting) != value:
                    raise ValueError(
                        f"{setting} {getattr(self, setting)!r} needs the loop 'kept'; choose "
                        f"{setting} {value!r}, or that"
                    )
        if self.scale_rewards != "none" and self.credit != "episode":
            raise ValueError(
                f"credit {self.credit!r} has advantages of its own, which are not scaled; choose "
                "credit 'episode', or scale_rewards 'none'"
            )
        if self.reward == "stored" and self.credit != "episode":
            raise ValueError(
                f"reward 'stored' has no parts that credit {self.credit!r} could tell apart; "
                "choose credit 'episode'"
            )
        if self.credit == "belief":
            double = [task for task in self.shares if check_task(task).faults > 1]
            if self.reward != "score" or self.varied or double:
                raise ValueError(
                    "credit 'belief' knows the value of the score at single faults on one call "
                    f"graph; got reward {self.reward!r}, varied {self.varied}, tasks "
                    f"{', '.join(self.shares)}; choose another credit, or reward 'score', varied "
                    "False and tasks of one fault"
                )
        if not is_number(self.entropy_bonus, 0, 1):
            raise ValueError(f"entropy_bonus must be from 0 to 1, got {self.entropy_bonus!r:.60}")


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
