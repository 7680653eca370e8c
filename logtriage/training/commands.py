"""The commands `sweep` and `sweep-status`; what they need is imported when they run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

SweepPath = Annotated[Path, typer.Argument(help="The sweep, a YAML file; see sweeps/.")]
FolderPath = Annotated[
    Path | None, typer.Option(help="Where everything goes, by default runs/<the file's name>.")
]
ResultsUrl = Annotated[
    str, typer.Option(help="Copy finished points there, an fsspec URL as s3://bucket/folder.")
]


def sweep(
    path: SweepPath,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine; by default one a core.")
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="A Dask scheduler, tcp://host:8786, whose workers do it instead.")
    ] = "",
    gpu: Annotated[bool, typer.Option("--gpu", help="A point takes a GPU.")] = False,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a point that failed is tried again.")
    ] = 1,
    folder: FolderPath = None,
    results: ResultsUrl = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file and list its points, no more.")
    ] = False,
) -> None:
    """Run the points of a sweep that are not finished; repeat the command to go on."""
    from .sweeps import load_sweep, run_sweep, states

    try:
        asked = load_sweep(path, folder, results)
        if dry_run:
            for one in states(asked):
                changes = asked.rows[one.point.row]
                typer.echo(f"{one.state:>11}  {one.point.name}  {changes or ''}")
            return
        failures = run_sweep(asked, workers, scheduler, gpu, retries)
    except (ValueError, ImportError, OSError) as error:  # or a store that cannot be reached
        typer.secho(f"error: {error}", fg="red", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.secho("interrupted; the same command goes on", err=True)
        raise typer.Exit(130) from None
    for point in asked.points:
        if point.name in failures:
            typer.secho(f"failed: {failures[point.name]}", fg="red", err=True)
            typer.echo(f"  its notebook: {point.executed}", err=True)
    if failures:
        raise typer.Exit(1)
    from .sweep_results import summarise_sweep  # imports torch, which takes seconds

    try:
        for written in summarise_sweep(asked):
            typer.echo(f"wrote {written}")
    except (ValueError, OSError) as error:
        told = f"all points are finished, but cannot be summarised: {error}"
        typer.secho(f"error: {told}", fg="red", err=True)
        raise typer.Exit(2) from None


def sweep_status(path: SweepPath, folder: FolderPath = None, results: ResultsUrl = "") -> None:
    """How far each point of a sweep is."""
    from .sweeps import load_sweep, states

    try:
        told = states(load_sweep(path, folder, results))
    except (ValueError, ImportError, OSError) as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        raise typer.Exit(2) from None
    for one in told:
        took = "" if one.seconds is None else f"{one.seconds:.0f} s"
        typer.echo(f"{one.state:>11}  {one.point.name:40} {took}{one.error}")
    counts = Counter(one.state for one in told)
    typer.echo(f"{len(told)} points: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
