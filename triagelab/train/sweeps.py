"""Sweeps: one notebook with many parameters and seeds, and a summary of the results.

A sweep is a YAML file (see docs/training.md). Every point is one execution of the notebook by
papermill, in `runs/<sweep>/<row>/seed-<seed>/`; Dask runs many of them. A point is finished when
its `point.json` says so. That file is written after papermill has returned: the executed notebook
proves nothing, since a kernel may die in its last cell. The notebook itself must continue what an
unfinished point has done. When all are finished, `summary-<sweep>/` holds
`episodes.parquet` (training by step, and every held-out episode: `bench.sweep_tables.gather`),
`seeds.png` (the latter as a figure) and `sweep.json` (what was varied, when, at which commits).
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from logtriage.world.topology_file import UniqueKeys

from ..bench.runs import kill_with_parent, locked, record_of, write_text

if TYPE_CHECKING:  # slow to import
    from distributed import Client

ROW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=,+-]*")
GIVEN = ("folder", "seed")  # parameters that the sweep sets
LONGEST_ERROR = 600  # characters


@dataclass(frozen=True, eq=False)
class Point:
    """One execution of a notebook."""

    row: str  # name of the variation
    seed: int  # of training
    notebook: Path
    folder: Path  # of its run, its executed notebook and its log
    parameters: dict[str, Any]  # they identify it, without the folder, which may move

    @property
    def name(self) -> str:
        return f"{self.row}/seed-{self.seed}"

    @property
    def executed(self) -> Path:
        return self.folder / self.notebook.name

    def outcome(self) -> dict[str, Any]:
        """How its last execution with these parameters ended (`seconds` or `error`), or empty."""
        try:
            outcome: dict[str, Any] = json.loads((self.folder / "point.json").read_text())
        except (OSError, ValueError):
            return {}
        return outcome if outcome["parameters"] == self.parameters else {}

    def state(self) -> str:
        """`finished`, `failed`, or `waiting` if it was never executed to an end."""
        outcome = self.outcome()
        if "seconds" in outcome:
            return "finished"
        return "failed" if outcome else "waiting"


class SweepFile(BaseModel):
    """What a sweep's file may hold."""

    model_config = ConfigDict(extra="forbid")

    about: str  # the question, in a sentence
    notebook: str  # relative to the file; it must take `GIVEN`
    parameters: dict[str, Any] = {}  # of the notebook, the same for all points
    # Name to further parameters: one variation each.
    rows: dict[str, dict[str, Any] | None] = Field({"all": None}, min_length=1)
    seeds: list[int] = Field(min_length=1)  # every row is run with each
    against: str = ""  # the row that all others are compared with


class Sweep(NamedTuple):
    """A sweep that has been checked."""

    name: str  # of its file
    folder: Path  # of all its points
    file: SweepFile
    # By seed, then by row: a sweep that is stopped early has something of each row.
    points: list[Point]


# -- reading ---------------------------------------------------------------------------------------


