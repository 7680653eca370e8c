"""One point of a sweep: a notebook, executed by papermill in a process of its own, into a folder of
its own.

The executed notebook is the record that a point is finished: with these parameters, to its end, and
without an error. So one that was executed by hand counts too, as long as it lies where the sweep
would put it:

    papermill notebooks/03_grpo_training.ipynb runs/novice/seed-3/03_grpo_training.ipynb \\
        --cwd notebooks -p folder ../runs/novice -p seed 3 ...

What an unfinished point has done so far is the notebook's own business: notebook 03 goes on from
its last checkpoint. A lock on the folder, which ends with the process that holds it, keeps two
processes from executing one point at the same time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
from filelock import FileLock, Timeout

from .processes import dying_with_this

LEDGER = "points.jsonl"  # of a sweep: a line whenever a point begins, is finished, or fails
PATIENCE = 60.0  # seconds that a point is waited for which another process executes
LOG = "notebook.log"  # of a point: what its cells print
SKIPPED = "skip-execution"  # the tag of cells that are not executed
LAST_WORDS = 600  # characters of an error that are told
# Longer paths of sockets are refused by Linux and macOS; there, kernels talk by TCP.
LONGEST_SOCKET = 90


class PointError(RuntimeError):
    """A point that failed; the text is its last error."""


@dataclass(frozen=True)
class Point:
    """One execution of a notebook.

    Attributes:
        row: what was varied, a name.
        seed: of training.
        notebook: the file.
        parameters: of the notebook, `folder` and `seed` among them.
        sweep_folder: of the whole sweep, where the ledger lies.
        results: URL by fsspec (`s3://bucket/folder`) that finished points are copied to, and looked
            for in; empty for none.
    """

    row: str
    seed: int
    notebook: str
    parameters: dict[str, Any]
    sweep_folder: str
    results: str = ""

    @property
    def name(self) -> str:
        """As it is told."""
        return f"{self.row}/seed-{self.seed}"

    @property
    def folder(self) -> Path:
        """Of its run, its executed notebook and its log."""
        return Path(self.parameters["folder"]) / f"seed-{self.seed}"

    @property
    def executed(self) -> Path:
        """The executed notebook."""
        return self.folder / Path(self.notebook).name

    @property
    def lock(self) -> FileLock:
        """Held while the point is executed, by the process that does it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / ".point.lock")

    @property
    def stored(self) -> str:
        """URL of the point's folder in `results`."""
        return f"{self.results.rstrip('/')}/{self.name}"


def is_finished(point: Point) -> bool:
    """Whether the point was executed to its end, and with `results` copied there."""
    return is_stored(point) if point.results else is_executed(point)


def is_executed(point: Point) -> bool:
    """Whether the point was executed here to its end."""
    try:
        return _says_finished(point.executed.read_bytes(), point)
    except FileNotFoundError:
        return False


def is_stored(point: Point) -> bool:
    """Whether the point lies in `results`, executed to its end."""
    try:
        with fsspec.open(f"{point.stored}/{point.executed.name}", "rb") as file:
            return _says_finished(file.read(), point)
    except FileNotFoundError:
        return False


def _says_finished(text: bytes, point: Point) -> bool:
    """Whether an executed notebook ended well, with the point's parameters; where its folder lay is
    of no matter.
    """
    try:
        notebook = json.loads(text)
        record = notebook["metadata"]["papermill"]
    except (ValueError, KeyError, TypeError):  # cut off while it was written
        return False
    # papermill calls all cells completed even where the kernel was lost at the first of them
    reached = all(
        cell["execution_count"] is not None
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        and "".join(cell["source"]).strip()
        and SKIPPED not in cell["metadata"].get("tags", ())
    )

    def varied(parameters: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in parameters.items() if name != "folder"}

    same = varied(record.get("parameters", {})) == varied(point.parameters)
    return bool(same and reached and record.get("end_time") and not record.get("exception"))


def is_running(point: Point) -> bool:
    """Whether a process on this machine, or on one that shares the folder, executes the point."""
    if not point.folder.exists():
        return False
    try:
        with point.lock.acquire(timeout=0):
            return False
    except Timeout:
        return True


