"""Tables of scores: policies beside each other, a model before and after training, and sweeps."""

import json

import pandas as pd
import pytest
from made_up_sweeps import EPISODES_A_STEP, make_points

from logtriage.world.tasks import TASKS
from triagelab.bench import sweep_tables as tables
from triagelab.bench.intervals import Interval, seed_means
from triagelab.bench.published import RESULTS
from triagelab.bench.score_tables import cell_text, summarise, summary_table

SKILLS = {"worse": 0.4, "recipe": 0.7, "better": 0.9}
RUN = RESULTS / "novice" / "seed-1"


@pytest.fixture(scope="module")
def evaluation():
    return pd.read_parquet(RUN / "evaluation.parquet")


def test_the_published_summary_is_made_again(evaluation):
    # Of five seeds, what pages say is made again (`test_repository`).
    again = json.loads(json.dumps(summarise([evaluation])))
    for kept, row in zip(json.loads((RUN / "summary.json").read_text()), again, strict=True):
        assert kept.keys() == row.keys()
        for name, expected in kept.items():
            if isinstance(expected, (float, list)):
                expected = pytest.approx(expected)
            assert row[name] == expected, name


def test_the_table_shows_faults_and_false_alarms(evaluation):
    rows = summarise([evaluation[evaluation["index"] < 60]])
    for table in (summary_table(rows), summary_table(json.loads(json.dumps(rows)))):
        table = table.set_index("task")
        detected = cell_text(rows[-1]["faults_detected"])
        assert table.loc["silent_degradation", "roots found"] == detected
        assert table.loc["single_crash", "false alarms dismissed"] == "-"
        assert not {"root by kind", "benchmark", "seeds"} & set(table.columns)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    return make_points(tmp_path_factory.mktemp("sweep"), SKILLS, seeds=3, incidents=20)


@pytest.fixture(scope="module")
def sweep(points):
    return tables.gather(points)


def test_a_sweep_keeps_once_what_is_shared_and_training_by_step(points, sweep):
    assert list(sweep.columns) == list(tables.COLUMNS)
    steps = sweep["policy"] == tables.TRAINING
    held_out = sweep[~steps]
    counts = held_out.groupby("policy", observed=True).size().to_dict()
    assert counts == {"trained": len(points) * 60, "base": 60, "loudest": 60, "belief": 60}
    assert set(held_out["step"]) == {0} and set(held_out["episodes"]) == {1}
    assert tables.rows_of(sweep) == list(SKILLS)  # in the order given, not in that of letters
    shared = held_out[held_out["policy"] != "trained"]
    assert set(shared["row"]) == {""} and set(shared["seed"]) == {-1}

    row, seed, folder = points[3]
    played = pd.read_json(folder / "episodes.jsonl", lines=True)
    own = sweep[(sweep.row == row) & (sweep.seed == seed) & steps]
    assert set(own["index"]) == {-1} and len(own) <= 30 * len(TASKS)
    assert own["episodes"].sum() == len(played) == 30 * EPISODES_A_STEP
    step = own.iloc[10]
    cell = played[(played.step == step["step"]) & (played.task == step["task"])]
    assert step["episodes"] == len(cell)
    assert step["score"] == pytest.approx(cell["score"].mean())


def test_only_what_all_points_have_played_counts(points, tmp_path):
    # A point of eight incidents, one whose file was kept from twenty, and of eight the third is
    # missing, of one task: whichever comes first, the table is of what they share.
    (few,) = make_points(tmp_path, {"few": 0.5}, 1, 8, 3)
    played = pd.read_parquet(few[2] / "evaluation.parquet")
    third = (played["policy"] == "trained") & (played["task"] == "single_crash")
    played[~(third & (played["index"] == 2))].to_parquet(few[2] / "evaluation.parquet")
    kept = pd.read_parquet(points[0][2] / "evaluation.parquet")
    kept = kept[(kept.policy == "trained") & (kept.task == "single_crash")]
    mean = kept[(kept["index"] < 8) & (kept["index"] != 2)]["score"].mean()
    for some in ([points[0], few], [few, points[0]]):
        sweep = tables.gather(some)
        steps = sweep["policy"] == tables.TRAINING
        assert set(sweep[~steps].groupby(["policy", "row"], observed=True).size()) == {23}
        worse = tables.scores_of(sweep, "worse")
        assert [part.shape for part in worse] == [(1, 7), (1, 8), (1, 8)]
        assert worse[0].mean() == pytest.approx(mean)
        whole = sweep[steps & (sweep["row"] == "worse")]["episodes"].sum()
        assert whole == 30 * EPISODES_A_STEP  # training stays whole


def test_what_is_no_sweep_is_refused(points, sweep, tmp_path):
    (old,) = make_points(tmp_path / "old", {"old": 0.5}, 1, 4, 3)
    evaluation = pd.read_parquet(old[2] / "evaluation.parquet")
    evaluation.assign(benchmark="0.9").to_parquet(old[2] / "evaluation.parquet")
    with pytest.raises(ValueError, match=r"versions 0.9, .* never put together"):
        tables.gather([points[0], old])
    with pytest.raises(ValueError, match=r"no row 'best' .* choose one of worse, recipe, better"):
        tables.comparison_table(sweep, against="best")


def test_rows_are_compared_best_first_and_corrected_for_all_of_a_task(sweep, monkeypatch):
    table = tables.comparison_table(sweep, "recipe")
    assert list(table.index) == ["better", "recipe", "worse"]
    assert table.loc["recipe", "difference"] == "" and table.loc["worse", "verdict"] == "worse"
    recipe, worse = (seed_means(tables.scores_of(sweep, row)).mean() for row in ("recipe", "worse"))
    assert table.loc["worse", "difference"].startswith(f"{worse - recipe:.2f} [")
    # Two rows that are suggestive alone are no two findings.
    monkeypatch.setattr(tables, "compare_recipes", lambda *_: (Interval(0.2, 0.1, 0.3), 0.03))
    table = tables.comparison_table(sweep, "recipe", "single_crash")
    assert list(table["verdict"].drop("recipe")) == ["suggestive"] * 2
