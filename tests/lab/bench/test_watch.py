"""A policy watched in the terminal."""

import pandas as pd
from helpers import refusal, run

from triagelab.bench.published import RESULTS
from triagelab.bench.watch import CHOSEN, WHY, telling


def test_two_policies_play_one_incident_side_by_side():
    asked = ("watch", "loudest", "--beside", "trace", "--index", 7, "--pause", 0)
    done = run(*asked)
    assert done.exit_code == 0
    assert "bad deploy at notification-service" in done.output
    assert done.output.count("score: ") == 2
    assert "(it was: " in done.output  # `loudest` blames the edge, in red
    for arguments, message in (
        (("nobody",), "no such folder"),
        (("trace", "--task", "crash"), "unknown task"),
        (("trace", "--split", "tests"), "unknown split"),
    ):
        assert message in refusal("watch", *arguments)


def test_what_it_shows_by_default_is_chosen_by_a_rule():
    frame = pd.read_parquet(RESULTS / "novice" / "seed-1" / "evaluation.parquet")
    frame = frame[(frame["task"] == "cascading_failure") & (frame["split"] == "test")]
    by_incident = [
        {row["policy"]: row for row in rows.to_dict("records")}
        for _, rows in frame.groupby("index")
    ]
    assert telling(by_incident)[0] == CHOSEN
    shown = [
        played
        for played in by_incident
        if played["base"]["score"] < 0.5 and played["trained"]["score"] > 0.5
    ]
    assert f"in {len(shown)} of {len(by_incident)} cascades" in WHY
    chosen = run("watch", "trace", "--pause", 0)
    assert "Chosen because" in chosen.output and f"incident {CHOSEN} of test" in chosen.output
    assert "Chosen because" not in run("watch", "trace", "--index", 7, "--pause", 0).output
