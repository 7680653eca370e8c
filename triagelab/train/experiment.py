"""A whole experiment in a folder: base model, GRPO run, evaluation on held-out incidents, summary.

It adds figures to what training leaves in a run's folder (see `grpo`), and these files:

| file | what |
|---|---|
| `evaluation.parquet` | one row per episode: base, trained and scripts on the same incidents |
| `checkpoints.parquet` | the same for the model at each checkpoint, on the first few incidents |
| `splits.parquet` | the same for base and trained, on the splits that hold something new |
| `audit.parquet` | whether base and trained knew what they answered (see `bench.audit`) |
| `transcripts.json` | the same incident before and after training |
| `summary.json` | means, gains and strata before and after (see `bench.score_tables`) |

An episode that is there under the same key (see `bench.registry.Player`) is not played again.
"""

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from logtriage.play.conversation import Message
from logtriage.play.episode import Episode, final_score
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS

from ..bench.audit import judge_result
from ..bench.evaluation import evaluate
from ..bench.registry import POLICIES, Player, in_memory, scripted
from ..bench.replay import key_of
from ..bench.rollouts import Judge, Key, Plan, Result, frame_of
from ..bench.runs import locked, read_jsonl, settings_of, step_of, write_text
from ..bench.score_tables import REFERENCES, summarise
from ..language_models.language_models import TURN_TOKENS
from ..language_models.loading import located, quantised_name, runnable
from ..realistic.production_episode import PRODUCTION
from .base_model import build_base, build_expert
from .drills import TUNING_INDEX

# Scores below which the base fails at an incident, and above which the trained model solves it.
FAILED_BELOW, SOLVED_ABOVE = 0.4, 0.8


def base_for(preset: str, track: Path, base: str = "auto", **options: Any) -> str:
    """Name or folder of the base model that the preset `novice` or `expert` starts from.

    Args:
        track: the folder of the track's runs; an expert is made in its `base/`.
        base: `built` is the one in `base/` of the novice's track, built by `options` if it is not
            there yet; `auto` is that one if it is there, else the package's; else it is a folder.
    """
    built = (track.parent / "novice" if preset == "expert" else track) / "base"
    if base == "auto" and not (built / "base.json").exists():
        name, start = "base", located("base")
    else:
        name = str(built if base in ("auto", "built") else base)
        start = build_base(name, **options)
    return str(build_expert(track / "base", start)) if preset == "expert" else name


def turn_tokens_of(settings: dict[str, Any]) -> int:
    """New tokens of a turn when a run's model is evaluated or used: no fewer than in training."""
    return max(TURN_TOKENS, settings["turn_tokens"])


def model_player(run: Path, weights: Path | None, name: str) -> Player:
    """A run's model, greedy, with the weights or adapter in a folder, or as it started (None)."""
    settings = settings_of(run)
    base, in_4bit = runnable(settings["model"], settings["load_in_4bit"])
    adapter = weights if weights and (weights / "adapter_config.json").exists() else None
    source = weights if weights and not adapter else base
    source = quantised_name(source) if in_4bit else source
    options = {"turn_tokens": turn_tokens_of(settings), "constrained": settings["constrained"]}
    return in_memory(source, name, in_4bit, adapter, **options)


def before_and_after(run: Path) -> dict[str, Player]:
    """The run's model before GRPO (`base`) and, once training has ended, after it (`trained`).
    If there was a warm-up, `base` comes after it, so that the gain is GRPO's alone.
    """
    warm = run / "warm-up"
    players = {"base": model_player(run, warm if warm.exists() else None, "base")}
    if (run / "model").exists():
        players["trained"] = model_player(run, run / "model", "trained")
    return players


