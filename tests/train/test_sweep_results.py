"""A sweep of real training, tiny, from its file to its figures."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import fsspec
import pandas as pd
import pytest
import yaml
from PIL import Image
from test_notebooks import NOTEBOOKS, TINY

from logtriage.train import points
from logtriage.train.sweep_results import summarise_sweep
from logtriage.train.sweeps import load_sweep, states


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two rows of one seed, from one base, finished; copied to a store, too."""
    folder = tmp_path_factory.mktemp("sweep")
    base = {"base": str(folder / "base"), **TINY}
    asked = {
        "about": "Is one scalar enough?",
        "notebook": str(NOTEBOOKS / "03_grpo_training.ipynb"),
        "parameters": {**base, "steps": 2, "incidents": 2, "held_out": 3, "split": "train"},
        "rows": {"recipe": {}, "one scalar": {"changes": {"credit": "episode", "group": 2}}},
        "against": "recipe",
        "seeds": [0],
    }
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    sweep = load_sweep(path, folder / "out", "memory://published")
    for point in sweep.points:
        assert points.execute(point) == "finished"
    return sweep


@pytest.mark.slow
def test_what_a_sweep_comes_to(sweep):
    files = {path.name: path for path in summarise_sweep(sweep)}
    record = json.loads(files["sweep.json"].read_text())
    assert record["points"] == 2 and record["rows"]["one scalar"]["changes"]["group"] == 2
    asked = f"{sweep.folder.parent.name}/tiny.yaml --folder {sweep.folder}"
    assert record["command"] == f"python -m logtriage sweep {asked}"
    summary = pd.read_parquet(files["summary.parquet"])
    assert set(summary["row"]) == {"recipe", "one scalar"} and "all" in set(summary["task"])
    for point in sweep.points:
        evaluation = pd.read_parquet(point.folder / "evaluation.parquet")
        assert set(evaluation["split"]) == {"train"}
        trained = evaluation[evaluation.policy == "trained"].groupby("task")["score"].mean()
        told = summary[summary.row == point.row].set_index("task")["trained"]
        assert told[trained.index].to_numpy() == pytest.approx(trained.to_numpy(), abs=1e-6)
    assert told["all"] == pytest.approx(trained.mean(), abs=1e-6)
    costs = pd.read_parquet(files["points.parquet"]).set_index("row")
    assert dict(costs["episodes"]) == {"recipe": 2 * 2 * 8, "one scalar": 2 * 2 * 2}
    assert (costs[["parameters", "cpu_seconds", "base_cpu_seconds"]] > 0).all().all()
    for name in ("learning.png", "seeds.png"):
        with Image.open(files[name]) as image:
            assert image.width >= 1600


@pytest.mark.slow
def test_a_sweep_is_summarised_from_a_store_alone(sweep, tmp_path):
    here = {path.name: path for path in summarise_sweep(sweep)}
    elsewhere = load_sweep(sweep_file(sweep), tmp_path / "out", "memory://published")
    (tmp_path / "out").mkdir()
    assert all(points.is_finished(point) for point in elsewhere.points)
    there = {path.name: path for path in summarise_sweep(elsewhere)}
    for name in ("episodes.parquet", "summary.parquet"):
        pd.testing.assert_frame_equal(pd.read_parquet(here[name]), pd.read_parquet(there[name]))
    assert fsspec.filesystem("memory").exists("/published/tiny/recipe/seed-0/evaluation.parquet")


@pytest.mark.slow
def test_a_published_sweep_is_extended_by_what_is_new_alone(sweep, tmp_path):
    asked = yaml.safe_load(sweep_file(sweep).read_text())
    asked["rows"].pop("one scalar")
    first = tmp_path / "first.yaml"
    first.write_text(yaml.safe_dump(asked))
    published = load_sweep(first, sweep.folder).summary
    summarise_sweep(load_sweep(first, sweep.folder))
    beside = sweep.folder.with_name("more")  # from where the base is found, too
    more = load_sweep(sweep_file(sweep), beside, published=published)
    assert [one.state for one in states(more)] == ["published", "waiting"]
    shutil.copytree(sweep.points[1].folder, more.points[1].folder)  # instead of running it
    files = {path.name: path for path in summarise_sweep(more)}
    whole = {path.name: path for path in summarise_sweep(sweep)}
    for name in ("summary.parquet", "points.parquet"):
        pd.testing.assert_frame_equal(pd.read_parquet(files[name]), pd.read_parquet(whole[name]))
    asked["parameters"]["steps"] = 3  # no longer what was published
    first.write_text(yaml.safe_dump(asked))
    changed = load_sweep(first, tmp_path / "out", published=published)
    assert [one.state for one in states(changed)] == ["waiting"]
    with pytest.raises(ValueError, match=r"cannot read .*sweep\.json, of a published sweep"):
        load_sweep(first, tmp_path / "out", published=tmp_path)


@pytest.mark.slow
def test_points_that_are_not_finished_have_no_summary(sweep, tmp_path):
    some = load_sweep(sweep_file(sweep), tmp_path / "out")
    (tmp_path / "out").mkdir()
    assert summarise_sweep(some) == []  # and nothing to summarise is not an error
    some.points[0].folder.mkdir(parents=True)
    (some.points[0].folder / "evaluation.parquet").touch()
    with pytest.raises(FileNotFoundError, match=r"one scalar/seed-0 have no evaluation\.parquet"):
        summarise_sweep(some)


def test_results_are_read_without_torch():
    # Which would take three times as long, on a machine that trains nothing.
    code = "import sys, logtriage.train.sweep_results; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def sweep_file(sweep):
    return sweep.folder.parent / "tiny.yaml"
