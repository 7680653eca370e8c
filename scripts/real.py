"""Play policies on the 76 real incidents, and write results/real: `make real`.

The embedded agents play where training left their folders. Rows of a policy that does not play stay
as they were published; those of `belief` and of the rules that are gone were played by commit
264b8c9.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from logtriage.bench.log_agent import load_agent
from logtriage.bench.real_results import play_cases, play_scripted, write_report
from logtriage.real.cases import SOURCES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "real"
AGENTS = {  # name in the table, and where training left it
    "embedded: novice, then GRPO": ROOT / "runs" / "novice" / "seed-0" / "model",
    "embedded: general": ROOT / "runs" / "general" / "seed-0" / "model",
}


def main() -> None:
    """Play, and write everything under results/real."""
    frames = [play_scripted()]
    for name, folder in AGENTS.items():
        if folder.is_dir():
            agent = load_agent(folder)
            agent.name = name
            frames += [play_cases(agent, source) for source in SOURCES]
    played = pd.concat(frames)
    published = pd.read_parquet(RESULTS / "cases.parquet")
    stays = published[~published["policy"].isin(set(played["policy"]))]
    print(f"published rows stay of: {', '.join(stays['policy'].unique())}")
    write_report(pd.concat([played, stays], ignore_index=True), RESULTS)


if __name__ == "__main__":
    main()
