"""Every command, once, as a user types it: the console script, in a folder elsewhere."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import first_answer, free_port

import logtriage
import triagelab

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = Path(sys.executable).with_name("logtriage")
# A run of GRPO that takes seconds.
TINY = ["--set", "incidents=2", "--set", "group=2", "--set", "steps=1", "--set", "warmup=0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("user")


def run(folder, *words, status=0):
    """Run the program there; returns what it printed."""
    command = [str(PROGRAM), *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_packages_are_installed_and_not_those_of_the_checkout():
    if os.environ.get("PYTHONSAFEPATH"):  # as `make test-notebooks` runs it
        for package in (logtriage, triagelab):
            assert "site-packages" in package.__file__


def test_policies_are_played_verified_and_watched(folder):
    few = ("--episodes", 2, "--trajectories", "trace.jsonl")
    assert "cascading_failure" in run(folder, "evaluate", "--policy", "trace", *few)
    assert "6 MATCH" in run(folder, "verify", "trace.jsonl")
    assert "petshop" in run(folder, "evaluate", "--task", "real", "--split", "petshop")
    assert "score" in run(folder, "watch", "trace", "--beside", "loudest", "--pause", 0)


def test_incidents_are_exported_and_opened_over_mcp(folder):
    run(folder, "export-harbor", "tasks", "--episodes", 1)
    assert len(list((folder / "tasks").iterdir())) == 3
    done = subprocess.run([str(PROGRAM), "mcp"], cwd=folder, input=b"", capture_output=True)
    assert done.returncode == 0


def test_a_log_is_read(folder):
    assert run(folder, "triage", EXAMPLES / "inventory-pool.ndjson").startswith("inventoryservice")
    printed = run(folder, "triage", EXAMPLES / "train-ticket.log", "--json", status=3)
    assert json.loads(printed)["root"] == ""


def test_a_model_is_trained_evaluated_and_published(folder):
    shutil.copytree(Path(triagelab.__file__).parent / "agent" / "base", folder / "built")
    run(folder, "train", "run", "--preset", "novice", "--model", "built", *TINY)
    run(folder, "evaluate", "--run", "run", "--episodes", 2)
    run(folder, "publish-model", "run", "you/agent", "--dry-run")
    assert (folder / "run" / "hub" / "README.md").exists()
    printed = run(folder, "evaluate", "--model", "run/model", "--episodes", 2)
    assert "run/model" in printed
    run(folder, "triage", EXAMPLES / "inventory-pool.ndjson", "--model", "run/model")


def test_a_sweep_is_planned_and_a_base_needs_a_model(folder):
    sweep = EXAMPLES.parent / "sweeps" / "seeds.yaml"
    assert "novice" in run(folder, "sweep", sweep, "--dry-run", "--folder", "sweep")
    run(folder, "build-base", "new", "--expert", "nowhere", status=2)


def test_a_server_answers(folder):
    port = free_port()
    command = [str(PROGRAM), "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as server:
        asked = {"task": "real", "split": "petshop", "index": 0}
        page = first_answer(f"http://127.0.0.1:{port}/web", server, params=asked)
        server.send_signal(signal.SIGINT)
    assert page.status_code == 200 and "root cause" in page.text
