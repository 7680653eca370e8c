"""Our loop learns what TRL's would: the same gradient, from what is read once instead of often; and
each call is credited with its part of an episode's score.
"""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset
from lab_helpers import lines
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOConfig

from logtriage.play.actions import Action
from logtriage.play.conversation import tool_call
from logtriage.play.episode import Episode
from logtriage.play.scoring import Score
from logtriage.play.tools import ToolSession, TriageTools
from logtriage.world.incidents import sample_incident
from triagelab.language_models.decoder import PADDED, Writer, shared_prefix
from triagelab.language_models.language_models import LanguageModelPolicy
from triagelab.language_models.loading import load_language_model
from triagelab.train import loop
from triagelab.train.group import HEADS, play_group, plot_group
from triagelab.train.grpo import train
from triagelab.train.loop import WHOLE, KeptTrainer, SharedPrompt, group_advantages
from triagelab.train.settings import incident_rows, make_config
from triagelab.train.trainer import EpisodeRecorder, IncidentTrainer, grpo_settings

INCIDENT = sample_incident("cascading_failure", "train", 0)
SEVERITY, ROOT = "classify_severity", "identify_root_cause"


def a_trainer(**attributes):
    """What the methods under test use of a trainer, and nothing else."""
    trainer = KeptTrainer.__new__(KeptTrainer)
    vars(trainer).update({"accelerator": Accelerator(cpu=True), **attributes})
    return trainer


def groups_of_episodes(tiny_base, **options):
    """Sampled conversations of three groups of four, as the padded tensors that TRL makes."""
    model, tokenizer = load_language_model(tiny_base)
    policy = LanguageModelPolicy(model, tokenizer, name="tiny", temperature=1.5, **options)
    torch.manual_seed(0)
    episodes = [Episode.open("cascading_failure", "train", i) for i in range(3) for _ in range(4)]
    written = policy.converse([ToolSession(episode) for episode in episodes])

    def padded(rows, side):
        return pad_sequence([torch.tensor(row) for row in rows], True, padding_side=side)

    inputs = {
        "prompt_ids": padded([talk.prompt for talk in written], "left"),
        "prompt_mask": padded([[1] * len(talk.prompt) for talk in written], "left"),
        "completion_ids": padded([talk.ids for talk in written], "right"),
        "completion_mask": padded([[1] * len(talk.ids) for talk in written], "right"),
        "tool_mask": padded([[int(own) for own in talk.own] for talk in written], "right"),
    }
    return model, written, inputs


@pytest.mark.parametrize("apart", [False, True], ids=["whole prompts", "what they share apart"])
def test_the_loss_and_its_gradient_are_those_of_trl(tiny_base, tmp_path, apart):
    # TRL's own trainer and ours, each whole, are handed the same episodes, some of them twice.
    _, written, inputs = groups_of_episodes(tiny_base)
    prefix = shared_prefix([conversation.prompt for conversation in written])
    assert prefix and len({len(conversation.prompt) for conversation in written}) > 1
    config = make_config("novice", model=str(tiny_base), incidents=4, group=4, temperature=1.5)
    inputs = {key: torch.cat([value, value[3:7]]) for key, value in inputs.items()}
    random = torch.Generator().manual_seed(0)
    rewards = torch.randn(4, 4, generator=random)
    rewards[1] = 0.5  # a group that agrees, and so tells nothing
    inputs["advantages"] = (rewards - rewards.mean(1, keepdim=True)).flatten()
    order = torch.randperm(16, generator=random)  # TRL shuffles
    inputs = {key: value[order] for key, value in inputs.items()}
    inputs["num_items_in_batch"] = (inputs["completion_mask"] * inputs["tool_mask"]).sum()
    results = []
    for kind in (IncidentTrainer, KeptTrainer):
        model, tokenizer = load_language_model(tiny_base)
        trainer = kind(
            model=model,
            args=GRPOConfig(**grpo_settings(config, tmp_path / kind.__name__)),
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(incident_rows(config)),
            environment_factory=partial(TriageTools, Episode.open),
            reward_funcs=[EpisodeRecorder(tmp_path, count=False)],
        )
        trainer.credit, trainer.current_gradient_accumulation_steps = "episode", 1
        trainer.constrained = False
        if apart and kind is KeptTrainer:
            trainer.shared_ids = prefix
        loss = trainer._compute_loss(model.train(), dict(inputs))
        loss.backward()
        if getattr(trainer, "shared_prompt", None):
            trainer.shared_prompt.learn()
        results.append((loss.item(), [parameter.grad for parameter in model.parameters()]))
    (theirs, their_gradient), (ours, gradient) = results
    assert ours == pytest.approx(theirs, abs=1e-6)
    for mine, other in zip(gradient, their_gradient, strict=True):
        assert other.abs().max() > 0.0
        assert torch.allclose(mine, other, atol=1e-3 * float(other.abs().max()))


