"""What a notebook on a borrowed GPU needs around training: the preset for the GPU that is there, a
place for the run, commands, the precision that is faster, and hours that are kept (`Budget`).

Training and evaluation run in processes of their own (`command`): Unsloth changes classes of
`transformers` in the process that imports it, only a process that ends is sure to give memory back,
and a notebook that is restarted must not leave a trainer behind.
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

from ..bench.runs import dying_with_this, find_gpu, last_step, out_of_memory, record_of, write_text
from .cost import GIB, PROMPT, T4, known_model
from .experiment import incidents_played, incidents_told
from .grpo import load_to_train
from .settings import TrainingConfig

PROFILES = {"cpu": "novice", "t4": "recommended"}  # and their presets; `auto` takes what is there
DRIVE = Path("/content/drive/MyDrive")
# Loaded before the install cell ran, an older one of these stays in the kernel.
RELOADED = ("pyarrow", "transformers", "datasets", "peft", "trl", "huggingface_hub")

# Of a session's hours; judgements, all on the side of ending early.
EVALUATED = 0.2  # share of the hours left that the play before training may take
AGAIN, LOADING = 1.25, 0.05  # times as long as that is the play after it; hours to load for it
FINISH = 0.1  # hours for figures, card and a first log to triage

DECODED = 64  # tokens whose decoding is timed
HALF = 0.5  # of a GPU's memory; the episodes of a step need about as much as the weights may
SPARE = 0.5  # GiB for AdamW, which does not decode


# -- the machine and the run's place ---------------------------------------------------------------


def check_profile(profile: str) -> None:
    """Raise `ValueError` for another profile than `auto` and those of `PROFILES`."""
    if profile not in ("auto", *PROFILES):
        known = ", ".join(("auto", *PROFILES))
        raise ValueError(f"unknown profile {profile!r}; choose one of {known}")


def choose_preset(profile: str, preset: str = "") -> str:
    """The preset that is asked for, else that of the profile."""
    check_profile(profile)
    if profile == "auto":
        profile = "cpu" if find_gpu() is None else "t4"
    return preset or PROFILES[profile]


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
    """The hours of a session, from when this is made. All that takes long gets a part of them, and
    stops by itself: no step and no batch is begun that would not end in time.
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
        """Hours for training: what the same play after it leaves."""
        frame = pd.read_parquet(run / "evaluation.parquet")
        base = frame[(frame["policy"] == "base") & (frame["split"] == "test")]
        played = base[base["index"] < incidents_played(run)]["seconds"].sum() / 3600
        return round(max(0.0, self.left() - AGAIN * played - LOADING), 3)

    def plan(self, run: Path) -> str:
        """A sentence: how many steps and incidents fit, by what was measured."""
        last, steps = last_step(run), record_of(run)["settings"]["steps"]
        seconds, hours = last["seconds"] / last["step"], self.for_training(run)
        fit = min(steps, last["step"] + int(3600 * hours / seconds))
        return (
            f"Of {self.hours:g} hours {self.left() + FINISH:.2f} are left: at {seconds:.0f} s a"
            f" step {fit} of {steps} steps fit, and {incidents_played(run)} incidents of each task"
            " before and after them."
        )


def outcome(run: Path, evaluation: pd.DataFrame) -> str:
    """A sentence: how many steps and incidents a run's results are of."""
    last, steps = last_step(run)["step"], record_of(run)["settings"]["steps"]
    return f"After {last} of {steps} steps, on {incidents_told(evaluation)} incidents of each task."


# -- 4 bit or 16 -----------------------------------------------------------------------------------


class Decoding(NamedTuple):
    """How a base writes all episodes of a step at once: seconds of a decode step, and GiB at the
    peak, where each is as long as it may get; both infinite where memory ends.
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
    """Measure a base as training loads it, in a process that does nothing else."""
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
        write(PROMPT, 2)  # what is compiled is compiled now
        seconds = (write(PROMPT, 1 + DECODED) - write(PROMPT, 1)) / DECODED
        write(PROMPT + config.completion_tokens, 1)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        return Decoding(config.load_in_4bit)
    free, whole = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
    return Decoding(config.load_in_4bit, seconds, (whole - free) / GIB)


def choose_base(run: Path, config: TrainingConfig) -> Decoding | None:
    """The precision, 4 bit or 16, in which a run's base writes faster, of those that fit a T4; None
    without a GPU. 4 bit takes less memory, and every decode step pays for it by computing 16 bit
    again. It is measured, and kept in the run's folder for later sessions.
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
