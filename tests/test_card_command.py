"""The command of the card that this project starts from, as it is written there, with a small local
model, a server of ours, and a stand-in for the Hub.
"""

import json
import runpy
import sys
from collections import Counter

import pytest
from test_command_line import refusal

from logtriage.train import hub
from logtriage.world.tasks import TASKS

UNDERSCORES = (
    "--model {model} --task all --episodes 30 --load_in_4bit --grpo_max_steps 10 "
    "--env_url {url} --push_to_hub you/logtriage-agent"
)
HYPHENS = UNDERSCORES.replace("_", "-").replace("{env-url}", "{env_url}")
OTHERS = " --lora-rank 4 --learning-rate 3e-5 --batch 2"


@pytest.mark.parametrize(
    "module, words", [("logtriage.train", UNDERSCORES), ("logtriage", "train " + HYPHENS + OTHERS)]
)
def test_the_cards_command_runs_as_written(
    module, words, tiny_base, url, fake_hub, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = words.format(model=tiny_base, url=url).split()
    monkeypatch.setattr(sys, "argv", [module, *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    assert "no NVIDIA GPU here" in said.out  # --load_in_4bit is for one
    run = tmp_path / "runs" / "model_card" / "seed-0"
    settings = json.loads((run / "config.json").read_text())["settings"]
    given = "--batch" in words
    assert settings["lora_rank"] == (4 if given else 16) and settings["lora_alpha"] == 32
    assert settings["learning_rate"] == (3e-5 if given else 1e-5)
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert Counter(row["task"] for row in rows) == dict.fromkeys(TASKS, 30)
    assert max(row["step"] for row in rows) <= 10
    published = {path.name for path in (fake_hub.root / "you" / "logtriage-agent").iterdir()}
    assert {"README.md", "run.json", "model.safetensors"} <= published  # with its base, merged
    assert "published at https://huggingface.co/you/logtriage-agent" in said.out


def test_without_a_token_nothing_is_trained(tiny_base, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "get_token", lambda: None)
    folder = tmp_path / "run"
    said = refusal("train", folder, "--model", tiny_base, "--push-to-hub", "you/agent")
    assert "needs a token" in said and not folder.exists()
    said = refusal("train", folder, "--model", tiny_base, "--push-to-hub", "agent")
    assert "write owner/name" in said
    both = ("--push-to-hub", "you/agent", "--keep-on-hub", "you/agent")
    assert "in one repository, you/agent" in refusal("train", folder, "--model", tiny_base, *both)
    said = refusal("train", folder, "--model", tiny_base, "--episodes", "31")
    assert "31 episodes a task make no run" in said
