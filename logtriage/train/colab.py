"""What a notebook on a borrowed GPU needs around training: versions, a place for the run.

Training and evaluation run in processes of their own (`command`): Unsloth changes classes of
`transformers` in the process that imports it, only a process that ends is sure to give memory back,
and a notebook that is restarted must not leave a trainer behind.
"""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from huggingface_hub import get_token

from ..bench.runs import Gpu, dying_with_this, find_gpu
from .cost import A100, L4, T4, KnownGpu

# By a part of a GPU's name: what the cost model knows of it, and the preset.
PROFILES = {"T4": (T4, "recommended"), "L4": (L4, "l4"), "A100": (A100, "a100")}
DRIVE = Path("/content/drive/MyDrive")
# Loaded before the install cell ran, an older one of these stays in the kernel.
RELOADED = ("pyarrow", "transformers", "datasets", "peft", "trl", "huggingface_hub")


def check_profile(profile: str) -> None:
    """Raise `ValueError` for a profile that is not `auto`, `cpu` or the name of a known GPU."""
    known = ("auto", "cpu", *map(str.lower, PROFILES))
    if profile not in known:
        raise ValueError(f"unknown profile {profile!r}; choose one of {', '.join(known)}")


def choose_preset(profile: str, preset: str = "") -> str:
    """The preset that is asked for, else that of the profile; `auto` is the GPU that is there, or
    the CPU.
    """
    check_profile(profile)
    if preset:
        return preset
    if profile not in ("auto", "cpu"):
        return PROFILES[profile.upper()][1]
    gpu = find_gpu() if profile == "auto" else None
    return "novice" if gpu is None else _profile(gpu)[1]


def choose_gpu() -> KnownGpu:
    """What the cost model knows of the GPU that is there, or of one like it; a T4 for none."""
    gpu = find_gpu()
    return T4 if gpu is None else _profile(gpu)[0]


def _profile(gpu: Gpu) -> tuple[KnownGpu, str]:
    """By its name; of an unknown GPU that of an A100 where it has bf16, else of a T4."""
    like = "A100" if gpu.bf16 else "T4"
    return PROFILES[next((name for name in PROFILES if name in gpu.name), like)]


def problems() -> list[str]:
    """What is loaded in another version than the install cell has installed, one sentence each."""
    loaded = {name: sys.modules[name].__version__ for name in RELOADED if name in sys.modules}
    return [
        f"{name} {version} is loaded, and {importlib.metadata.version(name)} installed: choose "
        "Runtime > Restart session, then Run all"
        for name, version in loaded.items()
        if version != importlib.metadata.version(name)
    ]


def run_folder(preset: str, seed: int, folder: str = "") -> Path:
    """Where a run is kept, for every notebook: in `folder`, else in the preset's own, which is on
    Google Drive where the notebook's first cell has mounted it, and otherwise in `../runs`.
    """
    home = DRIVE / "logtriage" if DRIVE.is_dir() else Path("../runs")
    return (Path(folder) if folder else home / preset) / f"seed-{seed}"


def command(*arguments: object, **options: object) -> None:
    """Run `python -m logtriage ...` and print its output as it comes; an option of None or empty
    text is left out, one with a list repeated. `RuntimeError` when it fails.
    """
    words = [sys.executable, "-m", "logtriage", *map(str, arguments)]
    for name, given in options.items():
        for value in given if isinstance(given, list) else [given]:
            if value not in (None, ""):
                words += [f"--{name.replace('_', '-')}", str(value)]
    print("$ python", *words[1:], flush=True)
    # Another process does not find the token that a notebook of Colab has.
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "HF_TOKEN": get_token() or ""}
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,  # each new state of a progress bar becomes a line
        env=env,
        preexec_fn=dying_with_this(),
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.strip():
                    print(line.rstrip(), flush=True)
        except BaseException:  # the notebook was interrupted
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(
            f"python -m logtriage {arguments[0]} failed with exit status {process.returncode}"
        )
