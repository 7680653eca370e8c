"""A whole experiment in a folder: base model, GRPO run, evaluation on held-out incidents, summary.

    runs/novice/base/   the base model (see `base_model`)
    runs/novice/seed-0/ the run (see `grpo`), and then

| file | what |
|---|---|
| `evaluation.parquet` | one row per episode: base, trained and scripts on the same incidents |
| `checkpoints.parquet` | likewise, of the model at each checkpoint, on the first few of them |
| `splits.parquet` | likewise, of base and trained on the splits that hold something new |
| `audit.parquet` | whether base and trained knew what they answered (see `bench.audit`) |
| `transcripts.json` | the same incident before and after training |
| `summary.json` | the table that is printed, and every stratum before and after |
| `*.png` | the figures |

An episode that is there with the same key (see `bench.registry.Player`) is not played again, so the
same command continues what was interrupted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..bench.audit import judge_result
from ..bench.evaluation import evaluate
from ..bench.intervals import (
    Interval,
    mean_interval,
    paired_gain,
    share_of_ceiling,
    two_way_mean,
    two_way_share,
)
from ..bench.registry import Player, in_memory, scripted
from ..bench.rollouts import Judge, Plan
from ..bench.runs import model_of, record_of, step_of, write_text
from ..bench.strata import gains, label, stratum_changes
from ..play.conversation import Message
from ..play.episode import Episode, final_score
from ..policies.llm.language_models import TURN_TOKENS
from ..policies.llm.loading import quantised_name, runnable
from ..world.incidents import sample_incident
from ..world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from .base_model import build_base, build_expert
from .drills import TUNING_INDEX

REFERENCES = ("novice", "loudest", "trace", "belief", "oracle")
# Scores that make an incident worth showing before and after training: the base fails at it below
# the first, the trained model solves it above the second.
FAILED_BELOW, SOLVED_ABOVE = 0.4, 0.8
CEILING = "belief"  # shares are of its score
TEACHER = "trace"  # the expert that one track imitates
# Of the strata, those in a table; all are in `summary.json`.
DETECTION = ("faults_detected", "false_alarms_dismissed", "faults_dismissed")


def first_of(split: str) -> int:
    """The first held-out incident of a split: of `train`, that of a slice which settings are chosen
    on, and nothing is trained on.
    """
    return TUNING_INDEX if split == "train" else 0


def base_for(preset: str, folder: str | Path, base: str | Path = "", **options: Any) -> Path:
    """The base model that a preset for a CPU starts from, built where it is not there yet.

    Args:
        preset: `novice`, `expert` or `general`.
        folder: of the track; its base is `base/` in there.
        base: another base to start from, or to make an expert of.
        options: of `build_base`.
    """
    folder = Path(folder)
    if preset == "expert":
        return build_expert(folder / "base", build_base(base or folder / "novice", **options))
    return build_base(base or folder / "base", general=preset == "general", **options)


def model_player(run: Path, weights: Path | None, name: str) -> Player:
    """A run's model as a greedy policy: with the weights or the adapter in a folder, or, for None,
    as it started.
    """
    settings = record_of(run)["settings"]
    base, in_4bit = runnable(model_of(run), settings["load_in_4bit"])
    adapter = weights if weights and (weights / "adapter_config.json").exists() else None
    source = weights if weights and not adapter else base
    return in_memory(
        quantised_name(source) if in_4bit else source,
        name,
        in_4bit,
        adapter,
        turn_tokens=max(TURN_TOKENS, settings["turn_tokens"]),
    )


def before_and_after(run: Path) -> dict[str, Player]:
    """The run's model before GRPO, and, where training has ended, as it is now. Before GRPO means
    after the warm-up, where there was one: the gain is GRPO's alone.
    """
    warm = run / "warm-up"
    players = {"base": model_player(run, warm if warm.exists() else None, "base")}
    if (run / "model").exists():
        players["trained"] = model_player(run, run / "model", "trained")
    return players


def _results(
    path: Path,
    players: Iterable[Player],
    splits: Sequence[str],
    episodes: int,
    batch: int = 100,
    progress: bool = True,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """The rows of all players on the first held-out incidents of the splits: those in the file, or
    in the same file of another run of the sweep; the others are played. The file then holds them
    all, and what else it held of the same models.
    """
    players = list(players)
    kept, frames, added = _read(path), [], False
    for split in splits:
        plan = Plan(list(TASKS), split, episodes, first_of(split))
        for player in players:
            rows = _planned(kept, player.key, plan)
            if rows is None:
                rows, added = _beside(path, player.key, plan), True
            if rows is None:
                rows = evaluate([player], plan, None, judge, batch, progress=progress).frame
                rows = rows.assign(weights=weights_of(player), key=player.key)
                if player.name.startswith("checkpoint-"):
                    rows = rows.assign(step=step_of(player.name))
            frames.append(rows)
    found = pd.concat(frames, ignore_index=True)
    if added:
        keys = {player.name: player.key for player in players}
        stale = [keys.get(row.policy, row.key) != row.key for row in kept.itertuples()]
        everything = pd.concat([found, kept[~np.array(stale, bool)]], ignore_index=True)
        everything = everything.drop_duplicates(["policy", "task", "split", "index"])
        partial = path.with_name(path.name + ".partial")  # another run may read it meanwhile
        everything.to_parquet(partial, index=False)
        partial.replace(path)
    return found


def _read(path: Path) -> pd.DataFrame:
    """The rows of a file that have a key; none where there is no file."""
    frame = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    return frame if "key" in frame else frame.head(0)


def _planned(frame: pd.DataFrame, key: str, plan: Plan) -> pd.DataFrame | None:
    """The rows of a plan; None when any is missing."""
    if not len(frame):
        return None
    same = (frame["key"] == key) & (frame["split"] == plan.split)
    same &= frame["index"].isin(plan.indices)
    return frame[same] if same.sum() == len(plan.keys) else None


def _beside(path: Path, key: str, plan: Plan) -> pd.DataFrame | None:
    """The rows of a plan in the same file of another run of the sweep; None when there are none."""
    sweep = path.resolve().parents[:3][-1]  # sweep/row/run/file
    found = (_planned(_read(file), key, plan) for file in sweep.glob(f"*/seed-*/{path.name}"))
    return next((rows for rows in found if rows is not None), None)


def weights_of(player: Player) -> str:
    """The digest of the weights that were trained; empty for a script."""
    return player.settings.get("adapter") or player.settings.get("weights", "")


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    progress: bool = True,
) -> pd.DataFrame:
    """Play the run's model before training, after it where that has ended, and scripted policies on
    the same held-out incidents. Kept in `evaluation.parquet`, beside other splits.

    Args:
        run: folder.
        episodes: incidents of each task.
        split: of the incidents; of `train` it is the tuning slice, see `first_of`.
        references: names of scripted policies.
        batch: incidents handed to a policy at once.
        progress: whether to show bars.

    Returns:
        The rows of `base`, `trained` and the references, with the columns `weights` and `key`.
    """
    path = Path(run) / "evaluation.parquet"
    players = [*before_and_after(path.parent).values(), *map(scripted, references)]
    return _results(path, players, [split], episodes, batch, progress)


def evaluate_checkpoints(
    run: str | Path, episodes: int = 60, batch: int = 100, progress: bool = True
) -> pd.DataFrame:
    """Play every checkpoint on the first incidents of `test`; kept in
    `checkpoints.parquet`. `FileNotFoundError` when there is none.
    """
    path = Path(run) / "checkpoints.parquet"
    folders = sorted(path.parent.glob("checkpoint-*"), key=step_of)
    if not folders:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    players = [model_player(path.parent, folder, folder.name) for folder in folders]
    return _results(path, players, ["test"], episodes, batch, progress)


def evaluate_splits(run: str | Path, episodes: int = 100) -> pd.DataFrame:
    """Play the run's model, before and after, on the splits that hold something new. Kept in
    `splits.parquet`.
    """
    path = Path(run) / "splits.parquet"
    new = [split for split in SPLITS if split.startswith("unseen")]
    return _results(path, before_and_after(path.parent).values(), new, episodes)


def audit_run(run: str | Path, episodes: int = 200) -> pd.DataFrame:
    """Audit the run's model, before and after, on `test` (see `bench.audit`). Kept in
    `audit.parquet`.
    """
    path = Path(run) / "audit.parquet"
    players = before_and_after(path.parent).values()
    return _results(path, players, ["test"], episodes, 50, judge=judge_result)


def compare_transcripts(run: str | Path) -> dict[str, Any]:
    """Conversations about the same cascade of `test`, before and after training; kept in
    `transcripts.json`.

    It is the first one that the base fails and the trained model solves: a choice made to show a
    difference. `telling` is False when there is none such, and the first incident stands in.
    Averages are in `evaluation.parquet`.
    """
    run, task, split = Path(run), "cascading_failure", "test"
    path, models = run / "transcripts.json", before_and_after(run)
    weights = {name: weights_of(player) for name, player in models.items()}
    asked = {"task": task, "split": split, "weights": weights, "benchmark": BENCHMARK_VERSION}
    if path.exists():
        kept = json.loads(path.read_text())
        if all(kept.get(key) == value for key, value in asked.items()):
            return kept
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    evaluation = evaluation[(evaluation.task == task) & (evaluation.split == split)]
    scores = evaluation.pivot_table(index="index", columns="policy", values="score")
    solved = scores[(scores.trained > SOLVED_ABOVE) & (scores.base < FAILED_BELOW)]
    index = int((solved if len(solved) else scores).index[0])
    comparison: dict[str, Any] = {**asked, "index": index, "telling": bool(len(solved))}
    incident = sample_incident(task, split, index)
    for name, player in models.items():
        policy, episode = player.make(0), Episode(incident)
        (played,) = policy.play([episode])
        score = final_score(episode)._asdict()
        comparison[name] = {"score": score, "messages": list(played.messages)}
    truth = ("root", "severity", "remedy", "team")
    comparison["truth"] = {name: getattr(incident, name) for name in truth}
    write_text(path, json.dumps(comparison, indent=1) + "\n")
    return comparison


def tell(messages: list[Message]) -> str:
    """A conversation as plain text, without the system prompt."""
    lines = []
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            values = ", ".join(map(str, function["arguments"].values()))
            lines.append(f">>> {function['name']}({values})")
        if message["content"]:
            indent = "    " if message["role"] != "assistant" else ">>> "
            lines += [indent + line for line in message["content"].splitlines()]
    return "\n".join(lines)


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per task, written to `summary.json`: base, trained, and the paired gain, each with
    its 95 % interval; the references; and each stratum before and after (see `bench.strata`).
    """
    base, trained = (evaluation[evaluation.policy == name] for name in ("base", "trained"))
    changes, rows = stratum_changes(base, trained), []
    for task, part in evaluation.groupby("task", sort=False):
        before, after = (part[part.policy == name] for name in ("base", "trained"))
        (benchmark,) = part["benchmark"].unique()
        row = {
            "task": task,
            "benchmark": benchmark,
            "episodes": len(before),
            "base": mean_interval(before["score"]),
            "trained": mean_interval(after["score"]),
            "gain": paired_gain(before, after),
            "root_cause_base": before["root_cause"].mean(),
            "root_cause_trained": after["root_cause"].mean(),
        }
        for name in REFERENCES:
            reference = part[part.policy == name]
            if len(reference):
                row[name] = reference["score"].mean()
        if CEILING in row:
            row[f"share_of_{CEILING}"] = share_of_ceiling(after, part[part.policy == CEILING])
        rows.append({**row, **_strata_of(changes[changes.task == task])})
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_text(Path(run) / "summary.json", f"[\n{lines}\n]\n")
    return rows


