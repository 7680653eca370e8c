"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .server import serve
from .training.commands import sweep, sweep_status

if TYPE_CHECKING:  # commands import what they need when they run, so that `--help` is quick
    import pandas as pd

    from .agents.scripted import Policy

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


# `--load_in_4bit` is read as `--load-in-4bit`: the card that this project starts from writes its
# options with underscores.
UNDERSCORES = {"token_normalize_func": lambda name: name.replace("_", "-")}


def fail(error: Exception) -> typer.Exit:
    """Print an error as one line and return the exit to raise."""
    typer.secho(f"error: {error}", fg="red", err=True)
    return typer.Exit(2)


@app.command()
def evaluate(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="random, constant, loudest, junior, trace, belief, oracle. Repeat for several."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Folder or hub name of a language model. Repeat for several."),
    ] = None,
    endpoint: Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible server.")] = "",
    endpoint_model: Annotated[
        str, typer.Option(help="The model's name there; its key is in OPENAI_API_KEY.")
    ] = "",
    task: Annotated[
        list[str] | None, typer.Option(help="Task, or all. Repeat for several.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="train, test, unseen_faults, unseen_wording or unseen_topology.")
    ] = "test",
    episodes: Annotated[int, typer.Option(min=2, help="Incidents a task.")] = 200,
    first: Annotated[int, typer.Option(min=0, help="First incident.")] = 0,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Of language models; 0 is greedy.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of sampling, when the temperature is above 0.")] = 0,
    env_url: Annotated[
        str, typer.Option(help="Play on the server there (`serve`), instead of in this process.")
    ] = "",
    topology: Annotated[
        Path | None, typer.Option(help="A call graph of your own, in YAML; see examples/shop.yaml.")
    ] = None,
    json_path: Annotated[
        Path | None,
        typer.Option("--json", help="Write the episodes here, a JSON array of objects."),
    ] = None,
    audited: Annotated[
        bool,
        typer.Option("--audit", help="Tell, too, whether what was seen bears out what was blamed."),
    ] = False,
) -> None:
    """Play policies on incidents and print mean scores with 95 % bootstrap intervals."""
    from functools import partial

    import pandas as pd

    from .adapters.remote import Server
    from .agents.belief import check_enumerable
    from .measure.audit import audit
    from .measure.rollouts import rollout
    from .measure.strata import detection_table, with_truth
    from .play.episode import Episode, OpenEpisode
    from .world.incidents import sample_incident
    from .world.tasks import check_index, check_split, check_tasks
    from .world.topology_file import load_topology

    try:
        if bool(endpoint) != bool(endpoint_model):
            raise ValueError("--endpoint and --endpoint-model go together; give both")
        if endpoint and temperature:
            raise ValueError("--temperature is of --model; an endpoint is asked at 0, leave it out")
        if env_url and "oracle" in (policy or []):
            raise ValueError(
                "oracle knows the answer, which no server tells; leave it out, or leave out "
                "--env-url"
            )
        if env_url and topology is not None:
            raise ValueError(
                "a server plays on its own call graph; start it with `serve --topology`, "
                "or leave out --env-url"
            )
        _check_writable(json_path)
        graph = None if topology is None else load_topology(topology)
        tasks = check_tasks(task or ["all"])
        check_split(split, graph)
        check_index(first)
        for name in tasks if audited else ():
            check_enumerable(name)
        if graph is not None:
            for name in tasks:  # rather now than after hours with a language model
                sample_incident(name, split, first, graph)
        scripted = policy or ([] if model or endpoint else ["loudest", "trace"])
        policies = _make_policies(scripted, model or [], temperature, seed)
        if endpoint:
            from .agents.language_models import EndpointPolicy

            policies.append(EndpointPolicy(endpoint, endpoint_model))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    try:
        with ExitStack() as stack:
            open_episode: OpenEpisode = partial(Episode.open, topology=graph)
            if env_url:
                open_episode = stack.enter_context(Server(env_url)).open
            play = audit if audited else rollout
            frames = [
                play(one, tasks, split, episodes, first, open_episode=open_episode)
                for one in policies
            ]
    except (ConnectionError, ValueError) as error:  # a policy may refuse a task, too
        raise fail(error) from None
    frame = pd.concat(frames, ignore_index=True)
    typer.echo(
        f"{split}, incidents {first} to {first + episodes - 1} of each task; "
        "95 % bootstrap intervals"
    )
    typer.echo(_score_table(frame))
    if not env_url:  # a server may play on a call graph of its own, and does not tell the truth
        typer.echo("\n" + detection_table(with_truth(frame, graph)).to_string(index=False))
    if audited:
        typer.echo("audit: what the exact posterior held of each answer when it was given")
        typer.echo(_audit_text(frame))
    if json_path is not None:
        rows = json.loads(frame.to_json(orient="records"))
        json_path.write_text(json.dumps(rows, indent=1) + "\n")
        typer.echo(f"wrote {len(frame)} episodes to {json_path}")


