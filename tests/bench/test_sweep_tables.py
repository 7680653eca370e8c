"""Tables of a sweep, of runs whose skill is made up."""

import pandas as pd
import pytest
from made_up_sweeps import make_study

from logtriage.bench.sweep_tables import (
    comparison_table,
    dismissal_table,
    knowledge_table,
    read_sweep,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    skills = {"recipe": 0.6, "as good": 0.6, "ruined": 0.0, "far better": 1.5}
    return read_sweep(make_study(tmp_path_factory.mktemp("study"), skills, incidents=20))


def test_rows_stand_beside_the_one_they_are_compared_with(study):
    record, frame = study
    table = comparison_table(frame, record["against"])
    assert dict(table["verdict"]) == {
        "far better": "better",
        "recipe": "",
        "as good": "not told apart",
        "ruined": "worse",
    }
    assert table.index[0] == "far better" and table.index[-1] == "ruined"
    one = comparison_table(frame, "recipe", "single_crash")
    assert one.loc["ruined", "trained"] != table.loc["ruined", "trained"]
    with pytest.raises(ValueError, match=r"no task 'crash'; it has single_crash, .*, all"):
        comparison_table(frame, "recipe", "crash")


def test_who_is_dismissed_is_told_of_each_row_and_of_the_base(study):
    _, frame = study
    table = dismissal_table(frame)
    assert set(table.index) == {"recipe", "as good", "ruined", "far better", "base"}
    trained = frame[(frame["row"] == "ruined") & (frame["policy"] == "trained")]
    silent = trained[trained["task"] == "silent_degradation"]
    told = table.loc["ruined"].str.split(" of ")
    incidents = int(told["real faults dismissed"][1]) + int(told["false alarms dismissed"][1])
    assert incidents == len(silent)  # each is a real fault or a false alarm
    assert float(told["real faults dismissed"][0]) > 0.5  # who has no skill closes by `ignore`


def test_what_a_credit_taught_stands_beside_what_it_knew(study):
    record, frame = study
    rows = {"recipe": {}, "as good": {"changes": {"credit": "belief"}}}
    rows |= {"ruined": {"changes": {"credit": "episode", "scale_rewards": "batch"}}}  # two changes
    rows |= {"far better": {"incidents": 4, "changes": {"credit": "anchor"}}}
    told = {"estimator": ["part", "belief", "part"], "policy": ["base", "base", "later"]}
    told |= {"by": "all", "corrected": [0.3, 0.4, 0.2], "bias": [0.0, -0.1, 0.05]}
    estimators = pd.DataFrame(told)
    half = estimators.assign(by="half", corrected=9.0)
    compared = comparison_table(frame, record["against"])
    table = knowledge_table(compared, rows, pd.concat([estimators, half]))
    assert list(table.index) == ["recipe", "as good"]
    assert table.loc["as good", ["correlation, base", "bias, base"]].tolist() == [0.4, -0.1]
    assert table.loc["recipe", "correlation, later"] == 0.2
    assert pd.isna(table.loc["as good", "correlation, later"])
    assert table.loc["as good", "trained"] == compared.loc["as good", "trained"]
