"""Copy what is light of finished runs and sweeps to results/, for `make results`.

A sweep plays the held-out incidents of `test`; what else is published of a track (other splits,
checkpoints, audit, transcripts) is played here, once.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from pages import write_pages
from tables import TRACKS

from logtriage.bench.runs import differing
from logtriage.policies.llm.loading import SHIPPED
from logtriage.train.experiment import (
    audit_run,
    compare_transcripts,
    evaluate_checkpoints,
    evaluate_splits,
)

ROOT = Path(__file__).resolve().parents[1]
LIGHT_FILES = (
    "config.json",
    "metrics.jsonl",
    "evaluation.parquet",
    "checkpoints.parquet",
    "splits.parquet",
    "audit.parquet",
    "summary.json",
    "transcripts.json",
)


def check(run: Path) -> None:
    """Raise `FileNotFoundError` unless the run is finished."""
    wanted = (*LIGHT_FILES, "episodes.jsonl", "model")
    missing = [file for file in wanted if not (run / file).exists()]
    if missing:
        raise FileNotFoundError(f"{run} lacks {', '.join(missing)}; run `make seeds` to its end")


def check_alike(runs: Sequence[Path]) -> None:
    """Raise `ValueError` unless the runs differ by their seed alone: one recipe, from one base."""
    first, *others = [json.loads((run / "config.json").read_text())["settings"] for run in runs]
    for run, settings in zip(runs[1:], others, strict=True):
        found = [name for name in differing(first, settings) if name != "seed"]
        if found:
            raise ValueError(
                f"{run} and {runs[0]} differ in {', '.join(found)}: they are no seeds of one "
                "track; move one of them away"
            )


def publish(run: str | Path, track: str) -> Path:
    """Copy the light files of a finished run to `results/<track>/<its name>`, its training episodes
    as parquet, and its base model's record beside it.

    Raises:
        FileNotFoundError: when the run is not finished.
    """
    run = Path(run)
    check(run)
    target = ROOT / "results" / track / run.name
    target.mkdir(parents=True, exist_ok=True)
    for file in LIGHT_FILES:
        shutil.copyfile(run / file, target / file)
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    pd.DataFrame(rows).to_parquet(target / "episodes.parquet", index=False)
    shutil.copyfile(run.parent / "base" / "base.json", target.parent / "base.json")
    return target


def ship(run: Path) -> None:
    """Put the model of a run, and the base that it was trained from, in the package: the files that
    are there, made again.
    """
    for name, source in (("base", run.parent / "base"), ("agent", run / "model")):
        for file in SHIPPED[name].iterdir():
            shutil.copyfile(source / file.name, file)


def main(runs: Annotated[Path, typer.Option(help="Where the runs are.")] = ROOT / "runs") -> None:
    """Publish every seed of all tracks in place of what was published, and write the pages."""
    seeds = {track: sorted((runs / track).glob("seed-*")) for track in TRACKS}
    try:
        for track, found in seeds.items():
            if not found:
                raise FileNotFoundError(f"{runs / track} holds no seed; run `make seeds` first")
            for run in found:
                if (run / "model").exists():  # what a sweep does not play, unless it is there
                    evaluate_splits(run)
                    evaluate_checkpoints(run)
                    audit_run(run)
                    compare_transcripts(run)
                check(run)
            check_alike(found)
    except (FileNotFoundError, ValueError) as error:  # nothing has been touched yet
        raise SystemExit(f"error: {error}") from None
    for track, found in seeds.items():
        shutil.rmtree(ROOT / "results" / track, ignore_errors=True)
        for run in found:
            print(f"copied to {publish(run, track)}")
    ship(seeds["novice"][0])
    for name in publish_sweeps(runs):
        print(f"copied the sweep {name}")
    write_pages()


def publish_sweeps(runs: Path) -> list[str]:
    """Copy the summaries of finished sweeps to `results/<sweep>/`; returns their names. The tracks'
    own sweeps, whose runs lie in `runs` itself, are published run by run.
    """
    names = []
    for record in sorted(runs.glob("*/summary-*/sweep.json")):
        name = json.loads(record.read_text())["name"]
        target = ROOT / "results" / name
        target.mkdir(parents=True, exist_ok=True)
        for file in record.parent.iterdir():
            shutil.copyfile(file, target / file.name)
        names.append(name)
    return names


if __name__ == "__main__":
    typer.run(main)