def _check_writable(path: Path | None) -> None:
    """Raise `ValueError` where the episodes could not be written: rather now than after playing."""
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: folder {path.parent} does not exist; make it first")
    if path is not None and path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; name a file")


def _make_policies(
    scripted: list[str], models: list[str], temperature: float, seed: int
) -> list[Policy]:
    """The policies of these names, and a policy for each language model."""
    from .agents.registry import make_policy

    policies = [make_policy(name) for name in dict.fromkeys(scripted)]
    if models:
        from .agents.language_models import LanguageModelPolicy
        from .agents.loading import load_language_model

        for source in models:
            loaded = load_language_model(source)
            policies.append(
                LanguageModelPolicy(*loaded, name=source, temperature=temperature, seed=seed)
            )
    return policies


def _score_table(frame: pd.DataFrame) -> str:
    """Rollouts as text: a row a policy and task, the score with its interval, parts and steps."""
    import pandas as pd

    from .measure.intervals import mean_interval
    from .play.rewards import PARTS

    rows = [
        {
            "policy": name,
            "task": task,
            "score": str(mean_interval(group["score"])),
            **{part: f"{group[part].mean():.2f}" for part in PARTS},
            "steps": f"{group['steps'].mean():.1f}",
        }
        for (name, task), group in frame.groupby(["policy", "task"], sort=False)
    ]
    return str(pd.DataFrame(rows).to_string(index=False))


def _audit_text(frame: pd.DataFrame) -> str:
    """The audit as text: a row a policy and task."""
    from .measure.audit import audit_table

    table = audit_table(frame)
    table["grounded_share_of_right"] = table["grounded_share_of_right"].map(
        lambda share: str(share) if share else "-"
    )
    return str(table.to_string(index=False, float_format="{:.3f}".format, na_rep="-"))


@app.command("triage")
def triage_command(
    model: Annotated[str, typer.Argument(help="Folder or hub name of a trained model.")],
    log: Annotated[
        Path, typer.Argument(help="File of log lines in order of time; - for standard input.")
    ],
    topology: Annotated[
        Path | None, typer.Option(help="The call graph that they come from, in YAML.")
    ] = None,
) -> None:
    """Have a trained model read a log, and print what it would do. Nothing is executed."""
    from .agents.triage import load_agent, triage
    from .play.pasted import PastedEpisode
    from .world.topology import DEFAULT_TOPOLOGY
    from .world.topology_file import load_topology

    try:
        graph = DEFAULT_TOPOLOGY if topology is None else load_topology(topology)
        text = sys.stdin.read() if str(log) == "-" else log.read_text()
        PastedEpisode(text, graph)  # refuses what says nothing, before a model is loaded
        typer.echo(triage(load_agent(model), text, graph))
    except UnicodeDecodeError:
        raise fail(ValueError(f"{log} is no text in UTF-8; name a file of log lines")) from None
    except OSError as error:
        raise fail(ValueError(f"cannot read {error.filename}: {error.strerror}")) from None
    except ValueError as error:
        raise fail(error) from None


app.command()(serve)
app.command()(sweep)
app.command("sweep-status")(sweep_status)


