"""Sweeps: what is refused before anything starts, and that every point is executed once, whoever
dies.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fsspec
import papermill
import psutil
import pytest
import yaml
from toy_notebook import write_toy
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.bench import runs
from logtriage.train import points
from logtriage.train.sweeps import load_sweep, run_sweep, states

ROOT = Path(__file__).parents[2]


def write_sweep(folder, **changes):
    """A sweep of the toy; what is None is left out."""
    write_toy(folder / "toy.ipynb")
    asked = {"about": "a toy", "notebook": "toy.ipynb", "seeds": [0, 1], **changes}
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump({key: one for key, one in asked.items() if one is not None}))
    return path


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"notebook": "nowhere.ipynb"}, "there is no notebook"),
        ({"notebook": None}, "notebook: Field required"),
        ({"parameters": {"sizes": 3}}, "no parameter 'sizes'; choose one of size, pause"),
        ({"parameters": {"size": "three"}}, "size must be a int, got 'three'"),
        ({"parameters": {"size": True}}, "size must be a int, got True"),
        ({"parameters": {"seed": 3}}, "seed is set by the sweep"),
        ({"parameters": {"changes": {"credits": "part"}}}, "unknown setting 'credits'"),
        ({"parameters": {"changes": {"steps": -5}}}, "steps and incidents must be >= 1"),
        ({"grid": {"size": []}}, "the grid has no value of size"),
        ({"seeds": []}, "seeds: List should have at least 1 item"),
        ({"seeds": [1, 1]}, "not all different"),
        ({"rows": {"../up": {}}}, "'../up' is no name of a row"),
        ({"rows": {"a b": {}, "a-b": {}}}, "two rows are called"),
        ({"rows": {"one": {}}, "against": "two"}, "against 'two' is no row; choose one of one"),
        ({"sedes": [1]}, "sedes: Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(tmp_path, changes, told):
    path = write_sweep(tmp_path, **changes)
    result = CliRunner().invoke(app, ["sweep", str(path), "--folder", str(tmp_path / "out")])
    assert result.exit_code == 2 and told in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "sweeps").glob("*.yaml")), ids=lambda one: one.stem)
def test_a_sweep_of_ours_can_be_run(path):
    sweep = load_sweep(path)
    assert len(sweep.points) == len(sweep.rows) * len(sweep.file.seeds)
    assert len(path.read_text().splitlines()) <= 12  # a sweep is data, to be read at a glance
    if sweep.file.parameters.get("split", "test") == "test":
        assert not sweep.file.against  # nothing is chosen on `test`


def test_rows_times_grid_times_seeds(tmp_path):
    rows = {"plain": None, "slow": {"pause": 0.1}}
    path = write_sweep(tmp_path, rows=rows, grid={"size": [1, 2]}, against="plain size=1")
    sweep = load_sweep(path, tmp_path / "out")
    assert list(sweep.rows) == ["plain size=1", "plain size=2", "slow size=1", "slow size=2"]
    assert sweep.rows["slow size=2"] == {"pause": 0.1, "size": 2}
    assert [point.seed for point in sweep.points] == [0] * 4 + [1] * 4
    assert sweep.points[3].folder == tmp_path / "out" / "slow-size=2" / "seed-0"
    result = CliRunner().invoke(
        app, ["sweep", str(path), "--folder", str(tmp_path / "out"), "--dry-run"]
    )
    assert result.exit_code == 0 and result.output.count("waiting") == 8
    assert not (tmp_path / "out").exists()


def test_a_notebook_without_a_folder_is_no_point(tmp_path):
    path = write_sweep(tmp_path)
    notebook = json.loads((tmp_path / "toy.ipynb").read_text())
    notebook["cells"][0]["source"] = "seed: int = 0\n"
    (tmp_path / "toy.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(ValueError, match="does not take folder"):
        load_sweep(path)


def the_point(tmp_path, **parameters):
    """The one point of a sweep."""
    path = write_sweep(tmp_path, seeds=[3], parameters=parameters)
    return load_sweep(path, tmp_path / "out").points[0]


def test_what_was_executed_by_hand_is_finished(tmp_path):
    point = the_point(tmp_path, size=2)
    assert not points.is_finished(point)
    point.folder.mkdir(parents=True)

    def by_hand(**parameters):
        papermill.execute_notebook(
            point.notebook, point.executed, parameters, progress_bar=False, kernel_name="python3"
        )

    folder = str(point.folder.parent)
    by_hand(folder=folder, seed=3, size=1)  # another point
    assert not points.is_finished(point)
    by_hand(folder=folder, seed=3, size=2)
    assert points.is_finished(point)
    assert points.execute(point) == "found"
    assert not points.read_ledger(tmp_path / "out")  # nothing was executed


def test_a_notebook_that_was_cut_off_is_not_finished(tmp_path):
    point = the_point(tmp_path)
    assert points.execute(point) == "finished"
    whole = json.loads(point.executed.read_text())
    point.executed.write_text(json.dumps(whole)[:-100])
    assert not points.is_finished(point)
    # papermill writes an end and calls all cells completed even when the kernel was lost
    whole["cells"][-1]["execution_count"] = None
    point.executed.write_text(json.dumps(whole))
    assert not points.is_finished(point)


def test_a_point_that_fails_keeps_its_notebook_and_tells_its_error(tmp_path):
    path = write_sweep(tmp_path, rows={"good": {}, "bad": {"fails": True}}, seeds=[0])
    out = str(tmp_path / "out")
    result = CliRunner().invoke(
        app, ["sweep", str(path), "--folder", out, "--workers", "1", "--retries", "1"]
    )
    assert result.exit_code == 1
    assert "bad/seed-0: AssertionError: as it was asked to" in result.output
    events = Counter((line["row"], line["event"]) for line in points.read_ledger(out))
    assert events["bad", "failed"] == 2  # it was tried again
    assert events["good", "finished"] == 1
    assert "as it was asked to" in (tmp_path / "out" / "bad" / "seed-0" / "toy.ipynb").read_text()
    told = CliRunner().invoke(app, ["sweep-status", str(path), "--folder", out])
    assert "2 points: 1 failed, 1 finished" in told.output and "AssertionError" in told.output


@pytest.fixture
def store():
    """A store in memory, empty."""
    memory = fsspec.filesystem("memory")
    memory.makedirs("/bucket", exist_ok=True)
    yield memory
    memory.rm("/bucket", recursive=True)


def test_results_are_copied_to_a_store_and_found_there(tmp_path, store):
    path = write_sweep(tmp_path, seeds=[0])
    (point,) = load_sweep(path, tmp_path / "here", "memory://bucket").points
    (point.folder / "checkpoint-1").mkdir(parents=True)
    assert points.execute(point) == "finished"
    copied = {Path(name).name for name in store.ls(f"/bucket/toy/{point.name}", detail=False)}
    assert copied == {"steps.jsonl", "toy.ipynb", "notebook.log"}
    (elsewhere,) = load_sweep(path, tmp_path / "elsewhere", "memory://bucket").points
    assert points.is_finished(elsewhere) and not elsewhere.folder.exists()
    assert [one.state for one in states(load_sweep(path, tmp_path / "nowhere"))] == ["waiting"]


def test_what_could_not_be_copied_is_copied_next_time(tmp_path, store, monkeypatch):
    path = write_sweep(tmp_path, seeds=[0])
    (point,) = load_sweep(path, tmp_path / "here", "memory://bucket").points

    def fail(*given):
        raise ConnectionError("no route to the store")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_file", fail)
        with pytest.raises(ConnectionError):
            points.execute(point)
    assert points.is_executed(point) and not points.is_finished(point)
    assert [
        one.error for one in states(load_sweep(path, tmp_path / "here", "memory://bucket"))
    ] == ["ConnectionError: no route to the store"]
    assert points.execute(point) == "found" and points.is_finished(point)
    steps = (point.folder / "steps.jsonl").read_text().splitlines()
    assert len(steps) == 5  # it was not executed again


def test_a_point_is_executed_by_one_process_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(points, "PATIENCE", 0.1)
    sweep = load_sweep(write_sweep(tmp_path, seeds=[0]), tmp_path / "out")
    (point,) = sweep.points
    with point.lock:
        assert [one.state for one in states(sweep)] == ["running"]
        assert points.execute(point) == "busy"
    assert [one.state for one in states(sweep)] == ["waiting"]


def test_a_spoiled_ledger_stops_nothing(tmp_path):
    sweep = load_sweep(write_sweep(tmp_path, seeds=[0]), tmp_path / "out")
    sweep.folder.mkdir()
    points.note(sweep.points[0], "began", process=1)
    with (sweep.folder / points.LEDGER).open("ab") as file:
        file.write(b'{"row": "all", "se\xff\n')
    assert [one.state for one in states(sweep)] == ["interrupted"]


def test_workers_have_a_gpu_each(monkeypatch):
    lines = ["NVIDIA A100, 81920, 8.0"] * 3
    monkeypatch.setattr(runs, "_told_gpus", lambda: lines)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert runs.visible_gpus() == ["0", "1", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-8f1c")
    assert runs.visible_gpus() == ["2", "GPU-8f1c"]
    lines.clear()
    with pytest.raises(ValueError, match="no NVIDIA GPU here; leave out --gpu"):
        runs.visible_gpus()


def test_a_point_on_a_gpu_sees_that_one_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_told_gpus", lambda: ["NVIDIA A100, 81920, 8.0"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8f1c")
    path = write_sweep(tmp_path, seeds=[0])
    with pytest.raises(ValueError, match="1 GPUs for 2 workers"):
        run_sweep(load_sweep(path, tmp_path / "out"), workers=2, gpu=True)
    assert run_sweep(load_sweep(path, tmp_path / "out"), gpu=True) == {}
    (row, *_) = map(json.loads, (tmp_path / "out" / "all" / "seed-0" / "steps.jsonl").open())
    assert row["gpu"] == "GPU-8f1c" and row["threads"] == str(len(os.sched_getaffinity(0)))


def start(*words, folder):
    """A process of ours, which says nothing."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=folder,
        env=environment,
        stdout=(folder / "out.txt").open("a"),
        stderr=subprocess.STDOUT,
    )


