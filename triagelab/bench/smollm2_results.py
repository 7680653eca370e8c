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
from .intervals import KEYS
from .journal import open_table
from .plots import Picture, plot_policies, words
from .published import RESULTS, played_by, read
from .registry import Player, in_memory
from .results_tables import NEW, table
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
CONTROLS = ("novice/more", "expert/more")  # played, but not published
TAUGHT = "expert/base"  # plays the other splits, too
ADAPTER = "adapter_model.safetensors"
WAYS = {"free": False, "constrained": True}  # whether the grammar holds
TOGETHER = 30  # incidents that are played at once


def publish_adapters(runs: Path) -> None:
    """Copy the adapter of each finished stage but a control into the results, in 16 bit."""
    from safetensors.torch import load_file, save_file  # imports torch

    published = [runs / name for name in STAGES if name not in CONTROLS]
    for source in (folder for folder in published if folder.is_dir()):
        target = FOLDER / source.relative_to(runs)
        target.mkdir(parents=True, exist_ok=True)
        weights = load_file(source / ADAPTER)
        save_file({name: weight.half() for name, weight in weights.items()}, target / ADAPTER)
        for name in ("adapter_config.json", "base.json"):
            if (source / name).exists():
                shutil.copy(source / name, target / name)


def stage_players(runs: Path) -> list[Player]:
    """The model as it is, every stage that is published, and the controls in `runs`, each in both
    ways.
    """
    sources: dict[str, str | Path] = {"zero-shot": SMOLLM2}
    for name, stage in STAGES.items():
        folder = (runs if name in CONTROLS else FOLDER) / name
        if folder.is_dir():
            sources[stage] = folder
    return [
        in_memory(source, f"{stage}, {way}", constrained=constrained)
        for stage, source in sources.items()
        for way, constrained in WAYS.items()
    ]


def count_malformed(result: Result) -> dict[str, Any]:
    """How many calls an episode made, and how many of them were refused."""
    answers = [step.observation for step in result.episode.history]
    return {"calls": len(answers), "malformed": sum(bool(answer.error) for answer in answers)}


def play_stages(runs: Path, incidents: int, new: int) -> None:
    """Play every stage on the first incidents of `test`, and the taught model, by the grammar, on
    the first `new` incidents of the splits that hold something new. Goes on where it was stopped.
    """
    players = stage_players(runs)
    taught = [player for player in players if player.name == f"{STAGES[TAUGHT]}, constrained"]
    for split in NEW:
        playing, count = (players, incidents) if split == "test" else (taught, new)
        plan = Plan([*TASKS], split, count)
        with open_table(RESULTS / FILE, playing, plan, TOGETHER) as journal:
            evaluate(playing, plan, journal, count_malformed, TOGETHER)


def _beside(frame: pd.DataFrame, track: str, names: dict[str, str]) -> pd.DataFrame:
    """The reference and the first seed of a track's agent, under these names, on the incidents of a
    frame.
    """
    scripts = read("benchmark/episodes.parquet")
    embedded = played_by(track)[0]
    embedded = embedded[embedded["policy"].isin(names)].replace({"policy": names})
    rows = pd.concat([scripts[scripts["policy"] == REFERENCE], embedded])
    return rows.merge(frame[KEYS].drop_duplicates(), on=KEYS)


def _on_test() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The episodes of all stages on `test`, and those of others on the same incidents."""
    frame = read(FILE)
    frame = frame[frame["split"] == "test"]
    names = {"base": "embedded agent, base", "trained": "embedded agent, after GRPO"}
    return frame, _beside(frame, "novice", names)


def stages_table() -> str:
    """Scores of all stages with their intervals, and what became of faults and false alarms."""
    frame, beside = _on_test()
    everyone = pd.concat([frame, beside])
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


def new_splits_table() -> str:
    """Shares of the reference's score on each split, of SmolLM2 and the embedded agent, both taught
    by an expert.
    """
    frame = read(FILE)
    frame = frame[frame["policy"] == f"{STAGES[TAUGHT]}, constrained"]
    names = {"base": "embedded agent, taught", "trained": "the same after GRPO"}
    everyone = pd.concat([frame, _beside(frame, "expert", names)])
    scores = policy_scores(
        everyone.replace({"policy": {frame["policy"].iloc[0]: "SmolLM2, taught"}})
    )
    shares = scores[scores["policy"] != REFERENCE].pivot(
        index="split", columns="policy", values="share_of_reference"
    )
    counts = frame.groupby("split")["index"].nunique()
    rows = [
        {"split": f"`{split}`", "what is new": NEW[split], "incidents of each task": str(count)}
        | {name: shares[name][split] for name in ("SmolLM2, taught", *names.values())}
        for split, count in counts.reindex([split for split in NEW if split in counts]).items()
    ]
    return table(
        rows,
        f"Shares of `{REFERENCE}`'s mean score on the same incidents, with 95 % intervals; one seed"
        " of each.",
    )


def stage_facts() -> dict[str, Any]:
    """Mean scores over the tasks, where the grammar holds: `smollm2.zero` as the model is, and
    `smollm2.expert` after an expert's lessons; `smollm2.incidents` of each task.
    """
    frame, _ = _on_test()
    means = frame.groupby(["policy", "task"])["score"].mean().groupby("policy").mean()
    stages = {"zero": "zero-shot, constrained", "expert": "expert's lessons, constrained"}
    numbers: dict[str, Any] = {f"smollm2.{name}": means[stage] for name, stage in stages.items()}
    return numbers | {"smollm2.incidents": f"{frame['index'].nunique()}"}


def plot_stages() -> Picture:
    """Plot the stages that the grammar holds, beside the embedded agent and the reference."""
    frame, beside = _on_test()
    held = frame[frame["policy"].str.endswith("constrained")]
    shorter = held["policy"].str.removesuffix(", constrained")
    return plot_policies(pd.concat([held.assign(policy=shorter), beside]))
