"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .server import serve
from .training.commands import (
    build_base_command,
    evaluate_run_command,
    fail,
    publish_dataset_command,
    publish_model_command,
    sweep,
    sweep_status,
    train_command,
)

if TYPE_CHECKING:  # commands import what they need when they run, so that `--help` is quick
    import pandas as pd

    from .adapters.remote import Server
    from .agents.scripted import Policy

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


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
    from .measure.intervals import score_table
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
    typer.echo(score_table(frame).to_string(index=False))
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


# `--load_in_4bit` is read as `--load-in-4bit`: the card that this project starts from writes its
# options with underscores.
UNDERSCORES = {"token_normalize_func": lambda name: name.replace("_", "-")}


def _connect(url: str) -> Server:
    """The server there, whose `open` opens episodes."""
    from .adapters.remote import Server

    return Server(url)


app.command()(serve)
app.command()(sweep)
app.command("sweep-status")(sweep_status)
app.command("build-base")(build_base_command)
# Training knows nothing of servers, so the command is given what connects to one.
app.command("train", context_settings={**UNDERSCORES, "obj": _connect})(train_command)
app.command("evaluate-run")(evaluate_run_command)
app.command("publish-model")(publish_model_command)
app.command("publish-dataset")(publish_dataset_command)


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
