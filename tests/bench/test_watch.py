import pytest
from typer.testing import CliRunner

from logtriage.__main__ import app


def watched(*arguments):
    done = CliRunner().invoke(app, ["watch", "--pause", "0", *arguments], env={"COLUMNS": "160"})
    return done.exit_code, done.output


def test_two_policies_play_one_incident_side_by_side():
    code, text = watched("loudest", "--beside", "trace", "--index", "7")
    assert code == 0
    assert "bad deploy at notification-service" in text
    assert text.count("score: ") == 2
    assert "(it was: notification-service)" in text  # `loudest` blames the edge, in red


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody",), "no such folder"),
        (("trace", "--task", "crash"), "unknown task"),
        (("trace", "--split", "tests"), "unknown split"),
    ],
)
def test_what_is_not_there_is_named(arguments, told):
    code, text = watched(*arguments)
    assert code == 2
    assert told in text
