"""Prove on an NVIDIA GPU, of any model, that training works on Unsloth in fp16: `make gpu`.

The embedded base is trained in two processes, which take their GPU for a T4: torch has no bf16, no
attention by FlashAttention or cuDNN, and a T4's memory. Episodes must have several turns, losses
must be finite, and the second process must go on from the checkpoint of the first. This proves
neither that kernels compiled for a T4 work, nor how fast a T4 is.

The results are `small.json` and `config.json` in results/gpu. `memory.csv` there, what a model of
Qwen2.5-3B's shape takes, is a finished study: `scripts/gpu.py` of commit fd8ccaf.
"""

import json
import math
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import torch
import typer

# Nothing here may import transformers or TRL: where a model is trained, Unsloth comes first.
from triagelab.bench.runs import environment_record, find_gpu
from triagelab.language_models.loading import SHIPPED

ROOT = Path(__file__).resolve().parents[1]
CAPABILITY, MEMORY_GIB = (7, 5), 14.6  # of a T4
# Two steps, at a learning rate that moves the adapter by more than fp16 rounds away.
STEPS = {"steps": 2, "save_every": 1, "learning_rate": 1e-3, "warmup": 0}
SMALL = {**STEPS, "load_in_4bit": False, "group": 4, "completion_tokens": 640, "turn_tokens": 60}


def take_for_a_t4() -> None:
    """Let this process take its GPU for a T4. Everyone asks `is_bf16_supported`. Unsloth goes by
    the compute capability, once, when it is imported; Triton must know the GPU's own, for which it
    compiles.
    """
    torch.cuda.is_bf16_supported = lambda including_emulation=True: False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    from triton.runtime import driver

    driver.active.get_current_target()
    with patch.object(torch.cuda, "get_device_capability", lambda device=None: CAPABILITY):
        import unsloth  # noqa: F401  (it says how torch allocates, which is heard only once)
    whole = torch.cuda.get_device_properties(0).total_memory / 2**30
    torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY_GIB / whole))


def train(run: Path, until: int | None) -> None:
    """Train the base in the package to the step `until`, or to the end."""
    take_for_a_t4()
    from triagelab.train import grpo
    from triagelab.train.settings import make_config

    config = make_config("recommended", model=str(SHIPPED["base"]), **SMALL)
    grpo.train(config, run, progress=False, until=until)


def main(run: Path | None = None, until: int | None = None) -> None:
    """Give the proof, and write it to results/gpu; with a RUN, be one of its two processes."""
    if run is not None:
        return train(run, until)
    if find_gpu() is None:
        raise SystemExit("there is no NVIDIA GPU here: run `make gpu` on a machine that has one")
    if find_spec("unsloth") is None:
        raise SystemExit("Unsloth is not installed: pip install -r requirements-gpu.txt")
    with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
        run, command = (
            Path(folder) / "small",
            [sys.executable, __file__, "--run", f"{folder}/small"],
        )
        subprocess.run([*command, "--until", "1"], check=True)
        first = (run / "episodes.jsonl").read_bytes()
        subprocess.run(command, check=True)
        metrics = pd.read_json(run / "metrics.jsonl", lines=True)
        talks = pd.read_json(run / "completions.jsonl", lines=True)["messages"]
        turns = [sum(message["role"] == "assistant" for message in talk) for talk in talks]
        small = {
            "loss": metrics["loss"].tolist(),
            "loss_finite": all(map(math.isfinite, metrics["loss"])),
            "seconds": round(float(metrics["step_time"].iloc[-1]), 2),
            "turns": sum(turns) / len(turns),
            "resumed": metrics["step"].tolist() == [1, 2]
            and (run / "episodes.jsonl").read_bytes().startswith(first),
        }
    record = {**environment_record(), "memory_limit_gib": MEMORY_GIB}
    for name, content in {"small": small, "config": record}.items():
        path = ROOT / "results" / "gpu" / f"{name}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
        print(path.read_text())
    if not (small["turns"] > 1 and small["loss_finite"] and small["resumed"]):
        raise SystemExit("the proof failed: it needs several turns, finite losses, resumption")


if __name__ == "__main__":
    typer.run(main)
