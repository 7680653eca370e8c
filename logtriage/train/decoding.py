"""Whether a run's base is loaded in 4 bit or in 16: measured on the GPU that is there.

4 bit takes less memory, and every decode step pays for it by computing 16 bit again. Which of the
two is faster on a T4 is not known, so each is loaded in a process of its own and measured.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ..bench.runs import find_gpu, out_of_memory, write_text
from .colab import choose_gpu
from .cost import GIB, PROMPT, known_model
from .grpo import load_to_train
from .settings import TrainingConfig

DECODED = 64  # tokens whose decoding is timed
HALF = 0.5  # of a GPU's memory; the episodes of a step need about as much as the weights may
SPARE = 0.5  # GiB for AdamW, which does not decode


class Decoding(NamedTuple):
    """How a base writes all episodes of a step at once: seconds of a decode step, and GiB at the
    peak, where each is as long as it may get; both infinite where memory ends.
    """

    in_4bit: bool
    seconds: float = float("inf")
    gib: float = float("inf")

    def __str__(self) -> str:
        told = f"{1000 * self.seconds:.0f} ms a decode step, {self.gib:.1f} GiB at the peak"
        return f"{4 if self.in_4bit else 16} bit: {told}"


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
    """The precision in which a run's base writes faster, of those that fit the GPU: measured, said
    and kept in the run's folder, so that it is the same in a later session. None without a GPU.
    """
    path = run / "decoding.json"
    if path.exists():
        return Decoding(*json.loads(path.read_text()))
    if find_gpu() is None:
        return None
    gpu, found = choose_gpu(), []
    gib = known_model(config.model).weights * 2 / GIB
    for in_4bit in (True, False) if config.load_in_4bit else (False,):
        if config.load_in_4bit and not in_4bit and gib > HALF * gpu.gib:
            print(f"16 bit: the weights alone take {gib:.1f} of {gpu.gib} GiB, so it is not tried")
            continue
        found.append(apart(measure_decoding, replace(config, load_in_4bit=in_4bit)))
        print(found[-1])
    fitting = [one for one in found if one.gib + SPARE <= gpu.gib]
    chosen = min(fitting, key=lambda one: one.seconds, default=found[0])
    why = "the faster that fits" if fitting else "though it may need more than"
    print(f"the run takes {4 if chosen.in_4bit else 16} bit, {why} {gpu.gib} GiB")
    run.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(chosen))
    return chosen
