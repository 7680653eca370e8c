"""GRPO through TRL: one route for the mini model on two CPU cores and for Qwen2.5-3B-Instruct on a T4.

`environment_factory` plays the incidents, `TriageTools.get_reward` scores them, and every completion of a group plays
the same incident, so advantages compare decisions and not luck. A run is a folder:

| file | what |
|---|---|
| `config.json` | settings, versions, commit, machine |
| `metrics.jsonl` | what TRL logs and what the episodes scored, a line a step |
| `episodes.jsonl` | a row a training episode: step, task, index, score and its parts |
| `completions.jsonl` | one conversation a step, to read |
| `checkpoint-*` | to resume from |
| `model/` | the trained model, and the sign that the run is finished |

The same command continues an interrupted run from its last checkpoint, and leaves a finished one alone.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from .incidents import TASKS, check_coordinates
from .prompts import CLOSED, SYSTEM_PROMPT
from .rollouts import episode_row
from .runs import start_run
from .tools import TriageTools

LOADERS = ("transformers", "unsloth")
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


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
        temperature: of sampling.
        completion_tokens: of one episode, all turns and tool answers together.
        turn_tokens: new tokens of one turn.
        shares: task to its share of the incidents.
        first_index: where in `train` the incidents start.
        save_every: steps between checkpoints.
    """

    model: str
    loader: str = "transformers"
    load_in_4bit: bool = False
    lora_rank: int = 0
    lora_alpha: int = 32
    seed: int = 0
    steps: int = 48
    incidents: int = 16
    group: int = 8
    micro_batches: int = 8
    learning_rate: float = 5e-4
    warmup: int = 3
    temperature: float = 1.0
    completion_tokens: int = 448
    turn_tokens: int = 40
    shares: dict[str, float] = field(
        default_factory=lambda: {"single_crash": 0.25, "cascading_failure": 0.45, "silent_degradation": 0.3}
    )
    first_index: int = 0
    save_every: int = 10

    def __post_init__(self) -> None:
        if self.loader not in LOADERS:
            raise ValueError(f"unknown loader {self.loader!r}; choose one of {', '.join(LOADERS)}")
        if self.steps < 1 or self.incidents < 1 or self.group < 2:
            raise ValueError(
                f"steps and incidents must be >= 1 and group >= 2, got {self.steps}, {self.incidents}, "
                f"{self.group}; a group of one has no advantage to learn from"
            )
        if (self.incidents * self.group) % self.micro_batches:
            raise ValueError(
                f"micro_batches {self.micro_batches} must divide incidents x group = {self.incidents * self.group}"
            )
        for task in self.shares:
            check_coordinates(task, "train", self.first_index)
        if not self.shares or min(self.shares.values()) < 0 or sum(self.shares.values()) <= 0:
            raise ValueError(f"shares must be >= 0 and not all 0, got {self.shares}")


_T4 = {
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "loader": "unsloth",
    "load_in_4bit": True,
    "lora_rank": 16,
    "lora_alpha": 32,
    "completion_tokens": 2048,
    "turn_tokens": 256,
}

# `model_card` repeats the hyperparameters of the card that this project starts from: 30 episodes a task in batches of 4.
PRESETS: dict[str, dict[str, Any]] = {
    "mini": {},
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
    "recommended": {**_T4, "learning_rate": 2e-5, "steps": 60, "incidents": 4, "group": 8, "micro_batches": 16},
}


def make_config(preset: str, **changes: Any) -> TrainingConfig:
    """A preset with changes; `ValueError` for an unknown preset or setting, naming the valid ones."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    known = [f.name for f in dataclasses.fields(TrainingConfig)]
    for name in changes:
        if name not in known:
            raise ValueError(f"unknown setting {name!r}; choose one of {', '.join(known)}")
    return TrainingConfig(**{**PRESETS[preset], **changes})


def incident_rows(config: TrainingConfig) -> list[dict[str, Any]]:
    """The run's dataset: a row an incident, in the order of training; every index is played in one step only."""
    random = Random(f"training/{config.seed}")
    tasks, weights = list(config.shares), list(config.shares.values())
    prompt = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": ""}]
    count = config.steps * config.incidents
    first = config.first_index + config.seed * count
    return [
        {"prompt": prompt, "task": random.choices(tasks, weights)[0], "split": "train", "index": first + i}
        for i in range(count)
    ]


