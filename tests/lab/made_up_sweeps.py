"""Sweeps that nobody has trained: run folders with made-up results, for testing their analysis."""

import numpy as np
import pandas as pd

from logtriage.play.scoring import PARTS
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS

EPISODES_A_STEP = 24


def held_out(policy, skill, weights, random, hardness):
    """Rows of `evaluation.parquet`: the higher the skill, the more roots are found. `hardness` is
    of each task's incidents: (tasks, incidents).
    """
    count, incidents = hardness.size, hardness.shape[1]
    named = skill + 0.3 * random.normal(size=count) > hardness.ravel()
    score = np.clip(0.9 * named + 0.1 * random.random(count), 0, 1).round(3)
    frame = pd.DataFrame({"task": np.repeat(list(TASKS), incidents), "score": score})
    parts = dict.fromkeys(PARTS, named.astype(float))
    rest = {"cost": 0.0, "gate": 1.0, "confidence": np.nan, "seconds": 0.1, "split": "test"}
    return frame.assign(
        **parts | rest,
        index=np.tile(np.arange(incidents), len(TASKS)),
        steps=random.integers(2, 15, count),
        closed_by=np.where(named, "resolve", "ignore"),
        policy=policy,
        weights=weights,
        benchmark=BENCHMARK_VERSION,
    )


def training(skill, steps, random):
    """Rows of `episodes.jsonl`: a climb from nothing to the skill."""
    count = steps * EPISODES_A_STEP
    step = np.repeat(np.arange(1, steps + 1), EPISODES_A_STEP)
    score = skill * np.clip(step / (0.5 * steps), 0.2, 1.0) + 0.2 * random.normal(size=count)
    frame = pd.DataFrame({"step": step, "task": random.choice(list(TASKS), count), "index": step})
    parts = {part: (random.random(count) < skill).astype(float) for part in PARTS}
    rest = {"cost": 0.0, "gate": 1.0, "steps": 7, "closed_by": "resolve"}
    return frame.assign(score=np.clip(score, 0, 1), **parts, **rest)


def make_points(folder, skills, seeds=3, incidents=12, steps=30):
    """Run folders of a sweep, as `gather` takes them. `skills`: row to what its trained policy can
    do, 0 to 1; `incidents` of each task.
    """
    hardness = np.random.default_rng(0).random((len(TASKS), incidents))
    points = []
    for place, (row, skill) in enumerate(skills.items()):
        for seed in range(seeds):
            random = np.random.default_rng([place, seed])
            fixed = np.random.default_rng(2)  # the base plays as it plays
            run = folder / row / f"seed-{seed}"
            run.mkdir(parents=True)
            training(skill, steps, random).to_json(
                run / "episodes.jsonl", orient="records", lines=True
            )
            own = skill + 0.05 * random.normal()
            scripts = np.random.default_rng(1)
            pd.concat(
                [
                    held_out("base", 0.3, "base", fixed, hardness),
                    held_out("trained", own, f"{row}/{seed}", random, hardness),
                    held_out("loudest", 0.4, "", scripts, hardness),
                    held_out("belief", 1.5, "", scripts, hardness),
                ]
            ).to_parquet(run / "evaluation.parquet", index=False)
            points.append((row, seed, run))
    return points
