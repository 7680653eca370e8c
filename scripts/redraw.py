"""Draw every figure of results/ again from its tables, without playing an episode.

| figure | from |
|---|---|
| `results/novice/*.png` | the tables of the track's seeds |
| `results/real/policies.png` | `cases.parquet` and `published.csv` beside it |
| `results/production/policies.png` | `episodes.parquet` beside it |
| `results/<sweep>/seeds.png`, where there is one | the tables beside it |
"""

from collections.abc import Callable
from pathlib import Path

from tables import played_in, seeds_of

from logtriage.bench.plots import plot_checkpoints, plot_gain, plot_strata
from logtriage.bench.production_results import draw_production
from logtriage.bench.real_results import draw_real
from logtriage.train.sweeps import draw_sweep

RESULTS = Path(__file__).resolve().parents[1] / "results"


def drawings() -> dict[Path, Callable[[Path], list[Path]]]:
    """The folders of results that have figures, and what draws those of each."""
    folders = {
        RESULTS / "real": draw_real,
        RESULTS / "production": draw_production,
        RESULTS / "novice": draw_track,
    }
    folders |= {path.parent: draw_sweep for path in sorted(RESULTS.glob("*/seeds.png"))}
    return {folder: draw for folder, draw in folders.items() if folder.is_dir()}


def draw_track(folder: Path) -> list[Path]:
    """The figures of a track over its seeds; returns the files."""
    runs = seeds_of(folder.name)
    training, checkpoints, evaluations = (
        played_in(runs, name) for name in ("episodes", "checkpoints", "evaluation")
    )
    figures = {
        "gain": plot_gain(training, evaluations),
        "learning": plot_checkpoints(training, checkpoints, evaluations),
        "strata": plot_strata(evaluations),
    }
    for name, figure in figures.items():
        figure.save(folder / f"{name}.png")
    return [folder / f"{name}.png" for name in figures]


def main() -> None:
    """Draw all of them, and say what was written."""
    for folder, draw in drawings().items():
        for path in draw(folder):
            print(f"{path.relative_to(RESULTS.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
