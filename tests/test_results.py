"""Published results tell what got worse, whatever their means say."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import tables

from logtriage.bench.registry import make_policy
from logtriage.bench.rollouts import rollout
from logtriage.bench.strata import describe_falls, hidden_falls, with_truth
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).parents[1]
SETS = sorted({path.parents[1] for path in ROOT.glob("results/*/seed-*/evaluation.parquet")})


def seeds_of(folder):
    """Evaluations of a published set of runs, one a training seed: of the base, and trained."""
    frames = [pd.read_parquet(path) for path in sorted(folder.glob("seed-*/evaluation.parquet"))]
    return [[one[one.policy == name] for one in frames] for name in ("base", "trained")]


def untold(base, trained, text):
    """Falls behind a gain that a text does not name."""
    return [fall for fall in describe_falls(hidden_falls(base, trained)) if fall not in text]


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_no_published_gain_hides_what_fell(folder):
    text = "".join((ROOT / file).read_text() for file in tables.TABLES)
    assert not untold(*seeds_of(folder), text), "run `make tables`"


def test_the_demo_is_published():
    # Without it, the test above would be about nothing.
    assert ROOT / "results" / "novice" in SETS


def test_a_planted_fall_is_found():
    base = rollout(make_policy("loudest"), ["single_crash"], "test", 100, progress=False)
    trained = base.assign(score=1.0, root_cause=1.0)
    assert not untold([base], [trained], "")  # a gain, and nothing fell
    edge = with_truth(base)["root_kind"] == "edge"
    right = base.assign(root_cause=base["root_cause"].mask(edge, 1.0))
    blind = trained.assign(root_cause=trained["root_cause"].mask(edge, 0.0))
    fall = f"single crash: edge roots found 1.00 → 0.00 ({edge.sum()})"
    assert edge.sum() >= 10 and untold([right], [blind], "all is well") == [fall]
    assert untold([right] * 2, [blind] * 2, "all is well") == [fall]
    assert not untold([right], [blind], f"What got worse: {fall}.")
    # Where no gain is told, nothing is hidden behind one.
    assert not untold([right], [blind.assign(score=right["score"])], "")


def test_the_table_is_over_every_seed(tmp_path, monkeypatch):
    # Two seeds: the published one, and one that solves everything; both with a ceiling.
    results = ROOT / "results"
    shutil.copytree(results / "benchmark", tmp_path / "results" / "benchmark")
    for seed in (0, 1):
        run = tmp_path / "results" / "novice" / f"seed-{seed}"
        shutil.copytree(ROOT / "results" / "novice" / "seed-0", run)
        frame = pd.read_parquet(run / "evaluation.parquet")
        oracle, others = frame[frame.policy == "oracle"], frame[frame.policy != "belief"]
        if seed:
            others = others[others.policy != "trained"]
            others = pd.concat([others, oracle.assign(policy="trained")])
        pd.concat([others, oracle.assign(policy="belief")]).to_parquet(run / "evaluation.parquet")
    shutil.copy(results / "novice" / "base.json", tmp_path / "results" / "novice")
    own = pd.read_parquet(ROOT / "results" / "novice" / "seed-0" / "evaluation.parquet")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    text = tables.track_table("novice")
    head, _, *rows = (line.strip("| ").split(" | ") for line in text.split("\n\n")[0].splitlines())
    assert "**2 training seeds**" in text and "incidents and seeds" in text
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        means = own[own.task == cells["task"].replace(" ", "_")].groupby("policy")["score"].mean()
        trained = (means["trained"] + 1.0) / 2
        assert cells["trained"].startswith(f"{trained:.2f} [")
        assert cells["share of `belief`"] == f"{trained:.2f}"
        least = means["trained"] - means["base"]
        assert cells["least gain of a seed"] == f"{least:.2f}"


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_truth_is_that_of_the_version_that_was_played(folder):
    # `oracle` dismisses false alarms and nothing else, so it says which incidents were some.
    for path in folder.glob("seed-*/evaluation.parquet"):
        frame = with_truth(pd.read_parquet(path))
        oracle = frame[frame.policy == "oracle"]
        assert len(oracle) and ((oracle["closed_by"] == "ignore") == ~oracle["real"]).all()
        assert (oracle["severity"] == 1).all()


@pytest.mark.parametrize("policy", ["random", "loudest", "novice", "trace"])
def test_the_published_benchmark_is_of_the_policies_as_they_are(policy):
    # Each plays its incidents in order from one stream, so the first few suffice.
    published = pd.read_parquet(ROOT / "results" / "benchmark" / "episodes.parquet")
    for task in TASKS:
        played = rollout(make_policy(policy), [task], "test", 8, progress=False)
        rows = published[(published.policy == policy) & (published.task == task)]
        rows = rows[(rows.split == "test") & (rows["index"] < 8)].sort_values("index")
        assert list(rows["score"]) == pytest.approx(list(played["score"])), "run `make benchmark`"


def test_no_published_rule_without_diagnosis_beats_loudest():
    found = json.loads((ROOT / "results" / "benchmark" / "exploits.json").read_text())
    assert {row["task"] for row in found["rows"]} == set(TASKS)
    for row in found["rows"]:
        assert row["test"] < row["loudest"], row["rule"]
