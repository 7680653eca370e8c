"""Sweeps: many points of one notebook, fanned out over processes or machines by Dask.

A sweep is a YAML file, `sweeps/*.yaml`:

| key | what |
|---|---|
| `about` | what it asks, a sentence |
| `notebook` | relative to the file; it must take `folder` and `seed` |
| `parameters` | of the notebook, the same for all points |
| `rows` | name to further parameters: one variation each; dictionaries are joined |
| `grid` | parameter to values: all combinations, each a row, and under each of `rows` |
| `seeds` | list of seeds: every row is run with each |
| `against` | the row that all others are compared with |
| `left_out` | what was not run and why, a sentence |

Every point is one execution of the notebook into `runs/<sweep>/<row>/seed-<seed>/` (see `points`).
A finished point is never run again; one that was interrupted goes on where its notebook can; one
whose worker is lost moves to another worker. Points that are known from what was published of the
sweep can be taken from there: so a sweep is extended without running it all.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..bench.runs import visible_gpus
from ..world.tasks import check_split
from .points import Point, PointError, is_finished, is_running, read_ledger, run_point
from .presets import make_config

if TYPE_CHECKING:  # slow to import, and `sweep-status` does without
    from distributed import Client, Future

ROW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=,+-]*")
GIVEN = ("folder", "seed")  # parameters that the sweep sets
# What a notebook's annotation, or its literal, makes of a value: papermill tells it by name.
TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "dict": (dict,),
    "list": (list,),
}
CONNECT_SECONDS = 10  # that a scheduler has to answer
LOOK_SECONDS = 2  # between looks at what has ended, and at who has come
TURNS = ("interrupted", "waiting", "failed", "running")  # the last by somebody else


class SweepFile(BaseModel):
    """A sweep as it is written."""

    model_config = ConfigDict(extra="forbid")

    about: str
    notebook: str
    parameters: dict[str, Any] = {}
    rows: dict[str, dict[str, Any] | None] = {}
    grid: dict[str, list[Any]] = {}
    seeds: list[int] = Field(min_length=1)
    against: str = ""
    left_out: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep that has been checked.

    Attributes:
        name: of its file.
        folder: where everything goes.
        file: as it is written.
        rows: name to the parameters in which it differs, in order.
        points: all of them; the first seed of every row first, so that a sweep that is stopped
            early has something of each.
        command: that runs it.
        published: folder of what was published of it; None for none.
        taken: names of the points that stand there, with the parameters that they would have now.
    """

    name: str
    folder: Path
    file: SweepFile
    rows: dict[str, dict[str, Any]]
    points: tuple[Point, ...]
    command: str
    published: Path | None = None
    taken: frozenset[str] = frozenset()

    @property
    def summary(self) -> Path:
        """Where what it comes to is written."""
        return self.folder / f"summary-{self.name}"


