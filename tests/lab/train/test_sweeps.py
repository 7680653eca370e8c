"""Sweeps: what is refused before anything starts, and that every point is executed once, whoever
dies.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from helpers import run
from made_up_sweeps import make_points
from nbformat.v4 import new_code_cell, new_notebook

from triagelab.bench.sweep_tables import read_sweep, training_table
from triagelab.train import sweeps
from triagelab.train.sweeps import load_sweep, summarise_sweep

ROOT = Path(__file__).parents[3]


# A notebook that does in a second what training does in minutes: steps that are kept, to continue
# from.
PARAMETERS = """\
folder: str = ""
seed: int = 0
size: int = 1
pause: float = 0.0
fails: bool = False
"""
WORK = """\
import json, os, time
from pathlib import Path

run = Path(folder) / f"seed-{seed}"
file = run / "steps.jsonl"
done = len(file.read_text().splitlines()) if file.exists() else 0
for step in range(done, 5):
    time.sleep(pause)
    row = {"step": step, "worker": os.getppid(), "threads": os.environ.get("OMP_NUM_THREADS")}
    row["malloc"] = [name for name in os.environ if name.startswith("MALLOC_")]
    with file.open("a") as out:
        out.write(json.dumps(row) + "\\n")
assert not fails, "as it was asked to"
"""


def write_sweep(folder, last=WORK, **changes):
    """A sweep of the notebook, whose last cell is `last`."""
    cells = [
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        new_code_cell("%%never a line of this\n", metadata={"tags": ["skip-execution"]}),
        new_code_cell(last),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "toy.ipynb")
    asked = {"about": "a toy", "notebook": "toy.ipynb", "seeds": [0, 1], **changes}
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(asked))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"notebook": "nowhere.ipynb"}, "there is no notebook"),
        ({"parameters": {"sizes": 3}}, "takes no 'sizes' from a sweep; it has size, pause, fails"),
        ({"rows": {"one": {"seed": 3}}}, "takes no 'seed' from a sweep"),
        ({"seeds": [1, 1]}, "not all different"),
        ({"rows": {"../up": {}}}, "'../up' cannot name a row"),
        ({"rows": {"a b": {}, "a-b": {}}}, "rows ['a-b', 'a-b'] are not all different"),
        ({"rows": {"one": {}}, "against": "two"}, "against 'two' is no row; choose one of one"),
        ({"sedes": [1]}, "sedes: Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(tmp_path, changes, said):
    path = write_sweep(tmp_path, **changes)
    result = run("sweep", path, "--folder", tmp_path / "out", "--dry-run")
    assert result.exit_code == 2 and said in result.output
    assert not (tmp_path / "out").exists()


def test_a_sweep_is_rows_times_seeds_of_its_file(tmp_path):
    for path in (ROOT / "sweeps").glob("*.yaml"):  # ours can be run
        sweep = load_sweep(path)
        assert len(sweep.points) == len(sweep.file.rows) * len(sweep.file.seeds)
    rows = {"plain": None, "slow one": {"pause": 0.1}}
    path = write_sweep(tmp_path, rows=rows, parameters={"size": 2}, against="plain")
    sweep = load_sweep(path, tmp_path / "out")
    names = [f"{row}/seed-{seed}" for seed in (0, 1) for row in rows]
    assert [point.name for point in sweep.points] == names
    assert sweep.points[3].parameters == {"size": 2, "pause": 0.1, "seed": 1}
    assert sweep.points[3].folder == tmp_path / "out" / "slow-one" / "seed-1"
    result = run("sweep", path, "--folder", tmp_path / "out", "--dry-run")
    assert result.exit_code == 0 and result.output.count("waiting") == 4
    # YAML keeps the last of two equal keys, and a row that somebody wrote would never be run.
    path.write_text(path.read_text().replace("  plain: null\n", "  plain: null\n" * 2))
    with pytest.raises(ValueError, match="'plain', 'slow one' stands twice"):
        load_sweep(path)


def test_a_point_is_finished_when_its_process_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def point(**changes):
        path = write_sweep(tmp_path, seeds=[3], **changes)
        return load_sweep(path, tmp_path / "out").points[0]

    # papermill counts the last cell as executed even when the kernel died in it
    dying = point(last="import os; os._exit(1)")
    assert dying.state() == "waiting"
    with pytest.raises(RuntimeError, match="died"):
        sweeps.execute(dying)
    assert dying.state() == "failed"
    sweeps.execute(point())
    assert dying.state() == "finished"  # that it was continued
    steps = (dying.folder / "steps.jsonl").read_text()
    sweeps.execute(dying)  # found, and not executed again
    assert (dying.folder / "steps.jsonl").read_text() == steps
    assert point(parameters={"size": 2}).state() == "waiting"  # another point there


def test_finished_points_are_summarised(tmp_path, capsys):
    path = write_sweep(tmp_path, rows={"one": {}, "two": {"size": 2}}, against="one")
    sweep = load_sweep(path, tmp_path / "out")
    assert summarise_sweep(sweep) == []  # a notebook that plays no held-out incidents
    record = {"settings": {}, "commit": "abc", "machine": {"cores": 2}}
    for _, _, folder in make_points(tmp_path / "out", {"one": 0.4, "two": 0.7}, seeds=2):
        (folder / "config.json").write_text(json.dumps(record))
    names = {path.name for path in summarise_sweep(sweep)}
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["training", "first", "row", "one", "two"]
    assert all(float(line.split()[1]) < float(line.split()[2]) for line in said[3:])
    # Notebook 6 opens it.
    record, frame = read_sweep(tmp_path / "out" / "summary-toy")
    assert record["name"] == "toy" and [*training_table(frame).index] == ["one", "two"]
    assert names == {"episodes.parquet", "sweep.json", "seeds.png"}


def start(*words, folder):
    """A process of ours in a folder of its own."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=(folder / "out.txt").open("a"),
        stderr=subprocess.STDOUT,
    )


