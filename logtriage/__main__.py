"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .bench.bench_commands import benchmark_command, evaluate_command, fail, replay_command
from .server import serve
from .train.train_commands import (
    build_base_command,
    evaluate_run_command,
    publish_dataset_command,
    publish_model_command,
    sweep,
    sweep_status,
    train_command,
)

if TYPE_CHECKING:  # commands import what they need when they run, so that `--help` is quick
    from .adapters.remote import Server
    from .policies.scripted import Policy

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


@app.command("triage")
def triage_command(
    logs: Annotated[
        list[Path], typer.Argument(help="Log files; - for standard input. See docs/logs.md.")
    ],
    graph: Annotated[
        Path | None, typer.Option(help="The call graph that they come from, in YAML.")
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Metrics of these hours: CSV of time,service,metric,value.")
    ] = None,
    policy: Annotated[str, typer.Option(help="Ask a scripted policy too: trace, loudest.")] = "",
    model: Annotated[str, typer.Option(help="Ask a trained model too: folder or hub name.")] = "",
    endpoint: Annotated[
        str, typer.Option(help="Ask a model at this OpenAI-compatible server too.")
    ] = "",
    endpoint_model: Annotated[
        str, typer.Option(help="The model's name there; its key is in OPENAI_API_KEY.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read logs and say where the trouble began. Nothing is executed, and nobody is called but the
    model or the server that is named.
    """
    from .logs.answer import findings_of, told_of
    from .logs.log import read_log
    from .logs.measures import read_measures
    from .world.topology_file import load_call_graph

    try:
        if bool(endpoint) != bool(endpoint_model):
            raise ValueError("--endpoint and --endpoint-model go together; give both")
        if sum(map(bool, (policy, model, endpoint))) > 1:
            raise ValueError(
                "one of --policy, --model and --endpoint can be asked; leave out the rest"
            )
        known = None if graph is None else load_call_graph(graph)
        series = None if metrics is None else read_measures(metrics)
        log = read_log(logs, known.names if known else ())
        found = findings_of(log, known, series)
        answer, asked, unheard = told_of(log, found, known), None, ""
        name = policy or model or endpoint_model
        if name:
            from .bench.log_agent import ask
            from .logs.log_episode import LogEpisode
            from .policies.policy import EndpointError

            episode = LogEpisode(log, known, found)
            agent = _one_to_ask(policy, model, endpoint, endpoint_model)
            try:
                asked = ask(agent, episode)
            except EndpointError as error:  # the log's own answer is worth telling still
                unheard = f"{name} did not answer: {error}"
    except OSError as error:
        raise fail(ValueError(f"cannot read {error.filename}: {error.strerror}")) from None
    except ValueError as error:
        raise fail(error) from None
    if as_json:
        told = answer.as_json()
        if asked is not None:
            told["asked"] = {"name": name, **asked._asdict()}
        typer.echo(json.dumps(told, indent=1))
    else:
        typer.echo(answer.text())
        if asked is not None:
            typer.echo(f"\n{name} says, of the same lines:\n{asked}")
    if unheard:
        raise fail(ConnectionError(unheard))


def _one_to_ask(policy: str, model: str, endpoint: str, endpoint_model: str) -> Policy:
    """The policy of that name, the model in that folder, or the one behind that server."""
    if policy:
        from .bench.registry import make_policy

        return make_policy(policy)
    if model:
        from .bench.log_agent import load_agent

        return load_agent(model)
    from .policies.llm.endpoint import EndpointPolicy

    return EndpointPolicy(endpoint, endpoint_model)


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
app.command("replay")(replay_command)
app.command("benchmark")(benchmark_command)
# Measures and training know nothing of servers, so the commands are given what connects to one.
app.command("evaluate", context_settings={"obj": _connect})(evaluate_command)
app.command("train", context_settings={**UNDERSCORES, "obj": _connect})(train_command)
app.command("evaluate-run")(evaluate_run_command)
app.command("publish-model")(publish_model_command)
app.command("publish-dataset")(publish_dataset_command)


if __name__ == "__main__":
    app()
