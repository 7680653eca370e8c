"""The command `triage`. It imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage import registry
from logtriage.command_line import errors_in_a_line, fail
from logtriage.world.topology_file import load_call_graph

if TYPE_CHECKING:
    from logtriage.policies.policy import Policy

app = typer.Typer()


@app.command("triage")
@errors_in_a_line(1)
def triage_command(
    logs: Annotated[
        list[Path] | None, typer.Argument(help="Log files; - for standard input.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Their call graph, in YAML.")] = None,
    services: Annotated[str, typer.Option(help="Names of the services, as a,b,c.")] = "",
    model: Annotated[
        str, typer.Option(help="Ask a model too: agent, smollm2, folder or hub name.")
    ] = "",
    endpoint: Annotated[str, typer.Option(help="Ask a model at an OpenAI-like server too.")] = "",
    endpoint_model: Annotated[str, typer.Option(help="Its name; key: OPENAI_API_KEY.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read logs, and say where the trouble began.

    Nothing is executed, and nobody is called but the model or the server that is named. Exit
    status: 0 found, 1 error, 3 not enough evidence.
    """
    from logtriage.policies.policy import EndpointError

    from .answer import answer_of
    from .diagnosis import ask
    from .log import read_log
    from .log_episode import LogEpisode
    from .sureness import UNSURE
    from .suspects import findings_of

    asked, failure = None, ""
    try:
        if not logs:
            raise ValueError("nothing to read; name log files, or - for standard input")
        agent = _agent(model, endpoint, endpoint_model)
        call_graph = None if graph is None else load_call_graph(graph)
        names = [name.strip() for name in services.split(",") if name.strip()]
        log = read_log(logs, (*(call_graph.names if call_graph else ()), *names))
        findings = findings_of(log.tally, call_graph)
        answer = answer_of(log, call_graph, findings)
    except OSError as error:
        raise fail(ValueError(f"cannot read {error.filename}: {error.strerror}"), 1) from None

    name = model or endpoint_model
    try:
        if agent is not None:
            asked = ask(agent, LogEpisode(log, call_graph, findings))
    except (EndpointError, ValueError) as error:  # the log's own answer is printed all the same
        did = "did not answer" if isinstance(error, EndpointError) else "was not asked"
        failure = f"{name} {did}: {error}"
    output = asdict(answer)
    if asked is not None:
        sure = answer.sureness_of(asked.root_cause)
        output["asked"] = {"name": name, "sure": sure, **asked._asdict()}
    typer.echo(json.dumps(output, indent=1) if as_json else answer.text())
    if asked is not None and not as_json:
        typer.echo(f"\n{name} says, of the same evidence, which makes its root {sure}:\n{asked}")
    if failure:
        raise fail(ConnectionError(failure), 1)
    if answer.sure == UNSURE:
        raise typer.Exit(3)


def _agent(model: str, endpoint: str, endpoint_model: str) -> Policy | None:
    """The model that these options name; None if they name none."""
    if bool(endpoint) != bool(endpoint_model):
        raise ValueError("--endpoint and --endpoint-model go together; give both")
    if model and endpoint:
        raise ValueError("one of --model and --endpoint can be asked; leave out the other")
    agent: Policy | None = None
    if model:
        registry.check_model(model)
        agent = registry.load(registry.MODELS, "folder")(model)
    elif endpoint:
        agent = registry.load(registry.MODELS, "endpoint")(endpoint, endpoint_model)
    return agent
