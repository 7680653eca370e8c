"""One whole experiment in a folder: base model, GRPO run, held-out evaluation, figures, summary.

    runs/demo/base/       the base model
    runs/demo/seed-0/     the run (see `training`), then
        evaluation.parquet  a row an episode of base, trained and scripted policies, all on the same incidents
        transcripts.json    the same incident before and after training
        summary.json        the table that is printed
        *.png               the figures

Every step is skipped when its result is there, so the same command continues what was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .incidents import TASKS
from .policies import make_policy
from .rollouts import rollout
from .statistics import mean_interval, paired_gain

REFERENCES = ("loudest", "trace", "oracle")


def read_jsonl(path: str | Path) -> pd.DataFrame:
    """A JSONL file as a frame; `FileNotFoundError` says which command makes it."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `make demo` or notebook 03 first")
    return pd.read_json(path, lines=True)


def evaluate_run(
    run: str | Path,
    base: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Greedy rollouts of the base and the trained model, and of scripted policies, on the same held-out incidents.

    Results are kept in `evaluation.parquet`, policy by policy; finished ones are not played again.

    Raises:
        ValueError: when the file holds another split or number of episodes.
    """
    run = Path(run)
    path = run / "evaluation.parquet"
    frame = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    if len(frame):
        held = (set(frame["split"]), int(frame.groupby(["policy", "task"]).size().min()))
        if held != ({split}, episodes):
            raise ValueError(
                f"{path} holds split {held[0]} with {held[1]} episodes a task, not {split} with {episodes}; "
                "move it away to evaluate anew"
            )
    for name in ("base", "trained", *references):
        if len(frame) and name in set(frame["policy"]):
            continue
        if name in references:
            policy = make_policy(name)
        else:
            from .language_models import LanguageModelPolicy, load_language_model

            policy = LanguageModelPolicy(*load_language_model(base if name == "base" else run / "model"), name=name)
        rows = rollout(policy, list(TASKS), split, episodes, batch=batch, progress=progress)
        frame = pd.concat([frame, rows], ignore_index=True)
        frame.to_parquet(path, index=False)
    return frame


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """A row a task: base, trained, and the paired gain, each with its 95 % interval; written to `summary.json`."""
    rows = []
    for task, part in evaluation.groupby("task", sort=False):
        base, trained = (part[part.policy == name] for name in ("base", "trained"))
        rows.append(
            {
                "task": task,
                "episodes": len(base),
                "base": mean_interval(base["score"]),
                "trained": mean_interval(trained["score"]),
                "gain": paired_gain(base, trained),
                "root_cause_base": base["root_cause"].mean(),
                "root_cause_trained": trained["root_cause"].mean(),
                **{name: part[part.policy == name]["score"].mean() for name in REFERENCES if (part.policy == name).any()},
            }
        )
    (Path(run) / "summary.json").write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def summary_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """`summarise_run`'s rows (or `summary.json` read back) as text cells."""

    def cell(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return "{:.2f} [{:.2f}, {:.2f}]".format(*value)
        return f"{value:.2f}" if isinstance(value, float) else value

    return pd.DataFrame([{key.replace("_", " "): cell(value) for key, value in row.items()} for row in rows])


def first_and_last(episodes: pd.DataFrame, count: int = 10) -> pd.DataFrame:
    """The model card's table: mean training score of the first and the last `count` episodes of each task."""
    rows = []
    for task, group in episodes.groupby("task", sort=False):
        scores = group["score"].to_numpy()
        rows.append(
            {
                "task": task,
                f"first {count}": scores[:count].mean(),
                f"last {count}": scores[-count:].mean(),
                "change": scores[-count:].mean() - scores[:count].mean(),
                "episodes in all": len(scores),
            }
        )
    return pd.DataFrame(rows)


def compare_transcripts(
    run: str | Path, base: str | Path, task: str = "cascading_failure", split: str = "test"
) -> dict[str, Any]:
    """The same held-out incident told twice, before and after training; kept in `transcripts.json`.

    The incident is the first one of the split that the trained model scores above 0.8 and the base below 0.4, which is
    a choice made to show a difference; averages are in `evaluation.parquet`.
    """
    from .episode import Episode
    from .incidents import sample_incident
    from .language_models import LanguageModelPolicy, load_language_model

    path = Path(run) / "transcripts.json"
    if path.exists():
        return json.loads(path.read_text())
    evaluation = pd.read_parquet(Path(run) / "evaluation.parquet")
    scores = evaluation[evaluation.task == task].pivot_table(index="index", columns="policy", values="score")
    telling = scores[(scores.trained > 0.8) & (scores.base < 0.4)]
    index = int((telling if len(telling) else scores).index[0])
    told: dict[str, Any] = {"task": task, "split": split, "index": index}
    for name, source in (("base", base), ("trained", Path(run) / "model")):
        policy = LanguageModelPolicy(*load_language_model(source), name=name)
        episode = Episode(sample_incident(task, split, index))
        policy.play([episode])
        told[name] = {"score": episode.score._asdict(), "messages": policy.transcripts[0]}
    told["truth"] = {
        "root": episode.incident.root,
        "severity": episode.incident.severity,
        "remedy": episode.incident.remedy,
        "team": episode.incident.team,
    }
    path.write_text(json.dumps(told, indent=1) + "\n")
    return told


def tell(messages: list[dict[str, Any]]) -> str:
    """A conversation as plain text, without the system prompt."""
    lines = []
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            lines.append(f">>> {function['name']}({', '.join(map(str, function['arguments'].values()))})")
        if message["content"]:
            indent = "    " if message["role"] != "assistant" else ">>> "
            lines += [indent + line for line in message["content"].splitlines()]
    return "\n".join(lines)
