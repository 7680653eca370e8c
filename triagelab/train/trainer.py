"""What `grpo.train` passes to TRL: settings, trainer, recorder of episodes, log of metrics.

Importing this imports TRL, which must come after Unsloth where that is used. `IncidentTrainer`
overrides two private methods of TRL, which is pinned at 1.14.2; a test checks their signatures.
"""

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from logtriage.play.conversation import Message, unreadable
from logtriage.play.observation import CLOSED
from logtriage.play.scoring import PARTS
from logtriage.play.tools import TriageTools
from logtriage.policies.policy import Played

from ..bench.rollouts import OF_THE_SCORE, result_row
from ..bench.runs import last_step
from ..language_models import loading
from .settings import TrainingConfig

# In fp16 the first steps may be skipped, until the loss is scaled down; more in a row are a fault.
MOST_NOT_FINITE = 5
LOGGED = ("task", "index", *OF_THE_SCORE, "steps", "closed_by")  # columns of an episode's row


def grpo_settings(config: TrainingConfig, folder: Path, track: str = "") -> dict[str, Any]:
    """TRL's settings for a run in `folder`, the same with and without Unsloth. All that matter are
    set, since Unsloth has other defaults.
    """
    gpu = torch.cuda.is_available()
    # The embedded model is too small to gain by it on a CPU, and its runs are published in 32 bit.
    bf16 = loading.computes_bf16() and (gpu or config.lora_rank > 0)
    return {
        "output_dir": str(folder),
        "seed": config.seed,
        "data_seed": config.seed,
        "shuffle_dataset": False,  # `incident_rows` has the order
        "remove_unused_columns": False,  # `TriageTools.reset` takes the row
        "max_steps": config.steps,
        # A step is one generation of all its episodes, and one update from them.
        "num_generations": config.group,
        "per_device_train_batch_size": config.at_once,
        "gradient_accumulation_steps": config.micro_batches,
        "steps_per_generation": config.micro_batches,
        "num_iterations": 1,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": config.warmup,
        "optim": "adamw_torch",
        "adam_beta1": 0.9,
        "adam_beta2": 0.99,
        "weight_decay": 0.0,
        "max_grad_norm": config.max_grad_norm,
        "temperature": config.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "repetition_penalty": 1.0,  # Qwen2.5 brings 1.05, which is for chat
        "beta": 0.0,  # no KL penalty, and so no reference model in memory
        "epsilon": 0.2,
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "mask_truncated_completions": False,
        # The first counts a whole episode, tool answers included; the second one turn.
        "max_completion_length": config.completion_tokens,
        "generation_kwargs": {"max_new_tokens": config.turn_tokens},
        "max_tool_calling_iterations": config.most_turns,
        "reward_weights": [1.0],
        "logging_steps": 1,
        "report_to": [track] if track else [],  # by default to every tracker that is installed
        "run_name": f"{folder.resolve().parent.name}/{folder.name}",
        "project": "logtriage",  # of trackio
        "trackio_space_id": None,  # by default a Space in the user's name
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "save_total_limit": config.keep_checkpoints or None,
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "use_cpu": not gpu,
        "bf16": bf16,
        "fp16": gpu and not bf16,
        # It rules out keeping keys and values, which our loop needs.
        "gradient_checkpointing": gpu and config.loop == "trl",
    }


def check_settings(arguments: GRPOConfig, asked: dict[str, Any]) -> None:
    """Raise `RuntimeError` if TRL's settings are not those that were asked for: Unsloth changes
    some.
    """
    kept = {name: getattr(arguments, name) for name in asked}
    kept["scale_rewards"] = kept["scale_rewards"] or "none"  # Unsloth writes False for it
    if kept != asked:
        changed = {name: value for name, value in kept.items() if value != asked[name]}
        raise RuntimeError(
            f"the trainer's settings were changed: {changed}; install the versions of trl and "
            "unsloth that requirements.txt and requirements-gpu.txt name"
        )


