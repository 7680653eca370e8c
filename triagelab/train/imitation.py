"""The base of a pretrained language model: an adapter that learns what the embedded base learns.

The lessons are those of `sft_tasks`: first reading alone, then episodes of the novice or the expert
with some reading among them. The learning rate is constant, and the base is the moving average of
the adapter as it learns. So training has no planned end: it goes on until two evaluations on a
slice of `train` are nearly equal, or to a number of examples, and later from there.

Whoever has seen only an expert's games does not know what to do where no expert comes to, such as
after a useless question. So a base can then be corrected in its own play (`OnPolicyImitator`).
"""

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from joblib import Parallel
from tqdm import tqdm

from logtriage.play.tools import tool_schemas
from logtriage.world.tasks import TASKS

from ..bench.rollouts import TUNING_INDEX, rollout
from ..bench.runs import environment_record, locked, write_text
from ..language_models import loading
from ..language_models.language_models import LanguageModelPolicy
from .base_model import base_record
from .distillation import corrected
from .grpo import load_to_train
from .settings import PRESETS, TrainingConfig
from .sft_tasks import (
    EPISODE_SHARES,
    EXPERT_INDEX,
    NoisySession,
    draw_task,
    expert_episode,
    novice_episode,
    open_varied,
    sft_task,
)
from .supervised import Example, encode

RATE = 1e-3  # of AdamW; as usual for adapters of this rank, which see few examples
BATCH = 4  # examples per update: with few of them, many small steps learn more than few large ones
POOL = 64  # examples from one checkpoint to the next
FIRST_READING = 10  # pools with reading alone
READING_AMONG = 16  # examples of reading in each pool after that
# Longer examples are left out: reading, and openings of episodes with their 858 tokens of system
# prompt and tools. They are those of large call graphs, and take most of the time.
LONGEST_READING, LONGEST_OPENING = 650, 1250  # tokens
# The weight of a token that every call has; others that the assistant wrote have 1. Two of the 34
# tokens of a call are choices, and the rest would drown them.
FIXED_WEIGHT = 0.1
TURN_TOKENS = PRESETS["smollm2"]["turn_tokens"]
AVERAGED = 0.99  # share of the moving average that a step keeps
EVALUATED, EVERY = 20, 8  # incidents of each task that are played, after so many pools
ON_POLICY = "on-policy"  # lessons that are corrections of the model's own episodes
TEACHERS = {"novice": novice_episode, "expert": expert_episode, ON_POLICY: expert_episode}
ON_POLICY_FIRST = EXPERT_INDEX + 200_000  # in `train`: its incidents
ENOUGH = 0.01  # evaluations differ by less when the base has learned what it will learn


