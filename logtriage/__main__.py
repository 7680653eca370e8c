"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from .server import serve

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


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
) -> None:
    """Play policies on incidents and print mean scores with 95 % bootstrap intervals."""
    from functools import partial

    import pandas as pd

    from .adapters.remote import Server
    from .agents.registry import make_policy
    from .agents.scripted import check_tasks
    from .measure.intervals import mean_interval
    from .measure.rollouts import PARTS, rollout
    from .play.episode import Episode
    from .world.incidents import UnplayableError, sample_incident
    from .world.tasks import check_index, check_split
    from .world.topology_file import load_topology

    try:
        if bool(endpoint) != bool(endpoint_model):
            raise ValueError("--endpoint and --endpoint-model go together; give both")
        if env_url and "oracle" in (policy or []):
            raise ValueError(
                "oracle knows the answer, which no server tells; leave it out, or leave out --env-url"
            )
        if json_path is not None and not json_path.parent.is_dir():
            raise ValueError(
                f"cannot write {json_path}: folder {json_path.parent} does not exist; make it first"
            )
        if json_path is not None and json_path.is_dir():
            raise ValueError(f"cannot write {json_path}: it is a folder; name a file")
        if env_url and topology is not None:
            raise ValueError(
                "a server plays on its own call graph; start it with `serve --topology`, "
                "or leave out --env-url"
            )
        graph = None if topology is None else load_topology(topology)
        tasks = check_tasks(task or ["all"])
        check_split(split, graph)
        check_index(first)
        if graph is not None:
            for name in tasks:  # rather now than after hours with a language model
                sample_incident(name, split, first, graph)
        policies = [
            make_policy(name)
            for name in dict.fromkeys(policy or ([] if model or endpoint else ["loudest", "trace"]))
        ]
        if model:
            from .agents.language_models import LanguageModelPolicy, load_language_model

            policies += [
                LanguageModelPolicy(
                    *load_language_model(source), name=source, temperature=temperature, seed=seed
                )
                for source in model
            ]
        if endpoint:
            from .agents.language_models import EndpointPolicy

            policies.append(EndpointPolicy(endpoint, endpoint_model))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    try:
        with ExitStack() as stack:
            open_episode = partial(Episode.open, topology=graph)
            if env_url:
                open_episode = stack.enter_context(Server(env_url)).open
            frames = [
                rollout(one, tasks, split, episodes, first, open_episode=open_episode)
                for one in policies
            ]
    except (ConnectionError, UnplayableError) as error:
        raise fail(error) from None
    frame, rows = pd.concat(frames, ignore_index=True), []
    for (name, by_task), group in frame.groupby(["policy", "task"], sort=False):
        rows.append(
            {
                "policy": name,
                "task": by_task,
                "score": str(mean_interval(group["score"])),
                **{part: f"{group[part].mean():.2f}" for part in PARTS},
                "steps": f"{group['steps'].mean():.1f}",
            }
        )
    typer.echo(
        f"{split}, incidents {first} to {first + episodes - 1} of each task; 95 % bootstrap intervals"
    )
    typer.echo(pd.DataFrame(rows).to_string(index=False))
    if json_path is not None:
        json_path.write_text(
            json.dumps(json.loads(frame.to_json(orient="records")), indent=1) + "\n"
        )
        typer.echo(f"wrote {len(frame)} episodes to {json_path}")


app.command()(serve)


@app.command("build-base")
def build_base_command(
    folder: Annotated[
        Path, typer.Argument(help="Where the model goes; a finished one is left as it is.")
    ],
    seed: Annotated[int, typer.Option(help="Of initialisation and batch order.")] = 0,
) -> None:
    """Build the embedded base model (a few minutes on two cores)."""
    from .training.mini import build_base

    try:
        typer.echo(f"base model in {build_base(folder, seed)}")
    except ValueError as error:
        raise fail(error) from None


