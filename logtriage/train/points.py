"""One point of a sweep, a notebook that papermill executes, and how Dask runs many of them.

A point is finished when its `point.json` says so. The process that executes the point writes that
file after papermill has returned without an error: the executed notebook alone proves nothing,
since a kernel may die in its last cell. What an unfinished point has done so far is the notebook's
own business: notebook 03 continues from its last checkpoint. A lock on the folder, which ends with
the process that holds it, keeps two processes from executing one point at the same time.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ..bench.runs import write_text
from .processes import dying_with_this

if TYPE_CHECKING:  # slow to import, and `sweep-status` does without
    from distributed import Client, Future

PATIENCE = 60.0  # seconds to wait for a point that another process executes
CONNECT_SECONDS = 10  # for a scheduler to answer
POLL_SECONDS = 2  # between looks at which workers are there
LOSSES = 3  # workers that a point may lose before it counts as failed
LONGEST_ERROR = 600  # characters
LONGEST_SOCKET = 90  # Linux and macOS refuse longer paths of sockets; kernels then use TCP


class PointError(RuntimeError):
    """A point that failed; the text is its last error."""


@dataclass(frozen=True)
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
        """The parameters by which a point is known: its folder may move."""
        return {name: value for name, value in self.parameters.items() if name != "folder"}

    def outcome(self) -> dict[str, Any]:
        """How its last execution with these parameters ended: `seconds`, or `error`; empty when it
        has not ended.
        """
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


def execute(point: Point) -> str:
    """Execute a point in this process and its kernel, unless it is finished.

    Returns:
        `finished`, or `busy` when another process has executed it for a minute.

    Raises:
        PointError: when the notebook fails; it is kept, with the error in it.
    """
    try:
        with point.lock.acquire(timeout=PATIENCE):
            if "seconds" not in point.outcome():
                _execute(point)
    except Timeout:
        return "busy"
    return "finished"


def _execute(point: Point) -> None:
    import nbformat  # slow to import, like papermill
    import papermill

    began = time.monotonic()
    (point.folder / "point.json").unlink(missing_ok=True)
    sockets = Path(tempfile.mkdtemp(prefix="point-"))
    try:
        with (point.folder / "notebook.log").open("a") as log:
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
    except Exception as error:
        text = _cell_error(point) or f"{type(error).__name__}: {error}"
        _write_outcome(point, error=text[:LONGEST_ERROR])
        # without its cause, which may not survive the way from worker to driver
        raise PointError(f"{point.name}: {text[:LONGEST_ERROR]}") from None
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
    _write_outcome(point, seconds=round(time.monotonic() - began, 1))


def _write_outcome(point: Point, **outcome: Any) -> None:
    record = {"parameters": point.varied, **outcome}
    write_text(point.folder / "point.json", json.dumps(record) + "\n")


def _cell_error(point: Point) -> str:
    """The error that the executed notebook ended in; empty for none."""
    try:
        cells = json.loads(point.executed.read_bytes())["cells"]
    except (OSError, ValueError):
        return ""
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    errors = [f"{one['ename']}: {one['evalue']}" for one in outputs if "ename" in one]
    return errors[-1] if errors else ""


def _kernel_manager(sockets: Path) -> type:
    """A kernel that dies with this process, and talks through files.

    Kernels that start at the same time race for TCP ports: one that is free when it is chosen may
    be taken when it is opened.
    """
    from jupyter_client.manager import AsyncKernelManager

    by_files = sys.platform != "win32" and len(str(sockets)) < LONGEST_SOCKET

    class PointKernel(AsyncKernelManager):
        if by_files:
            transport = "ipc"
            ip = str(sockets / "kernel")  # by default one name for all kernels of a folder

        async def _async_pre_start_kernel(self, **options: Any) -> tuple[list[str], dict[str, Any]]:
            return await super()._async_pre_start_kernel(preexec_fn=dying_with_this(), **options)

    return PointKernel


def run_points(
    points: Sequence[Point], workers: int | None = None, scheduler: str = "", retries: int = 1
) -> dict[str, str]:
    """Execute every point that is not finished, those begun before first; return those that failed,
    name to last error.

    A point is handed to a worker that is free, and to that one alone: when the worker is lost, the
    point goes to the next free one instead of queueing behind a busy one.

    Args:
        points: of a sweep.
        workers: processes on this machine, which share its cores out; None for one per core.
        scheduler: address of a Dask scheduler (`tcp://...`) whose workers do it instead; they may
            come and go.
        retries: how often a point that failed is tried again.

    Raises:
        ValueError: when no scheduler answers, or it is lost for good.
    """
    from distributed import wait
    from tqdm import tqdm

    if scheduler and workers:
        raise ValueError("--workers are processes here, --scheduler has its own; give one of them")
    order = ("interrupted", "waiting", "failed", "running")  # the last by somebody else
    states = {point.name: point.state() for point in points}
    left = [point for point in points if states[point.name] != "finished"]
    queue = deque(sorted(left, key=lambda point: order.index(states[point.name])))
    failures: dict[str, str] = {}
    tries: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    print(f"{len(points)} points, {len(points) - len(queue)} finished before", flush=True)
    if not queue:
        return failures
    with (
        _client(workers, scheduler) as client,
        tqdm(total=len(points), initial=len(points) - len(queue), unit="point") as bar,
    ):
        running: dict[Future, tuple[Point, str]] = {}  # with the address of its worker

        def fail(point: Point, error: str) -> None:
            failures[point.name] = error
            bar.write(f"FAILED {error}")
            bar.update()

        while queue or running:
            if client.status == "closed":
                raise ValueError("the scheduler was lost; repeat the command to continue")
            slots = _slots(client)
            for future, (point, address) in [*running.items()]:
                if address not in slots and not future.done():
                    future.cancel()
                    del running[future]
                    losses[point.name] += 1
                    if losses[point.name] < LOSSES:
                        queue.append(point)
                    else:
                        fail(point, f"{point.name}: it lost its worker {LOSSES} times")
            busy = Counter(address for _, address in running.values())
            free = deque((slots - busy).elements())
            while queue and free:
                point, address = queue.popleft(), free.popleft()
                future = client.submit(execute, point, workers=[address], pure=False)
                running[future] = point, address
            bar.set_postfix({"running": len(running), "failed": len(failures)})
            if running:
                with suppress(TimeoutError):
                    wait(list(running), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
            else:  # no worker is there
                time.sleep(POLL_SECONDS)
            for future in [one for one in running if one.done()]:
                point, _ = running.pop(future)
                if future.status == "finished" and future.result() == "finished":
                    bar.update()
                    continue
                error = future.exception() if future.status == "error" else None
                tries[point.name] += error is not None
                if error is None or tries[point.name] <= retries:  # busy, or lost on the way
                    queue.append(point)
                elif isinstance(error, PointError):
                    fail(point, str(error))
                else:
                    fail(point, f"{point.name}: {error!r}")
    return failures


def _slots(client: Client) -> Counter[str]:
    """How many points each worker can execute at once, by its address."""
    workers = client.scheduler_info(n_workers=-1).get("workers", {})
    return Counter({address: one["nthreads"] for address, one in workers.items()})


@contextmanager
def _client(workers: int | None, scheduler: str) -> Iterator[Client]:
    """A client of the scheduler, or of a cluster on this machine that ends with it."""
    from dask.system import CPU_COUNT  # those that this process may use
    from distributed import Client, LocalCluster

    if scheduler:
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS)
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