def load_sweep(
    path: str | Path,
    folder: str | Path | None = None,
    results: str = "",
    published: str | Path | None = None,
) -> Sweep:
    """Read a sweep and check it, as far as that goes without running it.

    Args:
        path: the YAML file.
        folder: where everything goes; None for `runs/<its name>`.
        results: URL that finished points are copied to, in a folder of the sweep's name.
        published: folder of what was published of the sweep; points in there are not run.

    Raises:
        ValueError: for what cannot be run: an unknown key, notebook, parameter or setting, a value
            of a wrong type, a grid of nothing, rows of the same name; nothing published.
    """
    path = Path(path)
    try:
        file = SweepFile.model_validate(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}"
            for one in error.errors()
        )
        raise ValueError(
            f"{path}: {told}; a sweep has the keys {', '.join(SweepFile.model_fields)}"
        ) from None
    rows = _rows(file, path)
    if len(set(file.seeds)) < len(file.seeds):
        raise ValueError(f"{path}: seeds {file.seeds} are not all different")
    if file.against and file.against not in rows:
        raise ValueError(
            f"{path}: against {file.against!r} is no row; choose one of {', '.join(rows)}"
        )
    notebook = (path.parent / file.notebook).resolve()
    if not notebook.is_file():
        raise ValueError(f"{path}: there is no notebook {notebook}")
    known = _known_parameters(notebook)
    for name, changes in rows.items():
        where = f"{path}, row {name!r}"
        _check_parameters(_joined(file.parameters, changes), known, notebook.name, where)
    whole = Path(folder) if folder is not None else Path("runs") / path.stem
    command = f"python -m logtriage sweep {path.parent.name}/{path.name}"
    if folder is not None:
        command += f" --folder {folder}"
    whole = whole.resolve()
    points = tuple(
        Point(
            row=name,
            seed=seed,
            notebook=str(notebook),
            parameters={
                **_joined(file.parameters, changes),
                "folder": str(whole / name.replace(" ", "-")),
                "seed": seed,
            },
            sweep_folder=str(whole),
            results=f"{results.rstrip('/')}/{path.stem}" if results else "",
        )
        for seed in file.seeds
        for name, changes in rows.items()
    )
    earlier = Path(published) if published is not None else None
    taken = _published_points(earlier, file, rows, points) if earlier else frozenset()
    return Sweep(path.stem, whole, file, rows, points, command, earlier, taken)


def _published_points(
    folder: Path, file: SweepFile, rows: dict[str, dict[str, Any]], points: Sequence[Point]
) -> frozenset[str]:
    """Names of the points that were published with the parameters that they have now."""
    path = folder / "sweep.json"
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}, of a published sweep: {error}") from None
    then = {row: _joined(record["parameters"], more) for row, more in record["rows"].items()}
    same = {row for row, more in rows.items() if _joined(file.parameters, more) == then.get(row)}
    if record["notebook"] != Path(file.notebook).name:
        return frozenset()
    return frozenset(
        point.name for point in points if point.row in same and point.seed in record["seeds"]
    )


def _rows(file: SweepFile, path: Path) -> dict[str, dict[str, Any]]:
    """Name to changed parameters, of the named rows times the grid."""
    empty = [name for name, values in file.grid.items() if not values]
    if empty:
        raise ValueError(f"{path}: the grid has no value of {', '.join(empty)}; name at least one")
    combinations = [
        dict(zip(file.grid, values, strict=True))
        for values in itertools.product(*file.grid.values())
    ]
    rows: dict[str, dict[str, Any]] = {}
    for named, changes in (file.rows or {"": None}).items():
        for combination in combinations:
            varied = " ".join(filter(None, [named, _words(combination)])) or "all"
            if not ROW_NAME.fullmatch(varied):
                raise ValueError(
                    f"{path}: {varied!r} is no name of a row; use letters, digits, spaces and "
                    "._=,+-, since it becomes a folder"
                )
            if varied.replace(" ", "-") in {name.replace(" ", "-") for name in rows}:
                raise ValueError(f"{path}: two rows are called {varied!r}; name them apart")
            rows[varied] = _joined(changes or {}, combination)
    return rows


