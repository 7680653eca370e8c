"""The notebooks, executed by papermill as a reader would, with tiny parameters."""

import json
import os
import re
from pathlib import Path

import papermill
import pytest
from made_up_sweeps import make_ladder, make_study
from PIL import Image

from logtriage.world.incidents import sample_incident
from logtriage.world.topology_file import load_topology

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TINY = {"drills": 16, "juniors": 16, "hidden": 32, "parity": 0.0, "profile": "cpu"}


def run(name, output, **parameters):
    source = NOTEBOOKS / name
    unknown = set(parameters) - set(papermill.inspect_notebook(source))
    assert not unknown, f"{name} has no parameters {unknown}"
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(NOTEBOOKS.parent), before]))
    return papermill.execute_notebook(
        source, output / name, parameters, cwd=NOTEBOOKS, progress_bar=False, kernel_name="python3"
    )


def text_of(notebook):
    return "\n".join(
        str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )


@pytest.mark.slow
def test_01_explores_on_a_call_graph_of_ones_own(tmp_path):
    shop = Path(__file__).parents[1] / "examples" / "shop.yaml"
    notebook = run(
        "01_explore_the_environment.ipynb",
        tmp_path,
        task="silent_degradation",
        index=4,
        topology=str(shop),
    )
    incident = sample_incident("silent_degradation", "train", 4, load_topology(shop))
    text = text_of(notebook)
    assert f"root: {incident.root} | remedy: {incident.remedy}" in text
    assert text.count("web > storefront accounts;") >= 2  # the graph, and the prompt
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    assert pictures >= 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebooks")


def test_02_baselines(folder):
    notebook = run(
        "02_zero_shot_baselines.ipynb", folder, folder=str(folder / "demo"), episodes=6, **TINY
    )
    text = text_of(notebook)
    assert all(
        name in text for name in ("random", "constant", "loudest", "trace", "oracle", "base")
    )


def test_03_and_04_train_and_report(folder):
    demo = folder / "demo"
    run("03_grpo_training.ipynb", folder, folder=str(demo), steps=2, incidents=2, **TINY)
    assert len((demo / "seed-0" / "metrics.jsonl").read_text().splitlines()) == 2
    run("04_learning_curves.ipynb", folder, folder=str(demo), episodes=6, curve_episodes=3)
    rows = json.loads((demo / "seed-0" / "summary.json").read_text())
    assert [row["task"] for row in rows] == [
        "single_crash",
        "cascading_failure",
        "silent_degradation",
    ]
    assert all(
        0.0 <= row["trained"][1] <= row["trained"][0] <= row["trained"][2] <= 1.0 for row in rows
    )
    for picture in ("gain.png", "learning.png", "parts.png", "strata.png"):
        with Image.open(demo / "seed-0" / picture) as image:
            shades = image.convert("L").getcolors()
        assert image.width >= 1600 and len(shades) > 20  # sharp at README width, and not blank


def test_05_shows_the_benchmark(folder):
    notebook = run("05_benchmark.ipynb", folder)
    text = text_of(notebook)
    shown = ("belief", "share_of_ceiling", "grounded", "power_of_ten", "ece", "rule")
    assert all(name in text for name in shown)
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    assert pictures == 7


def test_06_tells_which_rows_differ(tmp_path):
    skills = {"recipe": 0.6, "as good": 0.6, "ruined": 0.0}
    best, mistake = {"recipe": 0.6, "as good": 0.6}, {"recipe": 0.6, "rewards stored before": 0.3}
    notebook = run(
        "06_what_teaches.ipynb",
        tmp_path,
        study=str(make_study(tmp_path / "study", skills, incidents=12)),
        finalists=str(make_study(tmp_path / "finalists", best, seeds=4)),
        ablations=str(make_study(tmp_path / "ablations", mistake)),
    )
    text = text_of(notebook)
    assert "3 rows, 6 runs" in text and text.count("real faults dismissed") == 3
    told = text.split("verdict")[1]
    for row, verdict in (("ruined", "worse"), ("as good", "not told apart")):
        line = next(one for one in told.splitlines() if one.startswith(row))
        assert line.rstrip().endswith(verdict)
    seeds = re.findall(r"^as good +(\d) ", text, re.MULTILINE)
    assert seeds == ["2", "4", "2"]  # of the study, of the finalists, and the new ones alone
    assert re.search(r"gain -?0\.\d+ \[-0\.\d+, 0\.\d+\]", text)
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    assert pictures == 4


def test_07_shows_the_ladder(tmp_path):
    ladder = make_ladder(tmp_path / "ladder", seeds=2, incidents=6)
    notebook = run("07_scaling.ipynb", tmp_path, folder=str(ladder))
    text = text_of(notebook)
    # Figures come from the data: the sizes that were made up, and how far the card's lie beyond.
    assert "4 sizes within a factor of 34" in text and "8 runs" in text
    assert "these lie 705 and 3,223 times beyond the largest: not to be believed" in text
    assert all(row in text for row in ("0.3M", "1M", "3M", "10M", "saturating", "improvement"))
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    assert pictures == 4


def test_09_tells_a_real_case_and_shows_every_policy(tmp_path):
    results = Path(__file__).parents[1] / "results" / "real"
    chosen = {"source": "nezha-onlineboutique", "index": 0}
    text = text_of(run("09_real_incidents.ipynb", tmp_path, results=str(results), **chosen))
    assert "root: emailservice | fault: cpu_contention | score: 1" in text
    shown = (
        "commonest",
        "unexplained",
        "belief",
        "embedded, general",
        "Nezha",
        "log lines a minute",
    )
    assert all(name in text for name in shown) and "76 cases" in text
