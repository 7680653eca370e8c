"""Help for a notebook that trains on a borrowed GPU: choose the preset and the run's folder, run
commands, and keep within the hours (`Budget`).

Training and evaluation run in processes of their own (`command`). Unsloth changes classes of
`transformers` in the process that imports it, memory is surely freed only when a process ends, and
a notebook that is restarted must not leave a trainer behind.
"""

import importlib.metadata
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
from huggingface_hub import get_token

from ..bench.intervals import range_of
from ..bench.run_evaluation import incidents_played
from ..bench.runs import find_gpu, kill_with_parent, last_step, settings_of

PROFILES = {"cpu": "novice", "t4": "smollm2"}  # to their presets; `auto` looks for a GPU
DRIVE = Path("/content/drive/MyDrive")
# A kernel that loaded one of these before the install cell ran keeps the older version.
RELOADED = ("pyarrow", "transformers", "datasets", "peft", "trl", "huggingface_hub")

# Parts of a session's hours. They are judgements, and all err on the side of ending early.
IMITATED = 0.4  # share of the remaining hours for SmolLM2's lessons
EVALUATED = 0.2  # share of the remaining hours for the play before training
AGAIN, LOADING = 1.25, 0.05  # the play after training: so many times as long, and hours to load
FINISH = 0.1  # hours for figures, card and a first log to triage


# -- the machine and the run's place ---------------------------------------------------------------


def choose_preset(profile: str, preset: str = "") -> str:
    """Return `preset` if it is given, else the preset of the profile, which is `auto` or one of
    `PROFILES`; `ValueError` for another.
    """
    if profile not in ("auto", *PROFILES):
        known = ", ".join(("auto", *PROFILES))
        raise ValueError(f"unknown profile {profile!r}; choose one of {known}")
    if profile == "auto":
        profile = "cpu" if find_gpu() is None else "t4"
    return preset or PROFILES[profile]


def stale_imports() -> list[str]:
    """One sentence for each of `RELOADED` that is loaded in another version than is installed."""
    loaded = {name: sys.modules[name].__version__ for name in RELOADED if name in sys.modules}
    return [
        f"{name} {version} is loaded, and {importlib.metadata.version(name)} installed: choose "
        "Runtime > Restart session, then Run all"
        for name, version in loaded.items()
        if version != importlib.metadata.version(name)
    ]


def run_folder(preset: str, seed: int, folder: str = "") -> Path:
    """The folder of a run, the same for every notebook. It lies in `folder`, or by default in the
    preset's own, on Google Drive if the notebook's first cell has mounted it, else in `../runs`.
    """
    home = DRIVE / "logtriage" if DRIVE.is_dir() else Path("../runs")
    return (Path(folder) if folder else home / preset) / f"seed-{seed}"


def command(*arguments: object, **options: object) -> None:
    """Run `python -m logtriage ...` and print its output as it comes. An option that is None or ""
    is left out; one with a list is repeated. `RuntimeError` when the command fails.
    """
    words = [sys.executable, "-m", "logtriage", *map(str, arguments)]
    for name, given in options.items():
        for value in given if isinstance(given, list) else [given]:
            if value not in (None, ""):
                words += [f"--{name.replace('_', '-')}", str(value)]
    print("$ python", *words[1:], flush=True)
    # Another process cannot find the token of a Colab notebook by itself.
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "HF_TOKEN": get_token() or ""}
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,  # each new state of a progress bar becomes a line
        env=env,
        preexec_fn=kill_with_parent(),
    ) as process:
        try:
            for line in process.stdout or ():
                if line.strip():
                    print(line.rstrip(), flush=True)
        except BaseException:  # the notebook was interrupted
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(
            f"python -m logtriage {arguments[0]} failed with exit status {process.returncode}"
        )


# -- the hours -------------------------------------------------------------------------------------


class Budget:
    """The hours of a session, counted from when this object is made. Every long job gets a part of
    them and stops by itself: it begins no step and no batch that would not end in time.
    """

    def __init__(self, hours: float) -> None:
        if not 0 < hours < math.inf:
            raise ValueError(f"budget_hours must be above 0, got {hours}; a free session has 2.5")
        self.hours, self._began = hours, time.perf_counter()

    def left(self) -> float:
        """Hours until figures and card have to be made."""
        gone = (time.perf_counter() - self._began) / 3600
        return round(max(0.0, self.hours - gone - FINISH), 3)

    def for_imitation(self) -> float:
        """Hours for what SmolLM2 imitates before reward."""
        return round(IMITATED * self.left(), 3)

    def for_evaluation(self) -> float:
        """Hours for the play before training."""
        return round(EVALUATED * self.left(), 3)

    def for_training(self, run: Path) -> float:
        """Hours for training: those left, less what the same play afterwards will need."""
        frame = pd.read_parquet(run / "evaluation.parquet")
        base = frame[(frame["policy"] == "base") & (frame["split"] == "test")]
        played = base[base["index"] < incidents_played(run)]["seconds"].sum() / 3600
        return round(max(0.0, self.left() - AGAIN * played - LOADING), 3)

    def plan(self, run: Path) -> str:
        """A sentence on how many steps and incidents fit, at the measured speed."""
        last, steps = last_step(run), settings_of(run)["steps"]
        seconds, hours = last["seconds"] / last["step"], self.for_training(run)
        fit = min(steps, last["step"] + int(3600 * hours / seconds))
        return (
            f"Of {self.hours:g} hours {self.left() + FINISH:.2f} are left: at {seconds:.0f} s a"
            f" step {fit} of {steps} steps fit, and {incidents_played(run)} incidents of each task"
            " before and after them."
        )


def outcome(run: Path, evaluation: pd.DataFrame) -> str:
    """A sentence on how many steps and incidents a run's results are based on."""
    last, steps = last_step(run)["step"], settings_of(run)["steps"]
    count = range_of(evaluation.groupby("task")["index"].nunique())
    return f"After {last} of {steps} steps, on {count} incidents of each task."
