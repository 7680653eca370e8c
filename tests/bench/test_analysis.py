"""The analysis of a sweep: what is gathered, and what it comes to."""

import numpy as np
import pandas as pd
import pytest
from made_up_sweeps import EPISODES_A_STEP, make_points

from logtriage.bench import score_tables as analysis
from logtriage.bench.intervals import holm
from logtriage.world.tasks import TASKS

SKILLS = {"worse": 0.4, "recipe": 0.7, "better": 0.9}


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return make_points(folder, SKILLS, seeds=3, incidents=20)


@pytest.fixture(scope="module")
def frame(points):
    return analysis.gather(points)


@pytest.fixture(scope="module")
def table(frame):
    return analysis.score(frame, against="recipe").set_index(["row", "task"])


def test_what_is_shared_is_kept_once_and_what_is_not_is_all_there(points, frame):
    assert list(frame.columns) == list(analysis.COLUMNS)
    held_out = frame[frame["policy"] != analysis.TRAINING]
    assert held_out.groupby("policy", observed=True).size().to_dict() == {
        "trained": len(points) * 60,
        "base": 60,
        "loudest": 60,
        "belief": 60,
    }
    assert set(held_out["step"]) == {0} and set(held_out["episodes"]) == {1}
    assert analysis.rows_of(frame) == list(SKILLS)  # in the order given, not in that of letters
    assert analysis.seeds_of(frame, "worse") == [0, 1, 2]
    shared = frame[frame["policy"].isin(["base", "loudest", "belief"])]
    assert set(shared["row"]) == {""} and set(shared["seed"]) == {-1}


def test_a_step_of_training_is_a_row_a_task(points, frame):
    row, seed, folder = points[3]
    played = pd.read_json(folder / "episodes.jsonl", lines=True)
    own = frame[(frame.row == row) & (frame.seed == seed) & (frame.policy == analysis.TRAINING)]
    assert set(own["index"]) == {-1} and len(own) <= 30 * len(TASKS)
    assert own["episodes"].sum() == len(played) == 30 * EPISODES_A_STEP
    one = own.iloc[10]
    cell = played[(played.step == one["step"]) & (played.task == one["task"])]
    assert one["episodes"] == len(cell)
    for column, close in (("score", 0.0006), ("severity", 0.006), ("steps", 0.006)):
        assert one[column] == pytest.approx(cell[column].mean(), abs=close)


def test_bases_are_kept_once_each_and_found_by_their_points(tmp_path):
    points = make_points(tmp_path, SKILLS, 2, 6, 4, bases={"better": "other"})
    frame = analysis.gather(points)
    assert (frame["policy"] == "base").sum() == 2 * 18
    for row, _, folder in points[::2]:
        evaluation = pd.read_parquet(folder / "evaluation.parquet")
        for policy in ("base", "trained"):
            own = evaluation[evaluation.policy == policy]
            means = own.groupby("task", sort=False)["score"].mean()
            found = [part[0].mean() for part in analysis.scores_of(frame, row, policy)]
            assert found == pytest.approx(list(means))


def test_only_what_all_points_have_played_counts(points, tmp_path):
    # A point of eight incidents, one whose file was kept from twenty, and of eight the third is
    # missing, of one task: whichever comes first, the table is of what they share.
    (few,) = make_points(tmp_path, {"few": 0.5}, 1, 8, 3)
    played = pd.read_parquet(few[2] / "evaluation.parquet")
    third = (played["policy"] == "trained") & (played["task"] == "single_crash")
    played[~(third & (played["index"] == 2))].to_parquet(few[2] / "evaluation.parquet")
    counts = {"single_crash": 7, "all": 23}
    for some in ([points[0], few], [few, points[0]]):
        frame = analysis.gather(some)
        held_out = frame[frame["policy"] != analysis.TRAINING]
        assert set(held_out.groupby(["policy", "row"], observed=True).size()) == {23}
        table = analysis.score(frame, against="few").set_index(["row", "task"])
        for task, count in counts.items():
            assert set(table.xs(task, level="task")["incidents"]) == {count}
        kept = pd.read_parquet(points[0][2] / "evaluation.parquet")
        kept = kept[(kept.policy == "trained") & (kept.task == "single_crash")]
        own = kept[(kept["index"] < 8) & (kept["index"] != 2)]
        assert table.loc[("worse", "single_crash"), "trained"] == pytest.approx(own["score"].mean())
        steps = frame[(frame["policy"] == analysis.TRAINING) & (frame["row"] == "worse")]
        assert steps["episodes"].sum() == 30 * EPISODES_A_STEP  # training stays whole


def test_unfinished_and_mixed_sweeps_are_refused(points, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"lacks episodes.jsonl; train and evaluate"):
        analysis.gather([("gone", 0, tmp_path)])
    (old,) = make_points(tmp_path / "old", {"old": 0.5}, 1, 4, 3)
    evaluation = pd.read_parquet(old[2] / "evaluation.parquet")
    evaluation.assign(benchmark="0.9").to_parquet(old[2] / "evaluation.parquet")
    with pytest.raises(ValueError, match=r"versions 0.9, .* never put together"):
        analysis.gather([points[0], old])


def test_verdicts_are_corrected_for_all_rows_of_a_task(table):
    # Six rows that are suggestive alone are no six findings.
    for task in (*TASKS, analysis.ALL):
        rows = table.xs(task, level="task").drop("recipe")
        for verdict, adjusted in zip(rows["verdict"], holm(rows["p"]), strict=True):
            assert (verdict in ("better", "worse")) == (adjusted < 0.05)


def test_seeds_pair_only_where_training_was_the_same(points, tmp_path):
    (short,) = make_points(tmp_path, {"short": 0.7}, 1, 20, steps=10)
    frame = analysis.gather([*points, short])
    assert not analysis.trained_alike(frame, "short", "recipe")
    table = analysis.score(frame, against="recipe").set_index(["row", "task"])
    one = table.loc[("short", analysis.ALL)]
    assert one["verdict"] == "one seed" and np.isnan(one[["p", "difference_low"]].tolist()).all()


def test_a_comparison_table_has_the_best_row_first(frame, table):
    shown = analysis.comparison_table(frame, "recipe")
    assert list(shown.index) == ["better", "recipe", "worse"]
    assert shown.loc["recipe", "difference"] == "" and shown.loc["worse", "verdict"] == "worse"
    row = table.loc[("worse", analysis.ALL)]
    assert shown.loc["worse", "difference"].startswith(f"{row['difference']:.2f} [")


def test_unknown_rows_are_refused(frame):
    with pytest.raises(ValueError, match=r"no row 'best' .* choose one of worse, recipe, better"):
        analysis.score(frame, against="best")
