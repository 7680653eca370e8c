"""Train the ranker, play `production`, and write results/production: `make production`.

Seeds that were trained stay in runs/production; what is missing is trained. `make real` plays them
on the real incidents.
"""

import shutil
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from logtriage.bench.production_results import (
    conformal,
    draw_production,
    metrics_alone,
    play_production,
)
from logtriage.bench.real_results import RANKED, RECORDED_POLICIES
from logtriage.bench.registry import make_policy
from logtriage.production.production_policies import CEILING, ranker_policy
from logtriage.production.ranker import WEIGHTS, load_ranker, save_ranker, train_ranker

ROOT = Path(__file__).resolve().parents[1]
RUNS, RESULTS = ROOT / "runs" / "production", ROOT / "results" / "production"
SEEDS, STEPS = range(5), 1000
SHIPPED = 0  # the first seed, whatever it is worth
INCIDENTS = 500


def trained(seed: int) -> Path:
    """The weights of a seed, which is trained if it is not there: 4 minutes on an idle core."""
    path = RUNS / f"ranker-{seed}.npz"
    if not path.exists():
        with tqdm(total=STEPS, desc=f"ranker, seed {seed}") as bar:
            ranker = train_ranker(seed, STEPS, log=lambda step, loss: bar.update())
        path.parent.mkdir(parents=True, exist_ok=True)
        save_ranker(ranker, path)
    return path


def main() -> None:
    """Train what is missing, play, and write tables and figure."""
    weights = [trained(seed) for seed in SEEDS]
    shutil.copy(RUNS / f"ranker-{SHIPPED}.npz", WEIGHTS)
    frames = [
        play_production(make_policy(name, known=RECORDED_POLICIES), INCIDENTS)
        for name in (*RANKED, CEILING)
    ]
    frames += [
        play_production(ranker_policy(path), INCIDENTS).assign(seed=seed)
        for seed, path in zip(SEEDS, weights, strict=True)
    ]
    pd.concat(frames).to_parquet(RESULTS / "episodes.parquet", index=False)
    rankers = [load_ranker(path) for path in weights]
    sets = [conformal(one).assign(seed=seed) for seed, one in zip(SEEDS, rankers, strict=True)]
    pd.concat(sets).to_csv(RESULTS / "conformal.csv", index=False)
    metrics_alone(rankers[SHIPPED]).to_csv(RESULTS / "metrics_alone.csv", index=False)
    draw_production(RESULTS)


if __name__ == "__main__":
    main()
