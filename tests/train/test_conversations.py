"""Conversations as a dataset: of `train` alone, read back as they were written, and true."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import load_dataset
from huggingface_hub import metadata_load
from test_command_line import refusal
from test_command_line import run as run_command

from logtriage.play.episode import Episode, final_score
from logtriage.play.observation import SYSTEM_PROMPT
from logtriage.play.scoring import PARTS
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.train.conversations import POLICIES, write_dataset
from logtriage.train.drills import EXPERT_INDEX, PUBLISHED_INDEX
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).parents[2]
NAME = "you/logtriage-conversations"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What a run has kept of two steps: of the first, one conversation of two episodes."""
    folder = tmp_path_factory.mktemp("runs") / "novice" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"settings": {"varied": False}}))
    episodes, kept = [], []
    for step, task in enumerate(("single_crash", "silent_degradation"), 1):
        session = ToolSession(Episode.open(task, "train", step))
        told = session.call("ignore", {})
        score = final_score(session.episode)
        row = {"step": step, "task": task, "index": step, "score": score.total, "steps": 1}
        row |= {part: getattr(score, part) for part in (*PARTS, "cost", "gate")}
        episodes += [
            {**row, "closed_by": "ignore"},
            {**row, "score": 0.123, "closed_by": "resolve"},
        ]
        call = {"type": "function", "function": {"name": "ignore", "arguments": {}}}
        messages = [
            {"role": "user", "content": session.opening},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "ignore", "content": told},
        ]
        shown = {"step": step, "task": task, "index": step, "score": score.total}
        kept.append({**shown, "messages": messages})
    for name, rows in (("episodes", episodes), ("completions", kept)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    at = tmp_path_factory.mktemp("published") / NAME
    return write_dataset(NAME, at, [run], incidents=2)


def rows_of(folder, configuration, tmp_path):
    cache = str(tmp_path / "cache")
    return list(load_dataset(str(folder), configuration, split="train", cache_dir=cache))


@pytest.mark.parametrize("configuration", [*POLICIES, "novice-seed-0"])
def test_every_conversation_is_of_train_and_can_be_played_again(configuration, folder, tmp_path):
    # The calls, made in the incident that the row names, get the answers and the score of the row.
    rows = rows_of(folder, configuration, tmp_path)
    assert len(rows) == (2 if configuration == "novice-seed-0" else 2 * len(TASKS))
    for row in rows:
        assert row["split"] == "train" and row["policy"] == configuration
        session = ToolSession(Episode.open(row["task"], row["split"], row["index"]))
        system, opening, *turns = row["messages"]
        assert (system["content"], opening["content"]) == (SYSTEM_PROMPT, session.opening)
        for message, answer in zip(turns[::2], turns[1::2], strict=True):
            (call,) = message["tool_calls"]
            function = call["function"]
            shown = session.call(function["name"], json.loads(function["arguments"]))
            assert (answer["role"], answer["content"]) == ("tool", shown)
        score = final_score(session.episode)
        assert score.total == pytest.approx(row["score"])
        assert {part: row[part] for part in PARTS} == pytest.approx(
            {part: getattr(score, part) for part in PARTS}
        )
        if configuration == "trace":  # a slice that nobody else uses
            assert row["index"] in (PUBLISHED_INDEX, PUBLISHED_INDEX + 1)
            assert PUBLISHED_INDEX > EXPERT_INDEX


def test_the_card_is_true_and_its_snippet_runs(folder):
    metadata = metadata_load(folder / "README.md")
    assert metadata["license"] == "mit" and metadata["size_categories"] == "n<1K"
    assert [one["config_name"] for one in metadata["configs"]] == [*POLICIES, "novice-seed-0"]
    text = (folder / "README.md").read_text()
    assert "| `trace` | 6 | 5,000,000 to 5,000,001 |" in text
    assert json.loads((folder / "tools.json").read_text()) == tool_schemas()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    cache = str(folder.parent / "cache")
    environment = {**os.environ, "HF_DATASETS_CACHE": cache, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=folder.parents[1],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "'name': 're" in done.stdout or "'name': 'ignore'" in done.stdout


def test_it_goes_to_the_hub_as_a_dataset(fake_hub, tmp_path):
    at = ("--folder", tmp_path / "written", "--incidents", 1)
    said = run_command("publish-dataset", NAME, *at).stdout
    assert said.startswith("published at https://huggingface.co/")
    assert fake_hub.calls == [
        ("create", NAME, {"repo_type": "dataset", "private": False}),
        ("list", NAME, {}),
        ("upload", NAME, {"repo_type": "dataset"}),
    ]
    assert (fake_hub.root / NAME / "trace.parquet").exists()


def test_mistakes_are_answered(run, tmp_path):
    with pytest.raises(ValueError, match="have one name"):
        write_dataset(NAME, tmp_path / "out", [run, run], incidents=1)
    with pytest.raises(FileNotFoundError, match="holds no run"):
        write_dataset(NAME, tmp_path / "out", [tmp_path], incidents=1)
    other = tmp_path / "novice" / "seed-1"
    shutil.copytree(run, other)
    text = (other / "completions.jsonl").read_text()
    (other / "completions.jsonl").write_text(text.replace("api-gateway", "gateway"))
    with pytest.raises(ValueError, match="another version of the benchmark"):
        write_dataset(NAME, tmp_path / "out", [other], incidents=1)
    assert not (tmp_path / "out").exists()


def test_the_command_line_writes_a_folder_to_look_at(tmp_path):
    at = ("--folder", tmp_path / "out", "--incidents", 1, "--dry-run")
    result = run_command("publish-dataset", NAME, *at)
    assert result.exit_code == 0 and result.stdout == f"written to {tmp_path / 'out'}\n"
    assert "lacks its owner" in refusal("publish-dataset", "conversations", *at)
