"""Teach the lower half of SmolLM2's adapter to read, with an expert's episodes among the reading.

    python scripts/lower_layers.py ADAPTER FOLDER MINUTES RATE [uniform]

Each batch has two reading tasks and an episode in varied wording. `uniform` draws the lines of
reading tasks from all sections of the wording equally often, and gives every second batch an
episode; else they are what incidents print. Two templates of each varied section are left out, and
read afterwards by `drills`. Runs with `sft_tasks.py` and `imitation.py` of commit 016b56ec.
"""

import re
import sys
import time
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import torch

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.world import telemetry, wording
from logtriage.world.call_graph import OWNERS
from logtriage.world.faults import FAULTS, OWNER
from logtriage.world.incidents import sample_incident
from logtriage.world.topology import random_topology
from triagelab.reference.belief import BeliefPolicy
from triagelab.train import adapter_base, sft_tasks
from triagelab.train.grpo import load_to_train
from triagelab.train.imitation import FIXED_WEIGHT, LONGEST_OPENING, Imitator, Lessons
from triagelab.train.settings import TrainingConfig
from triagelab.train.supervised import Example, encode

LOWER = 15  # of 30 layers
LEFT_OUT = 2  # templates of each varied section
LONGEST_READING, LONGEST_EPISODE = 650, 1900  # tokens
FLAT = 0.3  # share of the time at the full rate
KINDS = {"proof": 0.42, "hint": 0.2, "callee": 0.08, "own": 0.1, "normal": 0.1, "benign": 0.1}
MIX = sft_tasks.Mix(
    {"lines": 0.85, "blocks": 0.15},
    {(): 0.45, ("proof", "hint"): 0.45, ("callee",): 0.1},
    reworded=0.85,
    first=45_000,
)
EPISODES = {"single_crash": 0.2, "cascading_failure": 0.25, "silent_degradation": 0.55}


def leave_out() -> None:
    """Take some templates of each section out of the varied wording."""
    wording.read_line("INFO a b")  # whoever reads lines still knows all of them
    for kind, book in wording.VARIED_BOOKS.items():
        for key, templates in book.items():
            order = list(templates)
            Random(f"{kind}{key}").shuffle(order)
            book[key] = tuple(order[LEFT_OUT:])
    telemetry._templates.cache_clear()


def name_at(kind: str, random: Random) -> str:
    """A path name of a service of that kind."""
    number = random.randint(1, 4)
    below = {"database": f"db-a{number}-b1", "queue": f"queue-a{number}-b1"}
    return "edge" if kind == "edge" else below.get(kind, f"app-a{number}")


def uniform_task(index: int) -> list[dict[str, Any]]:
    """A reading task whose lines come from all sections of the wording equally often."""
    random = Random(f"uniform/{index}")
    messages: list[dict[str, Any]] = [{"role": "system", "content": sft_tasks.READING_PROMPT}]
    for _ in range(8):
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        varied = random.random() < 0.85
        book = wording.VARIED_BOOKS[kind] if varied else wording.BOOKS[kind]
        key = random.choice(list(book))
        templates = book[key] if varied else book[key][:-1]
        name, callee = name_at(key[-1], random), name_at(random.choice(("app", "queue")), random)

        def value(field: re.Match[str], callee: str = callee) -> str:
            if field[1] == "callee":
                return callee
            digit, figure = random.randint(1, 9), random.randint(10, 99)
            return str(digit if field[1] == "n" else random.choice((figure, 10 * figure)))

        text = random.choice(wording.choices(random.choice(templates)))
        level, _, rest = re.sub(r"{(\w+)}", value, text).partition(" ")
        answer: dict[str, Any] = {"content": f"see {callee}" if kind == "callee" else "nothing"}
        if kind == "hint":
            answer = sft_tasks._calls("", Action("remediate", (key[0], name)))
        elif kind == "proof":
            fault = FAULTS[key[0]]
            team = OWNERS[key[-1]] if fault.team == OWNER else fault.team
            remedy = Action("remediate", (fault.remedy, name))
            answer = sft_tasks._calls("", remedy, Action("escalate", (team,)))
        messages.append({"role": "user", "content": f"{level} {name} {rest}"})
        messages.append({"role": "assistant", **answer})
    return messages


def episode(index: int) -> list[dict[str, Any]]:
    """An expert's episode in varied wording, on a random call graph in two of five."""
    task = sft_tasks.draw_task(Random(f"mixed/{index}"), EPISODES)
    random = Random(f"mixed/graph/{index}")
    graph = random_topology(random) if random.random() < 0.4 else None
    at = sft_tasks.EXPERT_INDEX + 350_000 + index
    played = Episode(sample_incident(task, "train", at, graph, varied_wording=True))
    return sft_tasks.transcript(BeliefPolicy(), sft_tasks.NoisySession(played))


def layer_of(name: str) -> int:
    match = re.search(r"layers\.(\d+)\.", name)
    return int(match[1]) if match else LOWER


def main() -> None:
    source, folder, minutes, rate = sys.argv[1], Path(sys.argv[2]), *map(float, sys.argv[3:5])
    uniform = "uniform" in sys.argv
    config = TrainingConfig(model=source, lora_rank=16, lora_alpha=32, seed=0)
    model, tokenizer = load_to_train(config)
    adapter = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for name, weight in adapter.items():
        weight.requires_grad_(layer_of(name) < LOWER)
    imitator = Imitator(model, tokenizer, Lessons(tokenizer, "reading", 0))
    for weight in adapter.values():
        weight.data = weight.data.float()
    leave_out()
    tasks, episodes = count(), count()

    def next_of(longest: int, numbers: Any, make: Any, schemas: Any) -> Example:
        """The next example that is not too long."""
        while True:
            example = encode(tokenizer, make(next(numbers)), schemas, FIXED_WEIGHT)
            opening = example.own.index(True) if schemas else 0
            if len(example.ids) <= longest and opening <= LONGEST_OPENING:
                return example

    read = uniform_task if uniform else lambda index: sft_tasks.sft_task(index, MIX)
    spent, steps = 0.0, 0
    while spent < 60 * minutes:
        began = time.time()
        batch = [next_of(LONGEST_READING, tasks, read, None) for _ in range(2)]
        if not uniform or steps % 2 == 0:
            schemas = imitator.lessons.schemas
            batch.append(next_of(LONGEST_EPISODE, episodes, episode, schemas))
        model.train()
        imitator.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=imitator.bf16):
            loss = imitator._backward(batch)
        torch.nn.utils.clip_grad_norm_(imitator.weights.values(), 1.0)
        falling = min(1.0, (1 - spent / (60 * minutes)) / (1 - FLAT))
        imitator.optimizer.param_groups[0]["lr"] = rate * min(1.0, (steps + 1) / 10) * falling
        imitator.optimizer.step()
        steps += 1
        for name, weight in imitator.weights.items():
            kept = min(0.95, steps / (10 + steps))
            imitator.average[name].lerp_(weight.detach(), 1 - kept)
        spent += time.time() - began
        print(steps, round(spent), round(loss, 4), flush=True)
    for name, weight in adapter.items():
        imitator.average.setdefault(name, weight.detach().clone())
    imitator.weights = adapter
    adapter_base._save(imitator, folder, {"model": source, "lessons": "reading", "seed": 0})


if __name__ == "__main__":
    main()