def wait_for(what, seconds=120):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def finished(folder):
    return [line for line in points.read_ledger(folder) if line["event"] == "finished"]


def running(folder):
    """Processes that execute points now."""
    begun = [line["process"] for line in points.read_ledger(folder) if line["event"] == "began"]
    return [psutil.Process(one) for one in begun if psutil.pid_exists(one)]


def check_once_each(folder, sweep):
    """Every point is finished, once, and none of its steps is lost or twice there."""
    counts = Counter((line["row"], line["seed"]) for line in finished(folder))
    assert counts == {(point.row, point.seed): 1 for point in sweep.points}
    for point in sweep.points:
        assert [step for step, _ in rows_of([point])[point.name]] == list(range(5))


def rows_of(some):
    """What points have written, without where it was computed."""
    return {
        point.name: [
            (row["step"], row["value"])
            for row in map(json.loads, (point.folder / "steps.jsonl").read_text().splitlines())
        ]
        for point in some
    }


@pytest.mark.slow
def test_twelve_points_survive_a_killed_worker_and_a_killed_driver(tmp_path):
    path = write_sweep(
        tmp_path, grid={"size": [1, 2, 3]}, seeds=[0, 1, 2, 3], parameters={"pause": 0.3}
    )
    out = tmp_path / "out"
    asked = ("logtriage", "sweep", path, "--workers", 2, "--folder", out)
    driver = start(*asked, folder=tmp_path / "driver")
    wait_for(lambda: len(finished(out)) >= 2 and running(out))
    victim = running(out)[0]
    victim.parent().kill()  # the Dask worker, whose point then moves
    wait_for(lambda: not victim.is_running())  # and does not go on behind its back
    before = len(finished(out))
    wait_for(lambda: len(finished(out)) >= before + 2 and running(out))
    children = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_for(lambda: not [one for one in children if one.is_running() and one.status() != "zombie"])
    assert len(finished(out)) < 12
    assert start(*asked, folder=tmp_path / "driver").wait(300) == 0
    check_once_each(out, load_sweep(path, out))


