"""Prove what only an NVIDIA GPU, of any model, can prove of training on a T4: `make gpu`.

1. *Small*: the embedded base is trained through Unsloth in fp16, its episodes have several turns,
   its losses are finite, and it resumes from a checkpoint.
2. *Memory*: a model of Qwen2.5-3B's shape with random weights and Qwen's tokenizer, in 4 bit, is
   trained and evaluated in what a T4 has. A random model never calls a tool, so its turns are
   generated for their cost and then replaced (see `follow_script`): the longest episodes that the
   preset allows.

Each case runs in a process of its own, which takes its GPU for a T4 (see `as_a_t4`); a GPU that has
the memory of several runs several at once. This does not prove that kernels compiled for a T4 work,
or how fast a T4 is: seconds are this GPU's, and shared.

The results are in results/gpu: `small.json`, `memory.csv` (one row per case), and `config.json`
(versions, commit, machine, driver).
"""

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import files
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch

from logtriage.play.actions import Action
from logtriage.play.conversation import opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.world.tasks import SEVERITIES, TASKS
from triagelab.bench.runs import environment_record, find_gpu, read_jsonl

# Nothing here may import transformers or TRL: in a case that trains, Unsloth comes first.
from triagelab.language_models.loading import load_language_model, resolve_model
from triagelab.train import cost, grpo
from triagelab.train.colab import run_in_subprocess
from triagelab.train.cost import GIB, T4, estimate
from triagelab.train.settings import TrainingConfig, make_config

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "gpu"
CAPABILITY = (7, 5)  # compute capability of a T4
LOGS_TOKENS = 159  # tokens of the logs of `all`, the mean in results/tokens
TRAINED = ((3, 8), (4, 8))  # incidents x group: 24 and 32 episodes a step
EVALUATED = (8, 16, 24, 40)  # episodes at once
# Qwen2.5's special tokens in the order of their ids, as in `tokenizer.json` of
# Qwen/Qwen2.5-3B-Instruct. The merges are those of Qwen's first tokenizer.
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"),
    *("<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
)
# Two steps, at a learning rate that moves the adapter by more than fp16 rounds away.
STEPS = {"steps": 2, "save_every": 1, "learning_rate": 1e-3, "warmup": 0}
SMALL = {**STEPS, "load_in_4bit": False, "group": 4, "completion_tokens": 640, "turn_tokens": 60}


def as_a_t4(training: bool = False) -> None:
    """Let this process take its GPU for a T4: torch may use only as much memory, and has no bf16
    and no attention by FlashAttention or cuDNN. Without a GPU nothing is done.

    Everyone asks `is_bf16_supported`. Unsloth goes by the compute capability, once, when it is
    imported; Triton must know the GPU's own, for which it compiles. The limit is on what torch
    allocates; CUDA's own memory (`outside_gib`) comes on top.
    """
    if not torch.cuda.is_available():
        return
    torch.cuda.is_bf16_supported = lambda including_emulation=True: False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    if training:
        from triton.runtime import driver

        driver.active.get_current_target()
        with patch.object(torch.cuda, "get_device_capability", lambda device=None: CAPABILITY):
            import unsloth  # noqa: F401  (it says how torch allocates, which is heard only once)
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, T4.gib * GIB / whole))


def memory() -> dict[str, float | None]:
    """Peak GiB reserved and allocated by torch in this process, and GiB that the process takes
    outside of torch, such as for CUDA's own code. None if that is not known.
    """
    if not torch.cuda.is_available():
        return dict.fromkeys(("reserved_gib", "allocated_gib", "outside_gib"))
    reserved, taken = torch.cuda.memory_reserved(), taken_gib().get(os.getpid())
    return {
        "reserved_gib": round(torch.cuda.max_memory_reserved() / GIB, 2),
        "allocated_gib": round(torch.cuda.max_memory_allocated() / GIB, 2),
        "outside_gib": None if taken is None else round(taken - reserved / GIB, 2),
    }


