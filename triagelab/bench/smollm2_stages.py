"""The stages of SmolLM2's learning: their adapters, and how they are played on held-out incidents.

`results/smollm2` has the episodes of all stages and three adapters: after an expert's lessons,
after GRPO (its seeds' weights averaged), and after corrections. A stage plays greedily, free or
held by a grammar to calls that exist, and, held by it, samples as GRPO does.
"""

import shutil
from pathlib import Path
from typing import Any

from logtriage.recorded import AFTER, BEFORE
from logtriage.world.tasks import TASKS

from ..language_models.smollm2 import SMOLLM2
from .evaluation import evaluate
from .journal import open_table
from .published import RESULTS, actions_of, by_task, read, record
from .registry import Player, in_memory
from .results_tables import NEW
from .rollouts import Plan, Result

FOLDER, FILE = RESULTS / SMOLLM2, f"{SMOLLM2}/episodes.parquet"
GRPO = "expert's lessons, then GRPO"
# What each stage is called, by the folder of its adapter, in `runs/smollm2` as in the results.
STAGES = {
    "novice/base": "novice's lessons",
    "novice/seed-1/model": "novice's lessons, then GRPO",
    "novice/again": "novice's lessons, again",
    "novice/more": "novice's lessons, again, and more",
    "expert/base": "expert's lessons",
    "expert/seed-1/model": f"{GRPO}, seed 1",
    "expert/seed-2/model": f"{GRPO}, seed 2",
    "expert/seed-3/model": f"{GRPO}, seed 3",
    "expert/averaged": f"{GRPO}, seeds averaged",
    "expert/on-policy": "expert's lessons, then corrections",
    "expert/on-policy-grpo/model": "expert's lessons, then corrections, then GRPO",
    "expert/more": "expert's lessons, and more",
    "expert/more-grpo/model": "expert's lessons, and more, then GRPO",
}
SEEDS = tuple(f"expert/seed-{seed}/model" for seed in (1, 2, 3))
AVERAGED = "expert/averaged"  # the mean of their weights
CORRECTED = "expert/on-policy"  # in its own play, with sheets of log lines to read
# All other adapters stay in `runs`; they are played, too.
PUBLISHED = ("expert/base", AVERAGED, CORRECTED)
SAMPLED = ("expert/base", *SEEDS, AVERAGED)  # played more often as GRPO plays
# What the page shows, by the names there; `watch` and README's picture show the first two.
WATCHED = {BEFORE: "expert/base", AFTER: AVERAGED, "SmolLM2 after corrections": CORRECTED}
ADAPTER = "adapter_model.safetensors"
WAYS: dict[str, dict[str, Any]] = {  # options of `in_memory`
    "free": {},
    "constrained": {"constrained": True},
    "sampled": {"constrained": True, "temperature": 1.0, "seed": 1},
}
HELD = ", constrained"  # how the names of policies end that the grammar holds
# What those are called that play the splits with something new, too, held by the grammar.
ON_SPLITS = {
    "zero-shot": "SmolLM2: zero-shot",
    STAGES["expert/base"]: "SmolLM2: expert's lessons",
    STAGES[AVERAGED]: "SmolLM2: then GRPO, seeds averaged",
    STAGES[CORRECTED]: "SmolLM2: then corrections",
}
TOGETHER = 30  # incidents that are played at once


def publish_adapters(runs: Path) -> None:
    """Copy the adapters of `PUBLISHED` into the results, in 16 bit, and the record of lessons."""
    from safetensors.torch import load_file, save_file  # imports torch

    for name in PUBLISHED:
        source, target = runs / name, FOLDER / name
        if not source.is_dir():
            continue
        target.mkdir(parents=True, exist_ok=True)
        weights = load_file(source / ADAPTER)
        save_file({name: weight.half() for name, weight in weights.items()}, target / ADAPTER)
        for file in ("adapter_config.json", "base.json"):
            if (source / file).exists():
                shutil.copy(source / file, target / file)


def average_seeds(runs: Path) -> None:
    """Average the weights of the seeds' adapters, if all are there: one adapter, as if each step
    had seen the incidents of them all. (The published one was made with the first in 16 bit.)
    """
    import torch
    from safetensors.torch import load_file, save_file

    folders = [runs / seed for seed in SEEDS]
    if not all(folder.is_dir() for folder in folders):
        return
    adapters = [load_file(folder / ADAPTER) for folder in folders]
    mean = {
        name: torch.stack([adapter[name].float() for adapter in adapters]).mean(0)
        for name in adapters[0]
    }
    target = runs / AVERAGED
    target.mkdir(parents=True, exist_ok=True)
    save_file(mean, target / ADAPTER)
    shutil.copy(folders[0] / "adapter_config.json", target)


def stage_players(runs: Path) -> list[Player]:
    """The model itself, every published stage, and the others in `runs`, each in all ways."""
    sources: dict[str, str | Path] = {"zero-shot": SMOLLM2}
    for name, stage in STAGES.items():
        folder = (FOLDER if name in PUBLISHED else runs) / name
        if folder.is_dir():
            sources[stage] = folder
    return [
        in_memory(source, f"{stage}, {way}", **options)
        for stage, source in sources.items()
        for way, options in WAYS.items()
    ]


def policy_of(stage: str, way: str = "constrained") -> str:
    """What a stage that plays in a way is called in the table."""
    return f"{STAGES[stage]}, {way}"


def describe_calls(result: Result) -> dict[str, Any]:
    """How many calls an episode made, how many of them were refused, and the actions."""
    answers = [step.observation for step in result.episode.history]
    refused = sum(bool(answer.error) for answer in answers)
    return {"calls": len(answers), "malformed": refused, **actions_of(result)}


def play_stages(runs: Path, incidents: int, few: int, sampled: int, new: int) -> None:
    """Play every stage on the first incidents of each task of `test`: `incidents` by the grammar,
    `few` in the other ways, `sampled` where `SAMPLED` sample. `ON_SPLITS` play the first `new` of
    the splits that hold something new, too. Goes on where it was stopped.
    """
    players = stage_players(runs)
    held = [player for player in players if player.name.endswith(HELD)]
    others = [player for player in players if player not in held]
    everywhere = [player for player in held if player.name.removesuffix(HELD) in ON_SPLITS]
    names = [policy_of(stage, "sampled") for stage in SAMPLED]
    often = [player for player in others if player.name in names]
    plans = [(held, "test", incidents), (others, "test", few), (often, "test", sampled)]
    plans += [(everywhere, split, new) for split in NEW if split != "test"]
    for playing, split, count in plans:
        plan = Plan([*TASKS], split, count)
        with open_table(RESULTS / FILE, playing, plan, TOGETHER) as journal:
            evaluate(playing, plan, journal, describe_calls, TOGETHER)


def record_stages() -> None:
    """Write what `WATCHED` did for the page at /web, for `watch` and README's picture."""
    frame = read(FILE)
    frame = frame[frame["split"] == "test"].sort_values("index")
    stages = {name: frame[frame["policy"] == policy_of(stage)] for name, stage in WATCHED.items()}
    record({name: by_task(own) for name, own in stages.items()})
