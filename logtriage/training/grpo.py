"""GRPO through TRL, for the mini model on two CPU cores and for Qwen2.5-3B-Instruct on a T4; they
differ in who plays the episodes (`TrainingConfig.loop`) and in credit.

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
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ..agents.language_models import load_language_model, with_tool_calls
from ..measure.runs import rewind, start_run, weights_digest
from ..play.episode import Episode, OpenEpisode
from ..play.tools import TriageTools
from .drills import open_varied
from .presets import TrainingConfig, incident_rows

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def run_settings(config: TrainingConfig, folder: Path) -> dict[str, Any]:
    """What `config.json` holds: a model in a folder is named relative to the run, so that both can
    move together, and known by its weights, so that another one there is another run.
    """
    settings = asdict(config)
    if Path(config.model).is_dir():
        settings["model"] = os.path.relpath(Path(config.model).resolve(), folder.resolve())
        settings["weights"] = weights_digest(Path(config.model))
    return settings


def model_of(run: str | Path) -> str:
    """Folder or hub name of the model that a run started from."""
    name = json.loads((Path(run) / "config.json").read_text())["settings"]["model"]
    return str((Path(run) / name).resolve()) if (Path(run) / name).is_dir() else name


def train(
    config: TrainingConfig,
    folder: str | Path,
    progress: bool = True,
    open_episode: OpenEpisode | None = None,
) -> Path:
    """Train with GRPO into `folder`, resuming where an earlier attempt stopped.

    Returns the trained model's folder.

    Args:
        config: the settings.
        folder: the run's.
        progress: whether to show a bar.
        open_episode: makes the episodes from task, split and index: `remote.Server.open` plays them
            on a server, with the same result. By default they are played in this process, as
            `config.varied` has it.

    Raises:
        ValueError: when the folder holds a run with other settings, there is no such model, or
            varied incidents are to be played elsewhere.
        ConnectionError: when the server does not answer; the same command goes on from the last
            checkpoint.
    """
    if config.varied and open_episode is not None:
        raise ValueError(
            "varied incidents are made in this process; set varied to False, or do without a server"
        )
    if open_episode is None:
        open_episode = open_varied if config.varied else Episode.open
    folder = Path(folder)
    settings = run_settings(config, folder)
    if (folder / "config.json").exists():
        start_run(settings, folder)  # only checks that it is the same run
    if (folder / "model").exists():
        return folder / "model"
    model, tokenizer, peft_config = _load(config)
    start_run(settings, folder)  # a model that could not be loaded leaves nothing behind
    checkpoint = rewind(folder)

    # Not before the model: importing TRL is slow, and Unsloth must be imported before it.
    from datasets import Dataset
    from transformers.trainer_callback import PrinterCallback

    from .loop import KeptTrainer
    from .trainer import EpisodeRecorder, IncidentTrainer, MetricsLog, grpo_arguments

    # TRL warns that `environment_factory` may change; it is pinned.
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    kind = KeptTrainer if config.loop == "kept" else IncidentTrainer
    trainer = kind(
        model=model,
        args=grpo_arguments(config, folder),
        processing_class=tokenizer,
        peft_config=peft_config,
        train_dataset=Dataset.from_list(incident_rows(config)),
        environment_factory=partial(TriageTools, open_episode),
        reward_funcs=[EpisodeRecorder(folder, count=config.loop == "trl")],
        callbacks=[MetricsLog(folder, config.steps, progress)],
    )
    trainer.credit = config.credit  # TRL's constructor takes no setting of ours
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    # Renamed when whole: a run with `model/` is finished.
    trainer.save_model(str(folder / "model.partial"))
    tokenizer.save_pretrained(str(folder / "model.partial"))
    (folder / "model.partial").rename(folder / "model")
    return folder / "model"


def _load(config: TrainingConfig) -> tuple[Any, Any, Any]:
    """(model, tokenizer, peft_config) ready to train; no peft_config where the adapter is in the
    model already, or all weights are trained.
    """
    if config.loader == "unsloth":
        return *_load_with_unsloth(config), None
    model, tokenizer = load_language_model(config.model, load_in_4bit=config.load_in_4bit)
    if not config.lora_rank:
        return model, tokenizer, None
    from peft import LoraConfig

    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=0.0,
        target_modules=list(LORA_TARGETS),
        task_type="CAUSAL_LM",
    )
    return model, tokenizer, lora


def _load_with_unsloth(config: TrainingConfig) -> tuple[Any, Any]:
    """(model with its adapter, tokenizer). Unsloth has an adapter of its own and ignores TRL's."""
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
    return model, with_tool_calls(tokenizer)
