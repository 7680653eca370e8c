"""Summaries of runs, from the published evaluation and from seeds made of it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from logtriage.bench.intervals import paired_gain
from logtriage.bench.strata import stratum_changes
from logtriage.train.experiment import _played
from logtriage.train.summaries import summarise_run, summarise_seeds, summary_table
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS

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


def test_rows_of_another_benchmark_are_played_again(evaluation, tmp_path):
    path = tmp_path / "evaluation.parquet"
    for benchmark, kept in ((BENCHMARK_VERSION, 600), ("0.9", None)):
        evaluation.assign(benchmark=benchmark).to_parquet(path)
        rows = _played(path, "trace", "", "test", 200)
        assert rows is None if kept is None else len(rows) == kept


def test_rows_of_a_seed_beside_are_taken_for_the_same_weights_alone(evaluation, tmp_path):
    beside, own = (tmp_path / name / "evaluation.parquet" for name in ("seed-0", "seed-1"))
    beside.parent.mkdir()
    evaluation.assign(weights="one base").to_parquet(beside)
    assert len(_played(own, "base", "one base", "test", 200)) == 600
    assert _played(own, "base", "another base", "test", 200) is None
    assert _played(own, "base", "one base", "train", 200) is None
    fewer = _played(own, "base", "one base", "test", 100)
    assert len(fewer) == 300 and fewer["index"].max() == 99  # the first of those that are there
    assert _played(own, "base", "one base", "test", 201) is None


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
