"""Loading: which weights are taken on which machine, what a damaged folder is answered, and tools
that are printed short.
"""

import hashlib
import json
import tracemalloc
from shutil import copytree
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils import get_json_schema

from logtriage.play.actions import ACTION_ARGUMENTS, Action
from logtriage.play.conversation import opening_messages, tool_call
from logtriage.play.tools import TriageTools, tool_schemas
from triagelab.bench.published import read
from triagelab.bench.registry import in_memory, named
from triagelab.language_models import loading
from triagelab.language_models.language_models import TURN_TOKENS
from triagelab.language_models.loading import load_language_model, load_player, weights_digest
from triagelab.train.sft_tasks import novice_episode

WHOLE, IN_4_BIT = "Qwen/Qwen2.5-3B-Instruct", "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"


class QwensTokenizer(PreTrainedTokenizerFast):
    """As any tokenizer but the embedded model's."""


@pytest.fixture
def tokenizers(tiny_base):
    """One that prints the tools whole, and one that prints them short."""
    whole = load_language_model(tiny_base)[1]
    return whole, loading.with_tool_calls(QwensTokenizer.from_pretrained(tiny_base))


def rendered(tokenizer, messages, tools=None):
    return tokenizer.apply_chat_template(
        messages, tools=tools, tokenize=False, add_generation_prompt=True
    )


@pytest.mark.parametrize("gpu", [True, False])
def test_4_bit_is_run_where_there_is_a_gpu(gpu, monkeypatch, tiny_base):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert loading.runnable(WHOLE, True) == (WHOLE, gpu)
    for name in (IN_4_BIT, IN_4_BIT.lower()):  # as an adapter's record has it
        assert loading.runnable(name, False) == ((name, True) if gpu else (WHOLE, False))
    assert loading.runnable("mine", True) == ("mine", gpu)
    assert loading.quantised_name(WHOLE) == IN_4_BIT
    if not gpu:
        with pytest.raises(ValueError, match="needs an NVIDIA GPU"):
            load_language_model(tiny_base, load_in_4bit=True)