class IncidentTrainer(GRPOTrainer):
    """TRL's trainer, which ends a sample when its incident is closed, and pads less."""

    _buffered_inputs: Any  # TRL's: the micro-batches of the step, a dictionary of tensors each

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """No card: TRL's describes a model that nobody publishes, "fine-tuned from None"."""

    def _get_tool_suffix_ids(self, tool_messages: list[Message]) -> list[int]:
        """Ids of the tools' answers, to continue from; more than fit if the incident is over. TRL's
        loop has no other end: it drops an answer that does not fit, and makes no further turn.
        """
        if any(str(message["content"]).endswith(CLOSED) for message in tool_messages):
            return [self._tokenizer.pad_token_id] * (self.max_completion_length + 1)
        return super()._get_tool_suffix_ids(tool_messages)

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        # Return the next micro-batch. When a generation is fresh, TRL has just split it up into
        # `_buffered_inputs`; these are then regrouped by length.
        fresh = self.model.training and self._step % self.args.steps_per_generation == 0
        inputs = super()._prepare_inputs(generation_batch)
        if fresh:
            self._buffered_inputs = by_length(self._buffered_inputs)
            inputs = self._buffered_inputs[0]
        return inputs


def by_length(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Regroup a step's micro-batches by length and cut their padding, since TRL pads every episode
    to the longest one. The gradient stays the same: it is a sum over all.
    """
    size = len(batches[0]["completion_ids"])
    # Tensors with one row per episode; the rest (numbers of the whole step) stays as it is.
    rows = {
        key: torch.cat([batch[key] for batch in batches])
        for key, value in batches[0].items()
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == size
    }
    prompts, completions = rows["prompt_mask"].sum(1), rows["completion_mask"].sum(1)
    regrouped = []
    # Ids are on the GPU, and advantages need not be.
    for batch, chosen in zip(batches, (prompts + completions).argsort().split(size), strict=True):
        part = {**batch, **{key: value[chosen.to(value.device)] for key, value in rows.items()}}
        prompt, completion = int(prompts[chosen].max()), int(completions[chosen].max())
        for key in rows:
            value = part[key]
            if key.startswith("prompt_"):
                part[key] = value[:, value.shape[1] - prompt :]  # padded on the left
            elif value.dim() == 2:
                part[key] = value[:, :completion]  # padded on the right
        regrouped.append(part)
    return regrouped


class EpisodeRecorder:
    """Records the episodes of a step in the run's folder and logs their means. With `count`, calls
    that never reached a session are malformed, too, as in TRL's own loop. It is a reward function
    since only those see whole completions. It returns 0: TRL adds `TriageTools.get_reward`.
    """

    __name__ = "episodes"

    def __init__(self, folder: Path, count: bool) -> None:
        self.folder, self.count = folder, count

    def __call__(
        self,
        prompts: list[list[Message]],
        completions: list[list[Message]],
        environments: Sequence[TriageTools],
        trainer_state: Any,
        log_metric: Any,
        **columns: Any,
    ) -> list[float]:
        # TRL has reset each of them
        sessions = [tools.session for tools in environments if tools.session is not None]
        for session, completion in zip(sessions, completions, strict=True):
            session.malformed += unreachable_calls(completion) if self.count else 0
            session.episode.abandon()  # the model has had its turns
        step = {"step": trainer_state.global_step + 1}
        played = [result_row(Played(session.episode, 0.0), "training") for session in sessions]
        rows = [step | {name: row[name] for name in LOGGED} for row in played]
        append(self.folder / "episodes.jsonl", rows)
        # The opening is in the prompt that TRL generates from, but not in the one given here.
        opening = {**prompts[0][-1], "content": sessions[0].opening}
        first: dict[str, Any] = {key: rows[0][key] for key in ("step", "task", "index", "score")}
        first["messages"] = [opening, *completions[0]]
        append(self.folder / "completions.jsonl", [first])

        values: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            values[f"score/{row['task']}"].append(row["score"])
            for part in (*PARTS, "gate", "steps"):
                values[f"part/{part}"].append(float(row[part]))
        values["malformed"] = [session.malformed for session in sessions]
        if torch.cuda.is_available():
            values["peak_memory_gb"] = [torch.cuda.max_memory_reserved() / 1e9]
        for name, each in values.items():
            log_metric(name, sum(each) / len(each))
        log_metric("environment_seconds", sum(session.seconds for session in sessions))
        return [0.0] * len(sessions)


def unreachable_calls(completion: list[Message]) -> int:
    """How many calls no session has counted: unreadable, of unknown tools, with wrong arguments."""
    unread = sum(message["role"] == "assistant" and unreadable(message) for message in completion)
    # TRL answers such a call itself. It also does so when a tool raises because the incident is
    # closed, but that call was counted by the session.
    answered = [str(message["content"]) for message in completion if message["role"] == "tool"]
    return unread + sum(text.startswith("{'error'") and CLOSED not in text for text in answered)


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


class MetricsLog(TrainerCallback):
    """Writes a line of `metrics.jsonl` per step, and shows a bar if `progress`. It ends training,
    with a checkpoint, after step `until`, or when a step as long as the longest so far would not
    end by `deadline` (of `time.perf_counter`). `seconds` and `cpu_seconds` add up over attempts.

    In fp16 a step whose gradients are not finite is skipped, and the loss may still look well. Each
    such step is reported, and the `MOST_NOT_FINITE`th in a row raises `ValueError`; in other
    precisions the first does.
    """

    def __init__(
        self, folder: Path, steps: int, progress: bool, until: int | None, deadline: float
    ) -> None:
        self.folder, self.steps, self.progress = folder, steps, progress
        self.until, self.deadline, self.longest = until, deadline, 0.0
        self.not_finite = 0  # steps in a row with gradients that are not finite
        self.bar: tqdm[Any] = tqdm(disable=True)  # until training begins

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count on from the seconds of an earlier session."""
        last = last_step(self.folder)
        self.step_began = time.perf_counter()
        self.began = self.step_began - last.get("seconds", 0.0)
        self.cpu_began = time.process_time() - last.get("cpu_seconds", 0.0)
        self.bar = tqdm(
            desc="grpo", total=self.steps, initial=state.global_step, disable=not self.progress
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now = time.perf_counter()
        self.longest, self.step_began = max(self.longest, now - self.step_began), now
        if state.global_step == self.until or now + self.longest > self.deadline:
            control.should_save = control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Write a step's metrics, and look for gradients that are not finite."""
        if not logs or "reward" not in logs:  # the summary at the end belongs to no step
            return
        taken = {
            "seconds": round(time.perf_counter() - self.began, 2),
            "cpu_seconds": round(time.process_time() - self.cpu_began, 2),
        }
        append(self.folder / "metrics.jsonl", [{"step": state.global_step, **taken, **logs}])
        self.bar.update(state.global_step - self.bar.n)
        self.bar.set_postfix(reward=f"{logs['reward']:.3f}", refresh=False)
        if not math.isfinite(logs.get("grad_norm", 0.0)):
            self._count_not_finite(state.global_step, args.fp16)
        else:
            self.not_finite = 0

    def _count_not_finite(self, step: int, skipped: bool) -> None:
        """Report a step that taught nothing. End training after several in a row, or at once if the
        step was not `skipped`: then its gradients have spoiled the weights.
        """
        self.not_finite += 1
        print(f"step {step}: its gradients are not finite, so it taught nothing", flush=True)
        if self.not_finite == MOST_NOT_FINITE or not skipped:
            raise ValueError(
                f"the gradients of step {step} are not finite, in {self.not_finite} steps in a row,"
                " so nothing is learned; try a lower learning_rate or, on a GPU without bf16,"
                " another model or loader, in another folder"
            )
