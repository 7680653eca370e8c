"""All notebooks, executed by papermill, those that train or play much with tiny parameters."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import demo
import pandas as pd
import papermill
import pytest
from PIL import Image

from logtriage.world.tasks import TASKS
from triagelab.bench.runs import last_step

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SHORT = {"steps": 2, "incidents": 2, "profile": "cpu"}


def run(name, output, **parameters):
    source = NOTEBOOKS / name
    unknown = set(parameters) - set(papermill.inspect_notebook(source))
    assert not unknown, f"{name} has no parameters {unknown}"
    options = {"cwd": NOTEBOOKS, "progress_bar": False, "kernel_name": "python3"}
    return papermill.execute_notebook(source, output / name, parameters, **options)


def said(notebook):
    """All outputs of an executed notebook, as text."""
    return str([cell.get("outputs") for cell in notebook.cells])


@pytest.mark.parametrize("number", ["01", "05", "06", "07", "09"])
def test_those_that_show_what_there_is_run_as_they_are(number, tmp_path):
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    assert any(cell.get("outputs") for cell in run(path.name, tmp_path).cells)


def test_02_plays_the_scripts_and_the_package_s_models(tmp_path):
    text = said(run("02_zero_shot_baselines.ipynb", tmp_path, episodes=2, profile="cpu"))
    assert all(f"| {name} |" in text for name in ("random", "loudest", "trace", "base", "agent"))
    assert "500 incidents of test a task" in text  # of what is published


def test_04_alone_shows_what_is_published(tmp_path):
    text = said(run("04_learning_curves.ipynb", tmp_path, folder=str(tmp_path)))
    assert "published seeds of ../results/novice" in text
    published = json.loads((NOTEBOOKS.parent / "results/novice/seed-1/summary.json").read_text())
    assert f"{published[0]['trace']:.2f}" in text and list(tmp_path.glob("*.png")) == []
    assert "crash at auth-service" in text  # of the incident that is watched


def test_08_goes_the_whole_way_on_a_cpu(tmp_path):
    notebook = run("08_t4_end_to_end.ipynb", tmp_path, profile="cpu", folder=str(tmp_path))
    assert (tmp_path / "seed-1" / "hub" / "README.md").exists()
    assert "root cause: " in said(notebook)


@pytest.fixture
def slow_t4(tiny_base, tmp_path, monkeypatch):
    """A machine that takes itself for a T4, and is slow: the path of its clock. Hub names lead to a
    base that has learned nothing.
    """
    for name in ("Qwen/Qwen2.5-3B-Instruct", "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"):
        cached = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        shutil.copytree(tiny_base, cached / "snapshots" / "0")
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text("0")
    clock, stand_in = tmp_path / "clock", NOTEBOOKS.parent / "tests" / "stand_in"
    clock.touch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("SLOW_CLOCK", str(clock))
    monkeypatch.setenv("PATH", os.pathsep.join([str(stand_in), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, [stand_in / "slow_clock", stand_in])))
    return clock


@pytest.mark.slow
def test_08_stops_within_its_hours_on_a_slow_machine(slow_t4, tmp_path):
    began = time.monotonic()
    options = {"folder": str(tmp_path / "runs"), "batch": 6, "budget_hours": 2.5}
    options["preset"] = "recommended"
    text = said(run("08_t4_end_to_end.ipynb", tmp_path, **options))
    taken = time.monotonic() - began + slow_t4.stat().st_size
    assert taken < 2.5 * 3600
    # Cut short were the play before training, the steps, and these once more when they got slower.
    path = tmp_path / "runs" / "seed-1"
    steps, frame = last_step(path)["step"], pd.read_parquet(path / "evaluation.parquet")
    counts = frame.groupby(["policy", "task"])["index"].nunique().unstack()
    assert 2 < steps < 40 and steps < int(re.search(r"(\d+) of 40 steps fit", text)[1])
    assert counts.loc["trained"].max() <= counts.loc["base"].min() < 40
    assert f"After {steps} of 40 steps, on" in text
    rows = json.loads((path / "summary.json").read_text())
    assert {row["task"]: row["episodes"] for row in rows} == dict(counts.loc["trained"])
    card = (path / "hub" / "README.md").read_text()
    assert f"{steps} of 40 steps of " in card
    assert (path / "hub" / "gain.png").exists()


def test_03_trains(tmp_path):
    run("03_grpo_training.ipynb", tmp_path, folder=str(tmp_path), **SHORT)
    assert len((tmp_path / "seed-1" / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_04_reports_what_03_trained(tmp_path):
    folder = tmp_path / "run"
    tiny = {**SHORT, "base": "built", "drills": 16, "novices": 16, "hidden": 32}
    run("03_grpo_training.ipynb", tmp_path, folder=str(folder), **tiny)
    demo.take_published(folder / "seed-1")  # of the scripts
    few = {"episodes": 2, "split_episodes": 2, "curve_episodes": 2}
    run("04_learning_curves.ipynb", tmp_path, folder=str(folder), **few)
    rows = json.loads((folder / "seed-1" / "summary.json").read_text())
    assert [row["task"] for row in rows] == list(TASKS)
    for row in rows:
        mean, low, high = row["trained"]
        assert 0.0 <= low <= mean <= high <= 1.0
    for picture in ("gain.png", "learning.png", "strata.png"):
        with Image.open(folder / "seed-1" / picture) as image:
            shades = image.convert("L").getcolors()
        assert image.width >= 1600 and len(shades) > 20  # sharp at README width, and not blank
