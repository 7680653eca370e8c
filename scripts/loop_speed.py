"""Training steps per second of our loop beside TRL's own, in alternating turns: `make loop-speed`.

Both train the same base model on the same incidents from the same seed, so what they sample, learn
and score is comparable, and is printed beside the seconds.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from logtriage.train.grpo import train
from logtriage.train.presets import make_config

ROOT = Path(__file__).resolve().parents[1]
LOOPS = {"trl": {"micro_batches": 8}, "kept": {"micro_batches": 1}}  # each as it is fastest
INCIDENTS = 16  # of 8 episodes: enough for either loop to have something to share


def main(
    model: Annotated[Path, typer.Option(help="Base model.")] = ROOT / "runs" / "novice" / "base",
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps a turn.")] = 4,
    turns: Annotated[int, typer.Option(min=1, help="Turns of each loop.")] = 3,
) -> None:
    """Print seconds a step of both loops, their ratio in each turn, and the mean rewards."""
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            seconds, rewards = {}, {}
            for loop, settings in reversed(LOOPS.items()) if turn % 2 else LOOPS.items():
                config = make_config(
                    "mini",
                    model=str(model),
                    steps=steps,
                    incidents=INCIDENTS,
                    seed=turn,
                    loop=loop,
                    credit="episode",
                    **settings,
                )
                run = Path(folder) / f"{loop}-{turn}"
                train(config, run, progress=False)
                rows = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
                seconds[loop] = statistics.mean(row["step_time"] for row in rows)
                rewards[loop] = statistics.mean(row["reward"] for row in rows)
            ratios.append(seconds["trl"] / seconds["kept"])
            for loop in LOOPS:
                print(
                    f"turn {turn}  {loop:4}  {seconds[loop]:6.2f} s a step, "
                    f"mean reward {rewards[loop]:.3f}"
                )
            print(f"turn {turn}  ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    typer.run(main)
