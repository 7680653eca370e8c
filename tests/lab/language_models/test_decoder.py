"""Conversations that go on from kept keys and values are those that a model would write anyway."""

from random import Random
from types import SimpleNamespace

import pytest
import torch
from qwen_tokenizer import qwen_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from logtriage.play.actions import Action
from logtriage.play.conversation import tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from triagelab.language_models import decoder
from triagelab.language_models.decoder import Writer, attention_in_blocks, folded_attention
from triagelab.language_models.grammar import Turn
from triagelab.language_models.language_models import LanguageModelPolicy
from triagelab.language_models.loading import load_language_model, with_tool_calls


def sessions(count):
    names = ("single_crash", "silent_degradation")
    return [ToolSession(Episode.open(name, "train", i)) for name in names for i in range(count)]


def test_kept_keys_and_values_predict_what_the_whole_conversation_read_anew_does(tiny_base):
    model, tokenizer = load_language_model(tiny_base)
    plain, _ = load_language_model(tiny_base)  # with attention as `transformers` has it
    random = Random(0)
    some = [[random.randrange(3, 400) for _ in range(random.randint(3, 30))] for _ in range(5)]
    prompts = [some[i % 5] for i in range(12)]  # several begin alike
    conversations = [list(prompt) for prompt in prompts]
    own = [[False] * len(prompt) for prompt in prompts]
    turns_left = [random.randint(1, 6) for _ in prompts]

    def answer(seat, turn):
        conversations[seat] += turn
        own[seat] += [True] * len(turn)
        turns_left[seat] -= 1
        if not turns_left[seat]:
            return None
        then = [random.randrange(3, 400) for _ in range(random.randint(1, 200))]
        conversations[seat] += then
        own[seat] += [False] * len(then)
        return then

    Writer(model, 0.0, turn_tokens=4, eos=tokenizer.eos_token_id).write(prompts, answer)
    assert turns_left == [0] * 12
    for ids, mine in zip(conversations, own, strict=True):
        with torch.no_grad():
            logits = plain(torch.tensor([ids])).logits[0, :-1]
        written = torch.tensor(mine)[1:]
        chosen = logits[written].gather(1, torch.tensor(ids)[1:][written, None])[:, 0]
        # the likeliest, but for rounding where two are as likely
        assert torch.allclose(chosen, logits[written].max(1).values, atol=1e-3)


@pytest.mark.parametrize("before", [0, 5])
def test_attention_in_blocks_and_its_gradient_are_those_of_torch(before, monkeypatch):
    monkeypatch.setattr(decoder, "BLOCK", 3)
    torch.manual_seed(0)
    layer, length, mask = SimpleNamespace(num_key_value_groups=3, is_causal=True), 7, None
    query = torch.randn(2, 6, length, 8, requires_grad=True)
    key, value = torch.randn(2, 2, 2, before + length, 8, requires_grad=True)
    if before:
        mask = torch.ones(2, 1, length, before + length, dtype=torch.bool).tril(before)
        mask[1, ..., :2] = False  # padding
    out, _ = folded_attention(layer, query, key, value, mask, scaling=0.3)
    in_blocks = attention_in_blocks(query, key, value, mask, 0.3)
    assert torch.allclose(in_blocks, out, atol=1e-6)
    inputs = (query, key, value)
    gradients = (torch.autograd.grad(each.square().sum(), inputs) for each in (out, in_blocks))
    for expected, gradient in zip(*gradients, strict=True):
        assert torch.allclose(gradient, expected, atol=1e-5)


@pytest.fixture(scope="module", params=["embedded", "qwen"])
def random_model(request, tiny_base):
    """A model that says anything, with calls of some five tokens or of some thirty."""
    if request.param == "embedded":
        return load_language_model(tiny_base)
    tokenizer = with_tool_calls(qwen_tokenizer())
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.3}
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes)).eval(), tokenizer


@pytest.mark.parametrize("temperature, streams", [(0.0, False), (1.5, True), (1.5, False)])
def test_what_is_forced_is_read_in_one_pass_and_changes_no_token(
    temperature, streams, random_model, monkeypatch
):
    # The reference writes and reads each token by itself. The state of torch's random numbers says
    # that as many were drawn.
    model, tokenizer = random_model
    policy = LanguageModelPolicy(
        model, tokenizer, name="x", temperature=temperature, constrained=True
    )
    policy.grammar.writes_text = False  # an untrained model would write little else
    passes = []
    hook = model.base_model.register_forward_pre_hook(lambda *_: passes.append(1))

    def written(seed):
        torch.manual_seed(seed)
        draws = [Random(f"{seed} {i}") for i in range(10)] if streams else None
        passes.clear()
        talks = policy.converse(sessions(5), draws)
        return [(talk.ids, talk.own, talk.allowed) for talk in talks], len(passes), torch.rand(1)

    def only_looks(self):
        if self.left:
            self.next()
        return []

    lengths = []
    for seed in range(3 if temperature else 1):
        conversations, count, drawn = written(seed)
        with monkeypatch.context() as patch:
            patch.setattr(Turn, "forced", only_looks)
            slowly, slow_count, slowly_drawn = written(seed)
        assert conversations == slowly and drawn == slowly_drawn and count < slow_count
        lengths += [len(ids) for ids, _, _ in conversations]
        assert all(sum(own) == len(allowed) for _, own, allowed in conversations)
    assert len(set(lengths)) > 1 and max(lengths) > 100  # of several turns
    hook.remove()


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_what_all_prompts_begin_with_is_read_once_and_changes_no_token(temperature, random_model):
    model, tokenizer = random_model
    policy = LanguageModelPolicy(
        model, tokenizer, name="x", temperature=temperature, turn_tokens=40, constrained=True
    )
    shapes = []
    hook = model.base_model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(given["input_ids"].shape), with_kwargs=True
    )
    together = policy.converse(sessions(3), [Random(i) for i in range(6)])
    hook.remove()
    (first, shared), (rows, rest) = shapes[:2]
    lengths = [len(talk.prompt) for talk in together]
    assert first == 1 and rows == 6 and max(lengths) == shared + rest
    assert shared > 20 and min(lengths) < max(lengths)
    for i, talk in enumerate(together):
        (alone,) = policy.converse([sessions(3)[i]], [Random(i)])  # reads its prompt in one pass
        assert alone.ids == talk.ids


