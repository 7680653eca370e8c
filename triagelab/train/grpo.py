"""GRPO through TRL: the embedded model and SmolLM2 on a CPU, Qwen on a T4.

`environment_factory` plays the incidents, `TriageTools.get_reward` scores them, and every
completion of a group plays the same incident, so advantages compare decisions and not luck. A run
is a folder:

| file | what |
|---|---|
| `config.json` | settings, versions, commit, machine with its number of threads |
| `metrics.jsonl` | what TRL logs and what the episodes scored, one line per step |
| `episodes.jsonl` | one row per training episode: step, task, index, score and its parts |
| `completions.jsonl` | one conversation per step, to read |
| `checkpoint-*` | to resume from |
| `model/` | the trained model; it exists once the run has ended, by its steps or its hours |

The same command continues a run from its last checkpoint if it was interrupted or ended by its
hours, and leaves a finished run alone. On a CPU a run repeats to the last digit only with the same
number of threads (`OMP_NUM_THREADS`); the published runs had one.
"""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from logtriage.catalogue import open_incident
from logtriage.play.episode import OpenEpisode
from logtriage.play.tools import TriageTools

from ..bench.runs import (
    find_gpu,
    last_checkpoint,
    last_step,
    locked,
    out_of_memory,
    rewind,
    start_run,
    step_of,
)
from ..language_models import loading
from ..language_models.path_names import names_for
from .settings import TrainingConfig, incident_rows
from .sft_tasks import open_varied

FULL = 10 * 2**20  # bytes; with fewer free, a failed write means that the disk is full
LONGEST = 4096  # tokens of a whole conversation, more than an opening and `completion_tokens`
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def train(
    config: TrainingConfig,
    folder: str | Path,
    progress: bool = True,
    open_episode: OpenEpisode | None = None,
    until: int | None = None,
    track: str = "",
    hours: float = math.inf,
    make_trainer: Callable[..., Any] | None = None,
) -> Path:
    """Train with GRPO into `folder`, resuming where an earlier attempt stopped. Returns the trained
    model's folder, or the run's if `until` stopped it earlier.

    Args:
        open_episode: opens an episode, given task, split and index. `remote.Server.open` plays it
            on a server, with the same result. By default `config.varied` decides.
        until: stop after this step, with a checkpoint, to go on another time; None: go to the end.
        track: a tracker for the metrics, one of transformers' `report_to`; empty for none.
        hours: train no longer than this, loading included; the model is that of the last step.
        make_trainer: makes TRL's trainer from its class (see `loop` and `trainer`), settings of
            `GRPOConfig`, the environment's arguments, and all other parts; see notebook 3.

    Raises:
        ValueError: when the folder holds a run with other settings, another process trains in it,
            or the model, machine or tracker cannot be used.
        ConnectionError: when the server does not answer.
    """
    deadline = time.perf_counter() + 3600 * hours
    if config.varied and open_episode is not None:
        raise ValueError("varied incidents are made in this process; do without a server")
    check_route(config)
    if track and find_spec(track) is None:
        raise ValueError(f"the tracker {track!r:.60} is not installed; run `pip install {track}`")
    folder = Path(folder)
    settings = run_settings(config, folder)
    if (folder / "config.json").exists():
        start_run(settings, folder)  # only checks that it is the same run
    last, reached = last_step(folder), last_checkpoint(folder)
    if (folder / "model").exists() and (reached is None or last["step"] == config.steps):
        return folder / "model"
    with locked(folder), _advice_when_full(config, folder):
        if until is not None and reached is not None and until <= step_of(reached):
            return folder
        if reached is not None and last.get("seconds", 0.0) > 3600 * hours * last["step"]:
            return _ended_by_time(folder)  # not one more step
        model, tokenizer = load_to_train(config)
        start_run(settings, folder)  # only now: a model that cannot be loaded leaves nothing
        checkpoint = rewind(folder)
        shutil.rmtree(folder / "model", ignore_errors=True)  # trained for fewer steps

        # Not before the model: importing TRL is slow, and Unsloth must be imported before it.
        from .trainer import MetricsLog

        metrics = MetricsLog(folder, config.steps, progress, until, deadline)
        parts = {"model": model, "processing_class": tokenizer, "callbacks": [metrics]}
        trainer = _make_trainer(config, folder, parts, open_episode, track, make_trainer)
        if progress:
            print(f"{config.steps} steps of {config.incidents} incidents x {config.group} episodes")
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            metrics.bar.close()  # so that an error begins on its own line
        if trainer.state.global_step < config.steps:
            return folder if trainer.state.global_step == until else _ended_by_time(folder)
        # Renamed when whole: a run with `model/` is finished.
        trainer.save_model(str(folder / "model.partial"))
        tokenizer.save_pretrained(str(folder / "model.partial"))
        return (folder / "model.partial").rename(folder / "model")


def _make_trainer(
    config: TrainingConfig,
    folder: Path,
    parts: dict[str, Any],
    open_episode: OpenEpisode | None,
    track: str,
    make_trainer: Callable[..., Any] | None,
) -> Any:
    """TRL's trainer with our loop or its own; `parts` are its model, tokenizer and callbacks."""
    from datasets import Dataset
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOConfig

    from .loop import KeptTrainer
    from .trainer import EpisodeRecorder, IncidentTrainer, check_settings, grpo_settings

    # TRL warns that `environment_factory` may change; it is pinned.
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    names = names_for(parts["model"].config.to_dict())  # by which the model knows services
    opened = open_episode or (open_varied if config.varied else open_incident)
    settings = grpo_settings(config, folder, track)
    parts |= {
        "train_dataset": Dataset.from_list(incident_rows(config)),
        "reward_funcs": [EpisodeRecorder(folder, count=config.loop == "trl")],
    }
    trainer_class = KeptTrainer if config.loop == "kept" else IncidentTrainer
    if make_trainer is None:
        parts["environment_factory"] = partial(TriageTools, opened, names)
        trainer = trainer_class(args=GRPOConfig(**settings), **parts)
    else:
        trainer = make_trainer(trainer_class, settings, (opened, names), parts)
    check_settings(trainer.args, settings)
    # TRL's constructor takes no setting of ours.
    trainer.credit, trainer.constrained = config.credit, config.constrained
    trainer.remove_callback(PrinterCallback)
    return trainer


