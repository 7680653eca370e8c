"""What is pinned of the core, and what it answers to mistakes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.call_graph import TEAMS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SEVERITIES

ROOT = Path(__file__).parents[3]
VERSIONS = sorted({"3.13", "{}.{}".format(*sys.version_info)})


def interpreters(version):
    """Interpreters of that Python version on this machine; this one first, where it is of that
    version.
    """
    if sys.version.startswith(f"{version}."):
        yield sys.executable
    installed = shutil.which(f"python{version}")
    if installed and "shims" not in installed:  # a shim answers for versions that are not in use
        yield installed
    yield from map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))


@pytest.mark.parametrize("version", VERSIONS)
def test_world_observations_and_scores_are_pinned_across_python_versions(version):
    # tests/core/golden/ was written by Python 3.11; every other version must agree with it.
    python = next(interpreters(version), None)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    command = [python, "tests/core/digests.py", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, f"{python}: {run.stdout}{run.stderr}"


@pytest.mark.parametrize(
    "action, message",
    [
        (Action("sudo"), "unknown action type 'sudo'; choose one of classify_severity"),
        (Action("escalate", ("ceo",)), "unknown team 'ceo'; choose one of sre, backend, dba"),
        (Action("identify_root_cause", ("billing",)), "api-gateway, auth-service"),
        (Action("request_more_logs", ("",)), "or all"),
        (Action("remediate", ("restart",)), "remedy:service"),
        (Action("remediate", ("reboot", "user-db")), "restart, rollback, scale, flush-cache, kill"),
        (Action("resolve", ("now",)), "takes no value"),
        (Action("escalate", ("x" * 10_000,)), "unknown team"),
    ],
)
def test_an_invalid_action_costs_a_step_and_the_error_names_the_way_out(action, message):
    episode = Episode(sample_incident("cascading_failure", "train", 3))
    before = vars(episode.record).copy()
    observation = episode.act(action)
    assert message in observation.error and len(observation.error) < 400
    assert vars(episode.record) == {**before, "steps": 1} and not episode.done


def test_time_runs_out_and_after_the_end_there_is_nothing_to_do():
    episode = Episode(sample_incident("single_crash", "train", 0))
    for _ in range(8):
        episode.act(Action("request_more_logs", ("all",)))
    assert episode.record.closed_by == "timeout"
    score = episode.score
    with pytest.raises(ValueError, match="Incident closed"):
        episode.act(Action("escalate", ("sre",)))
    assert episode.score is score


def test_feedback_never_says_whether_an_answer_was_right():
    # Same incident, right and wrong answers: but for the echoed value, the words are the same.
    incident = sample_incident("cascading_failure", "train", 5)
    for kind, values in (
        ("identify_root_cause", incident.topology.names),
        ("classify_severity", SEVERITIES),
        ("escalate", TEAMS),
    ):
        answers = {value: Episode(incident).act(Action(kind, (value,))) for value in values}
        texts = {render(answer).replace(value, "#") for value, answer in answers.items()}
        assert len(texts) == 1
