"""Help for a notebook that trains on a borrowed GPU: choose the preset, the run's folder and the
faster precision, run commands, and keep within the hours (`Budget`).

Training and evaluation run in processes of their own (`command`). Unsloth changes classes of
`transformers` in the process that imports it, memory is surely freed only when a process ends, and
a notebook that is restarted must not leave a trainer behind.
"""

import importlib.metadata
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from huggingface_hub import get_token

from ..bench.run_evaluation import count_incidents, incidents_played
from ..bench.runs import (
    dying_with_this,
    find_gpu,
    last_step,
    out_of_memory,
    settings_of,
    write_text,
)
from .cost import GIB, PROMPT, T4, known_model
from .grpo import load_to_train
from .settings import TrainingConfig

PROFILES = {"cpu": "novice", "t4": "recommended"}  # to their presets; `auto` looks for a GPU
DRIVE = Path("/content/drive/MyDrive")
# A kernel that loaded one of these before the install cell ran keeps the older version.
RELOADED = ("pyarrow", "transformers", "datasets", "peft", "trl", "huggingface_hub")

# Parts of a session's hours. They are judgements, and all err on the side of ending early.
EVALUATED = 0.2  # share of the remaining hours for the play before training
AGAIN, LOADING = 1.25, 0.05  # the play after training: so many times as long, and hours to load
FINISH = 0.1  # hours for figures, card and a first log to triage

DECODED = 64  # tokens whose decoding is timed
HALF = 0.5  # of a GPU's memory, at most, for weights; a step's episodes need about as much
SPARE = 0.5  # GiB for AdamW, which decoding does not need


# -- the machine and the run's place ---------------------------------------------------------------


def check_profile(profile: str) -> None:
    """Raise `ValueError` unless the profile is `auto` or one of `PROFILES`."""
    if profile not in ("auto", *PROFILES):
        known = ", ".join(("auto", *PROFILES))
        raise ValueError(f"unknown profile {profile!r}; choose one of {known}")


def choose_preset(profile: str, preset: str = "") -> str:
    """Return `preset` if it is given, else the preset of the profile."""
    check_profile(profile)
    if profile == "auto":
        profile = "cpu" if find_gpu() is None else "t4"
    return preset or PROFILES[profile]


def problems() -> list[str]:
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
        preexec_fn=dying_with_this(),
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
    return (
        f"After {last} of {steps} steps, on {count_incidents(evaluation)} incidents of each task."
    )


# -- 4 bit or 16 -----------------------------------------------------------------------------------


class Decoding(NamedTuple):
    """What it takes a base to write all episodes of a step at once: seconds of a decode step, and
    GiB at the peak with episodes of full length. Both are infinite if memory does not suffice.
    """

    in_4bit: bool
    seconds: float = math.inf
    gib: float = math.inf

    @property
    def bits(self) -> str:
        return "4 bit" if self.in_4bit else "16 bit"


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """A function's result, computed in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def measure_decoding(config: TrainingConfig) -> Decoding:
    """Measure a base, loaded as for training. The process must do nothing else."""
    import torch

    def write(length: int, tokens: int) -> float:
        ids = torch.full((config.episodes, length), 1000, device=model.device)
        plain = {"attention_mask": torch.ones_like(ids), "do_sample": False}
        began = time.perf_counter()
        with torch.no_grad():
            model.generate(input_ids=ids, max_new_tokens=tokens, min_new_tokens=tokens, **plain)
        return time.perf_counter() - began

    try:
        model, _ = load_to_train(config)
        write(PROMPT, 2)  # compiles, before anything is timed
        seconds = (write(PROMPT, 1 + DECODED) - write(PROMPT, 1)) / DECODED
        write(PROMPT + config.completion_tokens, 1)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        return Decoding(config.load_in_4bit)
    free, whole = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
    return Decoding(config.load_in_4bit, seconds, (whole - free) / GIB)


def choose_base(run: Path, config: TrainingConfig) -> Decoding | None:
    """Measure in which precision, 4 bit or 16, a run's base writes faster, of those that fit a T4.
    4 bit takes less memory, but computes 16 bit again at every decode step. The choice is kept in
    the run's folder for later sessions; None without a GPU.
    """
    path = run / "decoding.json"
    if path.exists():
        return Decoding(*json.loads(path.read_text()))
    if find_gpu() is None:
        return None
    gib, tried = known_model(config.model).weights * 2 / GIB, [config.load_in_4bit]
    if config.load_in_4bit and gib > HALF * T4.gib:
        print(f"16 bit: the weights alone take {gib:.1f} of {T4.gib} GiB, so it is not tried")
    elif config.load_in_4bit:
        tried.append(False)
    found = []
    for in_4bit in tried:
        one = apart(measure_decoding, replace(config, load_in_4bit=in_4bit))
        print(
            f"{one.bits}: {1000 * one.seconds:.0f} ms a decode step, {one.gib:.1f} GiB at the peak"
        )
        found.append(one)
    fitting = [one for one in found if one.gib + SPARE <= T4.gib]
    chosen = min(fitting, key=lambda one: one.seconds, default=found[0])
    why = "the faster that fits" if fitting else "though it may need more than"
    print(f"the run takes {chosen.bits}, {why} {T4.gib} GiB")
    run.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(chosen))
    return chosen
