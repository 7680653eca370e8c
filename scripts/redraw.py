"""Draw every committed figure anew from the committed tables, without playing an episode:
`make redraw`. The data stays as it is.

| figure | from |
|---|---|
| `results/<track>/*.png` | the tables of all seeds of that track |
| `results/benchmark/*.png` | the benchmark's tables |
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tables import TRACKS, seeds_of

from logtriage.measure.benchmark import draw_report
from logtriage.measure.learning_plots import plot_checkpoints, plot_gain, plot_parts, plot_strata

RESULTS = Path(__file__).resolve().parents[1] / "results"


def draw_track(track: str) -> list[Path]:
    """A track's figures over all its seeds; returns the files."""
    runs = seeds_of(track)
    training, checkpoints, evaluations = (
        [pd.read_parquet(run / f"{name}.parquet") for run in runs]
        for name in ("episodes", "checkpoints", "evaluation")
    )
    figures = {
        "gain": plot_gain(training, evaluations),
        "learning": plot_checkpoints(training, checkpoints, evaluations),
        "parts": plot_parts(evaluations),
        "strata": plot_strata(evaluations),
    }
    for name, figure in figures.items():
        figure.save(RESULTS / track / f"{name}.png")
    return [RESULTS / track / f"{name}.png" for name in figures]


def main() -> None:
    """Draw all of them, and say what was written."""
    written = draw_report(RESULTS / "benchmark")
    for track in TRACKS:
        written += draw_track(track)
    for path in written:
        print(f"{path.relative_to(RESULTS.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
