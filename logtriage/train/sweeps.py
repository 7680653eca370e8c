"""Sweeps: one notebook with many parameters and seeds, and a summary of what came out.

A sweep is a YAML file, `sweeps/*.yaml`:

| key | what |
|---|---|
| `about` | the question, in a sentence |
| `notebook` | relative to the file; it must take `folder` and `seed` |
| `parameters` | of the notebook, the same for all points |
| `rows` | name to further parameters: one variation each; dictionaries are joined |
| `grid` | parameter to values: all combinations, each a row, and under each of `rows` |
| `seeds` | list of seeds: every row is run with each |
| `against` | the row that all others are compared with |

Every point is one execution of the notebook into `runs/<sweep>/<row>/seed-<seed>/` (see `points`).
When all are finished, `summary-<sweep>/` holds

| file | what |
|---|---|
| `episodes.parquet` | training by step, and every held-out episode (see `bench.analysis`) |
| `summary.parquet` | one line per row and task: scores, gains, differences, with intervals |
| `learning.png`, `seeds.png` | the same as figures |
| `sweep.json` | what was varied, by which command, when, at which commits |
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..bench.runs import record_of, write_text
from ..world.tasks import check_split
from .colab import check_profile
from .points import Point
from .settings import make_config

ROW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=,+-]*")
GIVEN = ("folder", "seed")  # parameters that the sweep sets
# Papermill infers the type of a notebook's parameter and calls it by name.
TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "dict": (dict,),
    "list": (list,),
}


class SweepFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    about: str
    notebook: str
    parameters: dict[str, Any] = {}
    rows: dict[str, dict[str, Any] | None] = {}
    grid: dict[str, list[Any]] = {}
    seeds: list[int] = Field(min_length=1)
    against: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep that has been checked."""

    name: str  # of its file
    folder: Path  # of all its points
    file: SweepFile
    rows: dict[str, dict[str, Any]]  # name to the parameters in which it differs, in order
    # The first seed of every row first: a sweep that is stopped early has something of each.
    points: tuple[Point, ...]
    command: str  # that runs it


class UniqueKeys(yaml.SafeLoader):
    """A loader that refuses a key that occurs twice: YAML would drop the first in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice[0]!r} occurs twice; rename one", node.start_mark
            )
        return super().construct_mapping(node, deep)


def load_sweep(path: str | Path, folder: str | Path | None = None) -> Sweep:
    """Read a sweep, which is to run in `folder`, by default `runs/<its name>`, and check it as far
    as that is possible without running it.

    Raises:
        ValueError: for what cannot be run: an unknown key, notebook, parameter or setting, a value
            of a wrong type, an empty grid, two rows of one name.
    """
    path = Path(path)
    try:
        file = SweepFile.model_validate(yaml.load(path.read_text(), UniqueKeys))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    except ValidationError as error:
        errors = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}"
            for one in error.errors()
        )
        raise ValueError(
            f"{path}: {errors}; a sweep has the keys {', '.join(SweepFile.model_fields)}"
        ) from None
    rows = _rows(file, path)
    if len(set(file.seeds)) < len(file.seeds):
        raise ValueError(f"{path}: the seeds {file.seeds} are not all different")
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
        parameters = _joined(file.parameters, changes)
        _check_parameters(parameters, known, notebook.name, where)
        if "changes" in known:  # notebook 03
            for seed in file.seeds:
                _check_training({**parameters, "seed": seed}, where)
    whole = (Path(folder) if folder is not None else Path("runs") / path.stem).resolve()
    command = f"python -m logtriage sweep {path.parent.name}/{path.name}"
    if folder is not None:
        command += f" --folder {folder}"
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
        )
        for seed in file.seeds
        for name, changes in rows.items()
    )
    return Sweep(path.stem, whole, file, rows, points, command)


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
            name = " ".join(filter(None, [named, _words(combination)])) or "all"
            if not ROW_NAME.fullmatch(name):
                raise ValueError(
                    f"{path}: {name!r} cannot name a row, which becomes a folder; use letters, "
                    "digits, spaces and ._=,+-"
                )
            if name.replace(" ", "-") in {other.replace(" ", "-") for other in rows}:
                raise ValueError(f"{path}: two rows are called {name!r}; rename one")
            rows[name] = _joined(changes or {}, combination)
    return rows


def _joined(some: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both; the latter wins, and where both have a dictionary, key by key."""
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
    """The parameters of a notebook, name to type; `ValueError` when `folder` or `seed` is none."""
    import papermill

    found = papermill.inspect_notebook(str(notebook))
    missing = [name for name in GIVEN if name not in found]
    if missing:
        raise ValueError(
            f"{notebook.name} does not take {' and '.join(missing)}, which a sweep gives each "
            "point; add them to its cell of parameters"
        )
    return {name: one["inferred_type_name"] for name, one in found.items()}


