"""One point of a sweep, a notebook that papermill executes, and how Dask runs many of them.

A point is finished when its `point.json` says so, which is written after papermill has returned
without an error: the executed notebook alone proves nothing, since a kernel may die in its last
cell. What an unfinished point has done so far is the notebook's own business: notebook 03 continues
from its last checkpoint. A lock on the folder keeps two processes from executing one point.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ..bench.runs import dying_with_this, write_text

if TYPE_CHECKING:  # slow to import
    from distributed import Client

LONGEST_ERROR = 600  # characters


class PointError(RuntimeError):
    """A point that failed; the text is its last error."""


@dataclass(frozen=True, eq=False)
class Point:
    """One execution of a notebook; `folder` and `seed` are among its `parameters`."""

    row: str  # name of the variation
    seed: int  # of training
    notebook: str
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.row}/seed-{self.seed}"

    @property
    def folder(self) -> Path:
        """Of its run, its executed notebook and its log."""
        return Path(self.parameters["folder"]) / f"seed-{self.seed}"

    @property
    def executed(self) -> Path:
        return self.folder / Path(self.notebook).name

    @property
    def lock(self) -> FileLock:
        """Held by the process that executes the point."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / ".point.lock")

    @property
    def varied(self) -> dict[str, Any]:
        """By which a point is known: its folder may move."""
        return {name: value for name, value in self.parameters.items() if name != "folder"}

    def outcome(self) -> dict[str, Any]:
        """How its last execution by these parameters ended: `seconds` or `error`; else empty."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "point.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if found["parameters"] == self.varied else {}

    def state(self) -> str:
        """`finished`, `failed`, `running`, `interrupted` or `waiting`."""
        outcome = self.outcome()
        if "seconds" in outcome:
            return "finished"
        if not self.folder.exists():
            return "waiting"
        try:
            with self.lock.acquire(timeout=0):
                pass
        except Timeout:
            return "running"
        return "failed" if outcome else "interrupted" if self.executed.exists() else "waiting"


def execute(point: Point) -> None:
    """Execute a point in a kernel of its own, unless it is finished; wait for another process that
    executes it. `PointError` when the notebook fails, which is kept with the error in it.
    """
    with point.lock:
        if "seconds" not in point.outcome():
            _execute(point)


def _execute(point: Point) -> None:
    import nbformat  # slow to import, like papermill
    import papermill

    began = time.monotonic()
    (point.folder / "point.json").unlink(missing_ok=True)
    outcome: dict[str, Any] = {}
    try:
        with (
            (point.folder / "notebook.log").open("a") as log,
            # The paths of sockets must be short, which those of TMPDIR need not be.
            TemporaryDirectory(prefix="point-", dir="/tmp") as sockets,
        ):
            papermill.execute_notebook(
                nbformat.read(point.notebook, as_version=4),
                point.executed,
                point.parameters,
                cwd=Path(point.notebook).parent,
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
    record = {"parameters": point.varied, **outcome}
    write_text(point.folder / "point.json", json.dumps(record) + "\n")
    if "error" in outcome:  # without its cause, which may not survive the way to the driver
        raise PointError(outcome["error"])


def _kernel_manager(sockets: str) -> type:
    """Of a kernel that dies with this process. It is reached through files: others may listen to
    TCP, and kernels that start at the same time race for its ports.
    """
    from jupyter_client.manager import AsyncKernelManager

    class PointKernel(AsyncKernelManager):
        transport = "ipc"
        ip = f"{sockets}/kernel"

        async def _async_pre_start_kernel(self, **options: Any) -> tuple[list[str], dict[str, Any]]:
            return await super()._async_pre_start_kernel(preexec_fn=dying_with_this(), **options)

    return PointKernel


def run_points(
    points: Sequence[Point], workers: int | None = None, scheduler: str = ""
) -> dict[Point, str]:
    """Execute every point that is not finished; return those that failed twice, with their last
    errors. Dask gives the point of a lost worker to another one.

    Args:
        points: of a sweep.
        workers: processes on this machine, which share its cores out; None for one per core.
        scheduler: a Dask scheduler (`tcp://...`) whose workers do it instead; they come and go.

    Raises:
        ValueError: when no scheduler answers, or it is lost for good.
    """
    from distributed import as_completed
    from tqdm import tqdm

    if scheduler and workers:
        raise ValueError("--workers are processes here, --scheduler has its own; give one of them")
    left = [point for point in points if point.state() != "finished"]
    print(f"{len(points)} points, {len(points) - len(left)} finished before", flush=True)
    failures: dict[Point, str] = {}
    if not left:
        return failures
    with (
        _client(workers, scheduler) as client,
        tqdm(total=len(points), initial=len(points) - len(left), unit="point") as bar,
    ):
        asked = {client.submit(execute, point, pure=False, retries=1): point for point in left}
        for future in as_completed(asked):
            point = asked[future]
            if future.status == "cancelled":
                raise ValueError("the scheduler was lost; repeat the command to continue")
            if future.status == "error":
                failures[point] = str(future.exception())
                bar.write(f"FAILED {point.name}: {failures[point]}")
            bar.update()
    return failures


@contextmanager
def _client(workers: int | None, scheduler: str) -> Iterator[Client]:
    """A client of the scheduler, or of a cluster on this machine that ends with it."""
    from dask.system import CPU_COUNT  # those that this process may use
    from distributed import Client, LocalCluster

    if scheduler:
        try:
            client = Client(scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {scheduler}; start one (`dask scheduler`), or "
                "leave out --scheduler"
            ) from error
        with client:
            yield client
        return
    count = workers or CPU_COUNT
    cluster = LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:8787",  # another port where that one is taken
        memory_limit=0,  # a kernel is a process of its own
        env={"OMP_NUM_THREADS": str(max(1, CPU_COUNT // count))},
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        print(f"{count} at a time; dashboard: {client.dashboard_link}", flush=True)
        yield client