def test_what_all_prompts_share_is_read_once_a_step(tiny_smollm2, tmp_path, monkeypatch):
    lengths, norms = [], []
    begin = SharedPrompt.__init__

    def count(self, model, ids):
        lengths.append(len(ids))
        begin(self, model, ids)

    monkeypatch.setattr(SharedPrompt, "__init__", count)
    score = ToolSession.reward  # of a random model it is 0, but episodes differ in length

    def longer(session):
        return score(session) + len(session.episode.history)

    monkeypatch.setattr(ToolSession, "reward", longer)
    for parts in (1, 4):
        config = make_config("smollm2", model="smollm2", steps=2, group=4, micro_batches=parts)
        train(config, tmp_path / str(parts), progress=False)
        norms.append(lines(tmp_path / str(parts) / "metrics.jsonl")[0]["grad_norm"])
    assert len(lengths) == 4 and min(lengths) > PADDED
    assert norms[1] == pytest.approx(norms[0], rel=1e-4) and norms[0] > 0


def test_an_episode_without_advantage_is_not_read_again(tiny_base):
    model, _, inputs = groups_of_episodes(tiny_base)
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    read = []
    forward = model.base_model.forward
    model.base_model.forward = lambda **given: (
        read.append(len(given["input_ids"])) or forward(**given)
    )
    own = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    trainer = a_trainer(
        _own=own, _unequal=torch.arange(len(ids)) < 5, temperature=1.0, constrained=False
    )
    logps, _, _ = trainer._get_per_token_logps_and_entropies(model, ids, mask, own.shape[1])
    assert read == [2, 5]  # the prompts of two groups, once each, and five episodes
    assert (logps[5:] == 0).all() and (logps[:5][own[:5]] < 0).all()


def test_log_probabilities_are_those_that_were_sampled_from(tiny_base, monkeypatch):
    # What may not be written has no share in them: an importance ratio would not begin at 1.
    sampled, choose = [], Writer._choose

    def chosen(self, logits, drawn):
        tokens = choose(self, logits, drawn)
        logps = torch.log_softmax(logits / self.temperature, -1)
        sampled.extend(logps[range(len(tokens)), tokens].tolist())
        return tokens

    monkeypatch.setattr(Writer, "_choose", chosen)
    model, written, inputs = groups_of_episodes(tiny_base, constrained=True)
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))  # TRL shuffles
    own = (inputs["completion_mask"] * inputs["tool_mask"]).bool()[order]
    trainer = a_trainer(
        _own=own,
        _unequal=torch.ones(len(ids), dtype=torch.bool),
        _episode=order.tolist(),
        _allowed=[talk.allowed for talk in written],
        temperature=1.5,
    )
    logps, entropies, _ = trainer._get_per_token_logps_and_entropies(
        model, ids[order], mask[order], own.shape[1]
    )
    read = logps[own].sort().values
    # The writer's order is another.
    assert torch.allclose(read, torch.tensor(sampled).sort().values, atol=1e-3)
    forced = [len(ids) == 1 for i in order.tolist() for ids in written[i].allowed]
    assert (logps[own] == 0.0)[forced].all() and (read < -1.0).any()
    assert entropies.isfinite().all() and (entropies[own][forced] == 0.0).all()


def written_by(tokenizer, *turns):
    """A conversation of these turns, each a list of calls or a text, with an answer after each."""
    ids, own, messages = [], [], []
    for turn in turns:
        message = {"role": "assistant", "content": ""}
        if isinstance(turn, str):
            message["content"] = text = turn
        else:
            message["tool_calls"] = [tool_call(call) for call in turn]
            before = [{"role": "user", "content": ""}, message]
            text = tokenizer.apply_chat_template(before, tokenize=False)
            text = text.split("<|im_start|>assistant\n")[1].removesuffix("\n")
        said, answered = tokenizer(text)["input_ids"], tokenizer("\nstep 1 of 8")["input_ids"]
        ids += said + answered
        own += [True] * len(said) + [False] * len(answered)
        messages.append(message)
    return SimpleNamespace(ids=ids, own=own, messages=messages)