class Imitator:
    """A model whose adapter learns, with all that it takes to go on from a checkpoint."""

    rate, pool_size = RATE, POOL

    def __init__(self, model: Any, tokenizer: Any, teacher: str, seed: int, known: int = 0) -> None:
        """`known`: how many examples the model has seen before; its reading tasks follow those."""
        import torch

        from ..language_models.decoder import FOLDED, shared_prefix, without_adapter

        self.model, self.tokenizer, self.seed, self.known = model, tokenizer, seed, known
        self.teacher, self.schemas = TEACHERS[teacher], tool_schemas()
        # What all conversations with tools begin with: it is read once for a batch.
        self.shared = shared_prefix([self._episode(index).ids for index in (0, 1)])
        self.inner = without_adapter(model)
        if self.inner.device.type == "cpu":
            self.inner.set_attn_implementation(FOLDED)
        self.weights = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.bf16 = loading.computes_bf16()
        frozen = torch.bfloat16 if self.bf16 else torch.float32  # a T4 loads them in fp16
        for weight in model.parameters():
            if not weight.requires_grad:
                weight.data = weight.data.to(frozen)
        self.average = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.optimizer = torch.optim.AdamW(
            self.weights.values(), lr=self.rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self.pool, self.steps, self.seconds = 0, 0, 0.0
        self.log: list[dict[str, Any]] = []

    @property
    def examples(self) -> int:
        """How many examples it has learned from."""
        return self.pool * self.pool_size

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        import torch

        state = {
            "weights": {name: weight.detach() for name, weight in self.weights.items()},
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            **{name: getattr(self, name) for name in ("pool", "steps", "seconds", "log")},
        }
        torch.save(state, path.with_suffix(".partial"))
        path.with_suffix(".partial").replace(path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        import torch

        state = torch.load(path, map_location=self.inner.device, weights_only=True)
        self._set(state.pop("weights"))
        self.optimizer.load_state_dict(state.pop("optimizer"))
        for name, value in state.items():
            setattr(self, name, value)

    def learn_pool(self) -> None:
        """Learn from the next pool of examples, and log the mean loss."""
        import torch
        from peft.helpers import disable_input_dtype_casting

        began, losses = time.perf_counter(), []
        batches = self.batches()
        self.model.train()
        for batch in tqdm(batches, f"pool {self.pool}", mininterval=5.0):
            self.optimizer.zero_grad()
            autocast = torch.autocast(self.inner.device.type, torch.bfloat16, enabled=self.bf16)
            with autocast, disable_input_dtype_casting(self.model):  # autocast would cast back
                losses.append(self._backward(batch))
            torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
            self.optimizer.param_groups[0]["lr"] = self.rate * min(1.0, (self.steps + 1) / 10)
            self.optimizer.step()
            self.steps += 1
            kept = min(AVERAGED, self.steps / (10 + self.steps))
            for name, weight in self.weights.items():
                self.average[name].lerp_(weight.detach(), 1 - kept)
        self.pool += 1
        self.seconds += time.perf_counter() - began
        self.log.append({"pool": self.pool, "loss": sum(losses) / len(losses)})

    def batches(self) -> list[list[Example]]:
        """The batches of the next pool, always the same."""
        reading = POOL if self.pool < FIRST_READING else READING_AMONG
        later = max(0, self.pool - FIRST_READING)
        first_reading = self.known + POOL * min(self.pool, FIRST_READING) + READING_AMONG * later
        first_episode = (POOL - READING_AMONG) * later
        tasks = (sft_task(first_reading + i) for i in range(reading))
        read = [encode(self.tokenizer, task, None, FIXED_WEIGHT) for task in tasks]
        played = [self._episode(first_episode + i) for i in range(POOL - reading)]
        examples = [example for example in read if len(example.ids) <= LONGEST_READING]
        examples += [example for example in played if example.own.index(True) <= LONGEST_OPENING]
        return _batched(examples, Random(f"imitation/{self.seed}/{self.pool}"))

    def _episode(self, index: int) -> Example:
        return encode(self.tokenizer, self.teacher(index), self.schemas, FIXED_WEIGHT)

    def _backward(self, batch: list[Example]) -> float:
        """Add the gradient of a batch's loss, the weighted mean cross-entropy of the targets, and
        return the loss. Examples are read one by one: on a CPU that is faster than padding them.
        """
        import torch
        from transformers import DynamicCache

        total = sum(weight for example in batch for _, _, weight in example.targets)
        loss, prefix = 0.0, None
        for ids, _, targets in batch:
            cache, start = None, 0
            if ids[: len(self.shared)] == self.shared:
                start = len(self.shared)
                prefix = prefix or self._read_prefix()
                cache = DynamicCache(prefix)
            read = torch.tensor([ids[start:-1]], device=self.inner.device)
            hidden = self.inner.base_model(
                read, past_key_values=cache, use_cache=cache is not None
            ).last_hidden_state[0]
            columns = zip(*targets, strict=True)
            place, token, weight = (torch.tensor(column, device=read.device) for column in columns)
            logits = self.inner.get_output_embeddings()(hidden[place - 1 - start])
            losses = torch.nn.functional.cross_entropy(logits, token, reduction="none")
            part = (losses * weight).sum() / total
            part.backward()
            loss += part.item()
        return loss

    def _read_prefix(self) -> list[tuple[Any, Any]]:
        """Keys and values, by layer, of what all episodes begin with. They get no gradient: what
        the prompt means need not be learned.
        """
        import torch

        ids = torch.tensor([self.shared], device=self.inner.device)
        with torch.no_grad():
            cache = self.inner.base_model(ids, use_cache=True).past_key_values
        return [(layer.keys, layer.values) for layer in cache.layers]

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within this, the adapter's weights are their moving average."""
        own = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self._set(self.average)
        try:
            yield
        finally:
            self._set(own)

    def _set(self, values: dict[str, Any]) -> None:
        for name, weight in self.weights.items():
            weight.data.copy_(values[name])

    def evaluate(self, incidents: int) -> None:
        """Log the mean score of the base, and that of each task, on the first incidents of a slice
        of `train`.
        """
        with self.averaged():
            played = rollout(self.player(), [*TASKS], "train", incidents, TUNING_INDEX)
        means = played.groupby("task", sort=False)["score"].mean().to_dict()
        mean = sum(means.values()) / len(means)
        self.log.append({"pool": self.pool, "score": mean, **means})

    def player(self) -> LanguageModelPolicy:
        """The model as a policy: greedy, and held by the grammar."""
        self.model.eval()
        return LanguageModelPolicy(
            self.model, self.tokenizer, "base", turn_tokens=TURN_TOKENS, constrained=True
        )


class OnPolicyImitator(Imitator):
    """An imitator that plays greedily with its average weights, and learns what the expert would do
    in the states that it comes to (see `distillation`).
    """

    rate, pool_size = 3e-4, 32  # the rate of GRPO

    def batches(self) -> list[list[Example]]:
        """The next pool: its own episodes, each up to its last target."""
        name, sessions = f"{ON_POLICY}/{self.seed}/{self.pool}", []
        for at in range(self.examples, self.examples + self.pool_size):
            task = draw_task(Random(f"{name}/{at}"), EPISODE_SHARES)
            sessions.append(NoisySession(open_varied(task, "train", ON_POLICY_FIRST + at)))
        with self.averaged(), Parallel(n_jobs=-1) as parallel:
            played = corrected(self.player(), sessions, parallel, FIXED_WEIGHT)
        examples = []
        for ids, own, targets in played:
            if targets:
                end = targets[-1][0] + 1
                examples.append(Example(ids[:end], own[:end], targets))
        return _batched(examples, Random(name))


def _batched(examples: list[Example], random: Random) -> list[list[Example]]:
    """Batches of these examples, in random order."""
    random.shuffle(examples)
    return [examples[i : i + BATCH] for i in range(0, len(examples), BATCH)]


def build_imitated(
    folder: str | Path,
    model: str,
    lessons: str,
    seed: int = 0,
    examples: int | None = None,
    hours: float = math.inf,
) -> Path:
    """Teach an adapter of `model` some `lessons`, and save it in `folder` with its tokenizer,
    `base.json` (settings, log, machine, seconds) and `state.pt`, to go on from. A base that lacks
    the last, as a published one, is taught further with a new optimizer.

    Args:
        model: see `resolve_model`; or the folder of a base, which is taught further in another.
        lessons: `novice` or `expert`, who plays the episodes, or `on-policy`, the model itself.
        seed: of the adapter's first weights and of the order of examples.
        examples: how many to learn from, rounded up to whole pools, by an earlier call too; None
            goes on until two evaluations differ by less than `ENOUGH`.
        hours: stop after so many, wherever that is; the same call goes on from there.

    Raises:
        ValueError: if the folder holds another base.
    """
    folder, began = Path(folder), time.perf_counter()
    settings = {"model": model, "lessons": lessons, "seed": seed}
    with locked(folder, wait=True):
        record = base_record(folder, settings) or {"examples": 0, "finished": False}
        if record["finished"] if examples is None else record["examples"] >= examples:
            return folder
        state = folder / "state.pt"
        start = str(folder) if record["examples"] and not state.exists() else model
        config = TrainingConfig(model=start, lora_rank=16, lora_alpha=32, seed=seed)
        adapted, tokenizer = load_to_train(config)
        taught = base_record(Path(model)) if loading.is_adapter(model) else None
        known = taught["examples"] if taught else 0
        kind = OnPolicyImitator if lessons == ON_POLICY else Imitator
        imitator = kind(adapted, tokenizer, lessons, seed, known)
        if state.exists():
            imitator.load(state)
        elif record["examples"]:  # as it is published
            imitator.pool = record["examples"] // imitator.pool_size
            imitator.seconds, imitator.log = record["seconds"], record["log"]
        longest = 0.0
        while not _done(imitator, examples):
            pool_began = time.perf_counter()
            if pool_began - began + longest > 3600 * hours:
                break
            imitator.learn_pool()
            _save(imitator, folder, settings)
            # After reading alone it does not know how to end an episode.
            if imitator.pool > FIRST_READING and imitator.pool % EVERY == 0:
                imitator.evaluate(EVALUATED)
                _save(imitator, folder, settings)
            longest = max(longest, time.perf_counter() - pool_began)
    return folder


def _done(imitator: Imitator, examples: int | None) -> bool:
    """Whether the base has learned from enough examples, or will not become better."""
    if examples is not None:
        return imitator.examples >= examples
    scores = [row["score"] for row in imitator.log if "score" in row]
    return len(scores) > 1 and abs(scores[-1] - scores[-2]) < ENOUGH


def _save(imitator: Imitator, folder: Path, settings: dict[str, Any]) -> None:
    """Save a checkpoint and the base: in 16 bit, since the adapter is to be shipped."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    imitator.save(folder / "state.pt")
    with imitator.averaged():
        options = {"save_embedding_layers": False}  # else PEFT asks the hub for `smollm2`
        weights = get_peft_model_state_dict(imitator.model, **options)
        half = {name: weight.half() for name, weight in weights.items()}
        imitator.model.save_pretrained(folder, state_dict=half, **options)
    imitator.tokenizer.save_pretrained(folder)
    record = {
        "settings": settings,
        "examples": imitator.examples,
        "finished": _done(imitator, None),
        "log": imitator.log,
        "machine": environment_record()["machine"],
        "seconds": round(imitator.seconds, 1),
    }
    write_text(folder / "base.json", json.dumps(record, indent=1))
