"""Train and evaluate the embedded agent by notebooks 03 and 04: `make demo`.

GRPO starts from the base in the package, or from the one in `<folder>/base` if `python -m logtriage
build-base` has built it there, in 17 minutes. Built again, a base may play a little differently.

A step is skipped if its result is there, so the same command continues what was interrupted.
Published episodes of the scripts and of that base are not played again.

By default two threads share the work. They split sums, so after some 60 steps the run differs from
the published one of that seed, as another seed would. `--threads 1` repeats a run to the last
digit, but takes half as long again.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

import pandas as pd
import papermill
import typer

from logtriage.world.tasks import BENCHMARK_VERSION
from triagelab.bench.registry import scripted
from triagelab.bench.run_evaluation import same_incidents
from triagelab.bench.score_tables import REFERENCES, split_table, summary_table

ROOT = Path(__file__).resolve().parents[1]
# The published runs of the track; the first is that of the agent in the package.
PUBLISHED = sorted((ROOT / "results" / "novice").glob("seed-*"))
FIGURES = ("gain.png", "learning.png", "strata.png")
EVALUATION, SPLITS = "evaluation.parquet", "splits.parquet"
# For a process that has both cores to itself. Training takes a sixth less time if threads spin
# while they wait, and a tenth less if malloc keeps what is freed: 4 GiB, which is more than a step
# takes. The latter puts tensors elsewhere in memory, which changes last digits, too.
ALONE = {"OMP_WAIT_POLICY": "ACTIVE", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**32)}


def execute(name: str, run: Path, parameters: dict[str, object]) -> None:
    """Execute a notebook into the run's folder; `ValueError` for a parameter that it lacks."""
    notebook, output = (folder / f"{name}.ipynb" for folder in (ROOT / "notebooks", run))
    unknown = set(parameters) - set(papermill.inspect_notebook(notebook))
    if unknown:
        raise ValueError(f"{notebook.name} has no parameters {sorted(unknown)}")
    print(f"running notebooks/{name}.ipynb, output in {output}", flush=True)
    papermill.execute_notebook(
        notebook,
        output,
        parameters,
        cwd=notebook.parent,
        kernel_name="python3",
        log_output=True,
        progress_bar=False,
        stdout_file=sys.stdout,
        stderr_file=sys.stderr,
    )


def take_published(run: Path) -> None:
    """Give a run the published episodes of the scripts and of the package's base; tests check that
    these are still played so. Those of the base have its key: other bases do not use them.
    """
    keys = {name: scripted(name).key for name in REFERENCES}
    for name in (EVALUATION, SPLITS):
        published = PUBLISHED[0] / name
        if (run / name).exists() or not published.exists():
            continue
        frame = pd.read_parquet(published)
        frame = frame[frame["benchmark"] == BENCHMARK_VERSION]
        frame = frame[frame["policy"].isin([*REFERENCES, "base"])]
        frame = frame.assign(key=frame["policy"].map(keys).fillna(frame["key"]))
        frame.to_parquet(run / name, index=False)


def played(run: Path) -> pd.DataFrame:
    """A run's held-out episodes on incidents that all policies played; the base played more."""
    return pd.concat(same_incidents(pd.read_parquet(run / name)) for name in (EVALUATION, SPLITS))


def mean_trained(run: Path) -> float:
    """The trained model's mean score over the tasks of a run's `summary.json`."""
    rows = json.loads((run / "summary.json").read_text())
    return statistics.mean(row["trained"][0] for row in rows)


def main(
    folder: Annotated[Path, typer.Option(help="Where everything goes.")] = ROOT / "runs" / "novice",
    seed: Annotated[int, typer.Option(help="Of GRPO; the base model is the same for all.")] = 1,
    threads: Annotated[
        int, typer.Option(min=1, help="Of torch; with 1 a run repeats to the last digit.")
    ] = 2,
) -> None:
    """Train the embedded agent and look at what it learned."""
    began, folder = time.monotonic(), folder.resolve()
    run = folder / f"seed-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    # For the kernels, which are processes of their own.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if threads > 1:
        os.environ.update(ALONE)
    take_published(run)
    common: dict[str, object] = {"folder": str(folder), "seed": seed}
    execute("03_grpo_training", run, {**common, "profile": "cpu"})
    execute("04_learning_curves", run, common)
    print(
        "\nheld-out incidents of `test`, greedy; mean score and 95 % bootstrap interval, "
        "gains paired by incident"
    )
    print(summary_table(json.loads((run / "summary.json").read_text())).to_string(index=False))
    print("\nthe same on other faults, words and call graphs, means over the tasks")
    print(split_table([played(run)]).to_string(index=False))
    shipped, *others = map(mean_trained, PUBLISHED)
    print(
        f"\nmean on `test`: this run {mean_trained(run):.2f}, the agent in the package "
        f"{shipped:.2f}, the other published seeds {min(others):.2f} to {max(others):.2f}"
    )
    print("\nfigures:", *(run / name for name in FIGURES), sep="\n  ")
    print(f"this took {(time.monotonic() - began) / 60:.1f} minutes, set-up not included")


if __name__ == "__main__":
    typer.run(main)
