"""Sweeps that nobody has trained: run folders made from published ones, for testing their
analysis.
"""

from triagelab.bench.published import read, seeds_of

EPISODES_A_STEP = 64
POLICIES = ("base", "trained", "loudest", "belief")


def make_points(folder, skills, seeds=3, incidents=12, steps=30):
    """Run folders of a sweep, as `gather` takes them. `skills`: row to what its trained policy
    keeps of the published scores, 0 to 1; `incidents` of each task.
    """
    points = []
    for row, skill in skills.items():
        for seed, published in zip(range(seeds), seeds_of("novice"), strict=False):
            run = folder / row / f"seed-{seed}"
            run.mkdir(parents=True)
            training = read(published / "episodes.parquet")
            training = training[training["step"] <= steps]
            training.to_json(run / "episodes.jsonl", orient="records", lines=True)
            played = read(published / "evaluation.parquet")
            played = played[played["policy"].isin(POLICIES) & (played["index"] < incidents)]
            kept = played["score"].where(played["policy"] != "trained", skill * played["score"])
            played.assign(score=kept).to_parquet(run / "evaluation.parquet", index=False)
            points.append((row, seed, run))
    return points
