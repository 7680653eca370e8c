"""What each widened dial is worth: rankers that learned where one dial was narrow.

    python study/production/ablations.py all:0 band:0 ...   # writes runs/ablations/NAME-SEED.npz
    python study/production/ablations.py play               # results/production/ablations.csv

`no_graph` is the ranker without messages along calls.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from logtriage.bench.production_results import _simulated
from logtriage.bench.real_results import play_cases
from logtriage.production.dials import USUAL
from logtriage.production.production_policies import RankerPolicy
from logtriage.production.ranker import load_ranker, save_ranker
from logtriage.production.ranker_training import train_ranker
from logtriage.real.cases import SOURCES

ROOT = Path(__file__).resolve().parents[2]
RUNS, RESULTS = ROOT / "runs" / "ablations", ROOT / "results" / "production"
STEPS = 400
NARROW = {
    "all": {},
    "no_graph": {},
    "shared": {"shared": (0.0, 0.0)},
    "proxies_unused": {"proxies": (0.0, 0.0), "unused": (0.0, 0.0)},
    "band": {"band": (0.14, 0.0)},
    "quiet": {
        "drift": (0.02, 0.05),
        "shifts": (0.0, 0.0),
        "spikes": (0.0, 0.0),
        "failing": (0.0, 0.0),
    },
    "missing": {"missing": (0.0, 0.0), "dark": (0.0, 0.0)},
    "small": {"services": (7, 10)},
    "errors": {"swallowed": 0.0, "passed_on": (1.0, 1.0)},
    "load": {"load": (0.0, 0.0), "correlated": (0.0, 0.0)},
}


def train(name: str, seed: int) -> None:
    path = RUNS / f"{name}-{seed}.npz"
    if not path.exists():
        rounds = 0 if name == "no_graph" else 3
        ranker = train_ranker(seed, STEPS, replace(USUAL, **NARROW[name]), rounds)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_ranker(ranker, path)
        print(path, flush=True)


def play() -> None:
    rows = []
    for path in sorted(RUNS.glob("*.npz")):
        name, _, seed = path.stem.rpartition("-")
        ranker = load_ranker(path)
        policy = RankerPolicy(ranker)
        simulated = [truth == chance.max(1) for chance, truth in _simulated(ranker, "test", 16)]
        shares = {"production": np.concatenate(simulated).mean()}
        shares |= {source: play_cases(policy, source)["top1"].mean() for source in SOURCES}
        rows.append({"narrow": name, "seed": seed, **shares})
    frame = pd.DataFrame(rows)
    frame.to_csv(RESULTS / "ablations.csv", index=False)
    print(frame.groupby("narrow").mean(numeric_only=True).round(2).to_string())


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["play"]:
        play()
    for job in sys.argv[1:] if sys.argv[1:] != ["play"] else ():
        name, _, seed = job.partition(":")
        train(name, int(seed))
