"""A run as a model of the Hub: the folder, its card, and the snippet that the card prints."""

import json
import os
import re
import shutil
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pandas as pd
import pytest
from fake_hub import FakeHub
from helpers import refusal
from huggingface_hub import HfApi, metadata_load
from peft import LoraConfig, get_peft_model
from test_command_line import run as run_command

from logtriage.world.tasks import TASKS
from triagelab.bench.run_evaluation import evaluate_run
from triagelab.language_models.loading import load_language_model, weights_digest
from triagelab.train import publication
from triagelab.train.grpo import train
from triagelab.train.publication import publish_model, write_model
from triagelab.train.settings import make_config

ROOT = Path(__file__).parents[3]
NAME = "you/logtriage-demo"
PUBLISHED = {".md", ".json", ".jsonl", ".jinja", ".parquet", ".png", ".safetensors"}
TINY = {"steps": 1, "incidents": 2, "group": 2, "micro_batches": 2, "save_every": 1}


@pytest.fixture(scope="module")
def finished(tiny_base, tmp_path_factory):
    """A finished run that has been evaluated; not to be written to."""
    folder = tmp_path_factory.mktemp("runs") / "novice" / "seed-0"
    train(make_config("novice", model=str(tiny_base), **TINY), folder, progress=False)
    evaluate_run(folder, episodes=12, references=("novice", "loudest"))
    (folder / "gain.png").write_bytes(b"a figure")
    return folder


@pytest.fixture
def run(finished, tmp_path_factory):
    """A copy of that run, as deep, so that the path to its base leads there."""
    return shutil.copytree(finished, tmp_path_factory.mktemp("copy") / "novice" / "seed-0")


@pytest.fixture
def adapter(run, tiny_base):
    """That run, as if it had trained an adapter."""
    config = LoraConfig(target_modules="all-linear", init_lora_weights=False)
    model, _ = load_language_model(tiny_base)
    (run / "model" / "model.safetensors").unlink()
    (run / "model" / "config.json").unlink()
    get_peft_model(model, config).save_pretrained(run / "model")
    (run / "evaluation.parquet").unlink()  # of other weights
    return run


def test_a_model_is_published_whole_and_its_card_is_true(run):
    folder = write_model(run, NAME)
    text, metadata = (folder / "README.md").read_text(), metadata_load(folder / "README.md")
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    trained = evaluation[evaluation.policy == "trained"].groupby("task")["score"].mean()
    assert (metadata["license"], metadata["library_name"]) == ("mit", "transformers")
    assert "base_model" not in metadata
    for task in TASKS:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {task} |")]
        assert f" {trained[task]:.2f} [" in row
    assert "{{" not in text and "None" not in text and "nan" not in text
    assert "1 of 1 steps of 2 incidents x 2 episodes" in text and "![gain.png](gain.png)" in text
    assert "No stratum got worse" in text or "**What got worse**" in text
    model, _ = load_language_model(folder)
    assert weights_digest(folder) == weights_digest(run / "model") and model.config.vocab_size


def test_nothing_of_the_machine_is_published_and_a_run_that_was_not_evaluated_says_so(run):
    (run / "model" / "training_args.bin").write_text(str(run))
    nbformat = '{"metadata": {"papermill": {"output_path": "/home/alice/run"}}}'
    (run / "03_grpo_training.ipynb").write_text(nbformat)
    (run / "evaluation.parquet").unlink()
    folder = write_model(run, NAME)
    assert {path.suffix for path in folder.iterdir()} <= PUBLISHED
    for path in folder.iterdir():
        if path.suffix in (".md", ".json", ".jsonl"):
            assert str(run.parents[2]) not in path.read_text(), path.name
    text = (folder / "README.md").read_text()
    assert "`python -m logtriage evaluate --run runs/novice/seed-0` does that" in text


def test_what_got_worse_is_reported_and_results_of_other_weights_are_refused(run):
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    for name, value in (("base", 1.0), ("trained", 0.0)):
        evaluation.loc[evaluation.policy == name, ["root_cause", "severity"]] = value
    evaluation.to_parquet(run / "evaluation.parquet")
    text = (write_model(run, NAME) / "README.md").read_text()
    assert "**What got worse**" in text
    assert "single crash: roots found 1.00 → 0.00 (12)" in text
    evaluation.assign(weights="another").to_parquet(run / "evaluation.parquet")
    with pytest.raises(ValueError, match=r"results of other weights .*; evaluate the run again"):
        write_model(run, NAME)


