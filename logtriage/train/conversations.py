"""Conversations about incidents of `train` as a dataset of the Hugging Face Hub:
`python -m logtriage publish-dataset`.

Scripted policies play a slice of `train` that nothing else uses, and runs of GRPO give the
conversations that they kept to be read. Incidents of the splits by which models are measured are
never in it: whoever trains on it can still be measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from huggingface_hub import DatasetCard, DatasetCardData
from pyarrow.parquet import write_table

from .. import REPOSITORY, __version__
from ..bench.registry import make_policy
from ..bench.rollouts import episode_row
from ..bench.runs import read_jsonl, record_of
from ..bench.score_tables import markdown
from ..play.conversation import Message, opening_messages, tool_call
from ..play.episode import Episode
from ..play.observation import render
from ..play.scoring import PARTS
from ..play.tools import tool_schemas
from ..world.tasks import BENCHMARK_VERSION, TASKS
from .drills import PUBLISHED_INDEX, open_varied
from .hub import check_name, fresh_folder
from .model_card import render_template

POLICIES = ("novice", "trace", "belief")  # one who is often wrong, a careful one, and the ceiling
SCORED = ("score", *PARTS, "cost", "gate", "steps")


def scripted_rows(policy: str, incidents: int) -> Iterator[dict[str, Any]]:
    """The episodes of a scripted policy on the first incidents of each task in the slice, one row
    each: coordinates, score and parts, and a conversation of one call per turn.
    """
    player = make_policy(policy)
    for task in TASKS:
        for index in range(PUBLISHED_INDEX, PUBLISHED_INDEX + incidents):
            episode = Episode.open(task, "train", index)
            player.play([episode])
            yield _row(episode_row(episode, policy, 0.0), policy, one_call_per_turn(episode))


def one_call_per_turn(episode: Episode) -> list[Message]:
    """The conversation of an episode that a script has played."""
    messages = opening_messages(render(episode.opening, episode.incident.topology))
    for action, observation in episode.history:
        assert action is not None  # scripts make no invalid calls
        answer = {"role": "tool", "name": action.type, "content": render(observation)}
        calls = [tool_call(action)]
        messages += [{"role": "assistant", "content": "", "tool_calls": calls}, answer]
    return messages


def run_rows(run: Path) -> Iterator[dict[str, Any]]:
    """The conversations that a run kept, one per step, with the scores of those episodes;
    `ValueError` when it was trained on another version of the benchmark.
    """
    varied = record_of(run)["settings"]["varied"]
    open_episode = open_varied if varied else Episode.open
    episodes = read_jsonl(run / "episodes.jsonl").drop_duplicates("step").set_index("step")
    for kept in read_jsonl(run / "completions.jsonl").to_dict("records"):
        played = {**episodes.loc[kept["step"]].to_dict(), "split": "train"}
        episode = open_episode(kept["task"], "train", kept["index"])
        opening = render(episode.opening, episode.incident.topology)
        system, user = opening_messages(opening)
        if kept["messages"][0]["content"] != user["content"]:
            raise ValueError(
                f"{run} was trained on another version of the benchmark than {BENCHMARK_VERSION};"
                " leave it out"
            )
        messages = [system, *kept["messages"]]
        yield _row(played, run_name(run), messages, step=int(kept["step"]), varied=varied)


def run_name(run: Path) -> str:
    """The name of a run's table: those of its experiment's folder and its own."""
    return "-".join(run.resolve().parts[-2:])


def _row(
    played: dict[str, Any],
    policy: str,
    messages: list[Message],
    step: int | None = None,
    varied: bool = False,
) -> dict[str, Any]:
    return {
        **{name: played[name] for name in ("task", "split", "closed_by")},
        **{name: float(played[name]) for name in SCORED},
        "policy": policy,
        "index": int(played["index"]),
        "varied": varied,
        "step": step,
        "benchmark": BENCHMARK_VERSION,
        "messages": [_message(message) for message in messages],
    }


def _message(message: Message) -> dict[str, Any]:
    """A message with the keys of all. A call's arguments are JSON, as the OpenAI protocol has them:
    as an object, every call would have the arguments of all, most of them empty.
    """
    calls = []
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls.append({"type": "function", "function": function})
    return {
        "role": message["role"],
        "content": message.get("content") or "",
        "name": message.get("name"),
        "tool_calls": calls or None,
    }


def write_dataset(
    name: str, folder: str | Path, runs: Sequence[str | Path] = (), incidents: int = 500
) -> Path:
    """Write the folder that is to be the dataset `name`, `owner/name`, and return it: one table per
    policy or run, `tools.json` and a card.

    Args:
        name: which the card's snippet loads.
        folder: written again; one that this function has not made must be empty.
        runs: folders of runs whose conversations are added to those of `POLICIES`.
        incidents: of each task, by each policy.

    Raises:
        ValueError: for a bad name, a folder that holds something else, two runs of one name, or a
            run of another version of the benchmark.
        FileNotFoundError: when a run has no conversations.
    """
    check_name(name)
    paths = [Path(run) for run in runs]
    names = [run_name(run) for run in paths]
    if len(set(names)) < len(names):
        raise ValueError(f"two of the runs {', '.join(names)} have one name; name each run once")
    kept = {one: list(run_rows(run)) for one, run in zip(names, paths, strict=True)}
    folder = fresh_folder(folder)
    tables = {**{one: list(scripted_rows(one, incidents)) for one in POLICIES}, **kept}
    for one, rows in tables.items():
        write_table(pa.Table.from_pylist(rows, _schema()), folder / f"{one}.parquet")
    (folder / "tools.json").write_text(json.dumps(tool_schemas(), indent=1) + "\n")
    (folder / "README.md").write_text(str(_card(name, tables)))
    return folder


def _schema() -> pa.Schema:
    """The types of the columns, the same whatever a table holds."""
    text = pa.string()
    call = pa.struct({"type": text, "function": pa.struct({"name": text, "arguments": text})})
    calls = pa.list_(call)
    message = pa.struct({"role": text, "content": text, "name": text, "tool_calls": calls})
    return pa.schema(
        {
            **dict.fromkeys(("policy", "task", "split"), text),
            **{"index": pa.int64(), "varied": pa.bool_(), "step": pa.int64()},
            **dict.fromkeys(SCORED, pa.float64()),
            **{"closed_by": text, "benchmark": text, "messages": pa.list_(message)},
        }
    )


def _card(name: str, tables: dict[str, list[dict[str, Any]]]) -> DatasetCard:
    """The dataset's card; each table is a configuration of it."""
    counts = []
    for one, rows in tables.items():
        frame = pd.DataFrame(rows)
        first, last = (f"{index:,}" for index in (frame["index"].min(), frame["index"].max()))
        means = frame.groupby("task", sort=False)["score"].mean().reindex(list(TASKS))
        counts.append(
            {
                "configuration": f"`{one}`",
                "conversations": f"{len(frame):,}",
                "indices": f"{first} to {last}",
                **{task.replace("_", " "): f"{mean:.2f}" for task, mean in means.items()},
            }
        )
    total = sum(map(len, tables.values()))
    metadata = DatasetCardData(
        language="en",
        license="mit",
        pretty_name="LogTriage conversations",
        task_categories=["text-generation"],
        size_categories="n<1K" if total < 1000 else "1K<n<10K" if total < 10_000 else "10K<n<100K",
        tags=["logtriage", "incident-response", "root-cause-analysis", "tool-use", "synthetic"],
        configs=[
            {"config_name": one, "data_files": [{"split": "train", "path": f"{one}.parquet"}]}
            for one in tables
        ],
    )
    text = render_template(
        "dataset_card.md",
        metadata=metadata.to_yaml(),
        name=name,
        title=name.partition("/")[2],
        counts=markdown(pd.DataFrame(counts)),
        runs=[one for one in tables if one not in POLICIES],
        first=f"{PUBLISHED_INDEX:,}",
        repository=REPOSITORY,
        version=__version__,
        benchmark=BENCHMARK_VERSION,
    )
    return DatasetCard(text)
