"""SmolLM2 before and after each stage of learning, on the same held-out incidents.

`results/smollm2` has the adapter of each stage in a folder of its own, and the episodes of all. A
stage is played twice: free, and by a grammar that admits only calls that exist.
"""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.world.tasks import TASKS

from ..language_models.smollm2 import SMOLLM2
from .evaluation import evaluate
from .journal import open_table
from .plots import Picture, plot_policies, words
from .published import RESULTS, played_in, read
from .registry import Player, in_memory
from .results_tables import table
from .rollouts import Plan, Result
from .score_tables import REFERENCE, policy_scores
from .strata import values_in, with_truth

FOLDER, FILE = RESULTS / SMOLLM2, f"{SMOLLM2}/episodes.parquet"
# What each stage is called, by the folder of its adapter, in `runs/smollm2` as in the results.
STAGES = {
    "novice/base": "novice's lessons",
    "novice/seed-1/model": "novice's lessons, then GRPO",
    "novice/more": "novice's lessons, and more for as long",
    "expert/base": "expert's lessons",
    "expert/seed-1/model": "expert's lessons, then GRPO",
    "expert/more": "expert's lessons, and more for as long",
}
ADAPTER = "adapter_model.safetensors"
WAYS = {"free": False, "constrained": True}  # whether the grammar holds
TOGETHER = 30  # incidents that are played at once


def publish_adapters(runs: Path) -> None:
    """Copy the adapter of each finished stage into the results, in 16 bit."""
    from safetensors.torch import load_file, save_file  # imports torch

    for source in (runs / name for name in STAGES if (runs / name).is_dir()):
        target = FOLDER / source.relative_to(runs)
        target.mkdir(parents=True, exist_ok=True)
        weights = load_file(source / ADAPTER)
        save_file({name: weight.half() for name, weight in weights.items()}, target / ADAPTER)
        for name in ("adapter_config.json", "base.json"):
            if (source / name).exists():
                shutil.copy(source / name, target / name)


def stage_players() -> list[Player]:
    """The model as it is, and every stage that is published, each in both ways."""
    sources = {"zero-shot": SMOLLM2}
    sources |= {STAGES[name]: str(FOLDER / name) for name in STAGES if (FOLDER / name).is_dir()}
    return [
        in_memory(source, f"{stage}, {way}", constrained=constrained)
        for stage, source in sources.items()
        for way, constrained in WAYS.items()
    ]


def count_malformed(result: Result) -> dict[str, Any]:
    """How many calls an episode made, and how many of them were refused."""
    answers = [step.observation for step in result.episode.history]
    return {"calls": len(answers), "malformed": sum(bool(answer.error) for answer in answers)}


def play_stages(incidents: int) -> None:
    """Play every stage on the first incidents of `test`, and go on where that was stopped."""
    players, plan = stage_players(), Plan([*TASKS], "test", incidents)
    with open_table(RESULTS / FILE, players, plan, TOGETHER) as journal:
        evaluate(players, plan, journal, count_malformed, TOGETHER)


def _beside(frame: pd.DataFrame) -> pd.DataFrame:
    """The reference and the embedded agent's first seed, on the same incidents."""
    scripts = read("benchmark/episodes.parquet")
    embedded = played_in("novice", "evaluation")[0]
    names = {"base": "embedded agent, base", "trained": "embedded agent, after GRPO"}
    embedded = embedded[embedded["policy"].isin(names)].replace({"policy": names})
    rows = pd.concat([scripts[scripts["policy"] == REFERENCE], embedded])
    return rows[(rows["split"] == "test") & rows["index"].isin(frame["index"])]


def stages_table() -> str:
    """Scores of all stages with their intervals, and what became of faults and false alarms."""
    frame = read(FILE)
    everyone = pd.concat([frame, _beside(frame)])
    detected = with_truth(everyone)
    for name in ("faults_detected", "false_alarms_dismissed"):
        detected[name] = values_in(detected, name)
    found = detected.groupby("policy")[["faults_detected", "false_alarms_dismissed"]].mean()
    calls = frame.groupby("policy")[["malformed", "calls"]].sum()
    rows = []
    for row in policy_scores(everyone).to_dict("records"):
        name = row["policy"]
        cells = {"SmolLM2": name} | {words(task): row[task] for task in TASKS}
        cells[f"share of `{REFERENCE}`"] = row["share_of_reference"]
        cells["faults found"] = found["faults_detected"][name]
        cells["false alarms dismissed"] = found["false_alarms_dismissed"][name]
        made = calls["calls"].get(name, 0)
        cells["calls refused"] = f"{calls['malformed'][name] / made:.1%}" if made else "-"
        rows.append(cells)
    return table(
        rows,
        f"Incidents 0 to {frame['index'].max()} of each task of `test`, greedy, one seed, 95 %"
        " bootstrap intervals over incidents. The last rows are of other agents on the same"
        " incidents.",
    )


def stage_facts() -> dict[str, Any]:
    """Mean scores over the tasks, where the grammar holds: `smollm2.zero` as the model is, and
    `smollm2.expert` after an expert's lessons; `smollm2.incidents` of each task.
    """
    frame = read(FILE)
    means = frame.groupby(["policy", "task"])["score"].mean().groupby("policy").mean()
    stages = {"zero": "zero-shot, constrained", "expert": "expert's lessons, constrained"}
    numbers: dict[str, Any] = {f"smollm2.{name}": means[stage] for name, stage in stages.items()}
    return numbers | {"smollm2.incidents": f"{frame['index'].nunique()}"}


def plot_stages() -> Picture:
    """Plot the stages that the grammar holds, beside the embedded agent and the reference."""
    frame = read(FILE)
    held = frame[frame["policy"].str.endswith("constrained")]
    shorter = held["policy"].str.removesuffix(", constrained")
    return plot_policies(pd.concat([held.assign(policy=shorter), _beside(frame)]))
