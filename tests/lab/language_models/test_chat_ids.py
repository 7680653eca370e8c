"""Messages and ids: calls under the embedded template, text under one that no library knows."""

from shutil import copytree

import pytest

from logtriage.play.actions import Action
from logtriage.play.conversation import NATIVE, TEXT, answers, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.policies.policy import MAX_TURNS
from triagelab.language_models.language_models import LanguageModelPolicy, TextChat
from triagelab.language_models.loading import load_language_model, load_player

# A template that nobody knows, in the tokens of the embedded model, without a role for a system.
UNKNOWN = """\
{%- for message in messages -%}
{%- if message.role == "system" -%}{{ raise_exception("System role not supported") }}{%- endif -%}
<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""


@pytest.fixture(scope="module")
def unknown(tiny_base, tmp_path_factory):
    """A model of another family, under a chat template of its own."""
    from transformers import LlamaConfig, LlamaForCausalLM

    _, tokenizer = load_language_model(tiny_base)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, **heads))
    folder = tmp_path_factory.mktemp("unknown") / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(UNKNOWN)
    return folder


def test_a_template_that_nobody_knows_is_played_through_text(unknown, tiny_base):
    model, tokenizer, protocol = load_player(unknown)
    assert protocol is TEXT
    assert load_player(tiny_base)[2] is NATIVE and load_player(tiny_base, protocol=TEXT)[2] is TEXT
    policy = LanguageModelPolicy(model, tokenizer, name="x", turn_tokens=8, protocol=TEXT)
    played = [Episode.open("single_crash", "test", index) for index in range(2)]
    ends = list(policy.play_each(played))
    assert all(ended.episode.done and ended.tokens.prompt > 0 for ended in ends)
    assert all(0 < ended.tokens.completion <= 8 * MAX_TURNS for ended in ends)


def test_a_model_without_a_template_cannot_be_talked_to(tiny_base, tmp_path):
    folder = copytree(tiny_base, tmp_path / "base")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="has no chat template"):
        load_player(folder)


def test_turn_by_turn_the_ids_are_the_templates(unknown):
    _, tokenizer, _ = load_player(unknown)
    chat, session = TextChat(tokenizer), ToolSession(Episode.open("single_crash", "test", 0))
    messages = TEXT.opening(session.opening)
    ids = chat.prompt(messages)
    said = f"{messages[0]['content']}\n\n{messages[1]['content']}"  # no role for a system
    messages = [{"role": "user", "content": said}]
    assert tokenizer.decode([chat.end]) == "<|im_end|>"
    for wrote, result in (("resolve", "step 1 of 8"), ("ignore", "step 2 of 8")):
        turn = [*tokenizer.encode(wrote, add_special_tokens=False), chat.end]
        assert chat.parse(turn, ids) == {"role": "assistant", "content": wrote}
        answer = {"role": "user", "content": result}
        cut = chat.answers([answer], ended=False)
        assert cut == [chat.end, *chat.answers([answer], ended=True)]  # it is given an end
        messages += [{"role": "assistant", "content": wrote}, answer]
        ids = [*ids, *turn, *chat.answers([answer], ended=True)]
        whole = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )
        assert ids == whole


def test_ids_are_those_of_a_template_with_tools(tiny_base):
    # Turn by turn the ids are concatenated, never re-tokenized; for the embedded tokenizer both
    # must agree.
    model, tokenizer = load_language_model(tiny_base)
    policy = LanguageModelPolicy(model, tokenizer, name="tiny")
    episode = Episode.open("cascading_failure", "train", 0)
    session = ToolSession(episode)
    conversation = opening_messages(session.opening)
    (opened,) = policy._opened([session])
    ids = opened.prompt
    asks = Action("request_more_logs", (episode.incident.root,))
    for action in (asks, Action("escalate", ("sre",))):
        message = {"role": "assistant", "content": "", "tool_calls": [tool_call(action)]}
        asked = [{"role": "user", "content": ""}, message]
        said = tokenizer.apply_chat_template(asked, tokenize=False)
        said = said.split("<|im_start|>assistant\n")[1].removesuffix("\n")
        ids = ids + tokenizer.encode(said, add_special_tokens=False)
        made = answers(session, message)
        conversation += [message, *made]
        ids = ids + policy._chat.answers(made, ended=True)
        whole = tokenizer.apply_chat_template(
            conversation, tools=tool_schemas(), add_generation_prompt=True, return_dict=False
        )
        assert ids == whole
