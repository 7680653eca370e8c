"""Tables of scores: policies beside each other, and a model before and after training."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_intervals import frame

from logtriage.bench.score_tables import (
    as_text,
    markdown,
    policy_scores,
    score_table,
    split_table,
    summarise,
    summary_table,
)
from logtriage.play.scoring import PARTS

RUN = Path(__file__).parents[2] / "results" / "novice" / "seed-1"


@pytest.fixture(scope="module")
def evaluation():
    """The published one, with a ceiling of 0.8 everywhere."""
    played = pd.read_parquet(RUN / "evaluation.parquet")
    oracle = played[played.policy == "oracle"]
    others = played[played.policy != "belief"]
    return pd.concat([others, oracle.assign(policy="belief", score=0.8)], ignore_index=True)


@pytest.fixture(scope="module")
def idle(evaluation):
    """A second seed, which has learned nothing."""
    base = evaluation[evaluation.policy == "base"]
    return pd.concat([evaluation[evaluation.policy != "trained"], base.assign(policy="trained")])


def test_scores_are_shown_by_policy_and_task():
    parts = dict.fromkeys(PARTS, 0.255)
    both = pd.concat([frame([0.0, 1.0], "b"), frame([1.0, 1.0], "a")])
    table = score_table(both.assign(**parts, steps=[3, 4, 2, 2]))
    assert list(table.columns) == ["policy", "task", "score", *PARTS, "steps"]
    assert list(table["task"]) == ["b", "a"]  # in order of appearance
    assert list(table["score"]) == ["0.500 [0.000, 1.000]", "1.000 [1.000, 1.000]"]
    assert list(table["steps"]) == ["3.5", "2.0"] and set(table[PARTS[0]]) == {"0.26"}


def test_policies_are_compared_on_the_same_incidents():
    worse, better = frame([0.1, 0.5, 0.9]), frame([0.2, 0.6, 1.0])
    both = pd.concat([worse.assign(policy="worse"), better.assign(policy="belief")[::-1]])
    scores = policy_scores(both).set_index("policy")
    assert scores.loc["belief", "share_of_ceiling"] == (1.0, 1.0, 1.0)
    assert scores.loc["worse", "share_of_ceiling"].mean == pytest.approx(1.5 / 1.8)


def test_a_table_is_written_in_markdown():
    table = as_text(pd.DataFrame([{"policy": "a", "gain": [0.5, 0.4, 0.6]}]))
    assert markdown(table) == "| policy | gain |\n|---|---|\n| a | 0.500 [0.400, 0.600] |"
    assert markdown([{"x": "1"}, {"x": "2"}]) == "| x |\n|---|\n| 1 |\n| 2 |"


# -- before and after ----------------------------------------------------------------------------


def test_the_published_summary_is_made_again():
    rows = summarise([pd.read_parquet(RUN / "evaluation.parquet")])
    again = json.loads(json.dumps(rows))
    for kept, row in zip(json.loads((RUN / "summary.json").read_text()), again, strict=True):
        assert kept.keys() ^ row.keys() == {
            "root_cause_base",
            "root_cause_trained",
        }  # older columns
        for name in kept.keys() & row.keys():
            expected = kept[name]
            if isinstance(expected, (float, list)):
                assert row[name] == pytest.approx(expected), name
            else:
                assert row[name] == expected, name


def test_the_table_shows_faults_and_false_alarms(evaluation):
    rows = summarise([evaluation[evaluation["index"] < 60]])
    for table in (summary_table(rows), summary_table(json.loads(json.dumps(rows)))):
        table = table.set_index("task")
        cell = rows[-1]["faults_detected"]
        told = f"{cell['base']:.2f} → {cell['trained']:.2f}"
        assert table.loc["silent_degradation", "real faults detected"] == told
        assert table.loc["single_crash", "false alarms dismissed"] == "-"
        assert not {"root by kind", "benchmark", "seeds"} & set(table.columns)


def test_splits_stand_below_each_other(evaluation, idle):
    table = split_table([pd.concat([evaluation, idle.assign(split="unseen_topology")])])
    assert list(table["split"]) == ["test", "unseen_topology"]
    scores = evaluation[evaluation.policy == "trained"].groupby("task")["score"].mean()
    assert table["trained"][0].startswith(f"{scores.mean():.2f} [")
    assert table["base"][0] == table["base"][1] and table["gain"][1] == "0.00 [0.00, 0.00]"


def test_few_incidents_make_json_all_the_same(evaluation):
    few = evaluation[evaluation["index"] < 6]
    rows = summarise([few[~few.policy.isin(["belief", "trace"])]])
    assert "NaN" not in json.dumps(rows)
    assert rows[0]["faults_detected"]["change"] is None
    assert not {"belief", "share_of_belief", "over_trace"} & rows[0].keys()


def test_seeds_are_averaged_and_the_least_gain_is_told(evaluation, idle):
    for row in summarise([evaluation, idle]):
        part = evaluation[evaluation.task == row["task"]]
        base, trained = (part[part.policy == name] for name in ("base", "trained"))
        gained = trained["score"].mean() - base["score"].mean()
        assert (row["seeds"], row["episodes"], row["smallest_gain"]) == (2, 200, 0.0)
        assert row["gain"].mean == pytest.approx(gained / 2)
        both = [trained["score"].mean(), base["score"].mean()]
        assert row["trained"].mean == pytest.approx(np.mean(both))
        assert row["share_of_belief"].mean == pytest.approx(np.mean(both) / 0.8)
        # One seed that gains and one that does not: more seeds may well gain nothing.
        assert row["gain"].low <= 0.0 < row["gain"].high
    with pytest.raises(ValueError, match="same incidents"):
        summarise([evaluation, idle[idle["index"] < 100]])
