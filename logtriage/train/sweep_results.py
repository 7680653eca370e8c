"""What a sweep comes to: one frame of all its points, a table, figures, and a record of what was
run; all light enough to publish.

| file | what |
|---|---|
| `episodes.parquet` | training by step, and every held-out episode (see `measure.analysis`) |
| `summary.parquet` | a row a row and task: scores, gains, differences, with intervals |
| `points.parquet` | a row a point: its size and what it took |
| `learning.png`, `seeds.png` | the same, drawn; of a ladder of sizes `scaling.png` too |
| `sweep.json` | what was varied, by which command, when, at which commits |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd

from ..bench.analysis import gather, join, score
from ..bench.runs import model_of, read_jsonl, record_of, write_text
from ..bench.scaling import FEWEST_SIZES, fit_law, plot_scaling, sized_scores
from ..bench.sweep_plots import plot_learning, plot_seeds
from ..bench.sweep_tables import read_sweep
from .points import Point, is_executed
from .sweeps import Sweep

EVALUATION = "evaluation.parquet"  # what a point leaves behind that can be summarised


def summarise_sweep(sweep: Sweep) -> list[Path]:
    """Write the files above to `<folder>/summary-<sweep>/`; returns them.

    None are written for a notebook that plays no held-out incidents.

    Raises:
        FileNotFoundError: when a point is not finished.
    """
    if sweep.points[0].results:
        for point in sweep.points:
            _fetch(point)
    if not sweep.taken and not any((one.folder / EVALUATION).exists() for one in sweep.points):
        return []
    own = [one for one in sweep.points if is_executed(one) or one.name not in sweep.taken]
    lacking = [one.name for one in own if not (one.folder / EVALUATION).exists()]
    if lacking:
        raise FileNotFoundError(f"{', '.join(lacking)} have no {EVALUATION}; run the sweep first")
    folder = sweep.summary
    folder.mkdir(parents=True, exist_ok=True)
    earlier = sweep.published if len(own) < len(sweep.points) else None
    frame, points = _tables(sweep, own, earlier)
    tables = {
        "episodes": frame,
        "summary": score(frame, against=sweep.file.against),
        "points": points,
    }
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
    write_text(
        folder / "sweep.json", json.dumps(record_of_sweep(sweep, own, earlier), indent=1) + "\n"
    )
    draw_sweep(folder)
    return sorted(folder.iterdir())


def _tables(
    sweep: Sweep, own: Sequence[Point], earlier: Path | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The frame of all points, and what each cost: `own` points, others published in `earlier`."""
    frames = [gather([(one.row, one.seed, one.folder) for one in own])] if own else []
    points = [costs(own)]
    if earlier:
        frames.append(pd.read_parquet(earlier / "episodes.parquet"))
        points.append(pd.read_parquet(earlier / "points.parquet"))
    names = [(one.row, one.seed) for one in sweep.points]
    table = pd.concat(points).drop_duplicates(["row", "seed"]).set_index(["row", "seed"])
    return join(frames, names), table.loc[names].reset_index()


def draw_sweep(folder: Path) -> list[Path]:
    """Draw the figures of a sweep from its tables, which lie in the folder; returns the files."""
    record, frame = read_sweep(folder)
    sizes, against = pd.read_parquet(folder / "points.parquet"), record["against"]
    figures = {
        "learning": plot_learning(frame, against=against),
        "seeds": plot_seeds(frame, against=against),
    }
    if sizes["parameters"].nunique() >= FEWEST_SIZES:
        points = sized_scores(frame, sizes)
        figures["scaling"] = plot_scaling(points, fit_law(points))
    for name, figure in figures.items():
        figure.save(folder / f"{name}.png")
    return [folder / f"{name}.png" for name in figures]


def costs(some: Sequence[Point]) -> pd.DataFrame:
    """A row a point: the model's `parameters` and width (`hidden`), `episodes` of training, its
    `seconds` and `cpu_seconds`, and those of building the base model (nan where nothing tells).
    """
    rows = []
    for point in some:
        metrics = read_jsonl(point.folder / "metrics.jsonl")
        record = Path(model_of(point.folder)) / "base.json"
        base = json.loads(record.read_text()) if record.exists() else {}
        last, settings = metrics.iloc[-1], record_of(point.folder)["settings"]
        rows.append(
            {
                "row": point.row,
                "seed": point.seed,
                "parameters": base.get("parameters", float("nan")),
                "hidden": base.get("settings", {}).get("hidden", float("nan")),
                "episodes": settings["steps"] * settings["incidents"] * settings["group"],
                "seconds": last["seconds"],
                "cpu_seconds": last.get("cpu_seconds", float("nan")),
                "base_seconds": base.get("seconds", float("nan")),
                "base_cpu_seconds": base.get("cpu_seconds", float("nan")),
            }
        )
    return pd.DataFrame(rows)


def record_of_sweep(sweep: Sweep, own: Sequence[Point], earlier: Path | None) -> dict[str, Any]:
    """What was run: rows and seeds, command, date, commits, machine; of `own` points, and of those
    published in `earlier`.
    """
    runs = [record_of(point.folder) for point in own]
    ended = [
        json.loads(point.executed.read_text())["metadata"]["papermill"]["end_time"] for point in own
    ]
    commits, machines = {run["commit"] for run in runs}, [run["machine"] for run in runs]
    if earlier:
        before = json.loads((earlier / "sweep.json").read_text())
        ended.append(before["finished"])
        commits.update(before["commits"])
        machines.append(before["machine"])
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
        "finished": max(ended)[:10],
        "commits": sorted(filter(None, commits)),
        "machine": machines[0],
        "left_out": sweep.file.left_out,
    }


def _fetch(point: Point) -> None:
    """Bring a point's files here from where finished ones are copied to, unless it was executed
    here.
    """
    if is_executed(point):
        return
    system, root = fsspec.url_to_fs(point.stored)
    if not system.exists(root):
        return
    point.folder.mkdir(parents=True, exist_ok=True)
    for name in system.ls(root, detail=False):
        system.get_file(name, str(point.folder / Path(name).name))
