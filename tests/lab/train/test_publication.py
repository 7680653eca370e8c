"""A run as a model of the Hub: the folder, its card, and the snippets that the card prints, run as
they are printed.
"""

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
from huggingface_hub.repocard_data import model_index_to_eval_results
from peft import LoraConfig, get_peft_model
from test_command_line import run as run_command

from logtriage.play.observation import SYSTEM_PROMPT
from logtriage.world.tasks import TASKS
from triagelab.bench.run_evaluation import evaluate_run
from triagelab.language_models.loading import load_language_model
from triagelab.train import publication
from triagelab.train.grpo import train
from triagelab.train.publication import LICENCES, publish_model, write_model
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
def run(finished, tmp_path):
    """A copy of that run, beside its base."""
    copy = tmp_path / "runs" / "novice" / "seed-0"
    shutil.copytree(finished, copy)
    record = json.loads((copy / "config.json").read_text())
    base = (finished / record["settings"]["model"]).resolve()
    record["settings"]["model"] = os.path.relpath(base, copy.resolve())
    (copy / "config.json").write_text(json.dumps(record))
    return copy


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


def check_metadata(folder):
    """The card's metadata, read as the Hub reads it, as far as that can be done offline."""
    metadata = metadata_load(folder / "README.md")
    assert (metadata["license"] == "other") == ("license_name" in metadata)
    if "model-index" in metadata:
        name, results = model_index_to_eval_results(metadata["model-index"])
        assert name == "logtriage-demo" and all(result.verified is False for result in results)
    return metadata


def run_snippets(folder):
    """Run every python block of the card as it is printed, where its name leads to the folder, and
    return what the last one printed.
    """
    at, printed = folder.parents[1], ""
    shutil.copytree(folder, at / NAME)
    (at / "incident.log").write_text("ERROR payment-service call to payment-db failed\n")
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S)
    assert len(blocks) == 2
    for block in blocks:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=at, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    return printed


def test_a_model_is_published_whole_and_its_card_is_true(run):
    folder = write_model(run, NAME)
    text, metadata = (folder / "README.md").read_text(), check_metadata(folder)
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    trained = evaluation[evaluation.policy == "trained"].groupby("task")["score"].mean()
    _, results = model_index_to_eval_results(metadata["model-index"])
    assert {one.dataset_config: one.metric_value for one in results} == pytest.approx(
        dict(trained), abs=1e-4
    )
    assert {one.dataset_split for one in results} == {"test"} and len(results) == len(TASKS)
    assert (metadata["license"], metadata["library_name"]) == ("mit", "transformers")
    assert "base_model" not in metadata
    for task in TASKS:
        assert f"| {task.replace('_', ' ')} | " in text
    assert "{{" not in text.replace("{{The", "") and "None" not in text and "nan" not in text
    assert "2 of the split `train` (indices 0 to 1)" in text and "4, 2 of each" in text
    assert "![" in text and "gain.png" in text  # the run's own figure, and one drawn from it
    assert (folder / "gain.png").read_bytes() == b"a figure" and (folder / "learning.png").exists()
    example = json.loads((folder / "example.json").read_text())
    assert "calls: edge > app-" in str(example["messages"])  # as the model reads services
    assert example["messages"][0]["content"] == SYSTEM_PROMPT and len(example["tools"]) == 7


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
    text, metadata = (folder / "README.md").read_text(), check_metadata(folder)
    assert "model-index" not in metadata and "not been evaluated on held-out incidents" in text
    assert "`python -m logtriage evaluate --run runs/novice/seed-0`" in text
    assert "gain [" not in text and not (folder / "summary.json").exists()


def test_what_got_worse_is_told_and_results_of_other_weights_are_refused(run):
    evaluation = pd.read_parquet(run / "evaluation.parquet")
    for name, value in (("base", 1.0), ("trained", 0.0)):
        evaluation.loc[evaluation.policy == name, ["root_cause", "severity"]] = value
    evaluation.to_parquet(run / "evaluation.parquet")
    text = (write_model(run, NAME) / "README.md").read_text()
    assert "**What got worse**" in text
    assert "- single crash: real faults detected 1.00 → 0.00 (12)" in text
    evaluation.assign(weights="another").to_parquet(run / "evaluation.parquet")
    with pytest.raises(ValueError, match=r"results of other weights .*; evaluate the run again"):
        write_model(run, NAME)