@app.command("build-base")
def build_base_command(
    folder: Annotated[
        Path, typer.Argument(help="Where the model goes; a finished one is left as it is.")
    ],
    seed: Annotated[int, typer.Option(help="Of initialisation and batch order.")] = 0,
    taught: Annotated[
        Path | None,
        typer.Option(help="A base to teach by episodes of `trace`, for the preset taught."),
    ] = None,
    general: Annotated[
        bool,
        typer.Option(
            "--general", help="On many call graphs and in many words, for the preset general."
        ),
    ] = False,
) -> None:
    """Build the embedded base model (a few minutes on two cores), or teach one."""
    from .training.mini import build_base, build_taught

    if taught and general:
        raise fail(
            ValueError("--taught starts from a finished base, and --general builds one; name one")
        )
    try:
        if taught:
            made = build_taught(folder, taught, seed)
        else:
            made = build_base(folder, seed, general=general)
        typer.echo(f"base model in {made}")
    except ValueError as error:
        raise fail(error) from None


@app.command("train", context_settings=UNDERSCORES)
def train_command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="The run's folder, by default runs/<preset>/seed-<seed>; repeat the command to "
            "continue an interrupted run."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model to start from: a folder or a hub name.")
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="mini, taught or general (CPU); recommended, t4_starter or model_card (T4); l4, "
            "a100."
        ),
    ] = "model_card",
    task: Annotated[
        list[str] | None, typer.Option(help="Task, or all, in equal shares. Repeat for several.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=2, help="Episodes of each task, dealt in turn.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            "--grpo-max-steps",
            min=1,
            help="Optimizer steps, instead of the preset's; with --episodes, at most so many.",
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Episodes at once in the backward pass, at most.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(min=0.0, help="Peak, instead of the preset's.")
    ] = None,
    lora_rank: Annotated[
        int | None, typer.Option(min=0, help="Of the adapter; 0 trains all weights.")
    ] = None,
    load_in_4bit: Annotated[
        bool | None,
        typer.Option(
            "--load-in-4bit/--no-load-in-4bit",
            help="Quantise the frozen weights (NVIDIA GPUs), instead of the preset's.",
        ),
    ] = None,
    warm_up: Annotated[
        str | None,
        typer.Option(help="Imitate before reward, as trace:200: a policy and how many episodes."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of sampling and of the order of incidents.")] = 0,
    until: Annotated[
        int | None, typer.Option(min=1, help="Stop after this step; repeat without, to go on.")
    ] = None,
    env_url: Annotated[
        str, typer.Option(help="Play on the server there (`serve`), instead of in this process.")
    ] = "",
    keep_on_hub: Annotated[
        str, typer.Option(help="Keep the run in this private repository of the Hub, as owner/name.")
    ] = "",
    push_to_hub: Annotated[
        str, typer.Option(help="Publish the trained model there, as owner/name.")
    ] = "",
    track: Annotated[
        str,
        typer.Option(help="Show the metrics in trackio, tensorboard or wandb, too, if installed."),
    ] = "",
) -> None:
    """Train a model with GRPO, metrics and checkpoints in FOLDER."""
    from .adapters.remote import Server
    from .training.grpo import on_this_machine, train
    from .training.hub import check_access, pull_run
    from .training.presets import asked_config

    bases = {"mini": "", "taught": " --taught", "general": " --general"}
    if preset in bases and model is None:
        raise fail(
            ValueError(
                f"the preset {preset} starts from a base model: build one with"
                f" `build-base{bases[preset]}`, name it with --model"
            )
        )
    changes = {
        "model": model,
        "learning_rate": learning_rate,
        "lora_rank": lora_rank,
        "load_in_4bit": load_in_4bit,
        "warm_up": warm_up,
        "seed": seed,
    }
    run = folder or Path("runs") / preset / f"seed-{seed}"
    try:
        config = asked_config(preset, task or [], episodes, steps, batch, changes)
        config, told = on_this_machine(config)
        check_access(keep_on_hub, push_to_hub)  # rather now than after hours
        if keep_on_hub and pull_run(keep_on_hub, run):
            typer.echo(f"brought back from {keep_on_hub}")
        with ExitStack() as stack:
            open_episode = stack.enter_context(Server(env_url)).open if env_url else None
            if told:
                typer.echo(told)
            made = train(
                config,
                run,
                open_episode=open_episode,
                until=until,
                keep_on_hub=keep_on_hub,
                track=track,
            )
        if made == run:
            typer.echo(f"at step {until} or beyond; the same command without --until goes on")
            return
        typer.echo(f"trained model in {made}")
        if push_to_hub:
            from .training.publication import publish_model

            # nobody else has a base in a folder
            merged = bool(config.lora_rank) and Path(config.model).is_dir()
            typer.echo(f"published at {publish_model(run, push_to_hub, merged=merged)}")
    except (ValueError, ConnectionError) as error:
        raise fail(error) from None


@app.command("evaluate-run")
def evaluate_run_command(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    episodes: Annotated[int, typer.Option(min=2, help="Incidents of each task.")] = 200,
    batch: Annotated[int, typer.Option(min=1, help="Incidents played at once.")] = 100,
) -> None:
    """Play a run's model on held-out incidents of `test`, before and after training; keep the
    episodes in RUN.

    A run that is not finished is played as it started.
    """
    from .training.experiment import evaluate_run
    from .training.summaries import summarise_run, summary_table

    try:
        frame = evaluate_run(run, episodes, batch=batch)
    except (ValueError, FileNotFoundError) as error:
        raise fail(error) from None
    if (frame["policy"] == "trained").any():
        typer.echo(summary_table(summarise_run(run, frame)).to_string(index=False))
    else:
        typer.echo(_score_table(frame))
        typer.echo("training has not ended: as it started")
    typer.echo(f"{episodes} incidents of each task; the episodes are in {run}/evaluation.parquet")


@app.command("publish-model")
def publish_model_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    name: Annotated[str, typer.Argument(help="Of the model on the Hugging Face Hub, owner/name.")],
    private: Annotated[bool, typer.Option("--private", help="Only its owner sees it.")] = False,
    merged: Annotated[
        bool, typer.Option("--merged", help="Merge the adapter into its base, in 16 bit.")
    ] = False,
    dataset: Annotated[str, typer.Option(help="A dataset of the Hub that the card names.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only write the folder, to look at.")
    ] = False,
) -> None:
    """Publish a finished run on the Hub: its model, a card from its results, and its figures."""
    from .training.publication import publish_model

    try:
        where = publish_model(run, name, private, merged, dry_run, dataset=dataset)
        typer.echo(f"{'written to' if dry_run else 'published at'} {where}")
    except (ValueError, OSError) as error:
        raise fail(error) from None


@app.command("publish-dataset")
def publish_dataset_command(
    name: Annotated[
        str, typer.Argument(help="Of the dataset on the Hugging Face Hub, owner/name.")
    ],
    run: Annotated[
        list[Path] | None,
        typer.Option(help="A run whose conversations are added. Repeat for several."),
    ] = None,
    incidents: Annotated[int, typer.Option(min=1, help="Of each task, by each policy.")] = 500,
    folder: Annotated[Path, typer.Option(help="What is published is written here.")] = Path(
        "runs/conversations"
    ),
    private: Annotated[bool, typer.Option("--private", help="Only its owner sees it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only write the folder, to look at.")
    ] = False,
) -> None:
    """Publish conversations of scripted policies, and of runs, on incidents of train."""
    from .training.conversations import publish_dataset

    try:
        where = publish_dataset(name, folder, run or [], incidents, private, dry_run)
        typer.echo(f"{'written to' if dry_run else 'published at'} {where}")
    except (ValueError, OSError) as error:
        raise fail(error) from None


@app.command("benchmark")
def benchmark_command(
    folder: Annotated[Path, typer.Option(help="Finished parts are kept here.")] = Path(
        "runs/benchmark"
    ),
    results: Annotated[Path, typer.Option(help="Where tables and figures go.")] = Path(
        "results/benchmark"
    ),
    incidents: Annotated[int, typer.Option(min=2, help="Per policy, task and split.")] = 500,
    processes: Annotated[int, typer.Option(min=1, help="Played at once.")] = 2,
    climbs: Annotated[
        int, typer.Option(min=1, help="Hill climbs of each search for exploits.")
    ] = 4,
) -> None:
    """Play 7 policies on all tasks and splits; write every table and figure of the benchmark."""
    import time

    from .measure.benchmark import make_report

    began = time.monotonic()
    try:
        make_report(folder, results, incidents, processes, climbs)
    except ValueError as error:
        raise fail(error) from None
    typer.echo(f"this took {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    app()