class Kept:
    """The rows of a run's Parquet file that belong to a plan and these players; `evaluate` reads
    them and adds more. Other rows stay in the file, unless another model of the same name made
    them. A script that is not finished starts again: its random numbers are one stream.
    """

    def __init__(self, path: Path, players: Sequence[Player], plan: Plan, every: int) -> None:
        self.path, self.plan, self.every = path, plan, every
        self.players = {player.name: player for player in players}
        self.rows: dict[tuple[str, Key], dict[str, Any]] = {}
        self.others = pd.DataFrame()
        if path.exists():
            frame = pd.read_parquet(path)
            keys = frame["policy"].map({player.name: player.key for player in players})
            asked = (frame["split"] == plan.split) & frame["index"].isin(plan.indices)
            asked &= frame["key"] == keys
            self.rows = {key_of(row): row for row in frame[asked].to_dict("records")}
            self.others = frame[~asked & (keys.isna() | (frame["key"] == keys))]
        scripts = {player.name for player in self.short() if player.name in POLICIES}
        self.rows = {at: row for at, row in self.rows.items() if at[0] not in scripts}

    def short(self) -> list[Player]:
        """The players that have not played the whole plan."""
        keys = self.plan.keys
        players = self.players.values()
        return [one for one in players if not all((one.name, key) in self.rows for key in keys)]

    def add(self, result: Result) -> None:
        """Add an episode. The file is written after every `every` of them."""
        row, player = result.row, self.players[result.row["policy"]]
        row.update(weights=weights_of(player), key=player.key)
        if player.name.startswith("checkpoint-"):
            row["step"] = step_of(player.name)
        self.rows[key_of(row)] = row
        if len(self.rows) % self.every == 0:
            self.write()

    def write(self) -> None:
        rows = {name: list[dict[str, Any]]() for name in self.players}
        for (name, _), row in self.rows.items():
            rows[name].append(row)
        frames = [*(frame_of(each, self.plan.names) for each in rows.values()), self.others]
        partial = self.path.with_name(self.path.name + ".partial")
        pd.concat([one for one in frames if len(one)]).to_parquet(partial, index=False)
        partial.replace(self.path)


def _results(
    path: Path,
    players: Sequence[Player],
    splits: Sequence[str],
    episodes: int,
    batch: int = 100,
    judge: Judge | None = None,
    deadline: float = math.inf,
) -> pd.DataFrame:
    """The rows of all players on the first held-out incidents of the splits. Episodes that the file
    lacks are played; models share the time until the deadline equally.
    """
    frames = []
    with locked(path):  # it is written whole, so another process would lose what this one adds
        for split in splits:
            # In `train`, take the slice for choosing settings, on which nothing is trained.
            plan = Plan(list(TASKS), split, episodes, TUNING_INDEX if split == "train" else 0)
            kept = Kept(path, players, plan, batch)
            short = kept.short()
            models = [player for player in short if player.name not in POLICIES]
            for player in players:
                until, now = math.inf, time.perf_counter()
                if player in models:
                    until = now + (deadline - now) / len(models)
                    models.remove(player)
                frames.append(evaluate([player], plan, kept, judge, batch, deadline=until).frame)
            if short and kept.rows:
                kept.write()
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)


def weights_of(player: Player) -> str:
    """The digest of the weights that were trained; empty for a script."""
    return player.settings.get("adapter") or player.settings.get("weights", "")