def last_error(point: Point) -> str:
    """The error that the executed notebook ended in; empty for none."""
    try:
        cells = json.loads(point.executed.read_bytes())["cells"]
    except (FileNotFoundError, ValueError):  # or cut off while it was written
        return ""
    errors = [
        f"{output['ename']}: {output['evalue']}"
        for cell in cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "error"
    ]
    return errors[-1][:LAST_WORDS] if errors else ""


def note(point: Point, event: str, **more: Any) -> None:
    """Add a line to the sweep's ledger. It is for people: nothing is decided by it."""
    row = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "row": point.row,
        "seed": point.seed,
        "event": event,
        **more,
    }
    with (Path(point.sweep_folder) / LEDGER).open("a") as file:
        file.write(json.dumps(row) + "\n")


def read_ledger(sweep_folder: str | Path) -> list[dict[str, Any]]:
    """The lines of a sweep's ledger that can be read: two machines may spoil one for each other."""
    path = Path(sweep_folder) / LEDGER
    lines = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines


def run_point(point: Point, threads: int, gpu: str = "") -> str:
    """Execute a point in a process of its own, which on Linux dies with this one.

    Args:
        point: what.
        threads: that its process may use.
        gpu: name of the GPU that it sees; empty for all that are there.

    Returns:
        `finished`, `found` where it was finished before, or `busy` where another process executes
        it and has not ended within a minute.

    Raises:
        PointError: when the notebook fails; it is kept, with the error in it.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    if gpu:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    process = subprocess.run(
        [sys.executable, "-m", "logtriage.train.points"],
        input=json.dumps(asdict(point)),
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=dying_with_this(),
        check=False,
    )
    if process.returncode:
        said = last_error(point) or process.stderr.strip() or f"status {process.returncode}"
        raise PointError(f"{point.name}: {said[-LAST_WORDS:]}")
    return process.stdout.split()[-1]


def execute(point: Point) -> str:
    """Execute a point in this process, unless it is finished; returns as `run_point`."""
    try:
        with point.lock.acquire(timeout=PATIENCE):
            if is_executed(point):
                if point.results and not is_stored(point):
                    _copy(point)
                return "found"
            if point.results and is_stored(point):
                return "found"
            _execute(point)
    except Timeout:
        return "busy"
    return "finished"


def _execute(point: Point) -> None:
    import nbformat  # slow to import, like papermill
    import papermill

    began = time.monotonic()
    note(point, "began", process=os.getpid(), folder=os.getcwd())
    sockets = Path(tempfile.mkdtemp(prefix="point-"))
    try:
        with (point.folder / LOG).open("a") as log:
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
        if point.results:
            _copy(point)
    except Exception as error:
        said = last_error(point) or f"{type(error).__name__}: {error}"
        note(point, "failed", error=said[:LAST_WORDS])
        raise
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
    note(point, "finished", seconds=round(time.monotonic() - began, 1))


def _kernel_manager(sockets: Path) -> type:
    """How a kernel is started: it dies with this process, and talks through files.

    Kernels that start at the same time race for TCP ports: the one that is free when it is chosen
    may be taken when it is opened.
    """
    from jupyter_client.manager import AsyncKernelManager

    by_files = sys.platform != "win32" and len(str(sockets)) < LONGEST_SOCKET

    class PointKernel(AsyncKernelManager):
        if by_files:
            transport = "ipc"
            ip = str(sockets / "kernel")  # by default a name that all kernels of a folder share

        async def _async_pre_start_kernel(self, **options: Any) -> tuple[list[str], dict[str, Any]]:
            return await super()._async_pre_start_kernel(preexec_fn=dying_with_this(), **options)

    return PointKernel


def _copy(point: Point) -> None:
    """Copy the point's files to `results`, the executed notebook last: with it, it is finished.

    Folders (checkpoints, weights) stay where they are.
    """
    files = [path for path in sorted(point.folder.iterdir()) if path.is_file()]
    files = [path for path in files if not path.name.startswith(".") and path != point.executed]
    system, root = fsspec.url_to_fs(point.stored)
    system.makedirs(root, exist_ok=True)
    for path in [*files, point.executed]:
        system.put_file(str(path), f"{root}/{path.name}")


if __name__ == "__main__":
    print(execute(Point(**json.load(sys.stdin))))
