"""What is published in results/: read it, add finished runs to it, and draw its figures again."""

import gzip
import json
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.recorded import RECORDED
from logtriage.world.tasks import TASKS

from ..language_models.loading import SHIPPED
from .registry import Player, in_memory, scripted
from .rollouts import Result, rollout
from .run_evaluation import audit_run, evaluate_checkpoints, evaluate_splits
from .runs import differing, record_of
from .score_tables import REFERENCE

ROOT = Path(__file__).resolve().parents[2]  # of the checkout
RESULTS = ROOT / "results"
RECORDED_INCIDENTS = 200  # of each task of `test`
# Maps a track, named as its preset, to what it is called.
TRACKS = {"novice": "novice, then GRPO", "expert": "expert, then GRPO"}
LIGHT_FILES = (
    *("config.json", "metrics.jsonl", "summary.json"),
    *("evaluation.parquet", "checkpoints.parquet", "splits.parquet", "audit.parquet"),
)

# -- reading ---------------------------------------------------------------------------------------


@cache
def read(file: str | Path) -> Any:
    """A file of results/, as a frame or as JSON's objects. It is read once, so do not change it."""
    path = RESULTS / file
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    return readers[path.suffix](path) if path.suffix in readers else json.loads(path.read_text())


def seeds_of(track: str | Path) -> list[Path]:
    """The published runs of a track, by seed."""
    runs = (RESULTS / track).glob("seed-*")
    return sorted(runs, key=lambda run: int(run.name.removeprefix("seed-")))


def played_in(track: str, file: str) -> list[pd.DataFrame]:
    """The episodes of each run of a track, from one of its files."""
    return [read(run / f"{file}.parquet") for run in seeds_of(track)]


def played_by(track: str) -> list[pd.DataFrame]:
    """All held-out episodes of each run of a track, on every split."""
    parts = zip(played_in(track, "evaluation"), played_in(track, "splits"), strict=True)
    return [pd.concat(part) for part in parts]


# -- adding runs -----------------------------------------------------------------------------------


def check_finished(run: Path) -> None:
    """Raise `FileNotFoundError` unless the run is finished."""
    wanted = (*LIGHT_FILES, "episodes.jsonl", "model")
    missing = [file for file in wanted if not (run / file).exists()]
    if missing:
        raise FileNotFoundError(f"{run} lacks {', '.join(missing)}; run `make seeds` to its end")


def check_alike(runs: Sequence[Path]) -> None:
    """Raise `ValueError` unless the runs differ by their seed alone: one recipe, from one base."""
    first, *others = [record_of(run)["settings"] for run in runs]
    for run, settings in zip(runs[1:], others, strict=True):
        differ = [name for name in differing(first, settings) if name != "seed"]
        if differ:
            raise ValueError(
                f"{run} and {runs[0]} differ in {', '.join(differ)}: they are no seeds of one "
                "track; move one of them away"
            )


def publish_run(run: Path, folder: Path) -> None:
    """Copy the light files of a finished run to a folder of its name in `folder`, its training
    episodes as parquet, and its base's record, if one was built, to `folder` itself. Raises as
    `check_finished` does.
    """
    check_finished(run)
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
    files that are there; then write what both do for the page at /web.
    """
    for name, source in (("base", run.parent / "base"), ("agent", run / "model")):
        for file in SHIPPED[name].iterdir() if source.is_dir() else ():
            shutil.copyfile(source / file.name, file)
    record({name: recorded(player) for name, player in recorded_players().items()})


def collect(runs: Path) -> None:
    """Publish the seeds of every track that has runs, and all finished sweeps. The novice's first
    seed becomes the agent of the package. What has no runs stays as published. `SystemExit` is
    raised, and nothing published, if a run is not finished, or is of another recipe than the other
    seeds of its track, those without a run included.
    """
    tracks = {track: seeds_of(runs.resolve() / track) for track in TRACKS}
    for track in [track for track, seeds in tracks.items() if not seeds]:
        print(f"{runs / track} holds no run: what is published stays")
        del tracks[track]
    try:
        for track, seeds in tracks.items():
            for run in seeds:
                if (run / "model").exists():  # what a sweep does not play, unless it is there
                    evaluate_splits(run)
                    evaluate_checkpoints(run)
                    audit_run(run)
                check_finished(run)
            names = {run.name for run in seeds}
            check_alike([*seeds, *(run for run in seeds_of(track) if run.name not in names)])
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
    for track, seeds in tracks.items():
        for run in seeds:
            publish_run(run, RESULTS / track)
    if "novice" in tracks:
        ship(tracks["novice"][0])
    # The tracks' own sweeps, whose runs lie in `runs` itself, are published run by run.
    for record in runs.glob("*/summary-*/sweep.json"):
        name = json.loads(record.read_text())["name"]
        shutil.copytree(record.parent, RESULTS / name, dirs_exist_ok=True)


# -- what the page at /web compares with -----------------------------------------------------------


def recorded_players() -> dict[str, Player]:
    """Who plays for the page, by the name on it: all that need more than the small module, but for
    SmolLM2, whose published episodes `smollm2_stages.record_stages` takes.
    """
    agents = {"embedded agent after GRPO": "agent", "embedded agent before GRPO": "base"}
    models = {name: in_memory(source, constrained=True) for name, source in agents.items()}
    return {REFERENCE: scripted(REFERENCE), **models}


def actions_of(result: Result) -> dict[str, str]:
    """The actions of an episode as the page's address holds them, separated by spaces; an invalid
    one is `?`.
    """
    history = result.episode.history
    return {"actions": " ".join(action.text if action else "?" for action, _ in history)}


def by_task(played: pd.DataFrame) -> dict[str, list[str]]:
    """The actions of some episodes by task, in their order."""
    return {task: [*played[played["task"] == task]["actions"]] for task in TASKS}


def recorded(player: Player, incidents: int = RECORDED_INCIDENTS) -> dict[str, list[str]]:
    """What a player does on the first incidents of each task of `test`."""
    return by_task(rollout(player.make(0), [*TASKS], "test", incidents, judge=actions_of))


def record(done: dict[str, dict[str, list[str]]]) -> None:
    """Write what these did, by name, for the page at /web; what it has of others stays."""
    everybody = json.loads(gzip.decompress(RECORDED.read_bytes())) | done
    RECORDED.write_bytes(gzip.compress(json.dumps(everybody).encode(), mtime=0))
