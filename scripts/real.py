"""Play every policy on the 76 real incidents, and write results/real: `make real`.

The rules and the scripted policies take minutes on one core, most of them for `belief`. The
embedded agents are played where `make demo` (or a sweep) left their folders; rows of one that is
not here are kept as they were published.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from logtriage.bench.log_agent import load_agent
from logtriage.bench.real_results import play_cases, play_scripted, write_report
from logtriage.real.cases import SOURCES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "real"
AGENTS = {  # how the table calls an agent, and where training left it
    "embedded: novice, then GRPO": ROOT / "runs" / "novice" / "seed-0" / "model",
    "embedded: general": ROOT / "runs" / "general" / "seed-0" / "model",
}
AT_ONCE = 4  # openings of 3,000 tokens that the embedded agent reads at once: half a GB of memory


def play_agent(name: str, folder: Path) -> pd.DataFrame:
    """An embedded agent on all cases, greedily."""
    agent = load_agent(folder)
    agent.name = name
    return pd.concat([play_cases(agent, source) for source in SOURCES])


def main() -> None:
    """Play, and write everything under results/real."""
    frames = [play_scripted()]
    published = RESULTS / "cases.parquet"
    for name, folder in AGENTS.items():
        if folder.is_dir():
            frames.append(play_agent(name, folder))
        elif published.is_file():
            before = pd.read_parquet(published)
            frames.append(before[before["policy"] == name])
            print(f"{folder} is not here: the published rows of {name!r} stay")
    write_report(pd.concat(frames, ignore_index=True), RESULTS)


if __name__ == "__main__":
    main()
