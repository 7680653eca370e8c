"""The notebook for a T4, every cell but the one that installs, where there is no GPU: a cache with
the tiny base stands in for the models of the Hub, `stand_in/unsloth.py` for Unsloth, and
`stand_in/nvidia-smi` for the driver of a T4.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import papermill
import psutil
import pytest

from logtriage.policies.llm.loading import QUANTISED

ROOT = Path(__file__).parents[1]
NOTEBOOK = "08_t4_end_to_end.ipynb"
MODEL = "Qwen/Qwen2.5-3B-Instruct"
STEPS = 5


@pytest.fixture
def checkout(tiny_base, tmp_path, monkeypatch):
    """What of a checkout the notebook looks at, and what stands in for the rest."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    for name in ("requirements.txt", "requirements-gpu.txt"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copyfile(ROOT / "notebooks" / NOTEBOOK, notebooks / NOTEBOOK)
    for model in (MODEL, QUANTISED[MODEL]):
        kept = tmp_path / "hub" / f"models--{model.replace('/', '--')}"
        shutil.copytree(tiny_base, kept / "snapshots" / "0")
        (kept / "refs").mkdir()
        (kept / "refs" / "main").write_text("0")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    stand_in = str(ROOT / "tests" / "stand_in")
    monkeypatch.setenv("PATH", stand_in + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([stand_in, str(ROOT)]))
    return notebooks


PARAMETERS = {"keep": "runs", "steps": STEPS, "episodes": 3}


def run_all(checkout, steps=STEPS):
    """*Run all*: the notebook's text, as printed."""
    executed = papermill.execute_notebook(
        checkout / NOTEBOOK,
        checkout / "executed.ipynb",
        {**PARAMETERS, "steps": steps},
        cwd=checkout,
        progress_bar=False,
        kernel_name="python3",
    )
    return "\n".join(
        str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
        for cell in executed.cells
        for output in cell.get("outputs", ())
    )


def steps_of(run):
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def test_run_all(checkout):
    run = checkout / "runs" / "recommended" / "seed-0"
    text = run_all(checkout, steps=3)
    assert "preset recommended on Tesla T4, 16 GB, no bf16" in text
    assert "at step 2 or beyond" in text and "all versions are as they should be" in text
    assert "2 of 3" in text  # steps done, in the smoke cell
    assert steps_of(run) == [1, 2, 3]
    assert all(word in text for word in ("root cause:", " s each", "truth:"))
    card = (run / "hub" / "README.md").read_text()
    assert f"base_model: {MODEL}" in card and "a LoRA adapter" in card


@pytest.mark.slow
def test_a_machine_that_is_gone_costs_two_steps_at_most(checkout):
    run = checkout / "runs" / "recommended" / "seed-0"
    command = [sys.executable, "-m", "papermill", NOTEBOOK, "executed.ipynb"]
    for name, value in PARAMETERS.items():
        command += ["-p", name, str(value)]
    machine = psutil.Popen(command, cwd=checkout)
    until = time.monotonic() + 300
    while not (run / "metrics.jsonl").exists() or steps_of(run)[-1:] < [3]:
        assert machine.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    kernels = machine.children()
    trainers = [child for kernel in kernels for child in kernel.children(recursive=True)]
    assert any("logtriage" in one.cmdline() for one in trainers)
    for process in (machine, *kernels):  # not the trainer: it must die with its kernel
        process.send_signal(signal.SIGKILL)
    machine.wait()
    _, alive = psutil.wait_procs(trainers, timeout=10)
    assert not alive
    done = steps_of(run)[-1]
    kept = max(int(path.name.split("-")[1]) for path in run.glob("checkpoint-*"))
    assert done - kept <= 2 and not (run / "model").exists()
    before = (run / "episodes.jsonl").read_text()
    run_all(checkout)
    assert steps_of(run) == list(range(1, STEPS + 1))
    first = [line for line in before.splitlines() if json.loads(line)["step"] <= kept]
    assert (run / "episodes.jsonl").read_text().splitlines()[: len(first)] == first
    written = {name: (run / name).read_bytes() for name in ("metrics.jsonl", "evaluation.parquet")}
    assert "root cause:" in run_all(checkout)  # and once more: nothing is trained or played again
    assert {name: (run / name).read_bytes() for name in written} == written
