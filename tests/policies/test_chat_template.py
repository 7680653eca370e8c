"""The shorter template changes what a model reads of its tools, and nothing else."""

import json

import pytest
from test_language_models import right_calls

from logtriage.play.conversation import answers, opening_messages
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession, TriageTools, tool_schemas
from logtriage.policies.llm.chat_template import short_template, with_short_tools
from logtriage.policies.llm.language_models import LanguageModelPolicy
from logtriage.policies.llm.loading import load_language_model


@pytest.fixture
def conversation():
    """A whole episode: logs, then five calls in one message."""
    episode = Episode.open("single_crash", "train", 0)
    session = ToolSession(episode)
    call = {"name": "request_more_logs", "arguments": {"service": "all"}}
    calls = [{"type": "function", "function": call}]
    messages = opening_messages(session.opening)
    for turn in (calls, right_calls(episode.incident)):
        messages.append({"role": "assistant", "content": "Well.", "tool_calls": turn})
        messages += answers(session, messages[-1])
    return messages


def shortened(tiny_base):
    """(tokenizer as it is, the same with tools said short); both are the embedded model's, whose
    template is TRL's for Qwen2.5.
    """
    return load_language_model(tiny_base)[1], with_short_tools(load_language_model(tiny_base)[1])


def rendered(tokenizer, messages, tools=None):
    return tokenizer.apply_chat_template(
        messages, tools=tools, tokenize=False, add_generation_prompt=True
    )


def test_only_the_tools_are_said_otherwise(tiny_base, conversation):
    whole, short = shortened(tiny_base)
    assert rendered(whole, conversation) == rendered(short, conversation)
    before, after = (rendered(one, conversation, tool_schemas()) for one in (whole, short))
    for text in (before, after):
        assert text.count("<tools>\n") == text.count("\n</tools>") == 1
    cut = [text.split("<tools>\n")[0] for text in (before, after)]
    rest = [text.split("\n</tools>")[1] for text in (before, after)]
    assert cut[0] == cut[1] and rest[0] == rest[1]
    assert '<tool_call>\n{"name": "resolve", "arguments": {}}\n</tool_call>' in rest[1]


def test_no_word_about_a_tool_is_lost(tiny_base, conversation):
    # What is left out says the same of every tool: that is why it can be.
    _, short = shortened(tiny_base)
    text = rendered(short, conversation, tool_schemas())
    lines = text.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
    for line, schema in zip(lines, tool_schemas(), strict=True):
        assert schema["function"].pop("return") == {"type": "string"}
        assert line == json.dumps(schema)


def test_calls_are_parsed_as_before(tiny_base, conversation):
    from trl.chat_template_utils import parse_response

    for tokenizer in shortened(tiny_base):
        prompt = tokenizer.apply_chat_template(
            conversation[:2], tools=tool_schemas(), add_generation_prompt=True, return_dict=False
        )
        said = rendered(tokenizer, conversation[:3]).split("<|im_start|>assistant\n")[1]
        turn = tokenizer.encode(said.split("<|im_end|>")[0] + "<|im_end|>")
        message = parse_response(tokenizer, turn, prefix=prompt)
        assert message["tool_calls"] == conversation[2]["tool_calls"]


def test_the_trainer_takes_it(tiny_base, tmp_path):
    # TRL puts a template of its own in the place of one that is not known to grow by its end.
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = load_language_model(tiny_base)
    arguments = GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], num_generations=2
    )
    trainer = GRPOTrainer(
        model=model,
        args=arguments,
        processing_class=with_short_tools(tokenizer),
        train_dataset=Dataset.from_list([{"prompt": opening_messages("")}]),
        environment_factory=TriageTools,
        reward_funcs=[lambda completions, **rest: [0.0] * len(completions)],
    )
    assert trainer.chat_template is None  # it reads with the tokenizer's
    text = rendered(trainer.processing_class, opening_messages(""), tool_schemas())
    assert '"name": "escalate"' in text and '"return"' not in text


def test_a_model_plays_with_it(tiny_base):
    model, tokenizer = load_language_model(tiny_base)
    episodes = [Episode.open("single_crash", "train", index) for index in range(2)]
    LanguageModelPolicy(model, with_short_tools(tokenizer), name="tiny").play(episodes)
    assert all(episode.done for episode in episodes)


def test_what_cannot_be_shortened_is_refused(tiny_base):
    with pytest.raises(ValueError, match="once, found 0; begin with TRL's"):
        short_template("{{ messages }}")
    tokenizer = with_short_tools(load_language_model(tiny_base)[1])
    with pytest.raises(ValueError, match="found 0"):  # it is short already
        with_short_tools(tokenizer)
    bare = load_language_model(tiny_base)[1]
    bare.response_template = bare.response_schema = None
    with pytest.raises(ValueError, match="call with_tool_calls first"):
        with_short_tools(bare)
