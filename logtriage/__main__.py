"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triagelab.bench.bench_commands import (
    benchmark_command,
    errors_in_a_line,
    evaluate_command,
    fail,
    replay_command,
    watch_command,
)
from triagelab.train.train_commands import (
    build_base_command,
    evaluate_run_command,
    publish_model_command,
    sweep,
    train_command,
)

from .server import CAPACITY, check_port, serve

if TYPE_CHECKING:  # commands import what they need when they run, so that `--help` is quick
    from .adapters.remote import Server
    from .policies.scripted import Policy

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


@app.command("triage")
def triage_command(
    logs: Annotated[
        list[Path] | None, typer.Argument(help="Log files; - for standard input.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Their call graph, in YAML.")] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Metrics in CSV, in the place of logs; needs --graph.")
    ] = None,
    began: Annotated[
        str, typer.Option(help="When the trouble began, for --metrics; else in the last 3 samples.")
    ] = "",
    policy: Annotated[str, typer.Option(help="Ask a scripted policy too: trace, loudest.")] = "",
    model: Annotated[str, typer.Option(help="Ask a trained model too: folder or hub name.")] = "",
    endpoint: Annotated[str, typer.Option(help="Ask a model at an OpenAI-like server too.")] = "",
    endpoint_model: Annotated[str, typer.Option(help="Its name; key: OPENAI_API_KEY.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read logs, or metrics, and say where the trouble began. Nothing is executed, and nobody is
    called but the model or the server that is named. Exit status: 0 found, 1 error, 3 not enough
    evidence.
    """
    if metrics is not None:
        with errors_in_a_line(1):
            if graph is None:
                raise ValueError("--metrics needs the call graph of the services; add --graph")
            if logs or policy or model or endpoint or endpoint_model:
                raise ValueError("--metrics is asked by itself; read logs by another command")
            from triagelab.realistic.metrics_file import rank_metrics

            from .world.topology_file import load_call_graph

            ranked = rank_metrics(metrics, load_call_graph(graph), began)
        typer.echo(json.dumps(ranked._asdict(), indent=1) if as_json else ranked.text())
        raise typer.Exit(0 if ranked.root else 3)
    from logreader.answer import findings_of, told_of
    from logreader.log import read_log
    from logreader.log_episode import LogEpisode
    from logreader.suspects import UNSURE

    from .policies.policy import EndpointError
    from .world.topology_file import load_call_graph

    asked, failure = None, ""
    try:
        if began:
            raise ValueError("--began belongs to --metrics; leave it out")
        if not logs:
            raise ValueError("nothing to read; name log files, - for standard input, or --metrics")
        agent = _agent(policy, model, endpoint, endpoint_model)
        call_graph = None if graph is None else load_call_graph(graph)
        log = read_log(logs, call_graph.names if call_graph else ())
        findings = findings_of(log, call_graph)
        answer = told_of(log, findings)
        if agent is not None:
            from logtriage.bench.log_agent import ask

            asked = ask(agent, LogEpisode(log, call_graph, findings))
    except EndpointError as error:  # the log's own answer is printed all the same
        failure = f"{endpoint_model} did not answer: {error}"
    except OSError as error:
        raise fail(ValueError(f"cannot read {error.filename}: {error.strerror}"), 1) from None
    except ValueError as error:
        raise fail(error, 1) from None

    name = policy or model or endpoint_model
    found = answer.as_json()
    if asked is not None:
        sure = answer.sureness_of(asked.root_cause)
        found["asked"] = {"name": name, "sure": sure, **asked._asdict()}
    typer.echo(json.dumps(found, indent=1) if as_json else answer.text())
    if asked is not None and not as_json:
        typer.echo(f"\n{name} says, of the same evidence, which makes its root {sure}:\n{asked}")
    if failure:
        raise fail(ConnectionError(failure), 1)
    if answer.sure == UNSURE:
        raise typer.Exit(3)


def _agent(policy: str, model: str, endpoint: str, endpoint_model: str) -> Policy | None:
    """The policy that these options name; None if they name none."""
    if bool(endpoint) != bool(endpoint_model):
        raise ValueError("--endpoint and --endpoint-model go together; give both")
    if sum(map(bool, (policy, model, endpoint))) > 1:
        raise ValueError("one of --policy, --model and --endpoint can be asked; leave out the rest")
    if policy:
        from triagelab.bench.registry import make_policy

        return make_policy(policy)
    if model:
        from logtriage.bench.log_agent import load_agent

        return load_agent(model)
    if endpoint:
        from triagelab.language_models.endpoint import EndpointPolicy

        return EndpointPolicy(endpoint, endpoint_model)
    return None


Tasks = Annotated[list[str] | None, typer.Option(help="Task, or all. Repeat for several.")]
Split = Annotated[str, typer.Option(help="As in `evaluate`.")]


@app.command("mcp")
@errors_in_a_line()
def mcp_command(
    task: Tasks = None,
    split: Split = "test",
    first: Annotated[int, typer.Option(min=0, help="First incident of each task.")] = 0,
    episodes: Annotated[int, typer.Option(min=1, help="Incidents of each task.")] = 200,
    http: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve http://127.0.0.1:PORT/mcp, not stdio.")
    ] = 0,
    trajectories: Annotated[
        Path | None,
        typer.Option(help="Write every closed incident here, for `replay`; open none of it again."),
    ] = None,
) -> None:
    """Let agents that speak MCP play: each incident is opened once, for whichever client asks;
    tasks take turns.
    """
    import asyncio
    from contextlib import ExitStack

    from .adapters.mcp import Finish, http_router, make_server, serve_stdio
    from .play.episode import Episode
    from .world.tasks import check_index, check_split, check_tasks

    check_split(split)
    check_index(first + episodes - 1)
    names = check_tasks(task or ["all"])
    order = [(name, n) for n in range(first, first + episodes) for name in names]
    finish: Finish | None = None
    with ExitStack() as stack:
        if trajectories is not None:
            from triagelab.bench.replay import open_journal
            from triagelab.bench.rollouts import Result, result_row

            from .policies.policy import Played

            settings = {"split": split, "policies": {"mcp": {}}}
            journal = stack.enter_context(open_journal(trajectories, settings))
            order = [one for one in order if ("mcp", (*one, 0)) not in journal.rows]
            if not order:
                raise ValueError(
                    f"all these incidents are in {trajectories}; ask for more by --episodes or "
                    "--first, or name another file"
                )

            def finish(episode: Episode, seconds: float) -> None:
                journal.add(Result(result_row(Played(episode, seconds), "mcp"), episode, ()))

        server = make_server((Episode.open(name, split, n) for name, n in order), finish)
        if http:
            import uvicorn

            check_port("127.0.0.1", http)
            typer.echo(f"LogTriage at http://127.0.0.1:{http}/mcp; stop with Ctrl-C")
            uvicorn.run(http_router(server, CAPACITY), port=http, log_level="warning")
        else:
            asyncio.run(serve_stdio(server))


@app.command("export-harbor")
@errors_in_a_line()
def export_harbor_command(
    out: Annotated[Path, typer.Argument(help="A new folder.")],
    task: Tasks = None,
    split: Split = "test",
    episodes: Annotated[int, typer.Option(min=1, help="Incidents of each task.")] = 20,
) -> None:
    """Write incidents as task folders for Harbor, whose agents play them in a container."""
    from .adapters.harbor import export
    from .world.tasks import check_tasks

    folders = export(out, check_tasks(task or ["all"]), split, episodes)
    typer.echo(f"{len(folders)} task folders in {out}; `harbor run --path {out}` plays them")


# `--load_in_4bit` is read as `--load-in-4bit`: the model card behind this project writes it so.
UNDERSCORES = {"token_normalize_func": lambda name: name.replace("_", "-")}


def connect(url: str) -> Server:
    """The server at a URL; given to `evaluate` and `train`, which know nothing of servers."""
    from .adapters.remote import Server

    return Server(url)


app.command()(serve)
app.command("watch")(watch_command)
app.command()(sweep)
app.command("build-base")(build_base_command)
app.command("replay")(replay_command)
app.command("benchmark")(benchmark_command)
app.command("evaluate", context_settings={"obj": connect})(evaluate_command)
app.command("train", context_settings={**UNDERSCORES, "obj": connect})(train_command)
app.command("evaluate-run")(evaluate_run_command)
app.command("publish-model")(publish_model_command)


if __name__ == "__main__":
    app()
