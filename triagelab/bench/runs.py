"""The folder of a run: what the run depends on, and how it is continued.

`config.json` says what a result depends on; a folder never takes a run with other settings. When a
run is continued, lines of the JSONL files that are newer than the last checkpoint are dropped,
since those steps are played again.
"""

import ctypes
import json
import os
import platform
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

PACKAGES = (
    *("openenv-logtriage", "openenv", "torch", "trl", "transformers"),
    *("unsloth", "unsloth_zoo", "bitsandbytes", "peft", "datasets"),
)
BF16_CAPABILITY = 8.0  # CUDA compute capability from which a GPU has bf16; a T4 has 7.5
PR_SET_PDEATHSIG = 1  # of Linux's prctl: be sent a signal when the parent dies
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # not loaded between fork and exec


def environment_record() -> dict[str, Any]:
    """What a result depends on besides its settings: versions, commit, machine."""
    import torch

    versions = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
    }


def _commit() -> str | None:
    """The commit of the checkout that this package runs from; None if it was installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True).stdout.strip() or None


class Gpu(NamedTuple):
    """An NVIDIA GPU."""

    name: str
    memory_gb: float | None  # None if the driver does not know, as of memory shared with the CPU
    bf16: bool  # whether it supports bf16

    def __str__(self) -> str:
        memory = "" if self.memory_gb is None else f", {self.memory_gb:.0f} GB"
        return f"{self.name}{memory}{'' if self.bf16 else ', no bf16'}"


def find_gpu() -> Gpu | None:
    """The first NVIDIA GPU that the driver knows, or None. torch is not asked, since it would take
    some of the memory that the training process needs. What the driver calls "[N/A]" is unknown.
    """
    query = "--query-gpu=name,memory.total,compute_cap"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    if answer.returncode or not answer.stdout:
        return None
    name, mebibytes, capability = answer.stdout.splitlines()[0].split(", ")
    memory_gb = float(mebibytes) * 2**20 / 1e9 if mebibytes.isdigit() else None
    known = capability[:1].isdigit()
    return Gpu(name, memory_gb, known and float(capability) >= BF16_CAPABILITY)


def out_of_memory(error: Exception) -> bool:
    """Whether this is torch's error for a GPU whose memory is full; torch need not be imported."""
    return type(error).__name__ == "OutOfMemoryError"


def kill_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` that kills the child when the parent exits (on Linux), so GPU and folder are
    free.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        assert LIBC is not None
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)

    return None if LIBC is None else die_with_parent


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Lock a folder or a file, which need not exist yet, against other processes. If one holds it,
    `wait` for it or raise `ValueError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.parent / f".{path.name}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise ValueError(
                f"another process is at work in {path}; wait for its end, or choose another"
            ) from None
        print(f"waiting for another process that is at work in {path}", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, even if the process dies."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.replace(path)


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint is complete: the process may have died while writing it, or the upload
    to Google Drive may have been cut off.
    """
    from safetensors import SafetensorError, safe_open

    weights = list(checkpoint.glob("*.safetensors"))
    try:
        for file in weights:
            with safe_open(file, "pt"):  # checks the length against the header
                pass
    except SafetensorError:
        return False
    optimizer = zipfile.is_zipfile(checkpoint / "optimizer.pt")  # a zip file ends with its contents
    return bool(weights) and optimizer and (checkpoint / "trainer_state.json").exists()


def step_of(checkpoint: str | Path) -> int:
    """The step in the name of a checkpoint's folder."""
    return int(Path(checkpoint).name.removeprefix("checkpoint-"))


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of a run, or None."""
    whole = [path for path in folder.glob("checkpoint-*") if is_whole(path)]
    return max(whole, key=step_of, default=None)


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Names of the settings in which two runs differ."""
    return sorted(key for key in {*first, *second} if first.get(key) != second.get(key))


def record_of(folder: str | Path) -> dict[str, Any]:
    """A run's `config.json`; `FileNotFoundError` if missing, `ValueError` if it is a model's."""
    path = Path(folder) / "config.json"
    if not path.exists():
        raise FileNotFoundError(f"{folder} holds no run; train one first, with `train`")
    record: dict[str, Any] = json.loads(path.read_text())
    if "settings" not in record:
        raise ValueError(f"{folder} holds a model, not a run; choose another folder")
    return record


def settings_of(run: str | Path) -> dict[str, Any]:
    """A run's settings; `model`, which it started from, as a hub name or an absolute path."""
    settings: dict[str, Any] = record_of(run)["settings"]
    model = Path(run) / settings["model"]
    return {**settings, "model": str(model.resolve())} if model.is_dir() else settings


def start_run(settings: dict[str, Any], folder: Path) -> None:
    """Write the config of a run; `ValueError` when the folder holds one with other settings."""
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        record = {"settings": settings, **environment_record()}
        write_text(folder / "config.json", json.dumps(record, indent=1))
    known = record_of(folder)["settings"]
    # An older run may have settings that are gone.
    changed = [name for name in differing(known, settings) if name in settings]
    if changed:
        raise ValueError(
            f"{folder} holds a run with other settings ({', '.join(changed)} differ); "
            "choose another folder, or repeat its settings to continue it"
        )


def _whole_lines(path: Path) -> list[str]:
    """The lines of a JSONL file, without a half-written last one."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


def last_step(folder: Path) -> dict[str, Any]:
    """The last whole line of a run's metrics, or `{"step": 0}` if there is none."""
    last: dict[str, Any] = {"step": 0}
    for line in _whole_lines(folder / "metrics.jsonl")[-1:]:
        last = json.loads(line)
    return last


def rewind(folder: Path) -> Path | None:
    """Take a run back to its last checkpoint and return that. If there is none, empty the logs and
    return None.
    """
    checkpoint = last_checkpoint(folder)
    step = step_of(checkpoint) if checkpoint else 0
    for name in ("metrics.jsonl", "episodes.jsonl", "completions.jsonl"):
        kept = [line for line in _whole_lines(folder / name) if json.loads(line)["step"] <= step]
        if (folder / name).exists():
            write_text(folder / name, "".join(f"{line}\n" for line in kept))
    return checkpoint