class EpisodeRecorder:
    """A reward function of weight 0: it writes down what the episodes of a step were, and logs their means.

    Logged metrics: `score/<task>`, `part/<part>`, `steps`, and `environment_seconds` (time spent in the simulator).
    """

    __name__ = "episodes"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self,
        prompts: list,
        completions: list,
        environments: Sequence[TriageTools],
        trainer_state: Any,
        log_metric: Any,
        **columns: Any,
    ) -> list[float]:
        step = trainer_state.global_step + 1
        means: dict[str, list[float]] = defaultdict(list)
        rows = []
        for tools in environments:
            tools.get_reward()
            row = episode_row(tools._episode, "training", 0.0)
            rows.append({"step": step, **{key: row[key] for key in row if key not in ("policy", "seconds", "split")}})
            means[f"score/{row['task']}"].append(row["score"])
            for part in ("severity", "root_cause", "remediation", "escalation", "speed", "gate", "steps"):
                means[f"part/{part}"].append(float(row[part]))
        for name, values in means.items():
            log_metric(name, sum(values) / len(values))
        log_metric("environment_seconds", sum(tools._seconds for tools in environments))
        with (self.folder / "episodes.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        shown = {
            "step": step,
            "task": rows[0]["task"],
            "index": rows[0]["index"],
            "score": rows[0]["score"],
            "messages": [{**prompts[0][-1], "content": environments[0]._opening}, *completions[0]],
        }
        with (self.folder / "completions.jsonl").open("a") as file:
            file.write(json.dumps(shown) + "\n")
        return [0.0] * len(environments)


