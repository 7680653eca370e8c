"""Summaries of runs, from the published evaluation and from seeds made of it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from logtriage.bench import registry
from logtriage.bench.intervals import paired_gain
from logtriage.bench.registry import Player, in_memory, make_policy, scripted
from logtriage.bench.strata import stratum_changes
from logtriage.policies.llm.text_protocol import TEXT
from logtriage.train import experiment
from logtriage.train.experiment import evaluate_run, summarise_run, summarise_seeds, summary_table
from logtriage.world.tasks import TASKS

PUBLISHED = Path(__file__).parents[2] / "results" / "novice" / "seed-0" / "evaluation.parquet"


@pytest.fixture(scope="module")
def evaluation():
    """The published one, with a ceiling of 0.8 everywhere."""
    frame = pd.read_parquet(PUBLISHED)
    oracle = frame[frame.policy == "oracle"]
    others = frame[frame.policy != "belief"]
    return pd.concat([others, oracle.assign(policy="belief", score=0.8)], ignore_index=True)


def test_a_summary_tells_every_stratum(evaluation, tmp_path):
    rows = summarise_run(tmp_path, evaluation)
    text = (tmp_path / "summary.json").read_text()
    kept = json.loads(text)
    assert [row["task"] for row in kept] == list(TASKS) and len(text) < 10_000
    base, trained = (evaluation[evaluation.policy == name] for name in ("base", "trained"))
    changes = stratum_changes(base, trained)
    told = 0
    for row in changes.itertuples():
        (summary,) = [one for one in kept if one["task"] == row.task]
        cell = summary[row.stratum][row.group] if row.group else summary[row.stratum]
        assert cell["base"] == pytest.approx(row.base, abs=1e-4)
        assert cell["trained"] == pytest.approx(row.trained, abs=1e-4)
        assert (cell["incidents"], cell["fell"]) == (row.incidents, row.fell)
        assert cell["change"] is None or cell["change"][0] == pytest.approx(row.change, abs=1e-4)
        told += 1
    assert told == len(changes) > 20
    for row in rows:
        share = row["share_of_belief"]
        assert share.mean == pytest.approx(row["trained"].mean / 0.8)
    assert {row["benchmark"] for row in rows} == set(evaluation["benchmark"])


def test_the_table_shows_faults_and_false_alarms(evaluation, tmp_path):
    rows = summarise_run(tmp_path, evaluation)
    for table in (summary_table(rows), summary_table(json.loads(json.dumps(rows)))):
        table = table.set_index("task")
        silent = next(row for row in rows if row["task"] == "silent_degradation")
        cell = silent["faults_detected"]
        told = f"{cell['base']:.2f} → {cell['trained']:.2f}"
        assert table.loc["silent_degradation", "real faults detected"] == told
        assert table.loc["single_crash", "false alarms dismissed"] == "-"
        assert "root by kind" not in table.columns


def test_few_incidents_make_json_all_the_same(evaluation, tmp_path):
    few = evaluation[evaluation["index"] < 6]
    summarise_run(tmp_path, few)
    text = (tmp_path / "summary.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)[0]["faults_detected"]["change"] is None


@pytest.fixture
def runs(evaluation, tmp_path):
    """Two seeds: the published one, and one that has learned nothing."""
    base = evaluation[evaluation.policy == "base"]
    others = evaluation[evaluation.policy != "trained"]
    idle = pd.concat([others, base.assign(policy="trained")], ignore_index=True)
    for seed, frame in enumerate((evaluation, idle)):
        (tmp_path / f"seed-{seed}").mkdir()
        frame.to_parquet(tmp_path / f"seed-{seed}" / "evaluation.parquet")
    return [tmp_path / "seed-0", tmp_path / "seed-1"]


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

    run = tmp_path / "row" / "seed-0"
    run.mkdir(parents=True)
    models = {"base": player("loudest", "base"), "trained": player("trace", "trained")}
    monkeypatch.setattr(experiment, "before_and_after", lambda run: models)
    options = {"references": (), "progress": False}
    return SimpleNamespace(folder=run, models=models, played=played, player=player, options=options)


def test_what_was_played_is_not_played_again(run):
    frame = evaluate_run(run.folder, 4, **run.options)
    assert run.played == ["base", "trained"] and len(frame) == 2 * 12
    assert set(frame["weights"]) == {"loudest", "trace"}
    pd.testing.assert_frame_equal(frame, evaluate_run(run.folder, 4, **run.options))
    fewer = evaluate_run(run.folder, 3, **run.options)
    assert len(fewer) == 2 * 9 and len(run.played) == 2
    assert len(pd.read_parquet(run.folder / "evaluation.parquet")) == 24
    beside = run.folder.parent / "seed-1"  # starts from the same base, and trained another model
    beside.mkdir()
    run.models["trained"] = run.player("random", "trained")
    evaluate_run(beside, 4, **run.options)
    assert run.played[2:] == ["trained"]


def test_another_split_leaves_the_first_evaluation(run):
    test = evaluate_run(run.folder, 3, **run.options)
    wording = evaluate_run(run.folder, 3, "unseen_wording", **run.options)
    assert set(wording["split"]) == {"unseen_wording"}
    both = pd.read_parquet(run.folder / "evaluation.parquet")
    pd.testing.assert_frame_equal(both[both.split == "test"].reset_index(drop=True), test)
    assert evaluate_run(run.folder, 3, **run.options).equals(test) and len(run.played) == 4
    assert len(summarise_seeds([run.folder])) == 3  # of `test` alone


def test_another_model_of_the_same_name_is_played(run):
    # Half precision and 4 bit of one hub name are two models.
    evaluate_run(run.folder, 3, **run.options)
    run.models["base"] = run.player("loudest", "base", precision="4 bit")
    frame = evaluate_run(run.folder, 3, **run.options)
    assert run.played == ["base", "trained", "base"]
    kept = pd.read_parquet(run.folder / "evaluation.parquet")
    assert len(kept) == len(frame) and set(kept["key"]) == set(frame["key"])


def test_a_key_knows_precision_prompt_sampling_and_version(monkeypatch):
    keys = [
        in_memory("a/model").key,
        in_memory("a/model", load_in_4bit=True).key,
        in_memory("a/model", protocol=TEXT).key,
        in_memory("a/model", temperature=0.5).key,
        in_memory("a/model", turn_tokens=64).key,
    ]
    monkeypatch.setattr(registry, "BENCHMARK_VERSION", "0.9")
    assert len({*keys, in_memory("a/model").key}) == 6


def test_a_script_is_known_by_its_code_and_not_by_its_comments(tmp_path):
    texts = ("def f(x):\n    return x + 1  # why\n", "def f(x):\n\n    return x + 1\n", "x = 2\n")
    paths = [tmp_path / f"{number}.py" for number in range(3)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    same, also, other = map(registry.code_digest, paths)
    assert same == also != other
    assert len({scripted("trace").key, scripted("loudest").key, in_memory("trace").key}) == 3


def test_one_seed_is_its_summary(evaluation, runs, tmp_path):
    rows = summarise_run(tmp_path, evaluation)
    for row, alone in zip(rows, summarise_seeds(runs[:1]).to_dict("records"), strict=True):
        for key in ("task", "benchmark", "episodes", "base", "trained", "gain"):
            assert alone[key] == row[key], key
        assert alone["trace"] == pytest.approx(row["trace"]) and alone["seeds"] == 1
        assert alone["smallest_gain"] == pytest.approx(row["gain"].mean)


def test_seeds_are_averaged_and_each_is_told(evaluation, runs):
    table = summarise_seeds(runs).set_index("task")
    for task, row in table.iterrows():
        part = evaluation[evaluation.task == task]
        base, trained = (part[part.policy == name] for name in ("base", "trained"))
        gain = paired_gain(base, trained)
        assert row["seeds"] == 2 and row["episodes"] == 200
        assert row["gain"].mean == pytest.approx(gain.mean / 2) and row["smallest_gain"] == 0.0
        both = [trained["score"].mean(), base["score"].mean()]
        assert row["trained"].mean == pytest.approx(sum(both) / 2)
        assert row["share_of_belief"].mean == pytest.approx(row["trained"].mean / 0.8)
        # One seed that gains and one that does not: more seeds may well gain nothing.
        assert row["gain"].low <= 0.0 < row["gain"].high
    assert table["false_alarms_dismissed_trained"].notna().tolist() == [False, False, True]


def test_seeds_without_a_ceiling_have_no_share(runs):
    for run in runs:
        frame = pd.read_parquet(run / "evaluation.parquet")
        frame[frame.policy != "belief"].to_parquet(run / "evaluation.parquet")
    table = summarise_seeds(runs)
    assert table["share_of_belief"].isna().all() and "belief" not in table.columns


def test_seeds_on_other_incidents_are_refused(runs):
    frame = pd.read_parquet(runs[1] / "evaluation.parquet")
    frame[frame["index"] < 100].to_parquet(runs[1] / "evaluation.parquet")
    with pytest.raises(ValueError, match="same incidents"):
        summarise_seeds(runs)
