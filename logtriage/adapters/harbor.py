"""Incidents as task folders for Harbor, whose agents work in a shell in a container.

python -m logtriage export-harbor incidents --task cascading_failure --split test
harbor run --path incidents --agent oracle
"""

import json
import shutil
from pathlib import Path

from ..play.episode import Episode
from ..play.observation import SYSTEM_PROMPT, render
from ..policies.scripted import OraclePolicy
from ..world.tasks import BENCHMARK_VERSION
from .shell import usage

PACKAGE = Path(__file__).parents[1]
TEMPLATES = Path(__file__).with_name("templates")
SKIPPED = shutil.ignore_patterns("__pycache__")


def export(folder: Path, tasks: list[str], split: str, episodes: int) -> list[Path]:
    """Write one task folder for each of the first `episodes` incidents of each task, and return
    them. `ValueError` for an unknown task or split, or for a folder that is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already and not an empty folder; name a new one")
    opened = [Episode.open(task, split, index) for task in tasks for index in range(episodes)]
    return [_export(folder, episode) for episode in opened]


def _export(folder: Path, episode: Episode) -> Path:
    """Write the folder of one incident."""
    incident = episode.incident
    coordinates = {"task": incident.task_name, "split": incident.split, "index": incident.index}
    name = f"{incident.task_name}-{incident.split}-{incident.index:05}"
    target = folder / name
    shutil.copytree(TEMPLATES, target, ignore=SKIPPED)
    settings = target / "task.toml"
    filled = settings.read_text().format(name=name, benchmark=BENCHMARK_VERSION, **coordinates)
    settings.write_text(filled)
    opening = render(episode.opening, incident.topology)
    rules = f"{SYSTEM_PROMPT}\n\n{usage()}\n\n```text\n{opening}\n```\n"
    (target / "instruction.md").write_text(rules)
    simulator = target / "environment" / "incident"
    (simulator / "coordinates.json").write_text(json.dumps(coordinates))
    for needed in ("world", "play"):  # it needs these, and the standard library
        shutil.copytree(PACKAGE / needed, simulator / "logtriage" / needed, ignore=SKIPPED)
    shutil.copy(PACKAGE / "__init__.py", simulator / "logtriage")
    shutil.copy(Path(__file__).with_name("shell.py"), simulator)
    oracle = OraclePolicy()
    oracle.open(episode)
    calls = [" ".join(["incident", action.type, *action.args]) for action in oracle.script]
    (target / "solution").mkdir()  # for Harbor's oracle; no other agent gets it
    (target / "solution" / "solve.sh").write_text("\n".join(["#!/bin/sh", "set -e", *calls, ""]))
    return target