@contextmanager
def _advice_when_full(config: TrainingConfig, folder: Path) -> Iterator[None]:
    """Say what to do when the GPU's memory or the disk is full."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        if out_of_memory(error):
            raise ValueError(
                "the GPU's memory does not hold this run; lower completion_tokens "
                f"({config.completion_tokens}) or incidents ({config.incidents}), or raise "
                f"micro_batches ({config.micro_batches}), in another folder"
            ) from error
        if shutil.disk_usage(folder.parent).free > FULL:
            raise
        raise ValueError(  # torch only says "unexpected pos"
            f"the disk of {folder} is full; make room, and repeat the command to continue"
        ) from error


def run_settings(config: TrainingConfig, folder: Path) -> dict[str, Any]:
    """The settings in `config.json`. A model in a folder is identified by its weights, and its path
    is relative to the run, so that both can move together.
    """
    settings, source = asdict(config), Path(loading.resolve_model(config.model))
    if source.is_dir():
        settings["weights"] = loading.weights_digest(source)
    if Path(config.model).is_dir():
        settings["model"] = os.path.relpath(source.resolve(), folder.resolve())
    return settings


def _ended_by_time(folder: Path) -> Path:
    """Return the model of a run that has no time for another step: that of its last checkpoint. The
    logs are cut back to that step, too.
    """
    checkpoint, model = rewind(folder), folder / "model"
    assert checkpoint is not None
    if not model.exists():
        state = shutil.ignore_patterns("*.pt", "*.pth", "*.bin", "trainer_state.json")
        partial = folder / "model.partial"
        shutil.copytree(checkpoint, partial, ignore=state, dirs_exist_ok=True)
        partial.rename(model)
    return model


def check_route(config: TrainingConfig) -> None:
    """Raise `ValueError` for what cannot be trained on this machine's GPU."""
    gpu = find_gpu()
    plain_in_4bit = config.loader == "transformers" and config.load_in_4bit
    if gpu is not None and not gpu.bf16 and plain_in_4bit:
        raise ValueError(
            f"a {gpu.name} has no bf16, into which TRL puts the adapter of a model in 4 bit; "
            "choose the loader 'unsloth' with the loop 'trl', or leave out load_in_4bit"
        )


def on_this_machine(config: TrainingConfig) -> tuple[TrainingConfig, str]:
    """The settings as this machine can run them (Unsloth and 4 bit need an NVIDIA GPU), and a
    sentence on what was changed, empty if nothing was.
    """
    elsewhere = replace(config, loader="transformers", load_in_4bit=False)
    if elsewhere == config or find_gpu() is not None:
        return config, ""
    return elsewhere, "no NVIDIA GPU here, so transformers loads the whole model: this is slow"


def load_to_train(config: TrainingConfig) -> tuple[Any, Any]:
    """(model, tokenizer) ready to train, with a new adapter if one is to be trained."""
    adapter = {
        "r": config.lora_rank,
        "lora_alpha": config.lora_alpha,
        "target_modules": list(LORA_TARGETS),
    }
    if config.loader == "unsloth":
        try:
            from unsloth import FastLanguageModel  # must come before TRL and transformers
        except ImportError as error:
            raise ValueError(f"no unsloth here ({error}); install requirements-gpu.txt") from error

        place = loading.resolve_model(config.model)
        name = loading.quantised_name(place) if config.load_in_4bit else str(place)
        with loading.friendly_errors(name):
            model, tokenizer = FastLanguageModel.from_pretrained(
                name,
                max_seq_length=LONGEST,
                load_in_4bit=config.load_in_4bit,
                fast_inference=False,
                use_exact_model_name=True,  # else its own copy is downloaded beside evaluation's
            )
        if place != config.model:
            model.name_or_path = config.model  # see `loading`
        # Unsloth makes the adapter itself, and ignores TRL's.
        model = FastLanguageModel.get_peft_model(
            model, **adapter, use_gradient_checkpointing="unsloth", random_state=config.seed
        )
        return model, loading.with_tool_calls(tokenizer)
    begun = Path(loading.resolve_model(config.model))
    if loading.is_adapter(begun):  # it is trained further
        base, _ = loading.base_of(begun)
        model, tokenizer = loading.load_language_model(
            base, config.load_in_4bit, begun, trainable=True
        )
        rank = model.peft_config["default"].r
        if rank != config.lora_rank:
            raise ValueError(f"{begun} is an adapter; set lora_rank to {rank}, its own")
        return model, tokenizer
    model, tokenizer = loading.load_language_model(config.model, load_in_4bit=config.load_in_4bit)
    if not config.lora_rank:
        return model.float(), tokenizer  # a T4 loads it in fp16, which is too coarse for training
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(config.seed)  # for the adapter's first weights
    return get_peft_model(model, LoraConfig(**adapter, task_type="CAUSAL_LM")), tokenizer
