"""Exported tasks, played by their own scripts in subprocesses, without a container."""

import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module

import pytest
from helpers import refusal, run

from logtriage.world.call_graph import TEAMS
from logtriage.world.tasks import TASKS


def incident(folder, tmp_path):
    """Environment variables under which `incident` plays that folder, without sudo."""
    at = tmp_path / folder.name
    (at / "bin").mkdir(parents=True)
    command = at / "bin" / "incident"
    simulator = folder / "environment" / "incident"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -I {simulator} {at}/journal "$@"\n')
    command.chmod(0o755)
    return {"PATH": f"{at}/bin:/usr/bin:/bin", "PYTHONPATH": "/nowhere", "PYTHONINSPECT": "1"}


def rewards(folder, tmp_path, script=""):
    """What the verifier reads after a shell script was run as the agent."""
    env = incident(folder, tmp_path)
    subprocess.run(["sh", "-c", script], env=env, check=True, capture_output=True)
    logs = tmp_path / folder.name
    subprocess.run(["sh", str(folder / "tests" / "test.sh"), str(logs)], env=env, check=True)
    return json.loads((logs / "reward.json").read_text())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    out = tmp_path_factory.mktemp("harbor") / "incidents"
    assert run("export-harbor", out, "--episodes", 7).exit_code == 0
    return sorted(out.iterdir())


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_right_answers_score_one_and_none_and_a_wrong_team_nothing(folders, every, tmp_path):
    def play(folder):
        solved = (folder / "solution" / "solve.sh").read_text()
        scripts = {"solved": solved, "nothing": ""}
        right = re.search(r"escalate (\w+)", solved)
        if right:  # a false alarm has no team
            team = next(team for team in TEAMS if team != right[1])
            scripts["wrong"] = solved.replace(right[0], f"escalate {team}")
        played = {
            name: rewards(folder, tmp_path / name, script) for name, script in scripts.items()
        }
        return {name: reward["reward"] for name, reward in played.items()}

    with ThreadPoolExecutor(2) as pool:
        scores = list(pool.map(play, folders[::every]))
    expected = {"solved": 1.0, "nothing": 0.0, "wrong": 0.0}
    assert all(earned.items() <= expected.items() for earned in scores)
    assert any("wrong" in earned for earned in scores)


def test_the_configuration_keeps_the_agent_from_the_truth(folders):
    for folder in folders:
        settings = tomllib.loads((folder / "task.toml").read_text())
        assert settings["task"]["name"] == f"logtriage/{folder.name}"
        assert settings["agent"]["user"] == "agent"
        assert settings["agent"]["network_mode"] == "no-network"
        assert settings["verifier"]["user"] == "root"
        command = (folder / "environment" / "bin" / "incident").read_text()
        assert settings["artifacts"][0] in command
        for text in (command, (folder / "instruction.md").read_text()):
            assert settings["metadata"]["task"] not in text
    assert len({(folder / "instruction.md").read_text() for folder in folders}) == len(folders)


def test_openenv_finds_the_tasks(folders):
    import_module("logtriage.openenv_base")  # first, so that OpenEnv comes without gradio
    from openenv.harbor.tasks import has_symlinks, resolve_task_dirs

    assert resolve_task_dirs(str(folders[0].parent)) == folders and len(folders) == 7 * len(TASKS)
    assert not has_symlinks(folders[0].parent)


def test_a_call_waits_for_the_one_before(folders, tmp_path):
    env = incident(folders[0], tmp_path)
    with (tmp_path / folders[0].name / "journal").open("a") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        command = ["incident", "escalate", "dba"]
        calls = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(3)]
        with pytest.raises(subprocess.TimeoutExpired):
            calls[0].wait(timeout=1)
    assert sorted(call.communicate()[0].split()[1] for call in calls) == [b"1", b"2", b"3"]


def test_what_cannot_be_written_is_not_answered_and_tells_nothing(folders, tmp_path):
    env = incident(folders[0], tmp_path)
    for most in (0, 5):
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
        command = ["incident", "request_more_logs", "all"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, preexec_fn=limit)
        assert done.returncode == 1 and done.stdout == ""
        assert "File too large" in done.stderr and ".py" not in done.stderr
        assert not any(task in done.stderr.replace(folders[0].name, "") for task in TASKS)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout.startswith("step 1 of ")


def test_a_folder_with_something_in_it_is_refused(folders, tmp_path):
    out = folders[0].parent
    assert "there already" in refusal("export-harbor", out) and sorted(out.iterdir()) == folders
    assert "unknown task 'x'" in refusal("export-harbor", tmp_path / "new", "--task", "x")
    assert "unknown split 'x'" in refusal("export-harbor", tmp_path / "new", "--split", "x")
    assert not (tmp_path / "new").exists() and os.listdir(tmp_path) == []