def test_workers_elsewhere_give_the_same_rows_and_one_of_them_may_die(tmp_path):
    path = write_sweep(tmp_path, grid={"size": [1, 2, 3]}, parameters={"pause": 0.2})
    out, file = tmp_path / "out", tmp_path / "scheduler.json"
    processes = [
        start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", 0,
            "--no-dashboard", "--scheduler-file", file, folder=tmp_path / "scheduler",
        )
    ]  # fmt: skip
    try:
        wait_for(file.exists)
        address = json.loads(file.read_text())["address"]
        processes += [
            start(
                "distributed.cli.dask_worker", address, "--nthreads", 1, "--no-nanny",
                "--no-dashboard", "--name", name, folder=tmp_path / name,
            )
            for name in ("one", "two")
        ]  # fmt: skip
        driver = start(
            "logtriage", "sweep", path, "--scheduler", address, "--folder", out,
            folder=tmp_path / "driver",
        )  # fmt: skip
        processes.append(driver)
        wait_for(lambda: finished(out) and running(out))
        victim = running(out)[0].parent()
        assert victim.pid in {process.pid for process in processes[1:3]}
        victim.kill()
        assert driver.wait(300) == 0
    finally:
        for process in processes:
            process.kill()
    sweep = load_sweep(path, out)
    check_once_each(out, sweep)
    homes = {line["folder"] for line in points.read_ledger(out) if line["event"] == "began"}
    assert homes == {str(tmp_path / "one"), str(tmp_path / "two")}
    # the same as what this process makes of them
    here = load_sweep(path, tmp_path / "here").points[:2]
    for point in here:
        points.execute(point)
    assert rows_of(here) == rows_of(sweep.points[:2])


@pytest.mark.slow
def test_a_point_takes_little_more_than_papermill_alone(tmp_path):
    count = 8
    path = write_sweep(tmp_path, seeds=list(range(count)))
    alone = 0.0
    for seed in range(count):
        folder = tmp_path / "alone" / f"seed-{seed}"
        folder.mkdir(parents=True)
        words = ("papermill", tmp_path / "toy.ipynb", folder / "toy.ipynb", "--no-progress-bar")
        given = ("-p", "folder", folder.parent, "-p", "seed", seed)
        began = time.monotonic()
        assert start(*words, *given, folder=tmp_path / "by-hand").wait(120) == 0
        alone += time.monotonic() - began
    out = tmp_path / "out"
    began = time.monotonic()
    asked = ("logtriage", "sweep", path, "--workers", 1, "--folder", out)
    assert start(*asked, folder=tmp_path / "driver").wait(300) == 0
    swept = time.monotonic() - began
    print(f"papermill {alone / count:.1f} s a point, the sweep {swept / count:.1f} s")
    assert (swept - alone) / count < 5.0
