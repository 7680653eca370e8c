"""What each widened dial is worth: rankers that learned where one thing is narrow.

    python study/ablations.py train all:0 band:0 ...   # runs/ablations/NAME-SEED.npz
    python study/ablations.py play OTHER               # results/production/ablations.csv

OTHER is a folder with the other half of the public cases, as `study/other_half.py` of commit
`7b5faa1` converts them. `no_graph` is the ranker without messages along calls; `delay` has the
delays of the second version, which are shorter than real ones.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from logtriage.bench.recorded_results import play_cases
from logtriage.production import dials, generator, ranker
from logtriage.production.generator import Block
from logtriage.production.mesh import BLOCK
from logtriage.production.production_policies import ranker_policy
from logtriage.real import cases

ROOT = Path(__file__).resolve().parents[1]
RUNS, RESULTS = ROOT / "runs" / "ablations", ROOT / "results" / "production"
STEPS, PLAYED = 400, 512
NONE = (0.0, 0.0)
NARROW = {
    "all": {},
    "no_graph": {},
    "shared": {"SHARED": NONE},
    "proxies_unused": {"PROXIES": NONE, "UNUSED": NONE},
    "small": {"SERVICES": (7, 10)},
    "band": {"P95_BAND": (0.14, 0.0)},
    "quiet": {
        "DRIFT": (0.02, 0.05),
        "SHIFTS": NONE,
        "SPIKES": NONE,
        "FAILING": NONE,
        "FAR_CALLS": NONE,
    },
    "waits": {"SERVED_NOISE": (0.03, 0.3), "NETWORK_NOISE": (0.06, 0.3), "FAR_CALLS": NONE},
    "missing": {"MISSING": NONE, "DARK": NONE, "UNTIMED": NONE},
    "errors": {"SWALLOWED": 0.0, "PASSED_ON": (1.0, 1.0)},
    "load": {"LOAD": NONE, "CORRELATED": NONE},
    "delay": {},
}


def narrow(name: str) -> None:
    for dial, value in NARROW[name].items():
        assert hasattr(dials, dial)
        setattr(dials, dial, value)
    if name == "quiet":
        generator.BURST = 0.0
    if name == "delay":
        lowest, width = dials._LOGS["delay"]
        known = np.isfinite(lowest)
        lowest[known], width[known] = np.log(20.0), np.log(20.0)


def without_messages(network: torch.nn.Module, arguments: tuple) -> tuple:
    numbers, calls = arguments
    return numbers, torch.zeros_like(calls)


def train(name: str, seed: int) -> None:
    narrow(name)
    path = RUNS / f"{name}-{seed}.npz"
    if name == "no_graph":
        torch.nn.modules.module.register_module_forward_pre_hook(
            lambda module, inputs: (
                without_messages(module, inputs) if isinstance(module, ranker.Ranker) else None
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    ranker.save_ranker(ranker.train_ranker(seed, STEPS), path)
    print(path, flush=True)


def right(path: Path) -> float:
    """The share of `test`'s first incidents that a ranker gets right."""
    network, found = ranker.load_ranker(path), []
    hook = None
    if path.stem.startswith("no_graph"):
        hook = network.register_forward_pre_hook(without_messages)
    for number in range(PLAYED // BLOCK):
        block = Block("test", number)
        chance, _ = ranker.chances(network, block.shown)
        root = np.where(block.root < 0, block.shown.calls.shape[1], block.root)
        found += list(chance.argmax(1) == root)
    del hook  # stays for the real cases
    return float(np.mean(found))


def play(other: Path) -> None:
    shipped, rows = cases.FOLDER, []
    for path in sorted(RUNS.glob("*.npz")):
        name, _, seed = path.stem.rpartition("-")
        row = {"narrow": name, "seed": seed, "production": right(path)}
        for half, folder in (("", shipped), (", other half", other)):
            cases.FOLDER = folder
            cases._read.cache_clear()
            for source in cases.SOURCES:
                policy = ranker_policy(path)
                row[source + half] = play_cases(policy, source)["top1"].mean()
        rows.append(row)
    frame = pd.DataFrame(rows).round(4)
    frame.to_csv(RESULTS / "ablations.csv", index=False)
    print(frame.groupby("narrow").mean(numeric_only=True).round(2).to_string())


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "play":
        play(Path(sys.argv[2]))
    else:
        name, _, seed = sys.argv[2].partition(":")
        train(name, int(seed))
