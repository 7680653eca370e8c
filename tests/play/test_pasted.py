"""An incident of which there is only text."""

import pytest

from logtriage.play.actions import ACTION_ARGUMENTS
from logtriage.play.episode import Episode
from logtriage.play.pasted import SHOWN, TOLD, PastedEpisode
from logtriage.play.prompts import render
from logtriage.play.tools import ToolSession
from logtriage.world.topology import DEFAULT_TOPOLOGY

LINES = [
    "2026-11-22T03:00:01Z api-gateway 503 upstream payment-service reset",
    "2026-11-22T03:00:02Z payment-service timeout calling payment-db",
    "2026-11-22T03:00:03Z payment-db too many connections",
    "something that names nobody",
]


def test_a_line_is_of_the_service_that_it_names_first():
    episode = PastedEpisode("\n".join(LINES))
    for number, name in enumerate(("api-gateway", "payment-service", "payment-db")):
        assert episode.act("request_more_logs", name).lines == [LINES[number]]
    assert episode.act("request_more_logs", "all").lines == LINES
    told = episode.act("request_more_logs", "user-db")
    assert told.lines == [] and told.notice == "no lines of user-db"


def test_the_last_lines_are_shown():
    episode = PastedEpisode("\n".join(f"user-db line {i}" for i in range(100)))
    assert episode.opening.lines == [f"user-db line {i}" for i in range(100 - SHOWN, 100)]
    assert len(episode.act("request_more_logs", "user-db").lines) == TOLD


def test_what_the_simulator_prints_can_be_pasted():
    opened = Episode.open("single_crash", "train", 0)
    text = render(opened.opening, DEFAULT_TOPOLOGY)
    session = ToolSession(PastedEpisode(text))
    assert session.opening.count("calls: ") == 1 and session.opening.count("step 0 of") == 1
    assert set(opened.opening.lines) <= set(session.opening.splitlines())


def test_answers_are_noted_and_nothing_is_scored():
    episode = PastedEpisode("user-db is down")
    episode.act("classify_severity", "P1")
    episode.act("identify_root_cause", "user-db", 0.7)
    episode.act("remediate", "restart:user-db")
    episode.act("escalate", "dba")
    assert episode.act("resolve").done
    record = episode.record
    assert (record.severity, record.root_cause, record.team) == ("P1", "user-db", "dba")
    assert record.remediations == [("restart", "user-db")] and record.confidence == 0.7
    assert (record.closed_by, record.steps, episode.score) == ("resolve", 5, None)
    with pytest.raises(ValueError, match="No further action"):
        episode.act("resolve")


def test_it_answers_in_the_words_of_an_episode():
    # A model has learned on those.
    actions = [
        ("classify_severity", "P2"),
        ("identify_root_cause", "user-db"),
        ("escalate", "dba"),
        ("remediate", "restart:user-db"),
        ("remediate", "pray:user-db"),
        ("resolve", ""),
    ]
    played, pasted = Episode.open("cascading_failure", "train", 0), PastedEpisode("user-db is down")
    for action in actions:
        theirs, ours = played.act(*action), pasted.act(*action)
        assert (ours.notice, ours.error, ours.step) == (theirs.notice, theirs.error, theirs.step)


def test_an_agent_that_never_ends_is_ended():
    episode = PastedEpisode("user-db is down")
    answers = [episode.act("request_more_logs", "nobody") for _ in range(12)]
    assert all("nobody" in answer.error for answer in answers)
    assert answers[-1].done and episode.record.closed_by == "timeout"
    walked_away = PastedEpisode("user-db is down")
    walked_away.abandon()
    assert walked_away.done and walked_away.record.closed_by == "timeout"


@pytest.mark.parametrize("text", ["", " \n\n", "step 0 of 12\ncalls: a > b"])
def test_no_line_is_refused(text):
    with pytest.raises(ValueError, match="paste some log lines"):
        PastedEpisode(text)


def test_lines_of_another_cluster_are_refused():
    with pytest.raises(ValueError, match=r"none of the 2 lines names a service .*user-db.*; give"):
        PastedEpisode("web: 502\norders: timeout")


def test_every_action_is_answered():
    values = {"classify_severity": "P2", "identify_root_cause": "user-db", "escalate": "dba"}
    values |= {"remediate": "restart:user-db", "request_more_logs": "all"}
    for name in ACTION_ARGUMENTS:
        answer = PastedEpisode("user-db is down").act(name, values.get(name, ""))
        assert not answer.error and answer.step == 1