def test_a_call_that_could_not_be_read_is_no_part_of_the_next(tiny_base):
    # Given the credit of the answer that follows it, a turn cut short would be learned.
    _, tokenizer = load_language_model(tiny_base)

    def text_by_call(conversation):
        """The text of each call's arguments, by its number."""
        text = {}
        numbers = loop.calls_of_tokens(conversation, tokenizer)
        for token, number in zip(conversation.ids, numbers, strict=True):
            text[number] = text.get(number, "") + tokenizer.decode([token])
        return text

    cut = '<tool_call>\n{"name": "request_more_logs", "arguments": {"service": "<|im_end|>'
    severity = [Action("classify_severity", ("P2",))]
    texts = text_by_call(written_by(tokenizer, cut, severity))
    # it is a call of the session's all the same, and has a number
    assert texts[1].startswith("P2") and cut in texts[None] and 0 not in texts
    # likewise one that is cut off behind a whole one
    whole = written_by(tokenizer, [Action("escalate", ("dba",))], severity)
    more = tokenizer(cut)["input_ids"]
    end = whole.own.index(False)
    whole.ids[end:end], whole.own[end:end] = more, [True] * len(more)
    texts = text_by_call(whole)
    assert texts[0].startswith("dba") and texts[1].startswith("P2")
    assert cut in texts[None] and "escalate" in texts[None] and set(texts) == {0, 1, None}


@pytest.mark.parametrize(
    "score, ignored, given",
    [
        (Score(1, 1, 1, 1, 0.5, 0.0, 1.0, 0.95, 1.0), False, [0.2, 0.35 + 0.3, 0.3, 0.1]),
        # The team is charged what the gate takes for it, and not what it takes for ignoring.
        (Score(1, 1, 1, 0, 0.5, 0.0, 0.0, 0.0, 0.0), False, [0.2, 0.35 + 0.3, 0.3, -0.85]),
        (Score(1, 1, 0, 1, 0.0, 0.0, 0.0, 0.0, 0.0), True, [0.2, 0.35, 0.0, 0.1]),
        # The remedy is charged the costs.
        (Score(0, 0, 0, 1, 0.0, 0.1, 1.0, 0.0, 0.0), False, [0.0, -0.1, -0.1, 0.1]),
    ],
)
def test_each_answer_is_credited_with_its_part(score, ignored, given):
    rewards = loop.component_rewards(score, score.total, ignored)
    calls = (SEVERITY, ROOT, "remediate", "escalate")
    assert [rewards[call] for call in calls] == pytest.approx(given)
    assert rewards[WHOLE] == score.total


def closed(*actions):
    """A closed session of these actions; None stands for text that was no call."""
    session = ToolSession(Episode(INCIDENT))
    for action in actions:
        if action is None:
            session.refuse("no call")
        else:
            session.call(**tool_call(action)["function"])
    session.episode.abandon()
    return session


def test_an_answer_is_compared_with_the_same_answer_of_others_and_a_decision_with_all():
    wrong = next(level for level in ("P1", "P2", "P3") if level != INCIDENT.severity)
    right, wrong = (Action(SEVERITY, (level,)) for level in (INCIDENT.severity, wrong))
    resolve = Action("resolve")
    group = [closed(right, wrong, resolve), closed(wrong, resolve), closed(resolve)]
    first, second, third = group_advantages(group)
    assert first.calls[0] == pytest.approx(0.1) == -second.calls[0]
    assert first.calls[1:] == [first.outside] * 2  # a repeated answer has no part of its own
    assert third.calls == [third.outside]  # it has given no answer
    rewards = [session.reward() for session in group]
    assert third.outside == pytest.approx(rewards[2] - sum(rewards) / 3)
    # Every call has an advantage: None is none, and the last of the second comes too late.
    logs, team = Action("request_more_logs", ("all",)), Action("escalate", ("ceo",))
    group = [closed(logs, None, team, resolve), closed(resolve, logs), closed()]
    for session, advantage in zip(group, group_advantages(group), strict=True):
        assert len(advantage.calls) == len(session.episode.history) + session.late
    assert [session.late for session in group] == [0, 1, 0]
    for advantage in group_advantages([closed(logs, None, team, resolve) for _ in range(3)]):
        assert [*advantage.calls, advantage.outside] == pytest.approx([0.0] * 5)  # all are equal


def test_a_group_is_shown_with_the_advantages_that_it_would_have():
    group = play_group("base", "cascading_failure", 5, size=4)
    assert group["reward"].is_monotonic_decreasing and len(group) == 4
    # All answers of one kind have a mean of 0: those are compared with each other.
    for head in HEADS:
        given = [advantage for _, advantage in group[head] if advantage == advantage]
        assert sum(given) == pytest.approx(0.0, abs=1e-9)
    assert len(plot_group(group).axes) == 1