def _check_parameters(
    parameters: dict[str, Any], known: dict[str, str], notebook: str, where: str
) -> None:
    """Raise `ValueError` for a parameter that a notebook does not have, or of another type."""
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
            raise ValueError(f"{where}: {name} must be of type {wanted}, got {value!r}")


def _check_training(parameters: dict[str, Any], where: str) -> None:
    """Raise `ValueError` for settings that notebook 03 cannot train with."""
    own = {name: parameters[name] for name in ("steps", "incidents") if parameters.get(name)}
    own["seed"] = parameters["seed"]
    changes = parameters.get("changes", {})
    for name in ("model", *own):
        if name in changes:
            raise ValueError(
                f"{where}: changes must not hold {name}, which the notebook sets; leave it out"
            )
    try:
        check_profile(parameters.get("profile", "auto"))
        check_split(parameters.get("split", "test"))
        make_config(parameters.get("preset") or "novice", model="", **own, **changes)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def summarise_sweep(sweep: Sweep) -> list[Path]:
    """Write the summary of a finished sweep and return its files; none when the notebook plays no
    held-out incidents; `FileNotFoundError` when only some points have their `evaluation.parquet`.
    """
    from ..bench.analysis import gather, score  # what takes seconds to import

    missing = [one for one in sweep.points if not (one.folder / "evaluation.parquet").exists()]
    if len(missing) == len(sweep.points):
        return []
    if missing:
        raise FileNotFoundError(
            f"{', '.join(one.name for one in missing)} have no evaluation.parquet; run the sweep "
            "first"
        )
    folder = sweep.folder / f"summary-{sweep.name}"
    folder.mkdir(exist_ok=True)
    frame = gather([(one.row, one.seed, one.folder) for one in sweep.points])
    table = score(frame, against=sweep.file.against)
    frame.to_parquet(folder / "episodes.parquet", index=False, compression="zstd")
    table.to_parquet(folder / "summary.parquet", index=False, compression="zstd")
    write_text(folder / "sweep.json", json.dumps(_record(sweep), indent=1) + "\n")
    draw_sweep(folder)
    return sorted(folder.iterdir())


def _record(sweep: Sweep) -> dict[str, Any]:
    """What was run: rows and seeds, command, date, commits, machine."""
    runs = [record_of(point.folder) for point in sweep.points]
    return {
        "name": sweep.name,
        "about": sweep.file.about,
        "command": sweep.command,
        "notebook": Path(sweep.file.notebook).name,
        "parameters": sweep.file.parameters,
        "rows": sweep.rows,
        "against": sweep.file.against,
        "seeds": sweep.file.seeds,
        "points": len(sweep.points),
        "finished": datetime.now(UTC).date().isoformat(),
        "commits": sorted({run["commit"] for run in runs if run["commit"]}),
        "machine": runs[0]["machine"],
    }


def draw_sweep(folder: Path) -> list[Path]:
    """Draw the figures of a sweep from the tables in the folder; returns the files."""
    from ..bench.analysis import read_sweep
    from ..bench.learning_plots import plot_sweep_learning, plot_sweep_seeds

    record, frame = read_sweep(folder)
    figures = {"learning": plot_sweep_learning, "seeds": plot_sweep_seeds}
    for name, plot in figures.items():
        plot(frame, against=record["against"]).save(folder / f"{name}.png")
    return [folder / f"{name}.png" for name in figures]
