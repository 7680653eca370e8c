"""Evaluations of a run: what is played, what is kept, and what is not played again."""

from types import SimpleNamespace

import pandas as pd
import pytest

from logtriage.bench import registry
from logtriage.bench.registry import Player, in_memory, make_policy, scripted
from logtriage.play.conversation import TEXT
from logtriage.policies.llm.loading import SHIPPED
from logtriage.train import experiment
from logtriage.train.experiment import base_for, evaluate_run, incidents_played, summarise_run
from logtriage.train.grpo import run_settings
from logtriage.train.settings import make_config


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose two models are scripts; `played` are the policies that were made to play."""
    played = []

    def player(policy, name, **settings):
        def make(begun):
            played.append(name)
            made = make_policy(policy)
            made.name = name
            return made

        return Player(name, {"weights": policy, **settings}, make)

    models = {"base": player("loudest", "base"), "trained": player("trace", "trained")}
    monkeypatch.setattr(experiment, "before_and_after", lambda run: models)
    options = {"references": ()}
    return SimpleNamespace(
        folder=tmp_path, models=models, played=played, player=player, options=options
    )


def test_what_was_played_is_not_played_again(run):
    frame = evaluate_run(run.folder, 4, **run.options)
    assert run.played == ["base", "trained"] and len(frame) == 2 * 12
    assert set(frame["weights"]) == {"loudest", "trace"}
    pd.testing.assert_frame_equal(frame, evaluate_run(run.folder, 4, **run.options))
    fewer = evaluate_run(run.folder, 3, **run.options)
    assert len(fewer) == 2 * 9 and len(run.played) == 2
    assert len(pd.read_parquet(run.folder / "evaluation.parquet")) == 24


@pytest.fixture
def slow(monkeypatch):
    """A clock on which a batch takes a quarter of an hour: how many were played."""
    played, evaluate = [], experiment.evaluate

    def timed(players, *options):
        played.append(players[0].name)
        return evaluate(players, *options)

    monkeypatch.setattr(experiment, "evaluate", timed)
    monkeypatch.setattr(experiment.time, "perf_counter", lambda: 900.0 * len(played))
    return played


def test_an_evaluation_stops_at_a_batch_and_goes_on(run, slow):
    del run.models["trained"]
    frame = evaluate_run(run.folder, 5, batch=2, hours=1.1, **run.options)
    # Tasks in turn: two incidents of each, then two more of the first.
    assert frame.groupby("task", sort=False).size().to_list() == [4, 2, 2] and len(slow) == 4
    assert run.played == ["base"]  # loaded once
    assert incidents_played(run.folder) == 2
    assert len(evaluate_run(run.folder, 5, batch=2, hours=0.0, **run.options)) == len(frame)
    assert len(evaluate_run(run.folder, 5, batch=2, hours=9.0, **run.options)) == 15
    assert len(slow) == 9 and run.played == ["base", "base"]


def test_a_killed_evaluation_keeps_its_batches(run, slow, monkeypatch):
    timed = experiment.evaluate
    monkeypatch.setattr(
        experiment, "evaluate", lambda *given: timed(*given) if len(slow) < 2 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        evaluate_run(run.folder, 4, batch=2, hours=9.0, **run.options)
    kept = pd.read_parquet(run.folder / "evaluation.parquet")
    assert kept.groupby(["policy", "task"]).size().to_list() == [2, 2]


def test_what_is_compared_is_of_the_same_incidents(run, slow):
    trained = run.models.pop("trained")
    evaluate_run(run.folder, 4, batch=2, hours=9.0, **run.options)
    run.models["trained"] = trained
    frame = evaluate_run(run.folder, 4, batch=2, hours=0.8, references=("loudest",))
    counts = frame.groupby(["policy", "task"]).size()
    assert counts.to_list() == [2] * 9  # and not 4 of the base
    assert [row["episodes"] for row in summarise_run(run.folder, frame)] == [2, 2, 2]


def test_models_share_the_hours(run, slow):
    # The trained model has not played yet, so the base must not take all of the time.
    frame = evaluate_run(run.folder, 40, batch=2, hours=2.0, **run.options)
    assert frame.groupby(["policy", "task"]).size().to_list() == [2] * 6
    assert slow.count("trained") > 2


def test_another_split_leaves_the_first_evaluation(run):
    test = evaluate_run(run.folder, 3, **run.options)
    wording = evaluate_run(run.folder, 3, "unseen_wording", **run.options)
    assert set(wording["split"]) == {"unseen_wording"}
    both = pd.read_parquet(run.folder / "evaluation.parquet")
    pd.testing.assert_frame_equal(both[both.split == "test"].reset_index(drop=True), test)
    assert evaluate_run(run.folder, 3, **run.options).equals(test) and len(run.played) == 4


def test_another_model_of_the_same_name_is_played(run):
    # Half precision and 4 bit of one hub name are two models.
    evaluate_run(run.folder, 3, **run.options)
    run.models["base"] = run.player("loudest", "base", precision="4 bit")
    frame = evaluate_run(run.folder, 3, **run.options)
    assert run.played == ["base", "trained", "base"]
    kept = pd.read_parquet(run.folder / "evaluation.parquet")
    assert len(kept) == len(frame) and set(kept["key"]) == set(frame["key"])


def test_a_key_knows_the_kind_of_player_precision_prompt_sampling_and_version(monkeypatch):
    others = [
        {"load_in_4bit": True},
        {"protocol": TEXT},
        {"temperature": 0.5},
        {"turn_tokens": 64},
        {"constrained": True},
        {},
    ]
    keys = [in_memory("a/model", **other).key for other in others]
    keys += [scripted(name).key for name in ("trace", "loudest")] + [in_memory("trace").key]
    monkeypatch.setattr(registry, "BENCHMARK_VERSION", "0.9")
    assert len({*keys, in_memory("a/model").key}) == 10


def test_a_base_is_shipped_built_or_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "build_base", lambda folder, **options: folder)
    monkeypatch.setattr(experiment, "build_expert", lambda folder, base: (folder, base))
    track = tmp_path / "novice"
    assert base_for("novice", track) == "base"
    assert base_for("novice", track, "built") == str(track / "base")
    assert base_for("novice", track, "elsewhere") == "elsewhere"
    made = base_for("expert", tmp_path / "expert", "built")
    assert made == str((tmp_path / "expert" / "base", str(track / "base")))
    assert str(SHIPPED["base"]) in base_for("expert", tmp_path / "expert")
    (track / "base").mkdir(parents=True)
    (track / "base" / "base.json").write_text("{}")
    assert base_for("novice", track) == str(track / "base")  # of `make demo`
    assert base_for("expert", tmp_path / "expert") == made


def test_a_run_from_the_package_s_base_knows_it_by_its_weights(tmp_path):
    named = run_settings(make_config("novice", model="base"), tmp_path)
    found = run_settings(make_config("novice", model=str(SHIPPED["base"])), tmp_path)
    assert named["model"] == "base" and named["weights"] == found["weights"] != ""
