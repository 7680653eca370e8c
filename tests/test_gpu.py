"""The proofs of `make gpu` where there is no GPU: on toy shapes in fp32, with `stand_in/unsloth.py`
for Unsloth. What this leaves out is what they are for: Unsloth's kernels, 4 bit, fp16, memory.
"""

import math
from pathlib import Path

import gpu
import pytest
import random_qwen
import tokens
import typer
from transformers import AutoTokenizer
from trl.chat_template_utils import parse_response

from logtriage.policies.llm.loading import with_tool_calls
from logtriage.train.base_model import build_base
from logtriage.train.cost import Model

TOY = Model(2, 32, 64, 4, 2, 8)
NONE = ["reserved_gib", "allocated_gib", "outside_gib"]  # on a CPU


@pytest.fixture
def stand_in(monkeypatch):
    """Unsloth's stand-in, in processes of the cases too: they look where this one looks."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "stand_in"))


def test_without_a_gpu_a_sentence_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "find_gpu", lambda: None)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "results")
    with pytest.raises(typer.Exit) as left:
        gpu.main(tmp_path)
    assert left.value.exit_code == 2 and not list(tmp_path.iterdir())
    told = capsys.readouterr()
    assert not told.out and told.err.count("\n") == 1 and "no NVIDIA GPU" in told.err


def test_the_base_must_be_there(tmp_path, monkeypatch, stand_in):
    monkeypatch.setattr(gpu, "find_gpu", lambda: "a GPU")
    assert f"build-base {tmp_path}" in gpu.refusal(tmp_path)


def test_the_random_model_has_the_shape_and_qwens_tokenizer(tmp_path):
    assert random_qwen.random_model(TOY, tmp_path) == TOY.parameters
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert type(tokenizer).__name__ == "Qwen2Tokenizer"  # as Qwen's own: it gets the short tools
    assert len(tokenizer) == tokens.tokenizer().n_vocab
    # The whole of an episode, calls and answers, is the same ids; and what a call is, stays.
    episode = tokens.Episode.open("cascading_failure", "train", 3)
    text = tokens.rendered(tokens.one_by_one(episode), tokens.tool_schemas())
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert ids == tokens.tokenizer().encode(text, allowed_special="all")
    assert "<tool_call>" in tokenizer.decode(ids, skip_special_tokens=True)
    assert tokenizer.eos_token_id == 151_645


def test_scripted_turns_are_calls_as_long_as_a_turn_may_be():
    tokenizer = with_tool_calls(random_qwen.qwen_tokenizer())
    asked = []
    script = random_qwen.Script(lambda *all_of, **named: asked.append(all_of), tokenizer, 128)
    first = gpu.opening_ids(tokenizer, 1)[0]
    later = first + [script.opens] * 2  # the answers of tools, and the turn to come
    turns, _ = script([first, first, later])
    assert asked == [([first, first, later],)]  # generated, for what that costs
    assert {len(turn) for turn in turns} == {128}
    read = [parse_response(tokenizer, turn, prefix=first) for turn in turns]
    calls = [[tuple(call["function"].values()) for call in one["tool_calls"]] for one in read]
    logs = ("request_more_logs", {"service": "all"})
    assert calls == [
        [("classify_severity", {"severity": "P1"}), logs],
        [("classify_severity", {"severity": "P2"}), logs],
        [logs],
    ]


@pytest.mark.slow
def test_the_memory_proof_runs_through(tmp_path, stand_in):
    changes = {"load_in_4bit": False, "completion_tokens": 450, "turn_tokens": 60}
    table = gpu.prove_memory(tmp_path, TOY, steps=[(1, 4)], batches=[2], **changes)
    assert table["case"].tolist() == ["train", "evaluate"] and table["fits"].all()
    assert table[NONE].isna().all(axis=None) and table["computed_gib"].notna().all()
    train = table.iloc[0]
    # Scripted: the model is heard more than once, and rewards differ, so something is learned.
    assert train["turns"] > 1 and train["loss_finite"] and train["resumed"]
    assert train["adapter_difference"] < 1e-4 < train["adapter_effect"]
    assert train["tokens"] > 985 + 2 * 60  # Qwen's prompt (results/tokens), and full turns
    assert (table["seconds"] > 0).all()


@pytest.mark.slow
def test_the_small_proof_runs_through(tmp_path, stand_in):
    # A base that calls tools, if badly: the tiny one never gets to a second turn.
    toy = {"drills": 64, "drill_epochs": 1, "novices": 600, "hidden": 64, "layers": 2}
    base = build_base(tmp_path / "base", parity=0.0, **toy)
    record = gpu.prove_small(base, tmp_path)
    assert record["turns"] > 1 and record["loss_finite"] and record["resumed"] and record["fits"]
    assert record["adapter_difference"] < 1e-4 < record["adapter_effect"]
    assert len(record["loss"]) == 2 and all(map(math.isfinite, record["loss"]))
    assert all(record[name] is None for name in NONE)
