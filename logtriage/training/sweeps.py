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
whose worker is lost moves to another worker.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..measure.runs import count_gpus
from .points import Point, PointError, is_finished, is_running, last_error, read_ledger, run_point
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
LOST_WORKERS = 3  # of one point, before it is called failed: it may be what kills them


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
    """

    name: str
    folder: Path
    file: SweepFile
    rows: dict[str, dict[str, Any]]
    points: tuple[Point, ...]


def load_sweep(path: str | Path, folder: str | Path | None = None, results: str = "") -> Sweep:
    """Read a sweep and check it, as far as that goes without running it.

    Args:
        path: the YAML file.
        folder: where everything goes; None for `runs/<its name>`.
        results: see `points.Point`.

    Raises:
        ValueError: for what cannot be run: an unknown key, notebook, parameter or setting, a value
            of a wrong type, a grid of nothing, rows of the same name.
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
    for name, changes in rows.items():
        _check_parameters(_joined(file.parameters, changes), notebook, f"{path}, row {name!r}")
    whole = Path(folder) if folder is not None else Path("runs") / path.stem
    whole, source = whole.resolve(), notebook.read_text()
    points = tuple(
        Point(
            row=name,
            seed=seed,
            notebook=str(notebook),
            source=source,
            parameters={
                **_joined(file.parameters, changes),
                "folder": str(whole / name.replace(" ", "-")),
                "seed": seed,
            },
            sweep_folder=str(whole),
            results=results,
        )
        for seed in file.seeds
        for name, changes in rows.items()
    )
    return Sweep(path.stem, whole, file, rows, points)


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


def _check_parameters(parameters: dict[str, Any], notebook: Path, where: str) -> None:
    """Raise `ValueError` for parameters that a notebook has not, or of another type."""
    import papermill

    known = papermill.inspect_notebook(str(notebook))
    lacking = [name for name in GIVEN if name not in known]
    if lacking:
        raise ValueError(
            f"{notebook.name} does not take {' and '.join(lacking)}, which a sweep gives each "
            "point; add them to its cell of parameters"
        )
    for name, value in parameters.items():
        if name in GIVEN:
            raise ValueError(f"{where}: {name} is set by the sweep; leave it out")
        if name not in known:
            raise ValueError(
                f"{where}: {notebook.name} has no parameter {name!r}; choose one of "
                f"{', '.join(one for one in known if one not in GIVEN)}"
            )
        wanted = known[name]["inferred_type_name"]
        if not isinstance(value, TYPES.get(wanted, (object,))) or (
            isinstance(value, bool) and wanted in ("int", "float")
        ):
            raise ValueError(f"{where}: {name} must be a {wanted}, got {value!r}")
    if "changes" in parameters:  # settings of training by name, which notebook 03 takes
        try:
            make_config(parameters.get("preset") or "mini", model="", **parameters["changes"])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None


@dataclass(frozen=True)
class State:
    """How far a point is: `finished`, `running`, `failed`, `interrupted` or `waiting`, and the
    seconds that it took, or the error that it ended in.
    """

    point: Point
    state: str
    seconds: float | None = None
    error: str = ""


def states(sweep: Sweep) -> list[State]:
    """How far every point is, in the order of `sweep.points`."""
    seconds: dict[tuple[str, int], float] = {}
    last: dict[tuple[str, int], str] = {}
    for line in read_ledger(sweep.folder):
        key = line["row"], line["seed"]
        last[key] = line["event"]
        if "seconds" in line:
            seconds[key] = line["seconds"]
    found = []
    for point in sweep.points:
        key = point.row, point.seed
        if is_finished(point):
            found.append(State(point, "finished", seconds.get(key)))
        elif is_running(point):
            found.append(State(point, "running"))
        elif last.get(key) == "failed":
            found.append(State(point, "failed", error=last_error(point)))
        elif key in last:
            found.append(State(point, "interrupted"))
        else:
            found.append(State(point, "waiting"))
    return found