@app.command("train")
def train_command(
    folder: Annotated[
        Path,
        typer.Argument(help="The run's folder; repeat the command to continue an interrupted run."),
    ],
    model: Annotated[
        str | None, typer.Option(help="Model to start from: a folder or a hub name.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="mini (CPU), recommended or model_card (T4).")
    ] = "mini",
    seed: Annotated[int, typer.Option(help="Of sampling and of the order of incidents.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps, instead of the preset's.")
    ] = None,
    env_url: Annotated[
        str, typer.Option(help="Play on the server there (`serve`), instead of in this process.")
    ] = "",
) -> None:
    """Train a model with GRPO, metrics and checkpoints in FOLDER."""
    from .training.grpo import train
    from .training.presets import make_config

    if preset == "mini" and model is None:
        raise fail(
            ValueError(
                "the preset mini starts from a base model: build one with `build-base`, name it with --model"
            )
        )
    changes = {
        "seed": seed,
        **({"model": model} if model else {}),
        **({"steps": steps} if steps else {}),
    }
    try:
        typer.echo(
            f"trained model in {train(make_config(preset, **changes), folder, env_url=env_url)}"
        )
    except (ValueError, ConnectionError) as error:
        raise fail(error) from None


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where everything goes.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Of GRPO; the base model is the same for all.")] = 0,
) -> None:
    """Build, train and evaluate the embedded agent by notebooks 03 and 04; repeat the command to
    continue.
    """
    import time

    import papermill

    from .repository import ROOT
    from .training.experiment import summary_table

    began, folder = time.monotonic(), folder.resolve()
    run = folder / f"seed-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    for name, parameters in (("03_grpo_training", {"profile": "cpu"}), ("04_learning_curves", {})):
        parameters = {"folder": str(folder), "seed": seed, **parameters}
        notebook = ROOT / "notebooks" / f"{name}.ipynb"
        assert set(parameters) <= set(papermill.inspect_notebook(notebook)), (
            f"{notebook} lacks one of {set(parameters)}"
        )
        typer.echo(f"running notebooks/{name}.ipynb, output in {run / name}.ipynb")
        papermill.execute_notebook(
            notebook,
            run / f"{name}.ipynb",
            parameters,
            cwd=ROOT / "notebooks",
            kernel_name="python3",
            log_output=True,
            progress_bar=False,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
        )
    rows = json.loads((run / "summary.json").read_text())
    typer.echo(
        "\nheld-out incidents of `test`, greedy; mean score and 95 % bootstrap interval, gains paired by incident"
    )
    typer.echo(
        summary_table(rows)
        .drop(columns=["benchmark", "root cause base", "root cause trained"])
        .to_string(index=False)
    )
    typer.echo(
        "\nfigures:"
        + "".join(f"\n  {run / name}" for name in ("gain.png", "learning.png", "parts.png"))
    )
    typer.echo(f"this took {(time.monotonic() - began) / 60:.1f} minutes, set-up not included")


@app.command("benchmark")
def benchmark_command(
    folder: Annotated[Path, typer.Option(help="Finished parts are kept here.")] = Path(
        "runs/benchmark"
    ),
    results: Annotated[
        Path | None, typer.Option(help="Where tables and figures go; results/benchmark by default.")
    ] = None,
    incidents: Annotated[int, typer.Option(min=2, help="Per policy, task and split.")] = 500,
    processes: Annotated[int, typer.Option(min=1, help="Played at once.")] = 2,
    climbs: Annotated[
        int, typer.Option(min=1, help="Hill climbs of each search for exploits.")
    ] = 4,
) -> None:
    """Play 7 policies on all tasks and splits, and write every table and figure of the benchmark."""
    import time

    from .measure.benchmark import make_report
    from .repository import ROOT, write_tables

    began = time.monotonic()
    try:
        make_report(folder, results or ROOT / "results" / "benchmark", incidents, processes, climbs)
    except ValueError as error:
        raise fail(error) from None
    if results is None:
        write_tables()
    typer.echo(f"this took {(time.monotonic() - began) / 60:.1f} minutes")


@app.command()
def gallery() -> None:
    """Write GALLERY.md from the generator."""
    from .repository import ROOT, gallery_text

    (ROOT / "GALLERY.md").write_text(gallery_text())


@app.command()
def address() -> None:
    """Write the repository's address into README, Space card and notebooks."""
    from .repository import write_address

    typer.echo("\n".join(map(str, write_address())) or "nothing to change")


@app.command()
def tables() -> None:
    """Write the README's tables from results/."""
    from .repository import write_tables

    write_tables()


@app.command()
def publish(
    run: Annotated[Path, typer.Argument(help="A finished run.")] = Path("runs/demo/seed-0"),
    name: Annotated[str, typer.Option(help="Folder under results/.")] = "demo/seed-0",
) -> None:
    """Copy the light files of a run to results/, and write the README's tables from them."""
    from .repository import publish as copy
    from .repository import write_tables

    try:
        typer.echo(f"copied to {copy(run, name)}")
        write_tables()
    except FileNotFoundError as error:
        raise fail(error) from None


if __name__ == "__main__":
    app()
