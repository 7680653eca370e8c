"""Sweeps: one notebook with many parameters and seeds, and a summary of what came out.

A sweep is a YAML file, `sweeps/*.yaml` (see docs/training.md). Every point is one execution of the
notebook into `runs/<sweep>/<row>/seed-<seed>/`. When all are finished, `summary-<sweep>/` holds

| file | what |
|---|---|
| `episodes.parquet` | training by step, and every held-out episode (see `bench.analysis`) |
| `summary.parquet` | one line per row and task: scores, gains, differences, with intervals |
| `seeds.png` | the same as a figure |
| `sweep.json` | what was varied, when, at which commits |
"""

import json
import re
import reprlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ..bench.runs import record_of, write_text
from ..world.tasks import check_split
from ..world.topology_file import UniqueKeys
from .colab import check_profile
from .points import Point
from .settings import make_config

ROW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=,+-]*")
GIVEN = ("folder", "seed")  # parameters that the sweep sets
# What papermill calls the types of a notebook's parameters.
TYPES = {"int": int, "float": float, "str": str, "bool": bool, "dict": dict, "list": list}


class SweepFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    about: str  # the question, in a sentence
    notebook: str  # relative to the file; it must take `GIVEN`
    parameters: dict[str, Any] = {}  # of the notebook, the same for all points
    # Name to further parameters: one variation each.
    rows: dict[str, dict[str, Any] | None] = Field({"all": None}, min_length=1)
    seeds: list[int] = Field(min_length=1)  # every row is run with each
    against: str = ""  # the row that all others are compared with


@dataclass(frozen=True)
class Sweep:
    """A sweep that has been checked."""

    name: str  # of its file
    folder: Path  # of all its points
    file: SweepFile
    rows: dict[str, dict[str, Any]]  # name to the parameters in which it differs, in order
    # The first seed of every row first: a sweep that is stopped early has something of each.
    points: tuple[Point, ...]


def load_sweep(path: str | Path, folder: str | Path | None = None) -> Sweep:
    """Read a sweep, which is to run in `folder`, by default `runs/<its name>`, and check it as far
    as that is possible without running it; `ValueError` for what cannot be run.
    """
    path = Path(path)
    try:
        asked = yaml.load(path.read_text(), UniqueKeys)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    file: SweepFile = _validated(SweepFile, asked, str(path))
    rows = {name: changes or {} for name, changes in file.rows.items()}
    for name in rows:
        if not ROW_NAME.fullmatch(name):
            raise ValueError(
                f"{path}: {name!r} cannot name a row, which becomes a folder; use letters, "
                "digits, spaces and ._=,+-"
            )
    for values in (file.seeds, [name.replace(" ", "-") for name in rows]):
        if len(set(values)) < len(values):
            raise ValueError(f"{path}: seeds or rows {values} are not all different; change one")
    if file.against and file.against not in rows:
        raise ValueError(
            f"{path}: against {file.against!r} is no row; choose one of {', '.join(rows)}"
        )

    notebook = (path.parent / file.notebook).resolve()
    if not notebook.is_file():
        raise ValueError(f"{path}: there is no notebook {notebook}")
    known = _parameters_of(notebook)
    parameters = {name: {**file.parameters, **changes} for name, changes in rows.items()}
    for name, asked in parameters.items():
        where = f"{path}, row {name!r}"
        _validated(known, asked, where)
        if "changes" in known.model_fields:  # notebook 03
            for seed in file.seeds:
                _check_training({**asked, "seed": seed}, where)

    whole = (Path(folder) if folder is not None else Path("runs") / path.stem).resolve()
    points = tuple(
        Point(
            row=name,
            seed=seed,
            notebook=str(notebook),
            parameters={**asked, "folder": str(whole / name.replace(" ", "-")), "seed": seed},
        )
        for seed in file.seeds
        for name, asked in parameters.items()
    )
    return Sweep(path.stem, whole, file, rows, points)


def _validated(model: type[BaseModel], asked: Any, where: str) -> Any:
    try:
        return model.model_validate(asked)
    except ValidationError as error:
        errors = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}, got "
            + reprlib.repr(one["input"])
            for one in error.errors()
        )
        raise ValueError(f"{where}: {errors}; known are {', '.join(model.model_fields)}") from None


def _parameters_of(notebook: Path) -> type[BaseModel]:
    """A model of the parameters of a notebook, without `GIVEN`."""
    import papermill

    found = papermill.inspect_notebook(str(notebook))
    missing = [name for name in GIVEN if name not in found]
    if missing:
        raise ValueError(
            f"{notebook.name} does not take {' and '.join(missing)}, which a sweep gives each "
            "point; add them to its cell of parameters"
        )
    fields: dict[str, Any] = {
        name: (TYPES.get(one["inferred_type_name"], Any), None)
        for name, one in found.items()
        if name not in GIVEN
    }
    strict = ConfigDict(extra="forbid", strict=True)
    return create_model("Parameters", __config__=strict, **fields)


def _check_training(parameters: dict[str, Any], where: str) -> None:
    """Raise `ValueError` for settings that notebook 03 cannot train with."""
    own = {name: parameters[name] for name in ("steps", "incidents") if parameters.get(name)}
    own |= {"seed": parameters["seed"], "model": ""}
    changes = parameters.get("changes", {})
    twice = sorted({*own, "steps", "incidents"} & set(changes))
    if twice:
        raise ValueError(f"{where}: changes must not hold {twice[0]}, which the notebook sets")
    try:
        check_profile(parameters.get("profile", "auto"))
        check_split(parameters.get("split", "test"))
        make_config(parameters.get("preset") or "novice", **own, **changes)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def summarise_sweep(sweep: Sweep) -> list[Path]:
    """Write the summary of a finished sweep, if held-out incidents were played; its files."""
    from ..bench.analysis import gather, score  # slow to import

    if not any((point.folder / "evaluation.parquet").exists() for point in sweep.points):
        return []
    folder = sweep.folder / f"summary-{sweep.name}"
    folder.mkdir(exist_ok=True)
    frame = gather([(one.row, one.seed, one.folder) for one in sweep.points])
    table = score(frame, against=sweep.file.against)
    frame.to_parquet(folder / "episodes.parquet", index=False, compression="zstd")
    table.to_parquet(folder / "summary.parquet", index=False, compression="zstd")
    runs = [record_of(point.folder) for point in sweep.points]
    record = {
        "name": sweep.name,
        **sweep.file.model_dump(),
        "rows": sweep.rows,
        "finished": datetime.now(UTC).date().isoformat(),
        "commits": sorted({run["commit"] for run in runs if run["commit"]}),
        "machine": runs[0]["machine"],
    }
    write_text(folder / "sweep.json", json.dumps(record, indent=1) + "\n")
    draw_sweep(folder)
    return sorted(folder.iterdir())


def draw_sweep(folder: Path) -> list[Path]:
    """Draw a sweep's figure from the tables in the folder."""
    from ..bench.analysis import read_sweep
    from ..bench.plots import plot_sweep_seeds

    record, frame = read_sweep(folder)
    plot_sweep_seeds(frame, against=record["against"]).save(folder / "seeds.png")
    return [folder / "seeds.png"]