def run_sweep(
    sweep: Sweep,
    workers: int | None = None,
    scheduler: str = "",
    gpu: bool = False,
    retries: int = 1,
) -> dict[str, str]:
    """Execute every point that is not finished.

    Args:
        sweep: from `load_sweep`.
        workers: processes on this machine; None for one a core, or one a GPU. They share the cores
            out.
        scheduler: address of a Dask scheduler (`tcp://...`) whose workers do it instead.
        gpu: whether a point takes a GPU: of a machine's, or of a worker's resource `GPU`.
        retries: how often a point that failed is tried again.

    Returns:
        The points that failed, name to last error.

    Raises:
        ValueError: when no scheduler answers, or nobody there has a GPU.
    """
    from distributed import as_completed
    from tqdm import tqdm

    sweep.folder.mkdir(parents=True, exist_ok=True)
    told = states(sweep)
    waiting = [one for one in told if one.state != "finished"]
    done, failures = len(told) - len(waiting), dict[str, str]()
    print(f"{sweep.name}: {len(told)} points, {done} finished before; in {sweep.folder}")
    if not waiting:
        return failures
    with _client(workers, scheduler, gpu) as client:
        slots = _slots(client)
        print(f"{sum(slots.values())} at a time; dashboard: {client.dashboard_link}", flush=True)
        futures: dict[Future, Point] = {
            client.submit(
                work,
                one.point,
                dict(slots),
                gpu and not scheduler,
                key=f"{sweep.name}/{one.point.name}/{os.getpid()}",
                retries=retries,
                # what was begun is brought to its end first
                priority=int(one.state != "waiting"),
                resources={"GPU": 1} if gpu else None,
                pure=False,
            ): one.point
            for one in waiting
        }
        with tqdm(total=len(told), initial=done, desc=sweep.name, unit="point") as bar:
            for future in as_completed(futures):
                point = futures.pop(future)
                if future.status == "error":
                    error = future.exception()
                    failures[point.name] = str(error)
                    bar.write(f"FAILED {error if isinstance(error, PointError) else point.name}")
                bar.update()
                running = min(len(futures), sum(_slots(client).values()))
                bar.set_postfix(running=running, failed=len(failures))
                future.release()
    return failures


def work(point: Point, slots: dict[str, int], own_gpus: bool) -> str:
    """What a Dask worker does: `run_point`, with its share of its machine's cores.

    Args:
        point: what.
        slots: how many points each machine executes at once, by its address.
        own_gpus: whether the worker, which is numbered, has the GPU of its number; else what GPU it
            sees is whoever's business who started it.
    """
    from distributed import get_worker
    from distributed.comm import get_address_host

    worker, cores = get_worker(), os.cpu_count() or 1
    sharing = slots.get(get_address_host(worker.address), 1)
    if sys.platform == "linux" and len(os.sched_getaffinity(0)) < cores:
        # a batch system has given this worker cores of its own
        cores, sharing = len(os.sched_getaffinity(0)), worker.state.nthreads
    threads = max(1, cores // sharing)
    return run_point(point, threads, gpu=str(worker.name) if own_gpus else "")


def _slots(client: Client) -> Counter[str]:
    """How many points each machine executes at once, by its address."""
    slots: Counter[str] = Counter()
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        slots[worker["host"]] += worker["nthreads"]
    return slots


@contextmanager
def _client(workers: int | None, scheduler: str, gpu: bool) -> Iterator[Client]:
    """A client of the scheduler, or of a cluster on this machine that ends with it."""
    import dask
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        stack.enter_context(
            dask.config.set({"distributed.scheduler.allowed-failures": LOST_WORKERS})
        )
        if scheduler:
            try:
                client = stack.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"no Dask scheduler answers at {scheduler}; start one (`dask scheduler`), or "
                    "leave out --scheduler"
                ) from error
        else:
            own = count_gpus() if gpu else os.cpu_count() or 1
            cluster = LocalCluster(
                n_workers=workers or own,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:8787",  # another port where that one is taken
                memory_limit=0,  # points are processes of their own
                resources={"GPU": 1} if gpu else None,
                silence_logs=logging.CRITICAL,
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        if gpu and not any(
            worker["resources"].get("GPU")
            for worker in client.scheduler_info(n_workers=-1)["workers"].values()
        ):
            raise ValueError(
                "no worker has a GPU; start workers with `dask worker --resources GPU=1`, or leave "
                "out --gpu"
            )
        yield client
