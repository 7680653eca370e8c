"""The command line: `python -m logtriage --help`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .measure.commands import benchmark_command, evaluate_command, fail, replay_command
from .server import serve
from .training.commands import (
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

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="LogTriage: trace incidents to their root."
)


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