def wait_for(what, folder):
    """Wait until it is so; what the processes in the folder have said tells why it is not."""
    until = time.monotonic() + 120
    while not what():
        assert time.monotonic() < until, "\n".join(f.read_text() for f in folder.glob("*/out.txt"))
        time.sleep(0.05)


def steps_of(point):
    file = point.folder / "steps.jsonl"
    return [*map(json.loads, file.read_text().splitlines())] if file.exists() else []


@pytest.mark.slow
def test_every_point_is_executed_once_although_a_worker_is_killed(tmp_path):
    # Two workers: one point fails, one is slow, and the slow one's worker dies. Its point must go
    # on at the worker that is left, which has to be free first, and lose none of its steps.
    rows = {"slow": {"pause": 0.6}, "quick": {}, "bad": {"fails": True}}
    path = write_sweep(tmp_path, rows=rows, seeds=[0])
    out = tmp_path / "out"
    asked = ("logtriage", "sweep", path, "--workers", 2, "--folder", out)
    driver = start(*asked, folder=tmp_path / "driver")
    try:
        bad, quick, slow = load_sweep(path, out).points
        wait_for(lambda: len(steps_of(slow)) >= 2, tmp_path)
        psutil.Process(steps_of(slow)[0]["worker"]).kill()
        assert driver.wait(180) == 1  # since one has failed
    finally:
        driver.kill()
    said = (tmp_path / "driver" / "out.txt").read_text()
    assert "bad/seed-0: AssertionError: as it was asked to" in said
    assert [point.state() for point in (slow, quick, bad)] == ["finished", "finished", "failed"]
    for point in (slow, quick):
        assert [row["step"] for row in steps_of(point)] == [*range(5)]
    assert len(Counter(row["worker"] for row in steps_of(slow))) == 2
    states = run("sweep", path, "--folder", out, "--dry-run").output
    assert states.count("finished") == 2 and "failed  bad/seed-0" in states


@pytest.mark.slow
def test_a_killed_driver_leaves_no_worker_behind_and_is_continued(tmp_path):
    rows = {"one": {"size": 1}, "two": {"size": 2}}
    path = write_sweep(tmp_path, rows=rows, parameters={"pause": 0.3})
    asked = ("logtriage", "sweep", path, "--workers", 2, "--folder", tmp_path / "out")
    sweep = load_sweep(path, tmp_path / "out")
    driver = start(*asked, folder=tmp_path / "driver")
    wait_for(lambda: steps_of(sweep.points[0]), tmp_path)
    children = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait()

    def alive():
        return [child for child in children if child.is_running() and child.status() != "zombie"]

    wait_for(lambda: not alive(), tmp_path)
    assert start(*asked, folder=tmp_path / "driver").wait(300) == 0
    for point in sweep.points:
        assert [row["step"] for row in steps_of(point)] == [*range(5)]
        assert {row["threads"] for row in steps_of(point)} == {str(max(1, os.cpu_count() // 2))}
        assert not any(row["malloc"] for row in steps_of(point))  # Dask's own slows torch down
