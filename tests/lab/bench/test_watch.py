"""A policy watched in the terminal."""

from helpers import refusal, run


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