def test_an_adapter_of_a_base_here_is_merged_or_refused(adapter, tiny_base):
    with pytest.raises(ValueError, match=r"that no hub has, .*; publish it --merged"):
        write_model(adapter, NAME)
    folder = write_model(adapter, NAME, merged=True)
    assert not list(folder.glob("adapter*"))
    merged, tokenizer = load_language_model(folder)
    put_on, _ = load_language_model(tiny_base, adapter=adapter / "model")
    ids = tokenizer("api-gateway 10%", return_tensors="pt")["input_ids"]
    difference = merged.float()(ids).logits - put_on.float()(ids).logits
    assert difference.abs().max() < 0.05  # of 16 bit
    assert check_metadata(folder)["library_name"] == "transformers"


def say_trained_on(model, run):
    """Have an adapter's run say that it was trained on a model of the Hub."""
    record = json.loads((run / "config.json").read_text())
    record["settings"]["model"] = model
    record["settings"].pop("weights", None)
    (run / "config.json").write_text(json.dumps(record))
    path = run / "model" / "adapter_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "base_model_name_or_path": model}))


@pytest.mark.slow
def test_the_snippets_of_both_kinds_of_card_run(run, request, tiny_base):
    assert run_snippets(write_model(run, NAME)).strip()
    adapter = request.getfixturevalue("adapter")
    say_trained_on("unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit", adapter)
    shutil.rmtree(adapter.parent / NAME)
    # so that the name leads to a model, offline
    shutil.copytree(tiny_base, adapter.parent / "Qwen/Qwen2.5-3B-Instruct")
    assert run_snippets(write_model(adapter, NAME)).strip()


def test_an_adapter_of_the_hub_names_the_whole_base(adapter):
    qwen = "Qwen/Qwen2.5-3B-Instruct"
    trained_on = {"unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit": qwen}
    for name in (*trained_on, "Qwen/Qwen2.5-0.5B-Instruct"):
        base = trained_on.get(name, name)
        say_trained_on(name, adapter)
        folder = write_model(adapter, NAME)
        metadata = check_metadata(folder)
        assert (metadata["base_model"], metadata["base_model_relation"]) == (base, "adapter")
        assert metadata["library_name"] == "peft" and "lora" in metadata["tags"]
        assert (metadata["license"], metadata.get("license_name")) == LICENCES[base][:2]
        # What Qwen's research licence asks of whoever passes its models on.
        said = "**Improved using Qwen.**" in (folder / "README.md").read_text()
        assert said == (base == qwen) == (folder / "NOTICE").exists()
        assert (folder / "adapter_config.json").exists() and not list(folder.glob("model*"))


def test_mistakes_are_answered_before_anything_is_written(run, tmp_path):
    assert "lacks its owner" in refusal("publish-model", run, "demo", "--dry-run")
    said = refusal("publish-model", run, NAME, "--dry-run", "--merged")
    assert "has no adapter: all weights were trained" in said
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
    # An adapter that stays beside merged weights would be loaded with them.
    (fake_hub.root / NAME / "adapter_model.safetensors").write_text("of an earlier upload")
    (fake_hub.root / NAME / "LICENSE").write_text("put there by hand")
    publish_model(run, NAME)
    assert {path.name for path in (fake_hub.root / NAME).iterdir()} == {*there, "LICENSE"}

    fake_hub.down = TimeoutError("slow")
    with pytest.raises(ConnectionError, match=f"did not take {NAME}: TimeoutError slow"):
        publish_model(run, NAME)
    shutil.rmtree(run / "hub")
    for name in ("logtriage-demo", "../base", ""):
        with pytest.raises(ValueError, match=r"owner|no name of the Hub"):
            publish_model(run, name)
    monkeypatch.setattr(publication, "get_token", lambda: None)
    with pytest.raises(ValueError, match="run `hf auth login`, or set HF_TOKEN"):
        publish_model(run, NAME)
    assert not (run / "hub").exists()
    for name in ("create_repo", "upload_folder"):  # the real Hub takes what the fake one does
        asked = {*signature(getattr(FakeHub, name)).parameters} - {"self", "name"}
        assert asked <= set(signature(getattr(HfApi, name)).parameters), name


@pytest.mark.slow
def test_nothing_here_imports_transformers():
    # Unsloth, which is imported when training starts, must come before it.
    code = "import sys, triagelab.train.publication; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