SIZES = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
SIZES |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.5}


@pytest.mark.parametrize(
    "kind, window, more, named",
    [
        ("mistral", 16, {}, "sliding_window 16"),
        ("gemma2", 99_999, {"attn_logit_softcapping": 2.0}, "softcapping"),
        ("mistral", None, {}, ""),
        ("qwen2", 16, {}, ""),  # which it says that it does not use
    ],
)
def test_a_model_is_written_as_it_generates_or_refused(kind, window, more, named):
    # A tiny Mistral with a window of 16 wrote 7 of 8 tokens that were not its own.
    config = AutoConfig.for_model(kind, sliding_window=window, **more, **SIZES)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    prompt = [Random(0).randrange(3, 300) for _ in range(40)]
    if named:
        for play in (Writer, lambda *given: LanguageModelPolicy(given[0], None, name="x")):
            with pytest.raises(ValueError, match=rf"{kind} .*{named}.*--endpoint"):
                play(model, 0.0, 8, 2)
        return
    turns = []
    generated = model.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)
    Writer(model, 0.0, 8, 2).write([prompt], lambda seat, turn: turns.append(turn))
    assert turns == [generated[0, 40:].tolist()]


def sampled(policy, batch, attempt=0):
    opened = [Episode.open("single_crash", "train", index) for index in range(6)]
    return [list(played.messages) for played in policy.play_each(opened, batch, attempt)]


def test_what_is_sampled_depends_on_the_incident_and_the_attempt_and_not_on_the_batch(tiny_base):
    policy = LanguageModelPolicy(
        *load_language_model(tiny_base), name="x", temperature=1.5, turn_tokens=12
    )
    first = sampled(policy, 6)
    assert first == sampled(policy, 1) == sampled(policy, 4)
    assert first != sampled(policy, 6, attempt=1) == sampled(policy, 2, attempt=1)
    policy.seed = 1
    assert first != sampled(policy, 6)


@pytest.mark.parametrize("streams", [None, [Random(f"stream {i}") for i in range(4000)]])
def test_sampled_tokens_come_as_often_as_the_model_says(streams, tiny_base):
    model, tokenizer = load_language_model(tiny_base)
    prompt = tokenizer("step 0 of 8")["input_ids"]
    firsts = []
    writer = Writer(model, temperature=2.0, turn_tokens=1, eos=tokenizer.eos_token_id)
    torch.manual_seed(0)
    prompts = [prompt] * 4000
    writer.write(prompts, lambda seat, turn: firsts.append(turn[0]), streams=streams)
    with torch.no_grad():
        shares = torch.softmax(model(torch.tensor([prompt])).logits[0, -1] / 2.0, -1)
    counts = torch.bincount(torch.tensor(firsts), minlength=len(shares))
    likely = shares.argsort(descending=True)[:5]
    error = (shares * (1 - shares) / 4000).sqrt()
    assert ((counts / 4000 - shares).abs()[likely] < 4 * error[likely]).all()


def test_a_turn_is_cut_at_its_bound_and_a_conversation_at_its_own(tiny_base):
    model, tokenizer = load_language_model(tiny_base)
    cut = LanguageModelPolicy(model, tokenizer, name="tiny", turn_tokens=2)
    for talk in cut.converse(sessions(3)):
        assert talk.own == [True] * 2 and talk.turns == 1  # two tokens are no call
    # One that always asks, in place of a model: answers come until there is no room for the next.
    asks = LanguageModelPolicy(
        model, tokenizer, name="tiny", turn_tokens=128, completion_tokens=200
    )
    question = tool_call(Action("request_more_logs", ("user-db",)))
    message = {"role": "assistant", "content": "", "tool_calls": [question]}
    asks._chat.parse = lambda turn, prompt: message
    for talk in asks.converse(sessions(3)):
        assert talk.turns > 1 and len(talk.ids) - asks.turn_tokens < 200
        assert talk.messages[-1]["role"] == "tool"  # the answer that found no room
