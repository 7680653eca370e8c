"""The tracks with several seeds: `make seeds`, about eight minutes a seed on two cores.

    runs/demo/base, seed-0, ...     from reward alone: the base reads, and imitates the junior
    runs/taught/base, seed-0, ...   taught, then rewarded: that base, fine-tuned on `trace`
    runs/general/base, seed-0, ...  from reward alone, on many call graphs and in many words

All seeds of a track start from one base model; a seed decides which incidents of `train` are
played, in which order, and what is sampled. What is finished is not made again. Two processes of
one thread each, a track each, get more out of two cores than one of two threads, once the base is
there:

    OMP_NUM_THREADS=1 taskset -c 0 python scripts/seeds.py demo
    OMP_NUM_THREADS=1 taskset -c 1 python scripts/seeds.py taught
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from tables import TRACKS

from logtriage.training.experiment import (
    audit_run,
    compare_transcripts,
    evaluate_checkpoints,
    evaluate_run,
    evaluate_splits,
)
from logtriage.training.grpo import train
from logtriage.training.mini import build_base, build_taught
from logtriage.training.presets import make_config
from logtriage.training.summaries import summarise_run

ROOT = Path(__file__).resolve().parents[1]


def run_seed(track: str, seed: int, folder: Path) -> Path:
    """Train and evaluate one seed of a track; returns its folder."""
    general = track == "general"
    base = build_base(folder / ("general" if general else "demo") / "base", general=general)
    if track == "taught":
        base = build_taught(folder / "taught" / "base", base)
    run = folder / track / f"seed-{seed}"
    train(make_config(TRACKS[track].preset, model=str(base), seed=seed), run)
    evaluation = evaluate_run(run)
    evaluate_splits(run)
    evaluate_checkpoints(run)
    audit_run(run)
    compare_transcripts(run)
    for row in summarise_run(run, evaluation):
        gain = "{:+.2f} [{:.2f}, {:.2f}]".format(*row["gain"])
        score = f"{track} seed {seed}, {row['task']}: {row['trained'][0]:.3f}"
        print(f"{score}, gain {gain}", flush=True)
    return run


def main(
    track: Annotated[str, typer.Argument(help="demo, taught, or general.")],
    seeds: Annotated[int, typer.Option(min=1, help="How many, from 0 on.")] = 5,
    folder: Annotated[Path, typer.Option(help="Where everything goes.")] = ROOT / "runs",
) -> None:
    """Train and evaluate the seeds of a track, one after the other."""
    if track not in TRACKS:
        raise SystemExit(f"error: unknown track {track!r}; choose one of {', '.join(TRACKS)}")
    for seed in range(seeds):
        run_seed(track, seed, folder)


if __name__ == "__main__":
    typer.run(main)
