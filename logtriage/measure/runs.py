"""A run as a folder: what it depends on, and how it is continued.

`config.json` says what a result depends on; a folder never takes a run with other settings. Lines
of the JSONL files that are newer than the last checkpoint are dropped when a run is continued,
since those steps are played again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def environment_record() -> dict[str, Any]:
    """What a result depends on besides its settings: versions, commit, machine."""
    import torch

    versions = {}
    for name in (
        "openenv-logtriage",
        "openenv",
        "torch",
        "trl",
        "transformers",
        "unsloth",
        "peft",
        "datasets",
    ):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    git = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "python": platform.python_version(),
        "versions": versions,
        "commit": git.stdout.strip() or None,
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
    }


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, whenever the process dies."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.replace(path)


def weights_digest(folder: Path) -> str:
    """Digest of the weights in a folder, by which a result knows its model; empty for a model of a
    hub, which has no folder here.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return ""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def keep_until(path: Path, step: int) -> None:
    """Drop the lines of a JSONL file that belong to steps after `step`: they will be played again.

    A last line that was cut off in the middle of writing goes too.
    """
    if not path.exists():
        return
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    write_text(path, "".join(line for line in lines if json.loads(line)["step"] <= step))


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of a run; None before the first."""
    found = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").exists()]
    return max(found, key=lambda path: int(path.name.split("-")[1]), default=None)


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names of the settings in which two runs differ."""
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


def start_run(settings: dict[str, Any], folder: Path) -> None:
    """Write the run's `config.json`, or check that it is the same run.

    Raises:
        ValueError: when the folder holds a run with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    if path.exists():
        before = json.loads(path.read_text())["settings"]
        if before != settings:
            raise ValueError(
                f"{folder} holds a run with other settings"
                f" ({', '.join(differing(before, settings))} differ); "
                "choose another folder, or repeat its settings to continue it"
            )
    else:
        write_text(path, json.dumps({"settings": settings, **environment_record()}, indent=1))


def rewind(folder: Path) -> Path | None:
    """Take a run back to its last checkpoint, and return that; None, and empty logs, before the
    first.
    """
    checkpoint = last_checkpoint(folder)
    step = int(checkpoint.name.split("-")[1]) if checkpoint else 0
    for name in ("metrics.jsonl", "episodes.jsonl", "completions.jsonl"):
        keep_until(folder / name, step)
    return checkpoint
