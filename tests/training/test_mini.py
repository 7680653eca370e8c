import json
import sys

import pytest

from logtriage.agents import junior
from logtriage.agents.language_models import load_language_model, opening_messages, tool_schemas
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.training import mini
from logtriage.world.cluster import Cluster
from logtriage.world.incidents import Incident, sample_incident
from logtriage.world.telemetry import Telemetry


@pytest.fixture(scope="module")
def tokenizer():
    return mini.build_tokenizer(mini.tokenizer_texts(60))


def test_the_tokenizer_is_lossless_and_short(tokenizer):
    messages = junior.junior_episode(0)
    text = tokenizer.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text) / 20  # the whole tool schema included
    assert all(
        len(tokenizer.encode(name, add_special_tokens=False)) == 1
        for name in mini.DEFAULT_TOPOLOGY.names
    )
    other = "step 0 of 12\nERROR zebra-svc 17 never seen: naïve ☃ text"
    assert tokenizer.decode(tokenizer.encode(other, add_special_tokens=False)) == other


def test_the_chat_template_is_trls_to_the_letter(tokenizer):
    from trl.chat_template_utils import qwen2_5_chat_template

    assert tokenizer.chat_template == qwen2_5_chat_template and tokenizer.eos_token == "<|im_end|>"


def test_a_saved_tokenizer_is_loaded_as_it_was(tiny_base):
    # AutoTokenizer would give a Qwen2 model Qwen's pre-tokenizer: the same text, other tokens, and
    # nothing works.
    _, loaded = load_language_model(tiny_base)
    built = mini.build_tokenizer(mini.tokenizer_texts(400))
    text = render(
        Episode(sample_incident("cascading_failure", "train", 1)).opening, mini.DEFAULT_TOPOLOGY
    )
    assert loaded.encode(text) == built.encode(text)


def test_only_what_the_assistant_writes_is_learned_in_full(tokenizer):
    messages = junior.junior_episode(3)
    ids, own = mini.encode(tokenizer, messages, tool_schemas())
    written = tokenizer.decode([token for token, mine in zip(ids, own, strict=True) if mine])
    assert "<tool_call>" in written and "<tool_response>" not in written and "calls:" not in written
    turns = sum(message["role"] == "assistant" for message in messages)
    assert written.count("<|im_end|>") == turns


WORLD = {
    f"logtriage.{room}" for room in ("incidents", "cluster", "telemetry", "rewards", "episode")
}
ANSWERS = ("root", "severity", "remedy", "team")
SECRETS = {
    Incident: (
        *ANSWERS,
        "injections",
        "injection",
        "decoys",
        "untreated",
        "arrival",
        "quiet_until",
    ),
    Cluster: ("active", "reach", "states"),
    Telemetry: (
        "cluster",
        "decoys",
        "dark",
        "trouble",
        "own_trouble",
        "loudness",
        "line_weights",
        "callee_weights",
    ),
    Episode: ("score", "cluster"),
}


def test_neither_drills_nor_junior_ever_see_the_answer(monkeypatch):
    # Whatever holds the truth may be read by the world's own modules only; from anywhere else it is
    # an error.
    for owner, names in SECRETS.items():

        def guarded(self, name, names=names):
            if name in names and sys._getframe(1).f_globals["__name__"] not in WORLD:
                raise AssertionError(f"the base model's data looked at {name}")
            return object.__getattribute__(self, name)

        monkeypatch.setattr(owner, "__getattribute__", guarded)
    with pytest.raises(AssertionError, match="looked at injection"):
        _ = sample_incident("single_crash", "train", 0).injection
    for index in range(60):
        junior.drill(index)
        junior.junior_episode(index)


def test_base_data_is_from_its_own_slice_of_train(monkeypatch):
    seen = []

    def spy(task, split, index):
        seen.append((split, index))
        return sample_incident(task, split, index)

    monkeypatch.setattr(junior, "sample_incident", spy)
    for index in range(40):
        junior.drill(index), junior.junior_episode(index)
    assert {split for split, _ in seen} == {"train"}
    assert min(index for _, index in seen) >= junior.DRILL_INDEX
    # `TrainingConfig` refuses seeds whose incidents would reach DRILL_INDEX.
    assert (
        junior.DRILL_INDEX + 10 * 3000
        < junior.JUNIOR_INDEX
        < junior.JUNIOR_INDEX + 10_000
        < junior.HOLDOUT_INDEX
    )


def test_the_junior_is_often_wrong():
    from random import Random

    policy, roots = junior.JuniorPolicy(Random("junior")), 0
    episodes = [
        Episode(sample_incident("cascading_failure", "train", index)) for index in range(200)
    ]
    policy.play(episodes)
    roots = sum(episode.score.root_cause for episode in episodes) / 200
    assert 0.05 < roots < 0.4


def test_a_base_is_built_once(tiny_base):
    before = (tiny_base / "base.json").stat().st_mtime_ns
    settings = json.loads((tiny_base / "base.json").read_text())["settings"]
    assert mini.build_base(tiny_base, **settings, parity=0.0) == tiny_base
    assert (tiny_base / "base.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="built with"):
        mini.build_base(tiny_base, **{**settings, "seed": 7})


def test_a_base_that_cannot_read_is_refused(tmp_path):
    toy = {
        "drills": 4,
        "drill_epochs": 1,
        "juniors": 4,
        "junior_epochs": 1,
        "hidden": 32,
        "layers": 1,
    }
    with pytest.raises(ValueError, match="has not learned what the junior knows"):
        mini.build_base(tmp_path / "toy", **toy)
    assert not (tmp_path / "toy" / "base.json").exists()


def test_openings_are_what_training_shows():
    episode = Episode(sample_incident("single_crash", "train", 0))
    text = render(episode.opening, episode.incident.topology)
    assert [message["role"] for message in opening_messages(text)] == ["system", "user"]