def test_an_adapter_of_a_base_that_no_hub_has_is_refused(adapter):
    with pytest.raises(ValueError, match="weights that no hub has"):
        write_model(adapter, NAME)
    assert not (adapter / "hub").exists()


def test_an_adapter_of_the_hub_names_the_whole_base(adapter):
    qwen = "Qwen/Qwen2.5-3B-Instruct"
    trained_on = {"unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit": qwen}
    for name in (*trained_on, "Qwen/Qwen2.5-0.5B-Instruct"):
        base = trained_on.get(name, name)
        record = json.loads((adapter / "config.json").read_text())
        record["settings"]["model"] = name
        record["settings"].pop("weights", None)
        (adapter / "config.json").write_text(json.dumps(record))
        folder = write_model(adapter, NAME)
        metadata = metadata_load(folder / "README.md")
        assert (metadata["base_model"], metadata["base_model_relation"]) == (base, "adapter")
        assert metadata["library_name"] == "peft"
        # What Qwen's research licence asks of whoever passes its models on.
        card = (folder / "README.md").read_text()
        assert ("Improved using Qwen." in card) == (base == qwen) == (folder / "NOTICE").exists()
        assert (folder / "adapter_config.json").exists() and not list(folder.glob("model*"))


@pytest.mark.slow
def test_the_snippet_of_the_card_runs(run):
    folder = write_model(run, NAME)
    at = folder.parents[1]
    shutil.copytree(folder, at / NAME)  # where its name leads
    (at / "incident.log").write_text("ERROR payment-service call to payment-db failed\n")
    (snippet,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-c", snippet]
    done = subprocess.run(words, cwd=at, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_mistakes_are_answered_before_anything_is_written(run, tmp_path):
    assert "lacks its owner" in refusal("publish-model", run, "demo", "--dry-run")
    with pytest.raises(ValueError, match="is no finished run"):
        write_model(tmp_path, NAME)
    assert not (run / "hub").exists()
    result = run_command("publish-model", run, NAME, "--dry-run")
    assert result.stdout == f"written to {run / 'hub'}\n"
    (run / "hub" / "run.json").unlink()
    with pytest.raises(ValueError, match="holds something else"):
        write_model(run, NAME)


def test_publishing_needs_a_token_and_an_owner(run, fake_hub, monkeypatch):
    assert publish_model(run, NAME, private=True) == f"https://huggingface.co/{NAME}"
    there = {path.name for path in (fake_hub.root / NAME).iterdir()}
    assert there == {path.name for path in (run / "hub").iterdir()} and NAME in fake_hub.private
    # An adapter that stays beside whole weights would be loaded with them.
    (fake_hub.root / NAME / "adapter_model.safetensors").write_text("of an earlier upload")
    (fake_hub.root / NAME / "LICENSE").write_text("put there by hand")
    publish_model(run, NAME)
    assert {path.name for path in (fake_hub.root / NAME).iterdir()} == {*there, "LICENSE"}

    fake_hub.down = TimeoutError("slow")
    with pytest.raises(ConnectionError, match=f"did not take {NAME}: TimeoutError slow"):
        publish_model(run, NAME)
    shutil.rmtree(run / "hub")
    for name in ("logtriage-demo", "../base", ""):
        with pytest.raises(ValueError, match="lacks its owner"):
            publish_model(run, name)
    monkeypatch.setattr(publication, "get_token", lambda: None)
    with pytest.raises(ValueError, match="run `hf auth login`, or set HF_TOKEN"):
        publish_model(run, NAME)
    assert not (run / "hub").exists()
    for name in ("create_repo", "upload_folder"):  # the real Hub takes what the fake one does
        asked = {*signature(getattr(FakeHub, name)).parameters} - {"self", "name"}
        assert asked <= set(signature(getattr(HfApi, name)).parameters), name
