"""Forks tell what a call was worth: they end as their episode did, and know what chance decides."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from logtriage.play.actions import Action
from logtriage.play.conversation import answers, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.scoring import WEIGHTS
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.policies.llm.language_models import LanguageModelPolicy
from logtriage.policies.llm.loading import load_language_model
from logtriage.train.credit import calls_made
from logtriage.train.drills import FORKED_INDEX, PUBLISHED_INDEX
from logtriage.train.forks import (
    fork,
    fork_incident,
    fork_incidents,
    forked_incidents,
    states_before_calls,
)
from logtriage.train.presets import make_config
from logtriage.train.supervised import encode
from logtriage.world.incidents import sample_incident

INCIDENT = sample_incident("cascading_failure", "train", FORKED_INDEX)
assert INCIDENT.injection is not None


class ByHeart:
    """A model in place of a real one: it says a conversation that it knows by heart, and what it
    says next depends on the place alone.

    Args:
        ids: of that conversation, the prompt included.
        other: place to the id that it says there as often instead.
        vocabulary: number of ids.
    """

    device = torch.device("cpu")

    def __init__(self, ids, other, vocabulary):
        table = torch.full((len(ids) + 200, vocabulary), -50.0)  # beyond its end all are as likely
        table[torch.arange(len(ids)), torch.tensor(ids)] = 50.0
        for place, token in other.items():
            table[place, token] = 50.0
        self.table, self.base_model = table, self

    def __call__(self, input_ids, position_ids, **kwargs):
        return SimpleNamespace(last_hidden_state=self.table[position_ids + 1])

    def get_output_embeddings(self):
        return torch.nn.Identity()

    def set_attn_implementation(self, name):
        """It has none."""


@pytest.fixture(scope="module")
def tokenizer(tiny_base):
    return load_language_model(tiny_base)[1]


def solved(tokenizer, severity):
    """Ids of an episode that is solved by a question, four answers in one turn, and `resolve`; and
    which of them the agent wrote.
    """
    session = ToolSession(Episode(INCIDENT))
    messages = opening_messages(session.opening)
    answered = [
        Action("classify_severity", (severity,)),
        Action("identify_root_cause", (INCIDENT.root,)),
        Action("remediate", (INCIDENT.remedy, INCIDENT.root)),
        Action("escalate", (INCIDENT.team,)),
    ]
    for actions in ([Action("request_more_logs", (INCIDENT.root,))], answered, [Action("resolve")]):
        message = {"role": "assistant", "content": "", "tool_calls": list(map(tool_call, actions))}
        messages += [message, *answers(session, message)]
    return encode(tokenizer, messages, tool_schemas())


@pytest.fixture(scope="module")
def lines(tokenizer):
    """Ids of the episode with the right severity."""
    return solved(tokenizer, INCIDENT.severity)[0]


def greedy(lines, tokenizer, **settings):
    return LanguageModelPolicy(
        ByHeart(lines, {}, len(tokenizer)), tokenizer, name="by heart", **settings
    )


@pytest.fixture(scope="module")
def tossing(lines, tokenizer):
    """A policy that tosses a coin for one of two severities, and says all else by heart."""
    wrong = next(name for name in ("P1", "P2") if name != INCIDENT.severity)
    others, own = solved(tokenizer, wrong)
    pairs = enumerate(zip(lines, others, own, strict=True))
    (other,) = [(place, token) for place, (one, token, mine) in pairs if mine and one != token]
    model = ByHeart(lines, dict([other]), len(tokenizer))
    return LanguageModelPolicy(model, tokenizer, name="tossing", temperature=1.0)


def episodewise(credit, sessions):
    """One advantage for a whole episode, in the manner of `credit.call_advantages`."""
    assert credit == "episode"
    rewards = [session.reward() for session in sessions]
    return [
        [reward - sum(rewards) / len(rewards)] * len(calls_made(session))
        for reward, session in zip(rewards, sessions, strict=True)
    ]


def played(policy, begun=None):
    session = ToolSession(Episode(INCIDENT))
    conversation = policy.converse([session], None if begun is None else [begun])[0]
    return session, conversation


@pytest.mark.parametrize("turn_tokens", [128, 30, 12])  # calls are cut off by the shorter ones
def test_a_fork_of_a_policy_without_chance_ends_as_its_episode_did(lines, tokenizer, turn_tokens):
    policy = greedy(lines, tokenizer, turn_tokens=turn_tokens)
    session, conversation = played(policy)
    states = states_before_calls(conversation, tokenizer)
    assert len(states) == len(calls_made(session))
    if turn_tokens == 128:
        assert any(state[-1] for state in states)  # some are inside a turn
        assert session.reward() > 0.8
    for state in states:
        again, forked = played(policy, state)
        assert forked == conversation  # messages, ids, whose they are, turns
        assert (
            again.episode.history == session.episode.history
            and again.malformed == session.malformed
        )
        assert again.reward() == session.reward()  # which closes what was left open
        assert again.episode.record == session.episode.record


def test_forks_of_a_real_model_end_as_its_episode_did(tiny_base):
    model, tokenizer = load_language_model(tiny_base)
    policy = LanguageModelPolicy(model, tokenizer, name="tiny", turn_tokens=20)
    _, conversation = played(policy)
    turns = conversation.written()
    assert sum(map(len, turns)) == sum(conversation.own)
    # In the middle of any turn, whatever it says: this one has learned nothing.
    for number, turn in enumerate(turns):
        for length in (0, len(turn) // 2, len(turn) - 1):
            assert played(policy, [*turns[:number], turn[:length]])[1] == conversation


def test_a_turn_that_was_cut_off_at_the_end_of_a_call_is_answered_first(lines, tokenizer):
    for turn_tokens in range(10, 40):
        policy = greedy(lines, tokenizer, turn_tokens=turn_tokens)
        _, conversation = played(policy)
        states = states_before_calls(conversation, tokenizer)
        eos = tokenizer.eos_token_id
        cut = [one for one in states if len(one) > 1 and not one[-1] and one[-2][-1] != eos]
        for state in cut:
            assert len(state[-2]) == turn_tokens
            assert played(policy, state)[1] == conversation
        if cut:
            return
    raise AssertionError("no bound cuts a turn off at the end of a call")


def test_nothing_goes_on_after_the_end(lines, tokenizer):
    policy = greedy(lines, tokenizer)
    _, conversation = played(policy)
    with pytest.raises(ValueError, match="is over with turn"):
        played(policy, [*conversation.written(), []])


def test_values_know_what_chance_decides_and_end_in_the_reward(tossing):
    rows = pd.DataFrame(fork_incident(tossing, INCIDENT, 64, episodewise, ["episode"]))
    truth = rows["value_after"] - rows["value_before"]
    severity = rows["action"] == "classify_severity"
    assert severity.sum() == 8 and rows["reward"].nunique() == 2
    # Only the severity is left to chance, and half of its points are at stake.
    half = WEIGHTS["severity"] / 2.0
    assert np.allclose(truth[severity].abs(), half, atol=4 * half / 8)
    assert np.allclose(truth[severity] > 0, rows["credit_episode"][severity] > 0)
    later = rows["call"] > rows["call"][severity].iloc[0]
    assert later.any() and np.allclose(truth[later], 0.0)
    assert np.allclose(rows.loc[later, ["error_before", "error_after"]], 0.0)
    before = rows.loc[severity, "error_before"]
    assert np.allclose(before, half / 8.0, rtol=0.1)  # of 64 tosses
    last = rows[rows["call"] == rows["calls"] - 1]
    assert len(last) == 8 and (last["value_after"] == last["reward"]).all()
    opening = rows.loc[rows["call"] == 0, "value_before"]
    assert opening.nunique() == 1  # one estimate, which all share
    told = rows.groupby("episode").apply(
        lambda one: (one["value_after"] - one["value_before"]).sum() - one["reward"].iloc[0],
        include_groups=False,
    )
    assert np.allclose(told, -opening.iloc[0])


def test_equal_states_are_forked_once(tossing, monkeypatch):
    forked = []

    def noted(policy, incident, states, forks):
        forked.extend(states)
        return fork(policy, incident, states, forks)

    monkeypatch.setattr("logtriage.train.forks.fork", noted)
    rows = pd.DataFrame(fork_incident(tossing, INCIDENT, 2, episodewise, ["episode"]))
    calls = int(rows["calls"].iloc[0])
    severity = int(rows.loc[rows["action"] == "classify_severity", "call"].iloc[0])
    # From the severity on there are two of each.
    assert len(forked) == len(set(forked)) == calls + (calls - severity - 1)


def test_values_do_not_depend_on_what_is_written_together(tossing, monkeypatch):
    states = states_before_calls(played(tossing)[1], tossing.tokenizer)
    last = states[-2:]  # nothing is left to chance there
    together = fork(tossing, INCIDENT, [*last, *last[::-1]], 3)
    monkeypatch.setattr("logtriage.train.forks.TOGETHER", 3)
    assert (fork(tossing, INCIDENT, [*last, *last[::-1]], 3) == together).all()
    assert together.shape == (4, 3) and (together == together[0, 0]).all()


def test_a_file_of_finished_incidents_is_continued(tossing, tmp_path, monkeypatch):
    # What the policy says by heart is for the second incident; it has no call for the others.
    others = [sample_incident("single_crash", "train", FORKED_INDEX + i) for i in range(2)]
    incidents = [others[0], INCIDENT, others[1]]
    path = tmp_path / "credit" / "toss.jsonl"
    settings = {"estimate": episodewise, "credits": ["episode"], "group": 4, "progress": False}
    fork_incidents(tossing, path, incidents[:2], 2, **settings)
    first = path.read_text()
    assert len(first.splitlines()) == 2
    path.write_text(first + '{"task": "sing')  # as a process that dies leaves it
    frame = fork_incidents(tossing, path, incidents, 2, **settings)
    assert path.read_text().startswith(first) and len(path.read_text().splitlines()) == 3
    assert set(frame["task"]) >= {INCIDENT.task.name}
    monkeypatch.setattr("logtriage.train.forks.fork_incident", None)  # nothing is left to play
    pd.testing.assert_frame_equal(fork_incidents(tossing, path, incidents, 2, **settings), frame)
    with pytest.raises(ValueError, match=r"was made with .*'forks': 2.* choose another folder"):
        fork_incidents(tossing, path, incidents, 3, **settings)
    with pytest.raises(ValueError, match="forks must be >= 2, got 1"):
        fork_incidents(tossing, path, incidents, 1, **settings)


def test_a_frame_has_a_row_a_call(lines, tokenizer, tossing, tmp_path):
    frame = fork_incidents(
        tossing, tmp_path / "toss.jsonl", [INCIDENT], 3, episodewise, ["episode"], group=5
    )
    assert (frame.groupby("episode").size() == frame.groupby("episode")["calls"].first()).all()
    assert set(frame["episode"]) == set(range(5)) and (frame["forks"] == 3).all()
    assert (frame["call"] == frame.groupby("episode").cumcount()).all()
    assert set(frame.loc[frame["action"] == "resolve", "arguments"]) == {"{}"}
    named = frame.loc[frame["action"] == "identify_root_cause", "arguments"].map(json.loads)
    assert list(named) == [{"service": INCIDENT.root}] * 5
    for column in ("value_before", "value_after", "reward"):
        assert frame[column].between(-1.0, 1.0).all()
    assert (frame[["error_before", "error_after"]] >= 0.0).all().all()


def test_forked_incidents_have_a_slice_of_their_own():
    incidents = forked_incidents(make_config("mini", model="tiny"), 7)
    assert [one.index for one in incidents] == [FORKED_INDEX + number for number in range(7)]
    assert FORKED_INDEX > PUBLISHED_INDEX and {one.split for one in incidents} == {"train"}
    assert [one.task.name for one in incidents[:3]] == [one.task.name for one in incidents[3:6]]
    assert len({one.task.name for one in incidents}) == 3