def by_length(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Regroup a step's micro-batches by length and cut their padding.

    TRL pads every episode of a step to the longest one. The gradient is the sum over all of them whatever the order,
    so short ones may share a short micro-batch; on a CPU that saves a third of the backward pass.
    """
    import torch

    size = len(batches[0]["completion_ids"])
    rows = {
        key: torch.cat([batch[key] for batch in batches])
        for key, value in batches[0].items()
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == size
    }
    order = (rows["prompt_mask"].sum(1) + rows["completion_mask"].sum(1)).argsort()
    regrouped = []
    for i, batch in enumerate(batches):
        part = {**batch, **{key: value[order[i * size : (i + 1) * size]] for key, value in rows.items()}}
        prompt, completion = (int(part[f"{name}_mask"].sum(1).max()) for name in ("prompt", "completion"))
        for key, value in part.items():
            if key.startswith("prompt_") and key in rows:
                part[key] = value[:, value.shape[1] - prompt :]  # padded on the left
            elif key in rows and value.dim() == 2:
                part[key] = value[:, :completion]
        regrouped.append(part)
    return regrouped


def _load(config: TrainingConfig) -> tuple[Any, Any, Any]:
    """(model, tokenizer, peft_config) ready to train."""
    if config.loader == "unsloth":
        from unsloth import FastLanguageModel  # must come before TRL and transformers

        model, tokenizer = FastLanguageModel.from_pretrained(
            config.model, max_seq_length=4096, load_in_4bit=config.load_in_4bit, fast_inference=False
        )
        model = FastLanguageModel.get_peft_model(
            model,
            r=config.lora_rank,
            lora_alpha=config.lora_alpha,
            lora_dropout=0.0,
            bias="none",
            target_modules=list(LORA_TARGETS),
            use_gradient_checkpointing="unsloth",
            random_state=config.seed,
        )
        from trl.chat_template_utils import add_response_schema, qwen2_5_chat_template

        tokenizer.chat_template = qwen2_5_chat_template
        return model, add_response_schema(tokenizer), None
    from .language_models import load_language_model

    model, tokenizer = load_language_model(config.model, load_in_4bit=config.load_in_4bit)
    if not config.lora_rank:
        return model, tokenizer, None
    from peft import LoraConfig

    return (
        model,
        tokenizer,
        LoraConfig(
            r=config.lora_rank,
            lora_alpha=config.lora_alpha,
            lora_dropout=0.0,
            target_modules=list(LORA_TARGETS),
            task_type="CAUSAL_LM",
        ),
    )


def train(config: TrainingConfig, folder: str | Path, progress: bool = True) -> Path:
    """Train with GRPO into `folder`, resuming where an earlier attempt stopped. Returns the trained model's folder.

    Raises:
        ValueError: when the folder holds a run with other settings.
    """
    folder = Path(folder)
    checkpoint = start_run(asdict(config), folder)
    if (folder / "model").exists():
        return folder / "model"
    model, tokenizer, peft_config = _load(config)

    import torch
    from datasets import Dataset
    from tqdm import tqdm
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    class IncidentTrainer(GRPOTrainer):
        """Ends a sample when its incident is closed, which spares a turn of generation an episode.

        TRL's loop has no channel for that; it does drop a sample whose tool answer would not fit, as it stood before
        the answer. An answer that closes the incident is declared not to fit.
        """

        def _get_tool_suffix_ids(self, tool_messages):
            if tool_messages[-1]["content"].endswith(CLOSED):
                return [self._tokenizer.pad_token_id] * (self.max_completion_length + 1)
            return super()._get_tool_suffix_ids(tool_messages)

        def _prepare_inputs(self, generation_batch):
            fresh = self.model.training and self._step % self.args.steps_per_generation == 0
            inputs = super()._prepare_inputs(generation_batch)
            if fresh:
                self._buffered_inputs = by_length(self._buffered_inputs)
                inputs = self._buffered_inputs[0]
            return inputs

    class MetricsLog(TrainerCallback):
        """A line of `metrics.jsonl` a step; `seconds` counts the time of earlier attempts in."""

        def on_train_begin(self, args, state, control, **kwargs):
            path = folder / "metrics.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            self.began = time.perf_counter() - (json.loads(lines[-1])["seconds"] if lines else 0.0)
            self.bar = tqdm(
                total=config.steps, initial=state.global_step, desc="grpo", disable=not progress, mininterval=2.0
            )

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "reward" not in logs:
                return
            row = {"step": state.global_step, "seconds": round(time.perf_counter() - self.began, 2), **logs}
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            self.bar.update(state.global_step - self.bar.n)
            self.bar.set_postfix(reward=f"{logs['reward']:.3f}", refresh=False)

        def on_train_end(self, args, state, control, **kwargs):
            self.bar.close()

    gpu = torch.cuda.is_available()
    arguments = GRPOConfig(
        output_dir=str(folder),
        seed=config.seed,
        data_seed=config.seed,
        shuffle_dataset=False,
        report_to=[],
        max_steps=config.steps,
        num_generations=config.group,
        per_device_train_batch_size=config.incidents * config.group // config.micro_batches,
        gradient_accumulation_steps=config.micro_batches,
        steps_per_generation=config.micro_batches,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        optim="adamw_torch",
        adam_beta1=0.9,
        adam_beta2=0.99,
        weight_decay=0.0,
        max_grad_norm=1.0,
        temperature=config.temperature,
        top_p=1.0,
        top_k=0,
        beta=0.0,
        num_iterations=1,
        epsilon=0.2,
        loss_type="dr_grpo",
        scale_rewards="group",
        mask_truncated_completions=False,
        max_completion_length=config.completion_tokens,
        generation_kwargs={"max_new_tokens": config.turn_tokens},
        max_tool_calling_iterations=max(TASKS[task].max_steps for task in config.shares),
        reward_weights=[0.0],
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=2,
        disable_tqdm=True,
        use_cpu=not gpu,
        bf16=gpu and torch.cuda.is_bf16_supported(),
        fp16=gpu and not torch.cuda.is_bf16_supported(),
        gradient_checkpointing=gpu,
        dataloader_num_workers=0,
        remove_unused_columns=False,
    )
    trainer = IncidentTrainer(
        model=model,
        args=arguments,
        processing_class=tokenizer,
        peft_config=peft_config,
        train_dataset=Dataset.from_list(incident_rows(config)),
        environment_factory=TriageTools,
        reward_funcs=[EpisodeRecorder(folder)],
        callbacks=[MetricsLog()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trainer.save_model(str(folder / "model.partial"))
    tokenizer.save_pretrained(str(folder / "model.partial"))
    (folder / "model.partial").rename(folder / "model")
    return folder / "model"
