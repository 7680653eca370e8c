"""What a notebook on a borrowed GPU needs around training: is all in place, where does the run
live, how long will it take.

Training and evaluation run in processes of their own (`command`): Unsloth changes classes of
`transformers` in the process that imports it, memory is given back with certainty only by a
process that ends, and a notebook that is restarted must not leave a trainer behind.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from huggingface_hub import get_token
from packaging.requirements import Requirement

from ..bench.runs import Gpu, find_gpu, read_jsonl, record_of
from .cost import A100, L4, T4, KnownGpu
from .processes import dying_with_this

# By a part of a GPU's name, what the cost model knows of it, and the preset.
PROFILES = {"T4": (T4, "recommended"), "L4": (L4, "l4"), "A100": (A100, "a100")}
DRIVE = Path("/content/drive")
# Loaded before the install cell ran, an older one of these stays in the kernel.
RELOADED = ("pyarrow", "transformers", "datasets", "peft", "trl", "huggingface_hub")


def choose_preset(profile: str) -> str:
    """The preset of a profile: `t4`, `l4`, `a100`, or `auto` for the GPU that is there.

    Raises:
        ValueError: for an unknown profile.
        RuntimeError: for `auto` without a GPU, with the way out.
    """
    known = {name.lower(): preset for name, (_, preset) in PROFILES.items()}
    if profile in known:
        return known[profile]
    if profile != "auto":
        raise ValueError(f"unknown profile {profile!r}; choose one of auto, {', '.join(known)}")
    gpu = find_gpu()
    if gpu is None:
        raise RuntimeError(
            "there is no NVIDIA GPU; on Colab choose Runtime > Change runtime type > T4 GPU"
        )
    return _profile(gpu)[1]


def choose_gpu() -> KnownGpu:
    """What the cost model knows of the GPU that is there, or of one like it; a T4 for none."""
    gpu = find_gpu()
    return T4 if gpu is None else _profile(gpu)[0]


def _profile(gpu: Gpu) -> tuple[KnownGpu, str]:
    """The profile of a GPU: by its name, or that of an A100 where it has bf16, else of a T4."""
    named = [profile for name, profile in PROFILES.items() if name in gpu.name]
    return named[0] if named else PROFILES["A100" if gpu.bf16 else "T4"]


def problems(requirements: Iterable[str | Path]) -> list[str]:
    """What is wrong with the installed versions, a sentence each; none when all is well.

    Args:
        requirements: files whose requirements the notebook's install cell promises; what is not
            installed at all, and what Colab brings, is not looked for.
    """
    told = []
    lines = [line for path in requirements for line in Path(path).read_text().splitlines()]
    for line in lines:
        wanted = Requirement(text) if (text := line.partition("#")[0].strip()) else None
        if wanted is None or wanted.name == "torch":  # Colab's own is as good
            continue
        try:
            found = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            told.append(f"{wanted.name} {found} is installed, and {wanted} is needed: install it")
    for name in RELOADED:
        if name in sys.modules:
            loaded = getattr(sys.modules[name], "__version__", None)
            installed = importlib.metadata.version(name)
            if loaded not in (None, installed):
                told.append(
                    f"{name} {loaded} is loaded, and {installed} installed: choose Runtime > "
                    "Restart session, then Run all"
                )
    return told


def on_colab() -> bool:
    """Whether this is a machine of Colab."""
    return "COLAB_" in "".join(os.environ)


def run_folder(keep: str, name: str) -> Path:
    """Where a run lives: `drive` keeps it on Google Drive, so that a disconnect costs minutes, and
    `auto` does on Colab; any other folder is taken as it is.

    Args:
        keep: `drive`, `auto`, or a folder.
        name: of the run, a folder in there.

    Raises:
        RuntimeError: when Drive is asked for elsewhere than on Colab.
    """
    if keep == "auto":
        keep = "drive" if on_colab() else "../runs"
    if keep != "drive":
        return Path(keep) / name
    if not on_colab():
        raise RuntimeError("Google Drive is there on Colab only; set keep to a folder")
    from google.colab import drive

    drive.mount(str(DRIVE))
    return DRIVE / "MyDrive" / "logtriage" / name


def command(*arguments: object, **options: object) -> None:
    """Run `python -m logtriage ...` in a process of its own, which on Linux dies with this one, and
    print what it says while it does.

    Args:
        arguments: its words.
        options: its options; None and empty text leave one out.

    Raises:
        RuntimeError: when it fails; what it said is printed above.
    """
    words = [sys.executable, "-m", "logtriage", *map(str, arguments)]
    for name, value in options.items():
        if value not in (None, ""):
            words += [f"--{name.replace('_', '-')}", str(value)]
    print("$ python", *words[1:], flush=True)
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,  # each new state of a progress bar becomes a line
        # a notebook of Colab has its token where another process does not find it
        env={**os.environ, "PYTHONUNBUFFERED": "1", "HF_TOKEN": get_token() or ""},
        preexec_fn=dying_with_this(),
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.strip():
                print(line.rstrip(), flush=True)
        code = process.wait()
    finally:
        process.kill()  # where this was interrupted; one that has ended is past it
    if code:
        raise RuntimeError(f"python -m logtriage {arguments[0]} failed with exit status {code}")


def progress(run: str | Path) -> pd.DataFrame:
    """How far a run is and what it costs: a frame of one row, with seconds a step (the last), GB of
    GPU memory at most, tokens of an episode's opening and of what the model wrote, calls of an
    episode that were no valid action, steps done and all, and the hours of training that are left.
    """
    run = Path(run)
    settings, metrics = record_of(run)["settings"], read_jsonl(run / "metrics.jsonl")
    last = metrics.iloc[-1]
    each = metrics["seconds"].diff().fillna(metrics["seconds"]).iloc[-1]
    left = each * (settings["steps"] - last["step"]) / 3600
    episodes = settings["incidents"] * settings["group"] * last["step"]
    return pd.DataFrame(
        {
            "seconds a step": [round(each, 1)],
            "peak memory, GB": [round(last.get("peak_memory_gb", float("nan")), 1)],
            "tokens an episode": [round(last["num_tokens"] / episodes)],
            "malformed calls": [round(last["malformed"], 2)],
            "steps": [f"{int(last['step'])} of {settings['steps']}"],
            "hours left": [round(left, 2)],
        }
    )