def load_sweep(path: str | Path, folder: str | Path | None = None) -> Sweep:
    """Read a sweep that is to run in `folder`, by default `runs/<its name>`. `ValueError` for a
    file that is no sweep, or names parameters that its notebook does not take.
    """
    path = Path(path)
    try:
        file = SweepFile.model_validate(yaml.load(path.read_text(), UniqueKeys))
        _check(file, path.parent / file.notebook)
    except ValidationError as error:
        errors = (f"{'.'.join(map(str, line['loc']))}: {line['msg']}" for line in error.errors())
        raise ValueError(f"{path}: {'; '.join(errors)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    notebook = (path.parent / file.notebook).resolve()
    whole = (Path(folder) if folder is not None else Path("runs") / path.stem).resolve()
    points = []
    for seed, (row, changes) in product(file.seeds, file.rows.items()):
        parameters = {**file.parameters, **(changes or {}), "seed": seed}
        own_folder = whole / row.replace(" ", "-") / f"seed-{seed}"
        points.append(Point(row, seed, notebook, own_folder, parameters))
    return Sweep(path.stem, whole, file, points)


def _check(file: SweepFile, notebook: Path) -> None:
    """Raise `ValueError` for a sweep that its notebook cannot run."""
    import papermill

    unnamed = [name for name in file.rows if not ROW_NAME.fullmatch(name)]
    if unnamed:
        raise ValueError(f"{unnamed[0]!r} cannot name a row, which becomes a folder; rename it")
    for values in (file.seeds, [name.replace(" ", "-") for name in file.rows]):
        if len(set(values)) < len(values):
            raise ValueError(f"seeds or rows {values} are not all different; change one")
    if file.against and file.against not in file.rows:
        raise ValueError(
            f"against {file.against!r} is no row; choose one of {', '.join(file.rows)}"
        )
    if not notebook.is_file():
        raise ValueError(f"there is no notebook {notebook}; name one relative to the file")
    known = papermill.inspect_notebook(str(notebook))
    missing = [name for name in GIVEN if name not in known]
    if missing:
        raise ValueError(
            f"{notebook.name} does not take {' and '.join(missing)}, which a sweep gives each "
            "point; add them to its cell of parameters"
        )
    for parameters in (file.parameters, *file.rows.values()):
        unknown = [name for name in parameters or () if name not in known or name in GIVEN]
        if unknown:
            free = ", ".join(name for name in known if name not in GIVEN)
            raise ValueError(f"{notebook.name} takes no {unknown[0]!r} from a sweep; it has {free}")


# -- running ---------------------------------------------------------------------------------------


def execute(point: Point) -> None:
    """Execute a point in a kernel of its own, unless it is finished. If another process executes
    it, wait. `RuntimeError` if the notebook fails; it is kept, with the error in it.
    """
    import nbformat  # slow to import, like papermill
    import papermill

    with locked(point.folder / "point", wait=True):
        if "seconds" in point.outcome():
            return
        began, outcome = time.monotonic(), dict[str, Any]()
        (point.folder / "point.json").unlink(missing_ok=True)
        try:
            with (
                (point.folder / "notebook.log").open("a") as log,
                # Paths of sockets must be short, and those below TMPDIR may be long.
                TemporaryDirectory(prefix="point-", dir="/tmp") as sockets,
            ):
                papermill.execute_notebook(
                    nbformat.read(point.notebook, as_version=4),
                    point.executed,
                    {**point.parameters, "folder": str(point.folder.parent)},
                    cwd=point.notebook.parent,
                    kernel_name="python3",
                    kernel_manager_class=_kernel_manager(sockets),
                    progress_bar=False,
                    log_output=True,
                    stdout_file=log,
                    stderr_file=log,
                )
            outcome["seconds"] = round(time.monotonic() - began, 1)
        except papermill.PapermillExecutionError as error:
            outcome["error"] = f"{error.ename}: {error.evalue}"[:LONGEST_ERROR]
        except Exception as error:
            outcome["error"] = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        record = {"parameters": point.parameters, **outcome}
        write_text(point.folder / "point.json", json.dumps(record) + "\n")
    if "error" in outcome:  # without its cause, which may not survive the way to the driver
        raise RuntimeError(outcome["error"])


def _kernel_manager(sockets: str) -> type:
    """The manager of a kernel that dies with this process. They talk through files: others may
    listen to TCP, and kernels that start at the same time race for its ports.
    """
    from jupyter_client.manager import AsyncKernelManager

    class PointKernel(AsyncKernelManager):
        transport = "ipc"
        ip = f"{sockets}/kernel"

        async def _async_pre_start_kernel(self, **options: Any) -> tuple[list[str], dict[str, Any]]:
            return await super()._async_pre_start_kernel(preexec_fn=kill_with_parent(), **options)

    return PointKernel


def run_points(points: Sequence[Point], workers: int | None = None) -> dict[Point, str]:
    """Execute every point that is not finished by `workers` processes, which share this machine's
    cores (None: one per core). Return those that failed twice, with their last errors. Dask gives
    the point of a lost worker to another one.
    """
    from distributed import as_completed
    from tqdm import tqdm

    left = [point for point in points if point.state() != "finished"]
    print(f"{len(points)} points, {len(points) - len(left)} finished before", flush=True)
    failures: dict[Point, str] = {}
    if not left:
        return failures
    with _cluster(workers) as client:
        asked = {client.submit(execute, point, pure=False, retries=1): point for point in left}
        done = len(points) - len(left)
        bar = tqdm(as_completed(asked), total=len(points), initial=done, unit="point")
        for future in bar:
            if future.status == "error":
                point = asked[future]
                failures[point] = str(future.exception())
                bar.write(f"FAILED {point.name}: {failures[point]}")
    return failures


def _cluster(workers: int | None) -> Client:
    """A client of a cluster on this machine, which ends with it."""
    import dask
    from dask.system import CPU_COUNT  # those that this process may use
    from distributed import Client

    count = workers or CPU_COUNT
    # Dask has workers return memory at once, with which a kernel takes twice as long to train.
    with dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}):
        client = Client(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:8787",  # another port where that one is taken
            memory_limit=0,  # a kernel is a process of its own
            env={"OMP_NUM_THREADS": str(max(1, CPU_COUNT // count))},
            silence_logs=logging.CRITICAL,
        )
    print(f"{count} at a time; dashboard: {client.dashboard_link}", flush=True)
    return client


# -- the summary -----------------------------------------------------------------------------------


def summarise_sweep(sweep: Sweep) -> list[Path]:
    """Write a finished sweep's summary, if held-out incidents were played, and print the training
    reward of each row; return its files.
    """
    from ..bench.plots import plot_sweep_seeds  # slow to import
    from ..bench.sweep_tables import gather, training_table

    if not any((point.folder / "evaluation.parquet").exists() for point in sweep.points):
        return []
    folder = sweep.folder / f"summary-{sweep.name}"
    folder.mkdir(exist_ok=True)
    frame = gather([(point.row, point.seed, point.folder) for point in sweep.points])
    print(f"training reward, first and last steps:\n{training_table(frame).to_string()}")
    frame.to_parquet(folder / "episodes.parquet", index=False, compression="zstd")
    runs = [record_of(point.folder) for point in sweep.points]
    record = {
        "name": sweep.name,
        **sweep.file.model_dump(),
        "rows": {name: changes or {} for name, changes in sweep.file.rows.items()},
        "finished": datetime.now(UTC).date().isoformat(),
        "commits": sorted({run["commit"] for run in runs if run["commit"]}),
        "machine": runs[0]["machine"],
    }
    write_text(folder / "sweep.json", json.dumps(record, indent=1) + "\n")
    plot_sweep_seeds(frame, against=sweep.file.against).save(folder / "seeds.png")
    return sorted(folder.iterdir())
