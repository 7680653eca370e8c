"""What each estimator of credit knows of what a call was worth: forks of sampled episodes.

    python scripts/credit.py --checkpoint runs/teaches/recipe/seed-0/checkpoint-40

A line an incident goes to `runs/credit/<policy>.jsonl`, and a rerun goes on from there. Written to
results/credit/: `forks.parquet`, a row a call (see `training.forks`); `estimators.json` and
`baseline.json` (see `measure.credit_truth`); and the figure. After a change of an estimator delete
the folder: its lines hold what it gave. An incident of 8 episodes, each state forked 16 times,
takes 2 to 60 seconds of a core, 8 to 15 on average: 6 to 12 minutes for two policies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from logtriage.bench.credit_plots import plot_credit
from logtriage.bench.credit_truth import MEASURES, baseline_bias, compare_credits
from logtriage.bench.runs import weights_digest
from logtriage.policies.llm.language_models import LanguageModelPolicy
from logtriage.policies.llm.loading import load_language_model
from logtriage.train.credit import CREDITS, call_advantages
from logtriage.train.forks import fork_incidents, forked_incidents
from logtriage.train.presets import make_config
from logtriage.train.settings import TrainingConfig

ROOT = Path(__file__).resolve().parents[1]


def sampling_policy(weights: Path, name: str, config: TrainingConfig) -> LanguageModelPolicy:
    """The model in a folder, which plays as in training with these settings."""
    model, tokenizer = load_language_model(weights)
    return LanguageModelPolicy(
        model.eval(),
        tokenizer,
        name=name,
        temperature=config.temperature,
        turn_tokens=config.turn_tokens,
        completion_tokens=config.completion_tokens,
    )


def policy_name(weights: Path) -> str:
    """What a folder of weights is called: `base`, or track, run and folder, as in
    `novice-seed-0-checkpoint-40`.
    """
    resolved = weights.resolve()
    return "base" if resolved.name == "base" else "-".join(resolved.parts[-3:])


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is printed: each measure with its interval as one text."""
    texts = table[["policy", "estimator", "by", "part", "calls", "incidents"]].copy()
    for measure in MEASURES:
        ends = zip(*(table[f"{measure}{end}"] for end in ("", "_low", "_high")), strict=True)
        texts[measure] = [f"{mean:.3f} [{low:.3f}, {high:.3f}]" for mean, low, high in ends]
    return texts


def main(
    model: Annotated[Path, typer.Option(help="Folder of the base model.")] = ROOT
    / "runs/novice/base",
    checkpoint: Annotated[list[Path] | None, typer.Option(help="Weights of its training.")] = None,
    incidents: Annotated[int, typer.Option(min=2, help="How many, the tasks in turn.")] = 24,
    forks: Annotated[int, typer.Option(min=2, help="Of each state.")] = 16,
    folder: Annotated[Path, typer.Option(help="Where finished incidents are kept.")] = ROOT
    / "runs/credit",
    results: Annotated[Path, typer.Option(help="Where tables and figure go.")] = ROOT
    / "results/credit",
) -> None:
    """Fork the incidents' episodes with each of these weights, and compare the estimators."""
    config = make_config("mini", model=str(model))
    played = forked_incidents(config, incidents)
    frames, tables, baselines = [], [], []
    for weights in (model, *(checkpoint or ())):
        name = policy_name(weights)
        policy = sampling_policy(weights, name, config)
        path = folder / f"{name}-{weights_digest(weights)}.jsonl"  # other weights, another file
        frame = fork_incidents(policy, path, played, forks, call_advantages, CREDITS)
        frames.append(frame.assign(policy=name))
        tables.append(compare_credits(frame).assign(policy=name))
        baselines.append(baseline_bias(frame).assign(policy=name))
    table, baseline = pd.concat(tables, ignore_index=True), pd.concat(baselines, ignore_index=True)
    results.mkdir(parents=True, exist_ok=True)
    pd.concat(frames, ignore_index=True).to_parquet(results / "forks.parquet", index=False)
    table.to_json(results / "estimators.json", orient="records", indent=1)
    baseline.to_json(results / "baseline.json", orient="records", indent=1)
    plot_credit(table).save(results / "credit.png")
    print(shown(table).to_string(index=False))
    print(baseline.round(3).to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
