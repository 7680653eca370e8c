"""The commands around training: sweeps, and from `build-base` to `publish-model`.

What they need is imported when they run, so that `--help` is quick.
"""

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from logtriage.command_line import errors_in_a_line

app = typer.Typer()

# Presets for a CPU, and the option of `build-base` that makes the base of each.
BASES = {"novice": "", "expert": " --expert BASE", "smollm2": " --model smollm2"}


Lessons = Literal["novice", "expert", "on-policy"]
Hours = Annotated[
    float, Option(min=0.0, help="Begin no step and no batch that would not end within so many.")
]


@app.command("sweep")
@errors_in_a_line()
def sweep(
    path: Annotated[Path, Argument(help="The sweep, a YAML file; see sweeps/.")],
    workers: Annotated[
        int | None, Option(min=1, help="Processes on this machine; by default one per core.")
    ] = None,
    folder: Annotated[
        Path | None, Option(help="Where everything goes, by default runs/<the file's name>.")
    ] = None,
    dry_run: Annotated[
        bool, Option(help="Check the file, and say which points are finished.")
    ] = False,
) -> None:
    """Run one notebook with several settings and seeds; repeat the command to continue."""
    from .sweeps import load_sweep, run_points, summarise_sweep

    asked = load_sweep(path, folder)
    if dry_run:
        for point in asked.points:
            typer.echo(f"{point.state():>11}  {point.name:40} {point.outcome().get('error', '')}")
        return
    failures = run_points(asked.points, workers)
    for point, error in failures.items():
        typer.secho(f"failed: {point.name}: {error}", fg="red", err=True)
        typer.echo(f"  its notebook: {point.executed}", err=True)
    if failures:
        raise typer.Exit(1)
    for written in summarise_sweep(asked):
        typer.echo(f"wrote {written}")


@app.command("build-base")
@errors_in_a_line()
def build_base_command(
    folder: Annotated[Path, Argument(help="The model's; a finished one is left as it is.")],
    seed: Annotated[int, Option(help="Of initialisation and batch order.")] = 0,
    expert: Annotated[Path | None, Option(help="A base for `belief` to teach.")] = None,
    model: Annotated[
        str, Option(help="smollm2, or a folder or hub name: an adapter of it is taught instead.")
    ] = "",
    lessons: Annotated[Lessons, Option(help="Whom the adapter imitates.")] = "novice",
    examples: Annotated[
        int | None, Option(min=1, help="Of these lessons; by default until they no longer help.")
    ] = None,
    hours: Hours = math.inf,
) -> None:
    """Teach the model that training starts from, by imitation.

    The embedded base takes 17 minutes on two cores, an expert made from one 1.8 hours, an adapter
    of another model hours; repeat the command to continue.
    """
    from .base_model import build_base, build_expert
    from .imitation import build_imitated

    if expert and model:
        raise ValueError("--expert teaches an embedded base; with --model, choose --lessons expert")
    if not model and (lessons != "novice" or examples or hours < math.inf):
        raise ValueError(
            "--lessons, --examples and --hours are of an adapter; name its model by --model"
        )
    if model:
        build_imitated(folder, model, lessons, seed, examples, hours)
    elif expert:
        build_expert(folder, expert, seed)
    else:
        build_base(folder, seed)
    typer.echo(f"base model in {folder}")


