"""The command line: `logtriage --help`, or `python -m logtriage --help`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import registry
from .command_line import Commands, errors_in_a_line, refuse_beside_suite
from .server import CAPACITY, check_port, serve

if TYPE_CHECKING:  # commands import what they need when they run, so that `--help` is quick
    from .adapters.remote import Server


def connect(url: str) -> Server:
    """The server at a URL; given to `evaluate` and `train`, which know nothing of servers."""
    from .adapters.remote import Server

    return Server(url)


# Of every command. `--load_in_4bit` is read as `--load-in-4bit`: the model card behind this project
# writes it so.
CONTEXT = {"obj": connect, "token_normalize_func": lambda name: name.replace("_", "-")}

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    help="LogTriage: trace incidents to their root.",
    context_settings=CONTEXT,
)
app.command()(serve)


Tasks = Annotated[list[str] | None, typer.Option(help="Task, or all. Repeat for several.")]
Split = Annotated[str, typer.Option(help="As in `evaluate`.")]


@app.command("mcp")
@errors_in_a_line()
def mcp_command(
    context: typer.Context,
    task: Tasks = None,
    split: Split = "test",
    first: Annotated[int, typer.Option(min=0, help="First incident of each task.")] = 0,
    episodes: Annotated[int, typer.Option(min=1, help="Incidents of each task.")] = 200,
    suite: Annotated[str, typer.Option(help="Play a suite instead: lite.")] = "",
    http: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve http://127.0.0.1:PORT/mcp, not stdio.")
    ] = 0,
    trajectories: Annotated[
        Path | None,
        typer.Option(help="Write every closed incident here, for `verify`; open none of it again."),
    ] = None,
) -> None:
    """Let agents that speak MCP play each incident once, for whichever client asks."""
    import asyncio
    from contextlib import ExitStack

    from .adapters.mcp import http_router, make_server, serve_stdio
    from .catalogue import suite_places
    from .play.episode import Episode
    from .world.tasks import check_index, check_split, check_tasks

    check_split(split)
    check_index(first + episodes - 1)
    names = check_tasks(task or ["all"])
    order = [(name, n) for n in range(first, first + episodes) for name in names]
    if suite:
        refuse_beside_suite(context)
        order = suite_places(suite)
    finish = None
    with ExitStack() as stack:
        if trajectories is not None:
            keep = registry.load(registry.JOURNALS, "trajectories")
            kept, finish = stack.enter_context(keep(trajectories, split))
            order = [place for place in order if place not in kept]
            if not order:
                raise ValueError(
                    f"all these incidents are in {trajectories}; ask for others, or "
                    "name another file"
                )
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


if __name__ == "__main__":
    app()