def _strata_of(changes: pd.DataFrame) -> dict[str, Any]:
    """One task's rows of `stratum_changes` by stratum, and where it has groups by group."""
    strata: dict[str, Any] = {}
    for row in changes.itertuples():
        cell = {
            "incidents": row.incidents,
            "base": round(row.base, 4),
            "trained": round(row.trained, 4),
            # None where there are too few incidents for an interval
            "change": None
            if math.isnan(row.low)
            else [round(value, 4) for value in (row.change, row.low, row.high)],
            "fell": row.fell,
        }
        if row.group:
            strata.setdefault(row.stratum, {})[row.group] = cell
        else:
            strata[row.stratum] = cell
    return strata


def summary_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """`summarise_run`'s rows (or `summary.json` read back) as text cells; of the strata, faults and
    false alarms.
    """

    def cell(value: Any) -> Any:
        if isinstance(value, dict):
            return f"{value['base']:.2f} → {value['trained']:.2f}"
        if isinstance(value, (list, tuple)):
            return f"{Interval(*value):.2f}"
        return f"{value:.2f}" if isinstance(value, float) else value

    table = pd.DataFrame(
        {
            label(key) if key in DETECTION else key.replace("_", " "): cell(value)
            for key, value in row.items()
            if key in DETECTION or not isinstance(value, dict)
        }
        for row in rows
    )
    return table.fillna("-")


