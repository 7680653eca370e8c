"""Play policies on recorded incidents: `make real` and `make production`.

`production` trains the seeds of the ranker that runs/production lacks, puts the first one in the
package, plays 500 incidents and writes results/production. `real` plays the 76 real incidents and
writes results/real; the embedded agents and the rankers play if training has left them in runs/.
Published rows of policies that do not play stay; the code that played those of `belief`, of the
rules that are gone and of `ceiling` is in commits 264b8c9, fa0cb51 and fd8ccaf.
"""

import shutil
from pathlib import Path

import pandas as pd
import typer
from tables import RESULTS, ROOT, TRACKS
from tqdm import tqdm

from logtriage.registry import make_policy
from triagelab.bench.recorded_results import (
    RANKED,
    RECORDED_POLICIES,
    draw_production,
    draw_real,
    play_cases,
    play_production,
    reads,
)
from triagelab.bench.runs import settings_of
from triagelab.language_models.loading import load_agent
from triagelab.real.cases import SOURCES
from triagelab.realistic.production_policies import CEILING, ranker_policy
from triagelab.realistic.ranker import WEIGHTS, save_ranker, train_ranker

RUNS = ROOT / "runs"
SEEDS, STEPS, INCIDENTS = 5, 1000, 500
SCRIPTED = (*RANKED, "loudest", "trace", "novice")
app = typer.Typer()


def trained(seed: int) -> Path:
    """The file of a seed's weights; if it is missing, train it, in 4 minutes on an idle core."""
    path = RUNS / "production" / f"ranker-{seed}.npz"
    if not path.exists():
        with tqdm(total=STEPS, desc=f"ranker, seed {seed}") as bar:
            ranker = train_ranker(seed, STEPS, log=lambda step, loss: bar.update())
        path.parent.mkdir(parents=True, exist_ok=True)
        save_ranker(ranker, path)
    return path


@app.command()
def production() -> None:
    """Train what is missing, play `production`, and write results/production."""
    weights = [trained(seed) for seed in range(SEEDS)]
    shutil.copy(weights[0], WEIGHTS)  # however well it does
    frames = [
        play_production(make_policy(name, known=RECORDED_POLICIES), INCIDENTS) for name in RANKED
    ]
    frames += [
        play_production(ranker_policy(path), INCIDENTS).assign(seed=seed)
        for seed, path in enumerate(weights)
    ]
    path = RESULTS / "production" / "episodes.parquet"
    published = pd.read_parquet(path)
    frames.append(published[published["policy"] == CEILING])
    pd.concat(frames).to_parquet(path, index=False)
    draw_production(RESULTS / "production")


def play_scripted() -> pd.DataFrame:
    """Play all cases by `SCRIPTED`, but no rule on a source that lacks what it reads."""
    frames = [
        play_cases(make_policy(name, known=RECORDED_POLICIES), source)
        for name in SCRIPTED
        for source in SOURCES
        if reads(name, source)
    ]
    return pd.concat(frames, ignore_index=True)


@app.command()
def real() -> None:
    """Play the real incidents, and write results/real."""
    frames = [play_scripted()]
    for track, called in TRACKS.items():
        run = RUNS / track / "seed-1"
        if (run / "model").is_dir():
            constrained = settings_of(run).get("constrained", False)
            agent = load_agent(run / "model", constrained)
            agent.name = f"embedded: {called}"
            frames += [play_cases(agent, source) for source in SOURCES]
    for seed, path in enumerate(sorted((RUNS / "production").glob("ranker-*.npz"))):
        ranker = ranker_policy(path)
        frames += [play_cases(ranker, source).assign(seed=seed) for source in SOURCES]
    played = pd.concat(frames)
    published = pd.read_parquet(RESULTS / "real" / "cases.parquet")
    stays = published[~published["policy"].isin(set(played["policy"]))]
    print(f"published rows stay of: {', '.join(stays['policy'].unique())}")
    frame = pd.concat([played, stays], ignore_index=True)
    frame.to_parquet(RESULTS / "real" / "cases.parquet", index=False)
    draw_real(RESULTS / "real")


if __name__ == "__main__":
    app()