@app.command("train")
@errors_in_a_line()
def train_command(
    context: typer.Context,
    folder: Annotated[
        Path | None, Argument(help="The run's folder, by default runs/<preset>/seed-<seed>.")
    ] = None,
    model: Annotated[str | None, Option(help="smollm2, or a folder or hub name.")] = None,
    preset: Annotated[
        str,
        Option(
            help="novice, expert, smollm2; for a T4 recommended, t4_qwen3, model_card. "
            "Default: recommended; without a GPU and --model, novice on the embedded base."
        ),
    ] = "",
    task: Annotated[
        list[str] | None, Option(help="Repeat it; or all, in equal shares; or production.")
    ] = None,
    episodes: Annotated[int | None, Option(min=2, help="Of each task, dealt in turn.")] = None,
    steps: Annotated[int | None, Option(min=1, help="Optimizer steps.")] = None,
    most_steps: Annotated[
        int | None,
        Option("--grpo-max-steps", min=1, help="Most optimizer steps, as with --episodes."),
    ] = None,
    load_in_4bit: Annotated[
        bool | None, Option(help="Whether to quantise the frozen weights (NVIDIA GPUs).")
    ] = None,
    settings: Annotated[
        list[str] | None, Option("--set", help="Any setting, as learning_rate=1e-5. Repeat it.")
    ] = None,
    seed: Annotated[int, Option(help="Of sampling and of the order of incidents.")] = 0,
    until: Annotated[
        int | None, Option(min=1, help="Stop after this step; repeat without it to continue.")
    ] = None,
    hours: Hours = math.inf,
    env_url: Annotated[str, Option(help="Play on the server there (`serve`), not here.")] = "",
    push_to_hub: Annotated[str, Option(help="Publish the model there, as owner/name.")] = "",
    track: Annotated[
        str, Option(help="Show the metrics in trackio, tensorboard or wandb, too, if installed.")
    ] = "",
) -> None:
    """Train a model with GRPO; by itself, on a CPU, the embedded one.

    Metrics and checkpoints go to FOLDER. The same command again continues an interrupted run.
    """
    from ..bench.runs import find_gpu, last_step
    from .grpo import on_this_machine, train
    from .publication import check_upload, publish_model
    from .settings import config_from_cli

    if not preset and model is None and find_gpu() is None:
        preset, model = "novice", "base"
        typer.echo("no GPU and no --model: the embedded base is trained, by the preset novice")
    preset = preset or "recommended"
    if preset in BASES and model is None:
        raise ValueError(
            f"the preset {preset} starts from a base model: build one with"
            f" `build-base FOLDER{BASES[preset]}`, and name it with --model"
        )
    changes = {"model": model, "load_in_4bit": load_in_4bit, "steps": steps, "seed": seed}
    changes |= map(_setting, settings or ())
    config = config_from_cli(preset, task or [], episodes, most_steps, **changes)
    config, warning = on_this_machine(config)
    run = folder or Path("runs") / preset / f"seed-{config.seed}"
    if push_to_hub:
        # better now than after hours
        check_upload(push_to_hub, config.model if config.lora_rank else "")
    with ExitStack() as stack:
        # `obj` connects to a server; nothing in this module knows how (see `__main__`).
        open_episode = stack.enter_context(context.obj(env_url)).open if env_url else None
        if warning:
            typer.echo(warning)
        made = train(config, run, True, open_episode, until, track, hours)
    if made == run:
        typer.echo(f"at step {until} or beyond; repeat the command without --until to continue")
        return
    reached = last_step(run)["step"]
    if reached < config.steps:
        typer.echo(f"its hours ended it after {reached} of {config.steps} steps; repeat to go on")
    typer.echo(f"trained model in {made}")
    if push_to_hub:
        typer.echo(f"published at {publish_model(run, push_to_hub)}")


def _setting(words: str) -> tuple[str, Any]:
    """Name and value of `name=value`; a value that is not JSON is text."""
    name, _, value = words.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@app.command("publish-model")
@errors_in_a_line()
def publish_model_command(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    name: Annotated[str, Argument(help="Of the model on the Hugging Face Hub, owner/name.")],
    private: Annotated[bool, Option(help="Only its owner sees it.")] = False,
    dry_run: Annotated[bool, Option(help="Only write the folder, to look at.")] = False,
) -> None:
    """Publish a finished run on the Hub: its model, a card from its results, and its figures."""
    from .publication import publish_model

    where = publish_model(run, name, private, dry_run)
    typer.echo(f"{'written to' if dry_run else 'published at'} {where}")