def same_incidents(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the incidents that every policy of an evaluation has played."""
    players = frame.groupby(["task", "index"])["policy"].transform("nunique")
    return frame[players == frame["policy"].nunique()]


def incidents_played(run: Path) -> int:
    """How many incidents of `test` every policy of a run's evaluation has played, in the task with
    the fewest. `ValueError` if a task has none.
    """
    frame = pd.read_parquet(run / "evaluation.parquet")
    counts = same_incidents(frame[frame["split"] == "test"]).groupby("task")["index"].nunique()
    if counts.size < len(TASKS):
        raise ValueError(
            f"the hours did not suffice for a batch of each task in {run}; raise them, or lower "
            "what is played at once"
        )
    return int(counts.min())


def incidents_told(evaluation: pd.DataFrame) -> str:
    """How many incidents of each task an evaluation has: `40`, or `24 to 40`."""
    counts = evaluation.groupby("task")["index"].nunique()
    return " to ".join(map(str, sorted({counts.min(), counts.max()})))


def refuse_production(run: Path) -> None:
    """Raise `ValueError` for a run on `production`, which nothing here can measure."""
    if PRODUCTION in settings_of(run)["shares"]:
        raise ValueError(
            f"{run} was trained on {PRODUCTION}; play it by `evaluate --task {PRODUCTION} --model "
            f"BASE --adapter {run}/model`"
        )


def evaluate_run(
    run: str | Path,
    episodes: int = 200,
    split: str = "test",
    references: Sequence[str] = REFERENCES,
    batch: int = 100,
    hours: float = math.inf,
) -> pd.DataFrame:
    """Play the run's model and scripts (`references`) on `episodes` held-out incidents of each
    task, `batch` at once. The model plays as it was before training, after it if that has ended,
    and before a warm-up if there was one (`start`). The models share the `hours`: none begins a
    batch that would not end in its part. Returns the rows on the incidents that all have played.
    """
    run, deadline = Path(run), time.perf_counter() + 3600 * hours
    players = [*before_and_after(run).values()]
    if (run / "warm-up").exists():
        players.append(model_player(run, None, "start"))
    players += map(scripted, references)
    path = run / "evaluation.parquet"
    return same_incidents(_results(path, players, [split], episodes, batch, None, deadline))


def evaluate_checkpoints(run: str | Path, episodes: int = 60, batch: int = 100) -> pd.DataFrame:
    """Play every checkpoint on the first incidents of `test`."""
    path = Path(run) / "checkpoints.parquet"
    folders = sorted(path.parent.glob("checkpoint-*"), key=step_of)
    if not folders:
        raise FileNotFoundError(f"{run} has no checkpoints to evaluate; train it first")
    players = [model_player(path.parent, folder, folder.name) for folder in folders]
    return _results(path, players, ["test"], episodes, batch)


def evaluate_splits(run: str | Path, episodes: int = 100, batch: int = 100) -> pd.DataFrame:
    """Play the run's model, before and after, on the splits that hold something new."""
    run, new = Path(run), [split for split in SPLITS if split.startswith("unseen")]
    players = [*before_and_after(run).values()]
    return _results(run / "splits.parquet", players, new, episodes, batch)


def audit_run(run: str | Path, episodes: int = 100) -> pd.DataFrame:
    """Audit the run's model, before and after, on `test`."""
    run = Path(run)
    players = [*before_and_after(run).values()]
    return _results(run / "audit.parquet", players, ["test"], episodes, 50, judge_result)


def summarise_run(run: str | Path, evaluation: pd.DataFrame) -> list[dict[str, Any]]:
    """`score_tables.summarise` of one run's evaluation, kept in `summary.json`."""
    rows = summarise([evaluation])
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_text(Path(run) / "summary.json", f"[\n{lines}\n]\n")
    return rows


def compare_transcripts(run: str | Path) -> dict[str, Any]:
    """Conversations about one cascade of `test`, before and after training. It is the first that
    the base fails and the trained model solves, chosen to show a difference. If there is none, the
    first incident is taken, and `telling` is False.
    """
    run, task, split = Path(run), "cascading_failure", "test"
    path, models = run / "transcripts.json", before_and_after(run)
    weights = {name: weights_of(player) for name, player in models.items()}
    asked = {"task": task, "split": split, "weights": weights, "benchmark": BENCHMARK_VERSION}
    told: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if asked.items() <= told.items():
        return told
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    evaluation = evaluation[(evaluation.task == task) & (evaluation.split == split)]
    scores = evaluation.pivot_table(index="index", columns="policy", values="score")
    solved = scores[(scores.trained > SOLVED_ABOVE) & (scores.base < FAILED_BELOW)]
    index = int((solved if len(solved) else scores).index[0])
    told = {**asked, "index": index, "telling": bool(len(solved))}
    incident = sample_incident(task, split, index)
    for name, player in models.items():
        (played,) = player.make(0).play([Episode(incident)])
        score = final_score(played.episode)._asdict()
        told[name] = {"score": score, "messages": list(played.messages)}
    told["truth"] = {one: getattr(incident, one) for one in ("root", "severity", "remedy", "team")}
    write_text(path, json.dumps(told, indent=1) + "\n")
    return told


# What notebook 4 shows of a run: rows of its episodes in training, on `test`, at each checkpoint
# and on the other splits; and one incident before and after training.
Outcome: TypeAlias = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, dict[str, Any]]


def play_out(run: Path, episodes: int, splits: int, curve: int, batch: int) -> Outcome:
    """The outcome of a finished run, from `episodes` incidents of each task of `test`, `splits` of
    each other split, and `curve` at each checkpoint.
    """
    return (
        read_jsonl(run / "episodes.jsonl"),
        evaluate_run(run, episodes, batch=batch),
        evaluate_checkpoints(run, curve, batch),
        evaluate_splits(run, splits, batch),
        compare_transcripts(run),
    )


def published(run: Path) -> Outcome:
    """The outcome of a published run, in a folder such as `results/novice/seed-1`."""
    names = ("episodes", "evaluation", "checkpoints", "splits")
    training, test, curve, splits = (pd.read_parquet(run / f"{name}.parquet") for name in names)
    return training, test, curve, splits, json.loads((run / "transcripts.json").read_text())


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