def summarise_seeds(runs: Sequence[str | Path]) -> pd.DataFrame:
    """Several training seeds together, from what their `evaluation.parquet` holds of `test`.

    Returns:
        One row per task: task, benchmark, seeds and episodes (incidents of each); base, trained and
        gain, means over seeds with intervals in which seeds and incidents are resampled;
        share_of_belief and over_trace (how much better than that script) likewise, None unless
        every run has played those; smallest_gain, of a seed; the references' mean scores; and the
        shares of `DETECTION` before and after, nan where a task has none.

    Raises:
        ValueError: when the runs were not evaluated on the same incidents.
    """
    frames = [pd.read_parquet(Path(run) / "evaluation.parquet") for run in runs]
    frames = [frame[frame["split"] == "test"] for frame in frames]
    base, trained = ([one[one.policy == name] for one in frames] for name in ("base", "trained"))
    changes, gained, rows = stratum_changes(base, trained), gains(base, trained), []
    played = [name for name in REFERENCES if all((one.policy == name).any() for one in frames)]
    for task in gained:
        scores = {  # of a policy in all runs, (seeds, incidents)
            policy: np.stack(
                [
                    one[(one.task == task) & (one.policy == policy)].sort_values("index")["score"]
                    for one in frames
                ]
            )
            for policy in ("base", "trained", *played)
        }
        before, after = scores["base"], scores["trained"]
        row: dict[str, Any] = {
            "task": task,
            "benchmark": frames[0]["benchmark"].iloc[0],
            "seeds": len(frames),
            "episodes": before.shape[1],
            "base": two_way_mean([before]),
            "trained": two_way_mean([after]),
            "gain": gained[task],
            f"share_of_{CEILING}": None,
            f"over_{TEACHER}": None,
            "smallest_gain": (after - before).mean(axis=1).min(),
            **{name: scores[name].mean() for name in played},
        }
        if CEILING in played:
            row[f"share_of_{CEILING}"] = two_way_share(after, scores[CEILING][0])
        if TEACHER in played:
            row[f"over_{TEACHER}"] = two_way_mean([after - scores[TEACHER]])
        strata = changes[(changes.task == task) & (changes.group == "")].set_index("stratum")
        for name in DETECTION:
            for policy in ("base", "trained"):
                row[f"{name}_{policy}"] = strata[policy].get(name, float("nan"))
        rows.append(row)
    return pd.DataFrame(rows)


def first_and_last(episodes: pd.DataFrame, count: int = 10) -> pd.DataFrame:
    """The model card's table: mean training score of the first and the last `count` incidents of
    each task.

    One completion of each incident counts, so that the ten are ten different ones. Where first and
    last would share some, it says "too few": they would be compared with themselves.
    """
    rows = []
    for task, group in episodes.drop_duplicates(["task", "index"]).groupby("task", sort=False):
        values: list[Any] = ["too few"] * 3
        if len(group) >= 2 * count:
            first, last = group["score"].iloc[:count].mean(), group["score"].iloc[-count:].mean()
            values = [first, last, last - first]
        columns = (f"first {count}", f"last {count}", "change")
        rows.append(
            {"task": task, **dict(zip(columns, values, strict=True)), "incidents": len(group)}
        )
    return pd.DataFrame(rows)
