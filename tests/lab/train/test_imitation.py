"""An adapter of a pretrained model that learns by imitation, at toy size."""

import json
from dataclasses import replace
from random import Random
from unittest.mock import Mock

import pytest
import torch
from helpers import needs
from safetensors.torch import load_file

from triagelab.language_models import decoder, loading
from triagelab.language_models.loading import load_agent
from triagelab.language_models.path_names import incident_names
from triagelab.train import imitation, sft_tasks
from triagelab.train.grpo import load_to_train, train
from triagelab.train.imitation import ON_POLICY, Imitator, OnPolicyImitator, build_imitated
from triagelab.train.settings import TrainingConfig, make_config
from triagelab.train.supervised import encode

pytestmark = [needs("gguf"), pytest.mark.usefixtures("tiny_smollm2", "tiny_lessons")]


@pytest.fixture(scope="module")
def tiny_lessons():
    """Pools of a few examples, of which none is too long in the tokens of the tiny model."""
    sizes = {"POOL": 4, "BATCH": 2, "LONGEST_READING": 10**5, "LONGEST_OPENING": 10**5}
    sizes |= dict.fromkeys(("FIRST_READING", "READING_AMONG", "EVALUATED", "EVERY"), 1)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(imitation, name, size)
        patch.setattr(Imitator, "pool_size", sizes["POOL"])
        patch.setattr(OnPolicyImitator, "pool_size", 2)
        yield


@pytest.fixture
def imitator():
    model, tokenizer = load_to_train(TrainingConfig("smollm2", lora_rank=2, lora_alpha=4))
    return Imitator(model, tokenizer, "novice", 0)


