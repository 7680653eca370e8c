"""A policy watched in the terminal."""

import pandas as pd
from helpers import refusal, run

from logtriage.play.episode import Episode
from logtriage.policies.scripted import LoudestPolicy
from logtriage.recorded import CHOSEN, WHY
from triagelab.bench.published import RESULTS


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


def telling(scores):
    """The cascades of `test` that show best what was learned, the best first.

    `scores` are the episodes of one incident each, by policy: index, score, root_cause and steps.
    The base blames another service than the root and scores below 0.5, and the trained agent above
    0.9; the loudest service is not the root, and the team to page is the root's owner. Deep roots
    come first, then short episodes.
    """
    kept = []
    for played in scores:
        before, after = played["base"], played["trained"]
        episode = Episode.open("cascading_failure", "test", int(after["index"]))
        incident, loudest = episode.incident, LoudestPolicy()
        loudest.open(episode)
        failed = before["score"] < 0.5 and before["root_cause"] == 0.0
        if not failed or after["score"] <= 0.9 or loudest.loudest() == incident.root:
            continue
        graph, root = incident.topology, str(incident.root)
        if incident.team == graph.service(root).owner:
            kept.append((-graph.depth[root], after["steps"], int(after["index"])))
    return [index for _, _, index in sorted(kept)]


def test_what_it_shows_by_default_is_chosen_by_a_rule():
    frame = pd.read_parquet(RESULTS / "novice" / "seed-1" / "evaluation.parquet")
    frame = frame[(frame["task"] == "cascading_failure") & (frame["split"] == "test")]
    by_incident = [
        {row["policy"]: row for row in rows.to_dict("records")}
        for _, rows in frame.groupby("index")
    ]
    assert telling(by_incident)[0] == CHOSEN[-1]
    shown = [
        played
        for played in by_incident
        if played["base"]["score"] < 0.5 and played["trained"]["score"] > 0.5
    ]
    assert f"in {len(shown)} of {len(by_incident)} cascades" in WHY
    chosen = run("watch", "trace", "--pause", 0)
    assert "Chosen by a rule" in chosen.output and f"incident {CHOSEN[-1]} of test" in chosen.output
    assert "Chosen by a rule" not in run("watch", "trace", "--index", 7, "--pause", 0).output
