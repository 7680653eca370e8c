"""Draw every committed figure anew from the committed tables, without playing an episode:
`make redraw`. The data stays as it is.

| figure | from |
|---|---|
| `results/demo/seed-*/*.png` | that run's tables, and the benchmark's `belief` |
| `results/benchmark/*.png` | the benchmark's tables |
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from logtriage.measure.benchmark import draw_report
from logtriage.measure.learning_plots import plot_checkpoints, plot_gain, plot_parts, plot_strata

RESULTS = Path(__file__).resolve().parents[1] / "results"


def draw_run(run: Path, ceiling: pd.DataFrame) -> list[Path]:
    """A published run's figures; returns the files.

    Args:
        run: its folder.
        ceiling: rollouts of `belief`, of which those on the run's incidents are drawn where the
            run has none of its own.
    """
    training = [pd.read_parquet(run / "episodes.parquet")]
    checkpoints = [pd.read_parquet(run / "checkpoints.parquet")]
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    played = evaluation[["task", "split", "index"]].drop_duplicates()
    whole = evaluation
    if "belief" not in set(evaluation["policy"]):
        whole = pd.concat([evaluation, ceiling.merge(played)], ignore_index=True)
    figures = {
        "gain": plot_gain(training, [whole]),
        "learning": plot_checkpoints(training, checkpoints, [evaluation]),
        "parts": plot_parts([evaluation]),
        "strata": plot_strata([evaluation]),
    }
    for name, figure in figures.items():
        figure.save(run / f"{name}.png")
    return [run / f"{name}.png" for name in figures]


def main() -> None:
    """Draw all of them, and say what was written."""
    benchmark = pd.read_parquet(RESULTS / "benchmark" / "episodes.parquet")
    ceiling = benchmark[benchmark["policy"] == "belief"]
    written = draw_report(RESULTS / "benchmark")
    for run in sorted((RESULTS / "demo").glob("seed-*")):
        written += draw_run(run, ceiling)
    for path in written:
        print(f"{path.relative_to(RESULTS.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
