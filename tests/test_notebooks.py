"""The notebooks that train, executed by papermill with tiny parameters; `make test` runs the others
as they are, by nbmake.
"""

import json
import os
from pathlib import Path

import demo
import papermill
import pytest
from PIL import Image

from logtriage.world.tasks import TASKS

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TINY = {"drills": 16, "novices": 16, "hidden": 32, "profile": "cpu"}


def run(name, output, **parameters):
    source = NOTEBOOKS / name
    unknown = set(parameters) - set(papermill.inspect_notebook(source))
    assert not unknown, f"{name} has no parameters {unknown}"
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(NOTEBOOKS.parent), before]))
    return papermill.execute_notebook(
        source, output / name, parameters, cwd=NOTEBOOKS, progress_bar=False, kernel_name="python3"
    )


@pytest.mark.slow
def test_02_baselines(tmp_path):
    notebook = run(
        "02_zero_shot_baselines.ipynb", tmp_path, folder=str(tmp_path / "run"), episodes=6, **TINY
    )
    text = str([cell.get("outputs") for cell in notebook.cells])
    assert all(name in text for name in ("random", "loudest", "trace", "oracle", "base"))


def test_03_and_04_train_and_report(tmp_path):
    folder = tmp_path / "run"
    run("03_grpo_training.ipynb", tmp_path, folder=str(folder), steps=2, incidents=2, **TINY)
    assert len((folder / "seed-1" / "metrics.jsonl").read_text().splitlines()) == 2
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
