"""The embedded base model: its tokenizer, what it learns from, and its folder."""

import re
from shutil import copyfile, copytree

import pytest
from filelock import FileLock
from transformers import PreTrainedTokenizerFast

from logtriage.play.tools import tool_schemas
from triagelab.bench import runs
from triagelab.bench.published import RESULTS
from triagelab.train import base_model
from triagelab.train.base_model import build_base, build_expert
from triagelab.train.sft_tasks import novice_episode
from triagelab.train.supervised import encode

TINY = {"drills": 16, "novices": 16, "layers": 1, "hidden": 32}  # of the fixture `tiny_base`


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_the_tokenizer_is_lossless_and_short_and_knows_who_writes(tiny_base):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tiny_base)
    for index in range(5):
        messages = novice_episode(index)
        text = tokenizer.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
        ids = ids_of(tokenizer, text)
        assert tokenizer.decode(ids) == text
        assert len(ids) < len(text) / 7  # tool schemas and made-up words included
    # Only what the assistant writes is learned in full.
    ids, own, _ = encode(tokenizer, messages, tool_schemas())
    written = tokenizer.decode([token for token, mine in zip(ids, own, strict=True) if mine])
    assert "<tool_call>" in written and "<tool_response>" not in written and "calls:" not in written
    turns = sum(message["role"] == "assistant" for message in messages)
    assert written.count("<|im_end|>") == turns
    # A path name is its kind and a token for each step, wherever it stands.
    for name in ("edge", "app-a2-b3", "queue-a3-b1-c1-d2"):
        for place in ("calls: {} > {} {}; {}", "\n{} 12% 340ms", "ERROR {} failed", '"{}", "'):
            ids = ids_of(tokenizer, place.format(*[name] * 4))
            tokens = [tokenizer.decode([token]) for token in ids]
            kind, *steps = re.findall(r"-[a-z]\d+|[a-z]+", name)
            starts = [i for i, token in enumerate(tokens) if token.strip() == kind]
            whole = sum(tokens[i + 1 : i + 1 + len(steps)] == steps for i in starts)
            assert whole == place.count("{}"), place
    other = "step 0 of 12\nERROR zebra-svc-2 17 never seen: naïve ☃ CamelCase text-s 1100ms 0% 5.4"
    assert tokenizer.decode(ids_of(tokenizer, other)) == other


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

    def say(text, flush):
        said.append(text)
        copytree(tiny_base, folder)  # the first one is done
        first.release()

    monkeypatch.setattr(runs, "print", say, raising=False)
    assert build_base(folder, **TINY) == folder
    assert said == [f"waiting for another process that is at work in {folder}"]


def test_an_expert_is_known_by_its_base_and_its_lessons(tiny_base, tmp_path, monkeypatch):
    monkeypatch.setattr(base_model, "DIGESTED", 2)  # each takes the posteriors of an episode
    lessons = [lesson._replace(episodes=2) for lesson in base_model.EXPERT_LESSONS]
    folder = build_expert(tmp_path / "expert", tiny_base, 0, 2, lessons)
    taught = (folder / "model.safetensors").read_bytes()
    assert taught != (tiny_base / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="built with"):
        build_expert(folder, folder, 0, 2, lessons)
