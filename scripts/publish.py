"""Copy the light files of a finished run to results/: `make results`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from tables import write_tables

ROOT = Path(__file__).resolve().parents[1]
LIGHT_FILES = (
    "config.json",
    "metrics.jsonl",
    "evaluation.parquet",
    "checkpoints.parquet",
    "summary.json",
    "transcripts.json",
    "gain.png",
    "learning.png",
    "parts.png",
    "strata.png",
)


def write_episodes(log: Path, table: Path) -> None:
    """Write a run's training episodes, a JSON row a line, as parquet: the same data in a tenth."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    pd.DataFrame(rows).to_parquet(table, index=False)


def publish(run: str | Path, name: str) -> Path:
    """Copy the light files of a finished run to `results/<name>`, its training episodes as parquet.

    Raises:
        FileNotFoundError: when the run is not finished.
    """
    run, target = Path(run), ROOT / "results" / name
    missing = [file for file in (*LIGHT_FILES, "episodes.jsonl") if not (run / file).exists()]
    if missing:
        raise FileNotFoundError(
            f"{run} lacks {', '.join(missing)}; run `make demo` to its end first"
        )
    target.mkdir(parents=True, exist_ok=True)
    for file in LIGHT_FILES:
        shutil.copyfile(run / file, target / file)
    write_episodes(run / "episodes.jsonl", target / "episodes.parquet")
    shutil.copyfile(run.parent / "base" / "base.json", target / "base.json")
    return target


def main(
    run: Annotated[Path, typer.Argument(help="A finished run.")] = Path("runs/demo/seed-0"),
    name: Annotated[str, typer.Option(help="Folder under results/.")] = "demo/seed-0",
) -> None:
    """Copy the light files of a run to results/, and write the README's tables from them."""
    try:
        print(f"copied to {publish(run, name)}")
    except FileNotFoundError as error:
        raise SystemExit(f"error: {error}") from None
    write_tables()


if __name__ == "__main__":
    typer.run(main)
