"""The embedded base model: its tokenizer, what it learns from, and its folder."""

import re
from pathlib import Path
from shutil import copyfile, copytree

import pytest
from filelock import FileLock
from transformers import PreTrainedTokenizerFast

from logtriage.bench import runs
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.play.tools import tool_schemas
from logtriage.policies.llm.loading import load_language_model
from logtriage.train import base_model
from logtriage.train.base_model import build_base, build_expert, build_tokenizer
from logtriage.train.drills import novice_episode
from logtriage.train.supervised import encode
from logtriage.world.faults import REMEDIES

RESULTS = Path(__file__).parents[2] / "results"
TINY = {"drills": 16, "novices": 16, "layers": 1, "hidden": 32}  # of the fixture `tiny_base`


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(150)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_the_tokenizer_is_lossless_and_short_and_knows_who_writes(tokenizer):
    for index in range(5):
        messages = novice_episode(index)
        text = tokenizer.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
        ids = ids_of(tokenizer, text)
        assert tokenizer.decode(ids) == text
        assert len(ids) < len(text) / 8  # the whole tool schema included
    # Only what the assistant writes is learned in full.
    ids, own, _ = encode(tokenizer, messages, tool_schemas())
    written = tokenizer.decode([token for token, mine in zip(ids, own, strict=True) if mine])
    assert "<tool_call>" in written and "<tool_response>" not in written and "calls:" not in written
    turns = sum(message["role"] == "assistant" for message in messages)
    assert written.count("<|im_end|>") == turns
    other = "step 0 of 12\nERROR zebra-svc-2 17 never seen: naïve ☃ CamelCase text-s 1100ms 0% 5.4"
    assert tokenizer.decode(ids_of(tokenizer, other)) == other


def test_a_saved_tokenizer_is_loaded_as_it_was(tiny_base):
    # AutoTokenizer would give a Qwen2 model Qwen's pre-tokenizer: the same text, other tokens, and
    # nothing works.
    _, loaded = load_language_model(tiny_base)
    saved = PreTrainedTokenizerFast(tokenizer_file=str(tiny_base / "tokenizer.json"))
    episode = Episode.open("cascading_failure", "train", 1)
    text = render(episode.opening, episode.incident.topology)
    assert loaded.encode(text) == saved.encode(text)


def test_a_base_is_built_once(tiny_base, tmp_path, monkeypatch):
    before = (tiny_base / "base.json").stat().st_mtime_ns
    assert build_base(tiny_base, **TINY) == tiny_base
    assert (tiny_base / "base.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="built with"):
        build_base(tiny_base, **TINY, seed=7)
    other = [{"role": "user", "content": "?"}]  # taught other examples, it is another base
    monkeypatch.setattr(base_model, "novice_episode", lambda index: other)
    with pytest.raises(ValueError, match="built with"):
        build_base(tiny_base, **TINY)
    monkeypatch.undo()
    folder = tmp_path / "published"
    folder.mkdir()
    copyfile(RESULTS / "novice" / "base.json", folder / "base.json")
    assert build_base(folder) == folder
    assert list(tmp_path.iterdir()) == [folder]  # not even a lock: it may be read-only


def test_a_second_process_waits_and_finds_the_base_finished(tiny_base, tmp_path, monkeypatch):
    monkeypatch.setattr(base_model, "new_model", None)  # to build would be an error
    folder, said = tmp_path / "base", []
    first = FileLock(tmp_path / ".base.lock")
    first.acquire()

    def told(text, flush):
        said.append(text)
        copytree(tiny_base, folder)  # the first one is done
        first.release()

    monkeypatch.setattr(runs, "print", told, raising=False)
    assert build_base(folder, **TINY) == folder
    assert said == [f"waiting for another process that is at work in {folder}"]


def test_an_expert_is_told_by_its_base_and_its_lessons(tiny_base, tmp_path):
    folder = build_expert(tmp_path / "expert", tiny_base, shown=4, own=8)
    taught = (folder / "model.safetensors").read_bytes()
    assert taught != (tiny_base / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="built with"):
        build_expert(folder, folder, shown=4, own=8)


# Wherever a name stands in what an agent reads and writes.
PLACES = (
    "calls: {0} > {0} {0}; {0} > {0}\nalerts: {0} errors 20%; {0} p95 900ms\n",
    "\n{0} 12% 340ms 52\n{0} 0% 6ms 6\nERROR {0} circuit breaker for {0} is open",
    "ERROR call to {0} failed, 3% of calls\nWARN slow upstream {0}, pending requests",
    "see {0}",
    "root cause noted: {0}\ndid restart on {0}",
    '<tool_call>\n{{"name": "request_more_logs", "arguments": {{"service": "{0}"}}}}\n</tool_call>',
    '{{"name": "remediate", "arguments": {{"remedy": "scale", "service": "{0}"}}}}\n</tool_call>',
)


@pytest.mark.parametrize("name", ["edge", "app-1", "app-2-3", "db-1-2-1", "queue-3-1-1-2"])
def test_a_path_name_is_a_kind_and_a_token_for_each_number(tokenizer, name):
    kind, *numbers = [tokenizer.decode([token]) for token in ids_of(tokenizer, name)]
    assert [kind, *numbers] == re.findall(r"[a-z]+|-\d+", name)
    for place in PLACES:
        tokens = [tokenizer.decode([token]) for token in ids_of(tokenizer, place.format(name))]
        # A blank or a line break before a name is part of its first token.
        starts = [i for i, token in enumerate(tokens) if token.strip() == kind]
        found = sum(tokens[i + 1 : i + 1 + len(numbers)] == numbers for i in starts)
        assert found == place.count("{0}"), place


def test_no_token_crosses_a_word(tokenizer):
    fixed = set(tokenizer.get_added_vocab().values())
    tokens = [tokenizer.decode([token]) for token in range(len(tokenizer)) if token not in fixed]
    across = [token for token in tokens if re.search(r"[a-z][^A-Za-z]+[A-Za-z]", token)]
    whole = [token for token in across if not re.match(r"step \d+ of", token)]
    assert all(any(token.strip() in one for one in REMEDIES) for token in whole), whole
    assert {" failed", " requests", "ERROR ", "% "} <= {token.lstrip("\n") for token in tokens}
