"""The OpenEnv server: `python -m logtriage serve`, or `server` where only this is installed."""

import gc
import socket
from pathlib import Path
from typing import Annotated

import typer

from ..command_line import errors_in_a_line

CAPACITY = 256  # sessions at once; each takes 100 to 200 kilobytes


def check_port(host: str, port: int) -> None:
    """Raise `ValueError` for an address on which this process cannot listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = f"cannot listen on port {port} of {host}: {error.strerror}"
        raise ValueError(f"{reason}; choose another port or host") from None


@errors_in_a_line()
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    sessions: Annotated[
        int, typer.Option(min=1, help="Sessions at once; one more is refused.")
    ] = CAPACITY,
    topology: Annotated[
        Path | None, typer.Option(help="A custom call graph, in YAML; see examples/shop.yaml.")
    ] = None,
) -> None:
    """Serve the environment to OpenEnv clients (HTTP, WebSocket) and to people (the page /web)."""
    import uvicorn

    from ..world.topology_file import load_topology
    from .app import MAX_MESSAGE, make_app

    graph = None if topology is None else load_topology(topology)
    check_port(host, port)
    app = make_app(sessions, graph)
    gc.collect()
    gc.freeze()  # else each collection would scan the libraries and stop all sessions for 0.2 s
    page = f"http://{host}:{port}/web"
    typer.echo(f"LogTriage at {page} (WebSocket /ws), {sessions} sessions; stop with Ctrl-C")
    # Compression would take more time and memory than an episode.
    uvicorn.run(
        app, host=host, port=port, log_level="warning",
        ws_max_size=MAX_MESSAGE, ws_per_message_deflate=False,
    )  # fmt: skip