def ask_driver(what: str) -> list[list[str]]:
    """The rows, split at commas, that `nvidia-smi` answers to a query."""
    asked = ["nvidia-smi", f"--query-{what}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return [line.split(", ") for line in answer.splitlines()]


def taken_gib() -> dict[int, float]:
    """GiB of the GPU that each process takes, by its id, as far as the driver tells."""
    rows = ask_driver("compute-apps=pid,used_memory")
    return {int(pid): int(mib) / 1024 for pid, mib in rows if mib.isdigit()}


# -- a model that has learned nothing, and what it is made to say --------------------------------


@cache
def qwen_tokenizer() -> Any:
    """Qwen2.5's tokenizer with TRL's template. Its vocabulary is a file of the package `dashscope`,
    so no model hub is asked.
    """
    from transformers import AddedToken, Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter
    from trl.chat_template_utils import qwen2_5_chat_template

    path = next(file for file in files("dashscope") or () if file.name == "qwen.tiktoken").locate()
    vocabulary, merges = TikTokenConverter().extract_vocab_merges_from_model(str(path))
    qwen = Qwen2Tokenizer(vocabulary, merges, additional_special_tokens=[])
    # As in Qwen's own, the tags around a call are not special tokens, so decoding keeps them.
    first_plain = SPECIAL.index("<tool_call>")
    for place, text in enumerate(SPECIAL):
        qwen.add_tokens(AddedToken(text, special=place < first_plain, normalized=False))
    qwen.eos_token, qwen.pad_token = "<|im_end|>", "<|endoftext|>"
    qwen.chat_template = qwen2_5_chat_template
    return qwen


def random_model(shape: cost.Model, folder: Path) -> int:
    """Save a Qwen2 decoder of this shape with random weights (fp16 on a GPU, else fp32) and Qwen's
    tokenizer; return the number of weights.
    """
    from transformers import AutoModelForCausalLM, Qwen2Config

    gpu = torch.cuda.is_available()
    tokenizer = qwen_tokenizer()
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    with torch.device("cuda" if gpu else "cpu"):
        dtype = torch.float16 if gpu else torch.float32
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def filler(tokenizer: Any, count: int) -> list[int]:
    """Ids of `count` tokens of text that says nothing; none if the count is below 1."""
    return tokenizer.encode(" and", add_special_tokens=False)[-1:] * count


def follow_script(tokenizer: Any, turn_tokens: int) -> None:
    """Replace every turn that a trainer of this process generates from now on.

    A turn is generated as usual, for its time and memory, and replaced by the longest that is
    allowed: words without a meaning, and a call for the logs of `all`. The first also states a
    severity, which varies within a group, since equal rewards would leave nothing to learn.
    """
    from triagelab.train.trainer import IncidentTrainer

    generate = IncidentTrainer._generate_single_turn
    opens = tokenizer.convert_tokens_to_ids("<|im_start|>")

    def scripted(trainer: Any, prompt_ids: list[list[int]], *others: Any, **named: Any) -> Any:
        generate(trainer, prompt_ids, *others, **named)
        turns = []
        for place, ids in enumerate(prompt_ids):
            actions = [Action("request_more_logs", ("all",))]
            if ids.count(opens) == 3:  # system, user, and the turn to come
                severity = SEVERITIES[place % len(SEVERITIES)]
                actions.insert(0, Action("classify_severity", (severity,)))
            calls = [json.dumps(tool_call(action)["function"]) for action in actions]
            text = "".join(f"\n<tool_call>\n{call}\n</tool_call>" for call in calls)
            said = tokenizer.encode(text + tokenizer.eos_token, add_special_tokens=False)
            turns.append(filler(tokenizer, turn_tokens - len(said)) + said)
        return turns, None

    IncidentTrainer._generate_single_turn = scripted


# -- cases, each of which runs in a process of its own ---------------------------------------------


def train_part(config: TrainingConfig, run: Path, until: int | None, scripted: bool) -> dict:
    """Train to the step `until`, or to the end; return the peak memory, and whether it `fits`."""
    as_a_t4(training=True)
    load = grpo.load_to_train

    def load_and_script(config: TrainingConfig) -> tuple[Any, Any]:
        model, tokenizer = load(config)
        follow_script(tokenizer, config.turn_tokens)
        return model, tokenizer

    if scripted:
        grpo.load_to_train = load_and_script
    fits = True
    try:
        grpo.train(config, run, progress=False, until=until)
    except ValueError as error:
        if not isinstance(error.__cause__, torch.OutOfMemoryError):
            raise
        fits = False
    return {**memory(), "fits": fits}


def evaluated(config: TrainingConfig, batch: int) -> dict[str, Any]:
    """Write `batch` episodes at once by our `Writer`, each until it is `completion_tokens` long.
    Return the seconds, whether they fit, and the peak memory.
    """
    as_a_t4()
    model, tokenizer = load_language_model(config.model, config.load_in_4bit)
    from triagelab.language_models.decoder import Writer

    written, reply = [0] * batch, filler(tokenizer, LOGS_TOKENS)

    def answer(seat: int, turn: list[int]) -> list[int] | None:
        written[seat] += len(turn) + len(reply)
        return reply if written[seat] < config.completion_tokens else None

    episodes = [Episode.open(task, "test", n) for n, task in zip(range(batch), cycle(TASKS))]
    openings = [
        tokenizer.apply_chat_template(
            opening_messages(ToolSession(episode).opening),
            tools=tool_schemas(),
            add_generation_prompt=True,
            return_dict=False,
        )
        for episode in episodes
    ]
    began, fits = time.perf_counter(), True
    try:
        writer = Writer(model, 0.0, config.turn_tokens, tokenizer.eos_token_id)
        writer.write(openings, answer)
    except torch.OutOfMemoryError:
        fits = False
    return {"seconds": round(time.perf_counter() - began, 2), "fits": fits, **memory()}


# -- the two proofs ------------------------------------------------------------------------------


def trained(config: TrainingConfig, run: Path, scripted: bool) -> dict[str, Any]:
    """Train in two processes, the first of which stops after one step; return what was measured."""
    episodes_after = []
    for until in (1, None):
        part = run_in_subprocess(train_part, config, run, until, scripted)
        if not part["fits"]:
            return part
        episodes_after.append((run / "episodes.jsonl").read_bytes())
    metrics = read_jsonl(run / "metrics.jsonl")
    conversations = read_jsonl(run / "completions.jsonl")["messages"]
    episodes = config.incidents * config.group * config.steps
    return {
        "fits": part.pop("fits"),
        **part,
        "loss": metrics["loss"].tolist(),
        "loss_finite": all(map(math.isfinite, metrics["loss"])),
        "seconds": round(float(metrics["step_time"].iloc[-1]), 2),
        "turns": mean(sum(one["role"] == "assistant" for one in each) for each in conversations),
        "tokens": round(float(metrics["num_tokens"].iloc[-1]) / episodes),
        "resumed": metrics["step"].tolist() == list(range(1, config.steps + 1))
        and episodes_after[1].startswith(episodes_after[0]),
    }


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Print what was measured at once, so that it is not lost if a later case fails; return it."""
    print(json.dumps(row), flush=True)
    return row


def prove_memory(
    folder: Path,
    pool: ThreadPoolExecutor,
    shape: cost.Model = cost.MODELS["Qwen2.5-3B-Instruct"],
    steps: Sequence[tuple[int, int]] = TRAINED,
    batches: Sequence[int] = EVALUATED,
    **changes: Any,
) -> pd.DataFrame:
    """The second proof: one row per case (see `trained` and `evaluated`), beside what `train.cost`
    computes for a T4. `pool` runs the cases. `steps` has the incidents and group of each training
    case, `batches` the episodes at once of each evaluation case.
    """
    base = folder / "model"
    run_in_subprocess(random_model, shape, base)

    def train_row(incidents: int, group: int) -> dict[str, Any]:
        sizes = {**STEPS, "incidents": incidents, "group": group, **changes}
        config = make_config("recommended", model=str(base), **sizes)
        row = trained(config, folder / f"{incidents}x{group}", scripted=True)
        computed = estimate(config, model=shape)
        row |= {"computed_gib": str(computed.gib), "computed_seconds": str(computed.step_seconds)}
        return told({"case": "train", "episodes": incidents * group, **row})

    def evaluate_row(batch: int) -> dict[str, Any]:
        config = make_config("recommended", model=str(base), **changes)
        row = run_in_subprocess(evaluated, config, batch)
        gib = estimate(config, held_out=1, batch=batch, model=shape).gib
        return told({"case": "evaluate", "episodes": batch, **row, "computed_gib": str(gib)})

    rows = [pool.submit(train_row, *sizes) for sizes in steps]
    rows += [pool.submit(evaluate_row, batch) for batch in batches]
    return pd.DataFrame([row.result() for row in rows])


def cases_at_once() -> int:
    """How many cases the memory of this GPU holds, each with a T4's and what CUDA takes besides."""
    if not torch.cuda.is_available():
        return 1
    whole = torch.cuda.get_device_properties(0).total_memory / GIB
    return max(1, int(whole // (T4.gib + 1)))


def main() -> None:
    """Give both proofs, print them, and write them to results/gpu."""
    if find_gpu() is None:
        raise SystemExit("there is no NVIDIA GPU here: run `make gpu` on a machine that has one")
    if find_spec("unsloth") is None:
        raise SystemExit("Unsloth is not installed: pip install -r requirements-gpu.txt")
    driver = ask_driver("gpu=driver_version")[0][0]
    record = {**run_in_subprocess(environment_record), "driver": driver, "memory_limit_gib": T4.gib}
    config = make_config("recommended", model=str(resolve_model("base")), **SMALL)
    (ROOT / "runs").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=ROOT / "runs") as folder,
        ThreadPoolExecutor(cases_at_once()) as pool,
    ):
        first = pool.submit(lambda: told(trained(config, Path(folder) / "small", scripted=False)))
        table = prove_memory(Path(folder), pool).assign(gpu=record["machine"]["gpu"])
        small = first.result()
    print(table.T.to_string())
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "small.json").write_text(json.dumps(small, indent=1) + "\n")
    table.to_csv(RESULTS / "memory.csv", index=False)
    (RESULTS / "config.json").write_text(json.dumps(record, indent=1) + "\n")
    if not (small["turns"] > 1 and small["loss_finite"] and small["resumed"]):
        raise SystemExit(
            "the first proof failed: several turns, finite losses and resumption are needed"
        )


if __name__ == "__main__":
    main()
