"""GRPO through TRL: one route for the mini model on two CPU cores and for Qwen2.5-3B-Instruct on a
T4.

`environment_factory` plays the incidents, `TriageTools.get_reward` scores them, and every
completion of a group plays the same incident, so advantages compare decisions and not luck. A run
is a folder:

| file | what |
|---|---|
| `config.json` | settings, versions, commit, machine |
| `metrics.jsonl` | what TRL logs and what the episodes scored, a line a step |
| `episodes.jsonl` | a row a training episode: step, task, index, score and its parts |
| `completions.jsonl` | one conversation a step, to read |
| `checkpoint-*` | to resume from |
| `model/` | the trained model, and the sign that the run is finished |

The same command continues an interrupted run from its last checkpoint, and leaves a finished one
alone.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ..adapters.remote import Server
from ..agents.language_models import CALL_TAG, load_language_model, with_tool_calls
from ..measure.rollouts import PARTS, episode_row
from ..measure.runs import rewind, start_run
from ..play.prompts import CLOSED
from ..play.tools import MALFORMED_COST, TriageTools
from ..world.tasks import TASKS
from .presets import TrainingConfig, incident_rows

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class EpisodeRecorder:
    """A reward function that takes off what never reached the environment, writes down the episodes
    and logs their means.

    Logged metrics: `score/<task>`, `part/<part>`, `part/gate`, `part/steps`, `malformed` (calls
    that were no valid action, an episode), and `environment_seconds` (time spent in the simulator).
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
        rows, lost = [], [unreachable_calls(completion) for completion in completions]
        for tools in environments:
            tools.get_reward()
            row = episode_row(tools._episode, "training", 0.0)
            rows.append(
                {
                    "step": step,
                    **{
                        key: row[key]
                        for key in row
                        if key not in ("policy", "seconds", "split", "confidence", "benchmark")
                    },
                }
            )
            means[f"score/{row['task']}"].append(row["score"])
            for part in (*PARTS, "gate", "steps"):
                means[f"part/{part}"].append(float(row[part]))
        for name, values in means.items():
            log_metric(name, sum(values) / len(values))
        refused = [
            tools._malformed + count for tools, count in zip(environments, lost, strict=True)
        ]
        log_metric("malformed", sum(refused) / len(refused))
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
        return [-MALFORMED_COST * count for count in lost]


def unreachable_calls(completion: list[dict[str, Any]]) -> int:
    """Calls that TRL could not hand to the environment: unreadable ones, unknown tools, wrong
    arguments.
    """
    unread = sum(
        message["role"] == "assistant"
        and not message.get("tool_calls")
        and CALL_TAG in (message.get("content") or "")
        for message in completion
    )
    # TRL answers such a call itself; what the environment raises after the close is counted there.
    answered = [str(message["content"]) for message in completion if message["role"] == "tool"]
    return unread + sum(text.startswith("{'error'") and CLOSED not in text for text in answered)


def by_length(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Regroup a step's micro-batches by length and cut their padding.

    TRL pads every episode of a step to the longest one. The gradient is the sum over all of them
    whatever the order, so short ones may share a short micro-batch; on a CPU that saves a third of
    the backward pass.
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
        part = {
            **batch,
            **{key: value[order[i * size : (i + 1) * size]] for key, value in rows.items()},
        }
        prompt, completion = (
            int(part[f"{name}_mask"].sum(1).max()) for name in ("prompt", "completion")
        )
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
            config.model,
            max_seq_length=4096,
            load_in_4bit=config.load_in_4bit,
            fast_inference=False,
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
        return model, with_tool_calls(tokenizer), None
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


def run_settings(config: TrainingConfig, folder: Path) -> dict[str, Any]:
    """What `config.json` holds: a model in a folder is named relative to the run, so that both can
    move together.
    """
    settings = asdict(config)
    if Path(config.model).is_dir():
        settings["model"] = os.path.relpath(Path(config.model).resolve(), folder.resolve())
    return settings


def model_of(run: str | Path) -> str:
    """Folder or hub name of the model that a run started from."""
    name = json.loads((Path(run) / "config.json").read_text())["settings"]["model"]
    return str((Path(run) / name).resolve()) if (Path(run) / name).is_dir() else name


def train(
    config: TrainingConfig, folder: str | Path, progress: bool = True, env_url: str = ""
) -> Path:
    """Train with GRPO into `folder`, resuming where an earlier attempt stopped. Returns the trained
    model's folder.

    Args:
        config: the settings.
        folder: the run's.
        progress: whether to show a bar.
        env_url: a LogTriage server to play on instead of in this process; the result is the same.

    Raises:
        ValueError: when the folder holds a run with other settings.
        ConnectionError: when the server does not answer; the same command goes on from the last
            checkpoint.
    """
    if not env_url:
        return _train(config, Path(folder), progress, TriageTools)
    with Server(env_url) as server:
        return _train(config, Path(folder), progress, partial(TriageTools, server.open))


def _train(
    config: TrainingConfig, folder: Path, progress: bool, make_tools: Callable[[], TriageTools]
) -> Path:
    settings = run_settings(config, folder)
    if (folder / "config.json").exists():
        start_run(settings, folder)
    if (folder / "model").exists():
        return folder / "model"
    model, tokenizer, peft_config = _load(config)
    start_run(settings, folder)  # a model that could not be loaded leaves nothing behind
    checkpoint = rewind(folder)

    os.environ.setdefault(
        "TRL_EXPERIMENTAL_SILENCE", "1"
    )  # `environment_factory` may change; TRL is pinned
    import torch
    from datasets import Dataset
    from tqdm import tqdm
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    class IncidentTrainer(GRPOTrainer):
        """Ends a sample when its incident is closed, which spares a turn of generation an episode.

        TRL's loop has no channel for that; it does drop a sample whose tool answer would not fit,
        as it stood before the answer. An answer that closes the incident is declared not to fit.
        """

        def _get_tool_suffix_ids(self, tool_messages):
            if any(str(message["content"]).endswith(CLOSED) for message in tool_messages):
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
        """A line of `metrics.jsonl` a step; `seconds` adds up attempts, each up to its last
        checkpoint.
        """

        def on_train_begin(self, args, state, control, **kwargs):
            path = folder / "metrics.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            self.began = time.perf_counter() - (json.loads(lines[-1])["seconds"] if lines else 0.0)
            self.bar = tqdm(
                total=config.steps,
                initial=state.global_step,
                desc="grpo",
                disable=not progress,
                mininterval=2.0,
            )

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "reward" not in logs:
                return
            row = {
                "step": state.global_step,
                "seconds": round(time.perf_counter() - self.began, 2),
                **logs,
            }
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            self.bar.update(state.global_step - self.bar.n)
            self.bar.set_postfix(reward=f"{logs['reward']:.3f}", refresh=False)

        def on_train_end(self, args, state, control, **kwargs):
            self.bar.close()

    gpu = torch.cuda.is_available()
    bf16 = gpu and torch.cuda.is_bf16_supported(including_emulation=False)
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
        reward_weights=[1.0],
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        disable_tqdm=True,
        use_cpu=not gpu,
        bf16=bf16,
        fp16=gpu and not bf16,
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
        environment_factory=make_tools,
        reward_funcs=[EpisodeRecorder(folder)],
        callbacks=[MetricsLog()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trainer.save_model(str(folder / "model.partial"))
    tokenizer.save_pretrained(str(folder / "model.partial"))
    (folder / "model.partial").rename(folder / "model")
    return folder / "model"
