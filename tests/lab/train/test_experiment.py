"""Evaluations of a run: what is played, what is kept, and what is not played again."""

from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest

from logtriage.play.conversation import TEXT
from logtriage.registry import make_policy
from logtriage.world.tasks import TASKS
from triagelab.bench import registry, run_evaluation
from triagelab.bench.evaluation import evaluate
from triagelab.bench.registry import Player, in_memory, scripted
from triagelab.bench.rollouts import Plan
from triagelab.bench.run_evaluation import evaluate_run, incidents_played, summarise_run
from triagelab.bench.runs import locked
from triagelab.language_models.loading import SHIPPED
from triagelab.train import experiment
from triagelab.train.experiment import base_for
from triagelab.train.grpo import run_settings
from triagelab.train.settings import make_config


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose two models are scripts: `made` are those that were loaded, `batches` those whose
    batch of incidents was played, each in a quarter of an hour of a made-up clock.
    """
    made, batches = [], []

    def player(policy, name, **settings):
        def make(begun):
            made.append(name)
            script = make_policy(policy)
            script.name, play_each = name, script.play_each

            def timed(*given):
                yield from play_each(*given)
                batches.append(name)

            script.play_each = timed
            return script

        return Player(name, {"weights": policy, **settings}, make)

    models = {"base": player("loudest", "base"), "trained": player("trace", "trained")}
    monkeypatch.setattr(run_evaluation, "base_and_trained", lambda run: models)
    monkeypatch.setattr(run_evaluation.time, "perf_counter", lambda: 900.0 * len(batches))

    play = partial(evaluate_run, tmp_path, references=())
    return SimpleNamespace(
        folder=tmp_path, models=models, made=made, batches=batches, player=player, play=play
    )


def kept(run):
    return pd.read_parquet(run.folder / "evaluation.parquet")


def test_what_was_played_is_not_played_again(run):
    frame = run.play(4)
    assert run.made == ["base", "trained"] and len(frame) == 2 * 12
    assert set(frame["weights"]) == {"loudest", "trace"}
    pd.testing.assert_frame_equal(frame, run.play(4))
    assert len(run.play(3)) == 2 * 9 and len(run.made) == 2 and len(kept(run)) == 24
    # Another split stands beside it.
    wording = run.play(3, "unseen_wording")
    assert set(wording["split"]) == {"unseen_wording"} and len(kept(run)) == 24 + 18
    pd.testing.assert_frame_equal(run.play(4), frame)
    # Half precision and 4 bit of one hub name are two models, and the file holds one of a name.
    run.models["base"] = run.player("loudest", "base", precision="4 bit")
    other = run.play(4)
    assert run.made[4:] == ["base"] and len(kept(run)) == 24 + 9
    assert set(kept(run)["key"]) == set(other["key"]) != set(frame["key"])


def test_a_script_that_goes_on_plays_its_random_numbers_from_the_beginning(run):
    run.models.clear()
    names, plan = ("novice", "random"), Plan([*TASKS], "test", 6)
    run.play(3, references=names)
    whole = [evaluate([scripted(name)], plan).frame["score"] for name in names]
    assert run.play(6, references=names)["score"].to_list() == pd.concat(whole).to_list()


def test_an_evaluation_stops_at_a_batch_and_goes_on(run):
    trained = run.models.pop("trained")
    frame = run.play(5, batch=2, hours=1.1)
    # Tasks in turn: two incidents of each, then two more of the first.
    assert frame.groupby("task", sort=False).size().to_list() == [4, 2, 2]
    assert run.made == ["base"] and len(run.batches) == 4  # loaded once
    assert incidents_played(run.folder) == 2
    assert len(run.play(5, batch=2, hours=0.0)) == len(frame) and run.made == ["base"]
    assert len(run.play(5, batch=2, hours=9.0)) == 15 and run.made == ["base", "base"]
    # What is compared is of the same incidents, whoever has played more.
    run.models["trained"] = trained
    frame = run.play(5, batch=2, hours=0.8, references=("loudest",))
    assert frame.groupby(["policy", "task"]).size().to_list() == [2] * 9
    assert [row["episodes"] for row in summarise_run(run.folder, frame)] == [2, 2, 2]


def test_models_share_the_hours(run):
    # The trained model has not played yet, so the base must not take all of the time.
    frame = run.play(40, batch=2, hours=2.0)
    assert frame.groupby(["policy", "task"]).size().to_list() == [2] * 6
    assert run.batches.count("trained") > 2


def test_a_killed_evaluation_keeps_its_batches(run, monkeypatch):
    to_parquet, frames = pd.DataFrame.to_parquet, []

    def written(frame, *given, **options):
        to_parquet(frame, *given, **options)
        frames.append(frame)
        if len(frames) == 4:  # the fourth is on disk, but not in its place
            raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_parquet", written)
    with pytest.raises(KeyboardInterrupt):
        run.play(4, batch=2, hours=9.0)
    assert [len(frame) for frame in frames] == [2, 4, 6, 8]
    monkeypatch.undo()
    assert kept(run).groupby(["policy", "task"]).size().to_list() == [2] * 3


def test_only_one_process_at_a_time_evaluates_a_run(run):
    # Each would write the whole file, without what the other has played.
    with locked(run.folder / "evaluation.parquet"), pytest.raises(ValueError, match="at work in"):
        run.play(2)
    assert run.made == [] and len(run.play(2)) == 12


def test_a_key_knows_the_kind_of_player_precision_prompt_sampling_and_version(monkeypatch):
    others = {"load_in_4bit": True, "protocol": TEXT, "temperature": 0.5, "turn_tokens": 64}
    others["constrained"] = True
    keys = [in_memory("a/model", **{name: value}).key for name, value in others.items()]
    keys += [in_memory("a/model").key, *(scripted(name).key for name in ("trace", "loudest"))]
    monkeypatch.setattr(registry, "BENCHMARK_VERSION", "0.9")
    assert len({*keys, in_memory("a/model").key}) == 9


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
    by_path = run_settings(make_config("novice", model=str(SHIPPED["base"])), tmp_path)
    assert named["model"] == "base" and named["weights"] == by_path["weights"] != ""