def _joined(some: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both, the latter first in rank; where both have a dictionary, likewise."""
    both = {**some, **more}
    for name in some.keys() & more.keys():
        if isinstance(some[name], dict) and isinstance(more[name], dict):
            both[name] = {**some[name], **more[name]}
    return both


def _words(values: dict[str, Any]) -> str:
    """A combination of a grid as a name: `credit=part,group=8`."""
    parts = []
    for name, value in values.items():
        if isinstance(value, dict):  # settings by name
            parts.append(_words(value) or f"{name}=none")
        else:
            parts.append(f"{name}={str(value).replace('/', '-') or 'none'}")
    return ",".join(parts)


def _known_parameters(notebook: Path) -> dict[str, str]:
    """The parameters of a notebook, name to type; `ValueError` where a point could not be one."""
    import papermill

    found = papermill.inspect_notebook(str(notebook))
    lacking = [name for name in GIVEN if name not in found]
    if lacking:
        raise ValueError(
            f"{notebook.name} does not take {' and '.join(lacking)}, which a sweep gives each "
            "point; add them to its cell of parameters"
        )
    return {name: one["inferred_type_name"] for name, one in found.items()}


def _check_parameters(
    parameters: dict[str, Any], known: dict[str, str], notebook: str, where: str
) -> None:
    """Raise `ValueError` for parameters that a notebook has not, or of another type."""
    for name, value in parameters.items():
        if name in GIVEN:
            raise ValueError(f"{where}: {name} is set by the sweep; leave it out")
        if name not in known:
            raise ValueError(
                f"{where}: {notebook} has no parameter {name!r}; choose one of "
                f"{', '.join(one for one in known if one not in GIVEN)}"
            )
        wanted = known[name]
        if not isinstance(value, TYPES.get(wanted, (object,))) or (
            isinstance(value, bool) and wanted in ("int", "float")
        ):
            raise ValueError(f"{where}: {name} must be a {wanted}, got {value!r}")
    if "changes" in known:  # notebook 03: its settings of training, by name
        sizes = {name: parameters[name] for name in ("steps", "incidents") if parameters.get(name)}
        try:
            check_split(parameters.get("split", "test"))
            make_config(
                parameters.get("preset") or "novice",
                model="",
                **sizes,
                **parameters.get("changes", {}),
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None


@dataclass(frozen=True)
class State:
    """How far a point is: `finished`, `published`, `running`, `failed`, `interrupted` or
    `waiting`, and the seconds that it took, or the error that it ended in.
    """

    point: Point
    state: str
    seconds: float | None = None
    error: str = ""


def states(sweep: Sweep) -> list[State]:
    """How far every point is, in the order of `sweep.points`."""
    last = {(line["row"], line["seed"]): line for line in read_ledger(sweep.folder)}
    found = []
    for point in sweep.points:
        line = last.get((point.row, point.seed), {})
        if is_finished(point):
            found.append(State(point, "finished", line.get("seconds")))
        elif point.name in sweep.taken:
            found.append(State(point, "published"))
        elif is_running(point):
            found.append(State(point, "running"))
        elif line.get("event") == "failed":
            found.append(State(point, "failed", error=line["error"]))
        else:
            found.append(State(point, "interrupted" if line else "waiting"))
    return found


def run_sweep(
    sweep: Sweep,
    workers: int | None = None,
    scheduler: str = "",
    gpu: bool = False,
    retries: int = 1,
) -> dict[str, str]:
    """Execute every point that is not finished.

    No more are handed out than can be executed at once, so that a point which kills its worker
    takes no other along, and those that were begun before come first.

    Args:
        sweep: from `load_sweep`.
        workers: processes on this machine; None for one a core, or one a GPU. They share the cores
            out.
        scheduler: address of a Dask scheduler (`tcp://...`) whose workers do it instead; they may
            come and go.
        gpu: whether a point takes a GPU: of a machine's, or of a worker's resource `GPU`.
        retries: how often a point that failed is tried again.

    Returns:
        The points that failed, name to last error.

    Raises:
        ValueError: when no scheduler answers, or it is lost for good, or there are fewer GPUs than
            workers.
    """
    from distributed import wait
    from tqdm import tqdm

    if scheduler and workers:
        raise ValueError("--workers are processes here, --scheduler has its own; give one of them")
    told = states(sweep)
    waiting = sorted(
        (one for one in told if one.state in TURNS), key=lambda one: TURNS.index(one.state)
    )
    queue, done = deque(one.point for one in waiting), len(told) - len(waiting)
    failures: dict[str, str] = {}
    print(f"{sweep.name}: {len(told)} points, {done} finished before; in {sweep.folder}")
    if not queue:
        return failures
    sweep.folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(sweep.summary, ignore_errors=True)  # it would be of other points
    with ExitStack() as stack:
        client, threads, gpus = stack.enter_context(_client(workers, scheduler, gpu))
        print(f"{_slots(client, gpu)} at a time; dashboard: {client.dashboard_link}", flush=True)
        bar = stack.enter_context(
            tqdm(total=len(told), initial=done, desc=sweep.name, unit="point")
        )
        running: dict[Future, Point] = {}
        counts = {"running": 0, "failed": 0}
        while queue or running:
            while queue and len(running) < _slots(client, gpu):
                point = queue.popleft()
                key = f"{sweep.name}/{point.name}/{uuid4().hex[:8]}"
                resources = {"GPU": 1} if gpu else None
                future = client.submit(
                    work, point, threads, gpus, key=key, retries=retries, resources=resources
                )
                running[future] = point
            before, counts = counts, {"running": len(running), "failed": len(failures)}
            if counts != before:
                bar.set_postfix(counts)
            if running:
                with suppress(TimeoutError):
                    wait(list(running), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
            elif client.status == "closed":
                raise ValueError("the scheduler was lost; the same command goes on")
            else:  # nobody is there to do it
                time.sleep(LOOK_SECONDS)
            for future in [one for one in running if one.done()]:
                point = running.pop(future)
                if future.status == "finished" and future.result() == "busy":
                    queue.append(point)
                    continue
                if future.status != "finished":
                    failures[point.name] = _failure(future, point)
                    bar.write(f"FAILED {failures[point.name]}")
                bar.update()
    return failures


def _failure(future: Future, point: Point) -> str:
    """Why a point was not finished."""
    if future.status != "error":
        return f"{point.name}: the connection to the scheduler was lost; run the sweep again"
    error = future.exception()
    if isinstance(error, PointError):
        return str(error)
    return f"{point.name}: {type(error).__name__}: {error}"


def work(point: Point, threads: int, gpus: Sequence[str]) -> str:
    """What a Dask worker does: `run_point`, with its share of its machine's cores.

    Args:
        point: what.
        threads: that it may use; 0 for a share of the cores: of all that its machine has, with the
            other workers there, or of those that a batch system has given this worker.
        gpus: names of GPUs, of which a worker, which is then numbered, has that of its number;
            empty where whoever started the worker has seen to it.
    """
    from dask.system import CPU_COUNT  # those that this process may use
    from distributed import get_client, get_worker
    from distributed.comm import get_address_host

    worker = get_worker()
    if not threads:
        sharing = worker.state.nthreads
        if os.cpu_count() == CPU_COUNT:
            host = get_address_host(worker.address)
            others = get_client().scheduler_info(n_workers=-1)["workers"].values()
            sharing = sum(one["nthreads"] for one in others if one["host"] == host)
        threads = max(1, CPU_COUNT // max(1, sharing))
    return run_point(point, threads, gpus[int(worker.name)] if gpus else "")


def _slots(client: Client, gpu: bool) -> int:
    """How many points can be executed at once; 0 while there are no workers."""
    workers = client.scheduler_info(n_workers=-1).get("workers", {}).values()
    return sum(int(one["resources"].get("GPU", 0)) if gpu else one["nthreads"] for one in workers)


@contextmanager
def _client(
    workers: int | None, scheduler: str, gpu: bool
) -> Iterator[tuple[Client, int, Sequence[str]]]:
    """A client of the scheduler, or of a cluster on this machine that ends with it; and of `work`,
    `threads` and `gpus`.
    """
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if scheduler:
            try:
                client = stack.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"no Dask scheduler answers at {scheduler}; start one (`dask scheduler`), or "
                    "leave out --scheduler"
                ) from error
            yield client, 0, ()
            return
        gpus = visible_gpus() if gpu else []
        count = workers or len(gpus) or CPU_COUNT
        if gpu and count > len(gpus):
            raise ValueError(f"there are {len(gpus)} GPUs for {count} workers; choose fewer")
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:8787",  # another port where that one is taken
            memory_limit=0,  # points are processes of their own
            resources={"GPU": 1} if gpu else None,
            silence_logs=logging.CRITICAL,
        )
        client = stack.enter_context(Client(stack.enter_context(cluster)))
        yield client, max(1, CPU_COUNT // count), gpus