def test_goes_on_as_if_never_interrupted(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    build_imitated(whole, "smollm2", "novice", examples=8)
    build_imitated(parts, "smollm2", "novice", examples=4)
    first = load_file(parts / "adapter_model.safetensors")
    build_imitated(parts, "smollm2", "novice", examples=8)
    once, twice = (load_file(folder / "adapter_model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(once[name], twice[name]) for name in once)
    assert any(not torch.equal(first[name], twice[name]) for name in once)
    record, other = (json.loads((folder / "base.json").read_text()) for folder in (whole, parts))
    assert record["log"] == other["log"] and record["examples"] == 8
    with pytest.raises(ValueError, match="choose another folder"):
        build_imitated(whole, "smollm2", "expert", examples=8)


def test_a_published_base_is_taught_further(tmp_path):
    folder = build_imitated(tmp_path / "base", "smollm2", "novice", examples=4)
    first = load_file(folder / "adapter_model.safetensors")
    (folder / "state.pt").unlink()
    build_imitated(folder, "smollm2", "novice", examples=8)
    second = load_file(folder / "adapter_model.safetensors")
    changes = [(second[name] - first[name]).abs().max() for name in first]
    assert 0 < max(changes) < 0.1 * max(weight.abs().max() for weight in first.values())
    record = json.loads((folder / "base.json").read_text())
    assert record["examples"] == 8 and [row["pool"] for row in record["log"]] == [1, 2, 2]


def test_on_policy_it_is_corrected_in_its_own_episodes(imitator, tmp_path):
    model, tokenizer = imitator.model, imitator.tokenizer
    own_play = OnPolicyImitator(model, tokenizer, ON_POLICY, 0)
    (batch,) = own_play.batches()
    played = [talk.prompt + talk.ids for talk in own_play.player().converse(sessions_of(2))]
    for ids, own, targets in batch:
        assert any(ids == whole[: len(ids)] for whole in played)
        assert all(own[place] for place, _, _ in targets) and targets[-1][0] == len(ids) - 1
    # Other episodes come next, and a base that is taught further stays another one's base.
    base = build_imitated(tmp_path / "base", "smollm2", "novice", examples=4)
    folder = build_imitated(tmp_path / "own", str(base), ON_POLICY, examples=4)
    record = json.loads((folder / "base.json").read_text())
    assert record["examples"] == 4 and [row["pool"] for row in record["log"]] == [1, 2, 2]
    before, after = (load_file(path / "adapter_model.safetensors") for path in (base, folder))
    assert any(not torch.equal(before[name], after[name]) for name in before)


def sessions_of(count):
    """Those of the first pool on policy."""
    sessions = []
    for at in range(count):
        task = sft_tasks.draw_task(Random(f"on-policy/0/0/{at}"), sft_tasks.EPISODE_SHARES)
        episode = sft_tasks.open_varied(task, "train", imitation.ON_POLICY_FIRST + at)
        sessions.append(sft_tasks.NoisySession(episode))
    return sessions


def test_ends_when_evaluations_are_nearly_equal(tmp_path, monkeypatch):
    rows = iter({"score": mean} for mean in (0.1, 0.3, 0.2, 0.205))
    monkeypatch.setattr(Imitator, "learn_pool", lambda self: setattr(self, "pool", self.pool + 1))
    monkeypatch.setattr(Imitator, "evaluate", lambda self, count: self.log.append(next(rows)))
    build_imitated(tmp_path / "base", "smollm2", "expert", hours=0)
    assert not (tmp_path / "base").exists()  # no time for one pool
    build_imitated(tmp_path / "base", "smollm2", "expert")
    log = json.loads((tmp_path / "base" / "base.json").read_text())["log"]
    assert [row["score"] for row in log] == [0.1, 0.3, 0.2, 0.205]  # a fall is no end
    monkeypatch.setattr(imitation, "load_to_train", None)
    build_imitated(tmp_path / "base", "smollm2", "expert")  # it is finished
    build_imitated(tmp_path / "base", "smollm2", "expert", examples=5)


def test_the_loss_is_that_of_reading_each_conversation_from_its_start(imitator):
    imitator.pool = 1
    batch = [example for pair in imitator.batches() for example in pair]
    shared = imitator.shared
    assert {example.ids[: len(shared)] == shared for example in batch} == {True, False}
    summed, weights = 0.0, 0.0
    for ids, _, targets in batch:
        logits = imitator.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        summed -= sum(weight * logits[place - 1, token].item() for place, token, weight in targets)
        weights += sum(weight for _, _, weight in targets)
    assert imitator._backward(batch) == pytest.approx(summed / weights, rel=1e-4)
    assert all(weight.grad is not None for weight in imitator.weights.values())


def test_in_16_bit_it_learns_the_same_but_for_rounding(tmp_path, monkeypatch):
    in_blocks = Mock(wraps=decoder.attention_in_blocks)
    monkeypatch.setattr(decoder, "attention_in_blocks", in_blocks)
    for folder, half in (("whole", False), ("half", True)):
        monkeypatch.setattr(loading, "computes_bf16", lambda half=half: half)
        build_imitated(tmp_path / folder, "smollm2", "novice", examples=4)
        assert in_blocks.called is half  # there it takes half the time
    paths = (tmp_path / folder / "state.pt" for folder in ("whole", "half"))
    state, other = (torch.load(path, weights_only=True) for path in paths)
    assert {weight.dtype for weight in other["weights"].values()} == {torch.float32}
    assert other["log"][0]["loss"] != state["log"][0]["loss"]
    assert other["log"][0]["loss"] == pytest.approx(state["log"][0]["loss"], rel=0.02)


def test_what_all_calls_have_weighs_little(imitator):
    messages = sft_tasks.novice_episode(0)
    ids, own, targets = encode(imitator.tokenizer, messages, None, fixed_weight=0.1)
    assert [place for place, _, _ in targets] == [at for at, wrote in enumerate(own) if wrote]
    whole = "".join(
        imitator.tokenizer.decode([ids[at]]) for at, _, weight in targets if weight == 1
    )
    values = [
        value
        for message in messages
        for call in message.get("tool_calls") or ()
        for value in (call["function"]["name"], *call["function"]["arguments"].values())
    ]
    assert values and whole.replace("<|im_end|>", "").replace("\n", "") == "".join(values)


def test_the_base_is_the_average_in_16_bit_and_grpo_trains_it_further(tmp_path):
    folder = build_imitated(tmp_path / "base", "smollm2", "novice", examples=4)
    weights = load_file(folder / "adapter_model.safetensors")
    state = torch.load(folder / "state.pt", weights_only=True)
    for name, weight in state["average"].items():
        assert torch.equal(weights[name.replace(".default", "")], weight.half())
    agent = load_agent(folder)
    assert agent.grammar is not None and agent._names is incident_names
    config = make_config("smollm2", model=str(folder), steps=1, incidents=1, group=2)
    with pytest.raises(ValueError, match="set lora_rank to 16, its own"):
        load_to_train(replace(config, lora_rank=8))
    made = train(config, tmp_path / "run", progress=False)
    record = json.loads((made / "adapter_config.json").read_text())
    assert record["base_model_name_or_path"] == "smollm2"
    assert load_file(made / "adapter_model.safetensors").keys() == weights.keys()
