"""Make what is in results/, and write it into all pages; `make help` says how long each takes.

`publish` adds finished runs of `runs/`, and plays what a sweep does not (other splits, checkpoints,
audit). `benchmark` plays every script. `real` plays the 76 real incidents; the
embedded agents and the rankers join if training has left them in `runs/`, and published rows of
policies that do not play stay. (Commits 264b8c9, fa0cb51, fd8ccaf and 77b4e29 have the code that
played `belief`, the rules that are gone, and `ceiling`.) `production` trains the seeds of the
ranker that `runs/` lacks, puts the first one in the package, and plays 500 incidents. `smollm2`
plays the language model before and after each stage of its learning. All end with `pages`.
"""

import shutil
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from tqdm import tqdm

from logtriage.registry import make_policy
from triagelab.bench.benchmark import make_report
from triagelab.bench.plots import plot_checkpoints, plot_strata
from triagelab.bench.published import RESULTS, ROOT, TRACKS, collect, played_in
from triagelab.bench.recorded_results import RANKED, RECORDED_POLICIES, play_cases, play_rules
from triagelab.bench.results_pages import write_pages
from triagelab.bench.runs import settings_of
from triagelab.bench.smollm2_results import plot_splits, plot_stages
from triagelab.bench.smollm2_stages import (
    FOLDER,
    average_seeds,
    play_stages,
    publish_adapters,
    record_stages,
)
from triagelab.language_models.loading import load_agent
from triagelab.language_models.smollm2 import SMOLLM2
from triagelab.real.cases import SOURCES
from triagelab.realistic.production_episode import PRODUCTION
from triagelab.realistic.production_policies import RankerPolicy
from triagelab.realistic.ranker import WEIGHTS, save_ranker, train_ranker

RUNS = ROOT / "runs"
SEEDS, STEPS, INCIDENTS = 5, 1000, 500  # of the ranker
app = typer.Typer()


@app.command()
def pages() -> None:
    """Draw figures again and write all pages, without playing an episode."""
    evaluations = played_in("novice", "evaluation")
    histories = played_in("novice", "episodes"), played_in("novice", "checkpoints")
    plot_checkpoints(*histories, evaluations).save(RESULTS / "novice" / "learning.png")
    plot_strata(evaluations).save(RESULTS / "novice" / "strata.png")
    plot_stages().save(FOLDER / "stages.png")
    plot_splits().save(FOLDER / "splits.png")
    write_pages()


@app.command()
def publish(runs: Annotated[Path, typer.Option(help="Where the runs are.")] = RUNS) -> None:
    """Publish finished runs."""
    collect(runs)
    pages()


@app.command()
def benchmark(incidents: int = 500, processes: int = 2) -> None:
    """Play every script on all tasks and splits."""
    make_report(RESULTS / "benchmark", incidents, processes)
    pages()


def trained(seed: int) -> Path:
    """The file of a ranker's weights; if it is missing, train it, in 4 minutes on an idle core."""
    path = RUNS / "production" / f"ranker-{seed}.npz"
    if not path.exists():
        with tqdm(total=STEPS, desc=f"ranker, seed {seed}") as bar:
            ranker = train_ranker(seed, STEPS, log=lambda step, loss: bar.update())
        path.parent.mkdir(parents=True, exist_ok=True)
        save_ranker(ranker, path)
    return path


def publish_rows(played: pd.DataFrame, path: Path) -> None:
    """Write these rows to a file, in place of those of the same policies."""
    published = pd.read_parquet(path)
    stays = published[~published["policy"].isin(set(played["policy"]))]
    print(f"published rows stay of: {', '.join(stays['policy'].unique())}")
    pd.concat([played, stays], ignore_index=True).to_parquet(path, index=False)


@app.command()
def production() -> None:
    """Train rankers, play `production`, and then the real incidents."""
    weights = [trained(seed) for seed in range(SEEDS)]
    shutil.copy(weights[0], WEIGHTS)  # however well it does
    frames = [
        play_cases(make_policy(name, known=RECORDED_POLICIES), "test", PRODUCTION, INCIDENTS)
        for name in RANKED
    ]
    frames += [
        play_cases(RankerPolicy(path), "test", PRODUCTION, INCIDENTS).assign(seed=seed)
        for seed, path in enumerate(weights)
    ]
    publish_rows(pd.concat(frames), RESULTS / "production" / "episodes.parquet")
    real()


@app.command()
def smollm2(incidents: int = 100, few: int = 30, sampled: int = 60, new: int = 30) -> None:
    """Publish SmolLM2's adapters, and play each stage on incidents of each task of `test`:
    `few` where no grammar holds it or it samples, `sampled` where seeds and their average sample.
    Some play `new` of each other split, too.
    """
    average_seeds(RUNS / SMOLLM2)
    publish_adapters(RUNS / SMOLLM2)
    play_stages(RUNS / SMOLLM2, incidents, few, sampled, new)
    record_stages()
    pages()


@app.command()
def real() -> None:
    """Play the real incidents."""
    frames = [play_rules()]
    for track, called in TRACKS.items():
        run = RUNS / track / "seed-1"
        if (run / "model").is_dir():
            agent = load_agent(run / "model", settings_of(run).get("constrained", False))
            agent.name = f"embedded: {called}"
            frames += [play_cases(agent, source) for source in SOURCES]
    for seed, path in enumerate(sorted((RUNS / "production").glob("ranker-*.npz"))):
        ranker = RankerPolicy(path)
        frames += [play_cases(ranker, source).assign(seed=seed) for source in SOURCES]
    publish_rows(pd.concat(frames), RESULTS / "real" / "cases.parquet")
    pages()


if __name__ == "__main__":
    app()
