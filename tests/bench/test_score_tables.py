"""Tables of scores, as text and as Markdown."""

import pandas as pd
import pytest
from test_intervals import frame

from logtriage.bench.score_tables import (
    as_text,
    markdown,
    policy_comparisons,
    policy_scores,
    score_table,
)
from logtriage.play.scoring import PARTS


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
    (row,) = policy_comparisons(both).to_dict("records")
    assert (row["before"], row["after"]) == ("worse", "belief")
    assert f"{row['gain']:.2f}" == "0.10 [0.10, 0.10]"


def test_a_table_is_written_in_markdown():
    table = as_text(pd.DataFrame([{"policy": "a", "gain": [0.5, 0.4, 0.6]}]))
    assert markdown(table) == "| policy | gain |\n|---|---|\n| a | 0.500 [0.400, 0.600] |"
    assert markdown([{"x": "1"}, {"x": "2"}]) == "| x |\n|---|\n| 1 |\n| 2 |"
