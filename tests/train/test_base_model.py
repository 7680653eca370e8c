"""The embedded base model: its tokenizer, what it learns from, and its folder."""

import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from filelock import FileLock

from logtriage.play.episode import Episode
from logtriage.play.observation import call_graph_line, render
from logtriage.play.tools import tool_schemas
from logtriage.policies.llm.loading import load_language_model
from logtriage.train import base_model, processes
from logtriage.train.drills import GRAPH_SIZES, TRAINING_NAMES, novice_episode, open_varied
from logtriage.train.tokenizer import TOKENIZER_EXAMPLES, build_tokenizer, tokenizer_texts
from logtriage.world.faults import REMEDIES
from logtriage.world.topology import DEFAULT_TOPOLOGY, UNSEEN_NAMES, random_topology

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(tokenizer_texts(60))


def test_the_tokenizer_is_lossless_and_short(tokenizer):
    messages = novice_episode(0)
    text = tokenizer.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text) / 20  # the whole tool schema included
    assert all(
        len(tokenizer.encode(name, add_special_tokens=False)) == 1
        for name in DEFAULT_TOPOLOGY.names
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
    built = build_tokenizer(tokenizer_texts(TOKENIZER_EXAMPLES))
    episode = Episode.open("cascading_failure", "train", 1)
    text = render(episode.opening, episode.incident.topology)
    assert loaded.encode(text) == built.encode(text)


def test_a_base_is_built_once(tiny_base):
    before = (tiny_base / "base.json").stat().st_mtime_ns
    settings = json.loads((tiny_base / "base.json").read_text())["settings"]
    del settings["examples"]  # a digest, see below
    assert base_model.build_base(tiny_base, **settings, parity=0.0) == tiny_base
    assert (tiny_base / "base.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="built with"):
        base_model.build_base(tiny_base, **{**settings, "seed": 7})


def test_a_base_that_was_taught_other_examples_is_another(tiny_base, monkeypatch):
    settings = json.loads((tiny_base / "base.json").read_text())["settings"]
    del settings["examples"]
    other = [{"role": "user", "content": "?"}]
    monkeypatch.setattr(base_model, "novice_episode", lambda index, general=False: other)
    with pytest.raises(ValueError, match="built with"):
        base_model.build_base(tiny_base, **settings)


def test_the_published_base_is_recognised(tmp_path):
    published = json.loads((RESULTS / "novice" / "base.json").read_text())
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "base.json").write_text(json.dumps(published))
    assert base_model.build_base(folder) == folder
    assert list(tmp_path.iterdir()) == [folder]  # not even a lock: it may be read-only
    for option in ({"hidden": 64}, {"learning_rate": 1e-3}):
        with pytest.raises(ValueError, match="built with"):
            base_model.build_base(folder, **option)


def test_wider_models_take_smaller_steps(tiny_base):
    assert base_model.default_learning_rate(128) == 2.5e-3  # exactly: older bases are known by it
    assert base_model.default_learning_rate(256) == 1.25e-3
    record = json.loads((tiny_base / "base.json").read_text())
    assert record["settings"]["learning_rate"] == base_model.default_learning_rate(32) == 0.01


def test_a_second_process_waits_and_finds_the_base_finished(
    tiny_base, tmp_path, monkeypatch, capsys
):
    settings = json.loads((tiny_base / "base.json").read_text())["settings"]
    del settings["examples"]
    folder, waiting = tmp_path / "runs" / "base", threading.Event()
    monkeypatch.setattr(base_model, "new_model", None)  # to build would be an error

    def acquire_and_tell(self, *args, **options):
        if options.get("blocking", True):
            waiting.set()
        return acquire(self, *args, **options)

    acquire = processes.FileLock.acquire
    folder.parent.mkdir()
    first = FileLock(folder.parent / ".base.lock")
    first.acquire()
    with ThreadPoolExecutor(1) as second:
        monkeypatch.setattr(processes.FileLock, "acquire", acquire_and_tell)
        built = second.submit(base_model.build_base, folder, **settings)
        assert waiting.wait(30) and not built.done()
        shutil.copytree(tiny_base, folder)  # the first one is done
        made = (folder / "model.safetensors").stat().st_mtime_ns
        assert not built.done()
        first.release()
        assert built.result(30) == folder
    told = capsys.readouterr().out.splitlines()
    assert told == [f"waiting for another process that is at work in {folder}"]
    assert (folder / "model.safetensors").stat().st_mtime_ns == made


def test_a_taught_model_is_told_by_its_base_and_its_lessons(tiny_base, tmp_path, monkeypatch):
    toy = {"episodes": 4, "epochs": 1}
    folder = base_model.build_expert(tmp_path / "expert", tiny_base, **toy)
    made = (folder / "model.safetensors").stat().st_mtime_ns
    assert base_model.build_expert(folder, tiny_base, **toy) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    assert (folder / "model.safetensors").read_bytes() != (
        tiny_base / "model.safetensors"
    ).read_bytes()
    with pytest.raises(ValueError, match="built with"):
        base_model.build_expert(folder, folder, **toy)


def test_a_base_that_cannot_read_is_refused(tmp_path):
    toy = {
        "drills": 4,
        "drill_epochs": 1,
        "novices": 4,
        "novice_epochs": 1,
        "hidden": 32,
        "layers": 1,
    }
    with pytest.raises(ValueError, match="has not learned what the novice knows"):
        base_model.build_base(tmp_path / "toy", **toy)
    assert not (tmp_path / "toy" / "base.json").exists()


@pytest.fixture(scope="module")
def spelled():
    return build_tokenizer(tokenizer_texts(150, general=True), spelled=True)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_a_spelled_tokenizer_is_lossless(spelled):
    for index in range(5):
        messages = novice_episode(index, general=True)
        text = spelled.apply_chat_template(messages, tools=tool_schemas(), tokenize=False)
        assert spelled.decode(ids_of(spelled, text)) == text
    other = "step 0 of 12\nERROR zebra-svc-2 17 never seen: naïve ☃ CamelCase text-s"
    assert spelled.decode(ids_of(spelled, other)) == other


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


@pytest.mark.parametrize(
    "name",
    [
        *DEFAULT_TOPOLOGY.names,
        *random_topology(Random(0), *GRAPH_SIZES, TRAINING_NAMES).names,
        *random_topology(Random(0)).names,
        "a-b-c",
        "orders-v2",
        "read-replica-of-west",
    ],
)
def test_a_spelled_name_is_the_same_wherever_it_stands(spelled, name):
    alone = ids_of(spelled, name)
    for place in PLACES:
        ids = ids_of(spelled, place.format(name))
        found = sum(ids[i : i + len(alone)] == alone for i in range(len(ids)))
        assert found == place.count("{0}"), place


def test_known_and_unknown_stems_are_spelled_alike(spelled):
    def tokens_a_letter(names):
        # "-x" is a suffix that neither has
        tokens = sum(len(ids_of(spelled, f"{stem}-x")) - 2 for stem in names.stems)
        return tokens / sum(map(len, names.stems))

    known, unknown = tokens_a_letter(TRAINING_NAMES), tokens_a_letter(UNSEEN_NAMES)
    assert 0.5 <= known < 0.65 and unknown == pytest.approx(known, rel=0.15)
    for name in DEFAULT_TOPOLOGY.names:
        stem, _, suffix = name.rpartition("-")
        *_, last = ids_of(spelled, name)
        assert spelled.decode([last]) == f"-{suffix}"  # one token, the stem several
        assert len(ids_of(spelled, name)) > len(stem) / 2


def test_no_spelled_token_crosses_a_word(spelled):
    fixed = set(spelled.get_added_vocab().values())
    tokens = [spelled.decode([token]) for token in range(len(spelled)) if token not in fixed]
    across = [token for token in tokens if re.search(r"[a-z][^A-Za-z]+[A-Za-z]|[0-9].", token)]
    assert all(any(token in remedy for remedy in REMEDIES) for token in across), across
    assert {" failed", " requests", "ERROR ", "% "} <= {token.lstrip("\n") for token in tokens}


def test_a_spelled_tokenizer_knows_no_call_graph(spelled, tokenizer):
    line = call_graph_line(DEFAULT_TOPOLOGY)
    assert len(ids_of(tokenizer, line)) == 1 < 20 < len(ids_of(spelled, line))


def test_a_general_base_is_told_from_a_plain_one(tmp_path, tiny_base, monkeypatch):
    compared = []

    def compare(model, tokenizer, open_episode):
        compared.append(open_episode)
        return {"base": 1.0, "novice": 1.0}

    monkeypatch.setattr(base_model, "compare_with_novice", compare)
    monkeypatch.setattr(base_model, "TOKENIZER_EXAMPLES", 30)
    toy = {"drills": 4, "drill_epochs": 1, "novice_epochs": 1}
    monkeypatch.setattr(base_model, "GENERAL_NOVICES", 5)
    monkeypatch.setattr(base_model, "COPYING", ((2, 2, 20), (1, 3, 20)))
    monkeypatch.setattr(base_model, "COPYING_BATCH", 2)
    folder = base_model.build_base(tmp_path / "base", **toy, hidden=32, layers=1, general=True)
    assert compared == [open_varied]  # measured on what it was taught, not on the default graph
    record = json.loads((folder / "base.json").read_text())
    settings = record["settings"]
    assert settings["general"] is True and settings["novices"] == 5
    assert settings["copying"] == [[2, 2, 20], [1, 3, 20]] and settings["copying_batch"] == 2
    assert [row["phase"] for row in record["log"]] == ["copying up to 2", "copying up to 3"]
    _, loaded = load_language_model(folder)
    assert len(ids_of(loaded, DEFAULT_TOPOLOGY.names[0])) > 1
    plain = json.loads((tiny_base / "base.json").read_text())["settings"]
    for name in ("examples", "copying", "copying_batch", "copied"):
        settings.pop(name)
    del plain["examples"]
    assert "general" not in plain and "copying" not in plain
    with pytest.raises(ValueError, match="built with"):
        base_model.build_base(tiny_base, **plain, general=True)
    assert base_model.build_base(folder, **settings) == folder
