"""Publish what was trained, and make everything that comes from results/ anew: `make results`.

1. Every entry of the leaderboard is replayed; nothing is written if one claims more than its
   actions earn.
2. Finished runs of `runs/` and summaries of sweeps are copied to results/, without large files. A
   sweep plays the incidents of `test`; what else is published of a track (other splits,
   checkpoints, audit, transcripts) is played here, once.
3. Figures are drawn from the tables beside them, without playing an episode.
4. Tables and numbers of all pages, the gallery and the README's first picture are written.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import animate
import leaderboard
import pandas as pd
import typer
from pages import write_pages
from tables import RESULTS, ROOT, TRACKS, seeds_of

from triagelab.bench.plots import plot_checkpoints, plot_gain, plot_strata
from triagelab.bench.recorded_results import draw_production, draw_real
from triagelab.bench.runs import differing, record_of
from triagelab.language_models.loading import SHIPPED
from triagelab.train.experiment import (
    audit_run,
    compare_transcripts,
    evaluate_checkpoints,
    evaluate_splits,
)
from triagelab.train.sweeps import draw_sweep

LIGHT_FILES = (
    *("config.json", "metrics.jsonl", "summary.json", "transcripts.json"),
    *("evaluation.parquet", "checkpoints.parquet", "splits.parquet", "audit.parquet"),
)

# -- runs and sweeps -------------------------------------------------------------------------------


def check(run: Path) -> None:
    """Raise `FileNotFoundError` unless the run is finished."""
    wanted = (*LIGHT_FILES, "episodes.jsonl", "model")
    missing = [file for file in wanted if not (run / file).exists()]
    if missing:
        raise FileNotFoundError(f"{run} lacks {', '.join(missing)}; run `make seeds` to its end")


def check_alike(runs: Sequence[Path]) -> None:
    """Raise `ValueError` unless the runs differ by their seed alone: one recipe, from one base."""
    first, *others = [record_of(run)["settings"] for run in runs]
    for run, settings in zip(runs[1:], others, strict=True):
        found = [name for name in differing(first, settings) if name != "seed"]
        if found:
            raise ValueError(
                f"{run} and {runs[0]} differ in {', '.join(found)}: they are no seeds of one "
                "track; move one of them away"
            )


def publish(run: Path, folder: Path) -> None:
    """Copy the light files of a finished run to a folder of its name in `folder`, its training
    episodes as parquet, and its base's record, if one was built, to `folder` itself. Raises as
    `check` does.
    """
    check(run)
    target = folder / run.name
    target.mkdir(parents=True, exist_ok=True)
    for file in LIGHT_FILES:
        shutil.copyfile(run / file, target / file)
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    pd.DataFrame(rows).to_parquet(target / "episodes.parquet", index=False)
    if (built := run.parent / "base" / "base.json").exists():
        shutil.copyfile(built, folder / "base.json")


def ship(run: Path) -> None:
    """Put the model of a run, and the base that was built for it, in the package, in place of the
    files that are there.
    """
    for name, source in (("base", run.parent / "base"), ("agent", run / "model")):
        for file in SHIPPED[name].iterdir() if source.is_dir() else ():
            shutil.copyfile(source / file.name, file)


def check_complete(runs: Path, seeds: Sequence[Path]) -> None:
    """Raise `ValueError` if the track `runs` lacks a seed that is published."""
    published = {run.name for run in seeds_of(RESULTS / runs.name)}
    if lost := sorted(published - {run.name for run in seeds}):
        raise ValueError(
            f"{runs} lacks {', '.join(lost)}, which are published and would be lost; run `make "
            "seeds` to its end, or publish fewer by `scripts/publish.py --fewer`"
        )


def collect(runs: Path, fewer: bool = False) -> None:
    """Publish the seeds of every track that has runs, in place of what was published of it, and all
    finished sweeps. The novice's first seed becomes the agent of the package. What has no runs
    stays as published. `SystemExit` is raised, and nothing changed, if a run is not finished or,
    unless `fewer` is set, a published seed has no run.
    """
    seeds = {}
    for track in TRACKS:
        if found := seeds_of(runs.resolve() / track):
            seeds[track] = found
        else:
            print(f"{runs / track} holds no run: what is published stays")
    try:
        for track, found in seeds.items():
            if not fewer:
                check_complete(runs.resolve() / track, found)
            for run in found:
                if (run / "model").exists():  # what a sweep does not play, unless it is there
                    evaluate_splits(run)
                    evaluate_checkpoints(run)
                    audit_run(run)
                    compare_transcripts(run)
                check(run)
            check_alike(found)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
    for track, found in seeds.items():
        names = [run.name for run in found]
        for run in found:
            publish(run, RESULTS / track)
        for old in [old for old in seeds_of(RESULTS / track) if old.name not in names]:
            shutil.rmtree(old)
    if "novice" in seeds:
        ship(seeds["novice"][0])
    # The tracks' own sweeps, whose runs lie in `runs` itself, are published run by run.
    for record in runs.glob("*/summary-*/sweep.json"):
        name = json.loads(record.read_text())["name"]
        shutil.copytree(record.parent, RESULTS / name, dirs_exist_ok=True)


# -- figures ---------------------------------------------------------------------------------------


def drawings() -> dict[Path, Callable[[Path], list[Path]]]:
    """The folders of results that have figures, each with the function that draws them."""
    sweeps = {path.parent: draw_sweep for path in sorted(RESULTS.glob("*/seeds.png"))}
    own = {"real": draw_real, "production": draw_production, "novice": draw_track}
    return {RESULTS / name: draw for name, draw in own.items()} | sweeps


def draw_track(folder: Path) -> list[Path]:
    """Draw the figures of a track over its seeds, and return their files."""
    training, checkpoints, evaluations = (
        [pd.read_parquet(run / f"{name}.parquet") for run in seeds_of(folder)]
        for name in ("episodes", "checkpoints", "evaluation")
    )
    figures = {
        "gain": plot_gain(training, evaluations),
        "learning": plot_checkpoints(training, checkpoints, evaluations),
        "strata": plot_strata(evaluations),
    }
    for name, figure in figures.items():
        figure.save(folder / f"{name}.png")
    return [folder / f"{name}.png" for name in figures]


def main(
    runs: Annotated[Path, typer.Option(help="Where the runs are.")] = ROOT / "runs",
    fewer: Annotated[bool, typer.Option(help="Publish fewer seeds than now are.")] = False,
) -> None:
    """Publish the runs, and make everything from results/ anew."""
    leaderboard.check_and_record()
    collect(runs, fewer)
    for folder, draw in drawings().items():
        print("drawn:", *(path.relative_to(ROOT) for path in draw(folder)))
    animate.write_picture()
    write_pages()


if __name__ == "__main__":
    typer.run(main)
