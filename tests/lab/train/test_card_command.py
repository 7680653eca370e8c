"""The command of the card that this project starts from, as it is written there, with a small local
model, a server of ours, and a fake Hub.
"""

import json
import runpy
import sys
from collections import Counter

import pytest
from helpers import refusal

from logtriage.world.tasks import TASKS
from triagelab.train import publication

WORDS = (
    "--model {model} --task all --episodes 30 --load_in_4bit --grpo_max_steps 10 "
    "--env_url {url} --push_to_hub you/logtriage-agent"
)


def test_the_cards_command_runs_as_written(tiny_base, url, fake_hub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Only an adapter of a model that a hub has can be published.
    monkeypatch.setitem(publication.ORIGINALS, str(tiny_base.resolve()), "you/tiny")
    words = WORDS.format(model=tiny_base, url=url).split()
    monkeypatch.setattr(sys, "argv", ["logtriage.train", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("logtriage.train", run_name="__main__")
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    assert "no NVIDIA GPU here" in said.out  # --load_in_4bit is for one
    # Whoever names no preset gets the one that is meant to learn, not the card's own settings.
    run = tmp_path / "runs" / "recommended" / "seed-0"
    settings = json.loads((run / "config.json").read_text())["settings"]
    assert settings["lora_rank"] == 16 and settings["lora_alpha"] == 32
    assert settings["max_grad_norm"] == 0.1
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert Counter(row["task"] for row in rows) == dict.fromkeys(TASKS, 30)
    assert max(row["step"] for row in rows) <= 10
    published = {path.name for path in (fake_hub.root / "you" / "logtriage-agent").iterdir()}
    assert {"README.md", "run.json", "adapter_model.safetensors"} <= published
    assert "published at https://huggingface.co/you/logtriage-agent" in said.out


def test_without_a_token_nothing_is_trained(tiny_base, tmp_path, monkeypatch):
    monkeypatch.setattr(publication, "get_token", lambda: None)
    folder = tmp_path / "run"
    said = refusal("train", folder, "--model", tiny_base, "--push-to-hub", "you/agent")
    assert "needs a token" in said and not folder.exists()
    monkeypatch.setattr(publication, "get_token", lambda: "a token")
    said = refusal("train", folder, "--model", tiny_base, "--push-to-hub", "you/agent")
    assert "that no hub has" in said and not folder.exists()  # the preset trains an adapter
    # an option of the command line, not a setting that it does not have
    said = refusal("train", folder, "--model", tiny_base, "--set", "lora_rank=0")
    assert "lora_rank 0 trains all weights" in said and "loader" not in said
    said = refusal("train", folder, "--model", tiny_base, "--set", "warmup=long")
    assert "warmup: Input should be a valid integer" in said


def test_the_module_names_itself_once(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["logtriage.train", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_module("logtriage.train", run_name="__main__")
    assert "python -m logtriage.train [OPTIONS]" in capsys.readouterr().out