def test_the_digest_of_weights_reads_them_in_pieces(tmp_path):
    # A folder of 3 billion weights took 12 GB: every file, and all of them joined.
    first, second = b"\x01" * 9_000_000, b"\x02" * 9_000_001
    (tmp_path / "model-1.safetensors").write_bytes(first)
    (tmp_path / "model-2.safetensors").write_bytes(second)
    whole = hashlib.sha256(first + second).hexdigest()[:16]
    tracemalloc.start()
    digest = weights_digest(tmp_path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert digest == whole and most < 4_000_000
    assert weights_digest(tmp_path / "elsewhere") == ""


@pytest.mark.parametrize("name, policy", [("agent", "trained"), ("base", "base")])
def test_the_agent_in_the_package_is_the_one_whose_results_are_published(name, policy):
    rows = read("novice/seed-1/evaluation.parquet").query("policy == @policy")
    assert set(rows["weights"]) == {named(name).settings["weights"]}


def test_a_model_may_write_as_much_whatever_plays_it(tiny_base):
    evaluated, agent = in_memory(tiny_base).make(0), loading.load_agent(tiny_base)
    assert evaluated.turn_tokens == agent.turn_tokens == TURN_TOKENS


def test_weights_in_4_bit_are_computed_with_in_fp16_on_a_t4():
    quantised = SimpleNamespace(quantization_config={"bnb_4bit_compute_dtype": "bfloat16", "x": 1})
    config = loading.computed_in_half(quantised)
    assert config.quantization_config == {"bnb_4bit_compute_dtype": "float16", "x": 1}
    plain = SimpleNamespace()
    assert loading.computed_in_half(plain) is plain


@pytest.mark.parametrize(
    "file, left",
    [
        ("model.safetensors", b"\x10"),
        ("model.safetensors", None),
        ("tokenizer.json", b"{}"),
        ("config.json", b"{}"),
        ("config.json", b"{"),
    ],
)
def test_a_damaged_folder_is_called_damaged(file, left, tiny_base, tmp_path):
    # Each of these was a traceback, or said that no folder holds the model.
    folder = copytree(tiny_base, tmp_path / "base")
    (folder / file).unlink()
    if left is not None:
        (folder / file).write_bytes(left)
    with pytest.raises(ValueError, match=rf"^cannot load {folder}: .*incomplete or damaged"):
        load_player(folder)


def test_what_is_nowhere_is_said_and_a_full_gpu_is_no_damaged_folder(
    tiny_base, tmp_path, monkeypatch
):
    with pytest.raises(ValueError, match=r"cannot load nobody/here: no such folder here"):
        load_language_model("nobody/here")
    with pytest.raises(ValueError, match=rf"cannot load {tmp_path}: .*incomplete or damaged"):
        load_language_model(tiny_base, adapter=tmp_path)

    full = Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory"))
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", full)
    with pytest.raises(torch.OutOfMemoryError):
        load_language_model(tiny_base)


def test_a_short_template_loses_no_word_about_a_tool(tokenizers):
    # Only `return` goes, which says the same of every tool; all else is as TRL prints it.
    calls = [tool_call(Action("escalate", ("sre",)))]
    messages = [
        *opening_messages("logs"),
        {"role": "assistant", "content": "Well.", "tool_calls": calls},
        {"role": "tool", "name": "escalate", "content": "paged sre"},
    ]
    whole, short = (rendered(tokenizer, messages, tool_schemas()) for tokenizer in tokenizers)
    (before, listed), (cut, listed_short) = (text.split("<tools>\n") for text in (whole, short))
    (lines, after), (lines_short, rest) = (
        text.split("\n</tools>") for text in (listed, listed_short)
    )
    assert before == cut and after == rest and lines != lines_short
    for line, schema in zip(lines_short.splitlines(), tool_schemas(), strict=True):
        assert schema["function"].pop("return") == {"type": "string"}
        assert line == json.dumps(schema)


def test_qwen3_instruct_reads_the_same_text(tokenizers):
    # So it is given the template of Qwen2.5, and what was counted holds for it.
    from trl.chat_template_utils import qwen2_5_chat_template, qwen3_instruct_2507_chat_template

    texts = []
    for template in (qwen2_5_chat_template, qwen3_instruct_2507_chat_template):
        tokenizers[1].chat_template = template
        texts.append(rendered(tokenizers[1], novice_episode(3), tool_schemas()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "name, kind, template, same",
    [
        ("unsloth/qwen3-4b-instruct-2507-unsloth-bnb-4bit", "qwen3", "<think>", True),
        ("you/merged", "qwen3", "as TRL's", True),
        ("Qwen/Qwen3-4B", "qwen3", "<think>", False),
        ("meta/llama", "llama", None, False),
    ],
)
def test_a_qwen_that_never_thinks_has_one_template(name, kind, template, same):
    model = SimpleNamespace(config=SimpleNamespace(name_or_path=name, model_type=kind))
    assert loading.is_qwen(model, SimpleNamespace(chat_template=template)) is same


def test_the_trainer_takes_a_short_template(tokenizers, tiny_base, tmp_path):
    # TRL puts a template of its own in the place of one that is not known to grow by its end.
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    arguments = GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], num_generations=2
    )
    trainer = GRPOTrainer(
        model=load_language_model(tiny_base)[0],
        args=arguments,
        processing_class=tokenizers[1],
        train_dataset=Dataset.from_list([{"prompt": opening_messages("")}]),
        environment_factory=TriageTools,
        reward_funcs=[lambda completions, **rest: [0.0] * len(completions)],
    )
    assert trainer.chat_template is None  # it reads with the tokenizer's
    text = rendered(trainer.processing_class, opening_messages(""), tool_schemas())
    assert '"name": "escalate"' in text and '"return"' not in text


def test_schemas_are_those_of_transformers():
    # TRL makes its own from the methods, and the tokenizer holds lines of them as single tokens:
    # the same text to the letter, and so the same order of keys.
    methods = [getattr(TriageTools, name) for name in sorted(ACTION_ARGUMENTS)]
    assert json.dumps(tool_schemas()) == json.dumps([get_json_schema(tool) for tool in methods])
