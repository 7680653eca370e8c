"""pass@k and pass^k against every choice of k attempts, counted."""

from itertools import combinations

import pandas as pd
import pytest

from logtriage.bench.attempts import attempts_table, pass_all, pass_at


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_estimators_are_shares_of_all_choices(attempts):
    for successes in range(attempts + 1):
        outcomes = [True] * successes + [False] * (attempts - successes)
        for k in range(1, attempts + 1):
            chosen = list(combinations(outcomes, k))
            assert pass_at(k, attempts, successes) == pytest.approx(
                sum(map(any, chosen)) / len(chosen)
            )
            assert pass_all(k, attempts, successes) == pytest.approx(
                sum(map(all, chosen)) / len(chosen)
            )


def test_the_table_leaves_errors_out_and_says_how_many_incidents_are_left():
    # Incident 0: solved, solved, not; 1: never; 2: solved, and two errors.
    outcomes = {0: [True, True, False], 1: [False] * 3, 2: [True, None, None]}
    rows = [
        {"policy": "p", "task": "t", "split": "test", "index": index, "attempt": n, "solved": one}
        for index, ends in outcomes.items()
        for n, one in enumerate(ends)
    ]
    table = attempts_table(pd.DataFrame(rows), 3).set_index("k")
    assert list(table.index) == [1, 2, 3] and list(table["incidents"]) == [3, 2, 2]
    assert table.loc[1, "pass@k"].startswith("0.556") and table.loc[1, "pass^k"].startswith("0.556")
    assert table.loc[2, "pass@k"].startswith("0.500") and table.loc[2, "pass^k"].startswith("0.167")
    assert table.loc[3, "pass@k"].startswith("0.500") and table.loc[3, "pass^k"].startswith("0.000")
