"""Play policies on the 76 real incidents, and write results/real: `make real`.

The embedded agents and the seeds of the ranker play where training left them. Rows of a policy that
does not play stay as they were published; those of `belief` and of the rules that are gone were
played by commits 264b8c9 and fa0cb51.
"""

from pathlib import Path

import pandas as pd
from tables import TRACKS

from logtriage.bench.log_agent import load_agent
from logtriage.bench.real_results import RANKED, RECORDED_POLICIES, draw_real, play_cases, reads
from logtriage.bench.registry import make_policy
from logtriage.bench.runs import record_of
from logtriage.production.production_policies import ranker_policy
from logtriage.real.cases import SOURCES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "real"
RANKERS = sorted((ROOT / "runs" / "production").glob("ranker-*.npz"))  # of several seeds
SCRIPTED = (*RANKED, "loudest", "trace", "novice")


def play_scripted() -> pd.DataFrame:
    """All cases by `SCRIPTED`; a rule is left out on a source that lacks what it reads."""
    frames = [
        play_cases(make_policy(name, known=RECORDED_POLICIES), source)
        for name in SCRIPTED
        for source in SOURCES
        if reads(name, source)
    ]
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    """Play, and write everything under results/real."""
    frames = [play_scripted()]
    for track, called in TRACKS.items():
        folder = ROOT / "runs" / track / "seed-1" / "model"
        if folder.is_dir():
            settings = record_of(folder.parent)["settings"]
            agent = load_agent(folder, settings.get("constrained", False))
            agent.name = f"embedded: {called}"
            frames += [play_cases(agent, source) for source in SOURCES]
    for seed, path in enumerate(RANKERS):
        ranker = ranker_policy(path)
        frames += [play_cases(ranker, source).assign(seed=seed) for source in SOURCES]
    played = pd.concat(frames)
    published = pd.read_parquet(RESULTS / "cases.parquet")
    stays = published[~published["policy"].isin(set(played["policy"]))]
    print(f"published rows stay of: {', '.join(stays['policy'].unique())}")
    frame = pd.concat([played, stays], ignore_index=True)
    frame.to_parquet(RESULTS / "cases.parquet", index=False)
    draw_real(RESULTS)


if __name__ == "__main__":
    main()
