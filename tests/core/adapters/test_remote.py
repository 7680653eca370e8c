"""An incident played on a server is the incident played here: every observation, every score, every
row.
"""

import time
from random import Random

import pytest
from helpers import SESSIONS, free_port, serving_here

from logtriage.adapters.remote import Server
from logtriage.play.actions import Action, action_values
from logtriage.play.episode import Episode
from logtriage.play.tools import TriageTools
from logtriage.server.app import make_app
from logtriage.world.tasks import SPLITS, TASKS


@pytest.fixture(scope="module")
def server(url):
    with Server(url) as server:
        yield server


def test_every_observation_and_answer_is_the_same(server):
    # Random actions with invalid ones among them; an empty list is not the same as none.
    random = Random("remote")
    for number in range(20):
        where = random.choice(list(TASKS)), random.choice(list(SPLITS)), number
        here, there = Episode.open(*where), server.open(*where)
        assert there.opening == here.opening and there.incident.topology == here.incident.topology
        values = {**action_values(here.incident.topology), "sudo": ("x" * 100_000, "\ud800", "")}
        while not here.done:
            kind = random.choice(list(values))
            value = random.choice((*values[kind], "nothing"))
            action = Action.parse(kind, value, random.choice((None, 0.3)))
            assert there.act(action) == here.act(action)
            assert there.done == here.done and there.score == here.score
            # Who plays or audits there reads the answers, too: they were empty once.
            assert there.record == here.record
            if number % 5 == 0 and random.random() < 0.3:  # walks away
                here.abandon()
                there.abandon()
        assert there.done and there.score == here.score and there.history == here.history
        assert there.record == here.record
        for call in (there.act, there.refuse):
            with pytest.raises(ValueError, match="Incident closed"):
                call("resolve")
        there.abandon()  # nothing happens to a closed one


def test_sessions_are_used_again(server):
    for _ in range(SESSIONS + 5):
        server.open("single_crash", "train", 0).act(Action("resolve"))
    for where in (("nope", "test", 0), ("single_crash", "dev", 0), ("single_crash", "test", -1)):
        for _ in range(SESSIONS):
            with pytest.raises(ValueError, match=r"unknown|>= 0"):
                server.open(*where)  # a session for each of these would fill the server


def test_what_a_server_cannot_do_is_said(server, url):
    with pytest.raises(ValueError, match="choose one of single_crash"):
        server.open(TASKS["single_crash"], "test", 0)
    with pytest.raises(ConnectionError, match=r"CAPACITY_REACHED"), Server(url) as crowded:
        for index in range(SESSIONS + 1):
            crowded.open("single_crash", "test", index)
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match="start it there with `python -m logtriage serve`"):
        Server(nowhere).__enter__()


def test_a_lost_server_is_one_clear_error():
    # It was a TypeError of OpenEnv's, below 400 lines of traceback.
    with serving_here(make_app(3)) as url:
        server = Server(url).__enter__()
        episodes = [server.open("single_crash", "train", index) for index in range(2)]
    lost = f"no LogTriage server answers at {url} .*start it there with `python -m logtriage serve`"
    resolve = Action("resolve")
    for call in (lambda: episodes[0].act(resolve), episodes[1].abandon, episodes[1].abandon):
        with pytest.raises(ConnectionError, match=lost) as raised:
            call()
        assert raised.value.__suppress_context__
    server.__exit__()


def test_an_end_whose_score_never_came_is_no_end(server):
    episode = server.open("single_crash", "train", 0)
    session = episode._session

    class Cut:
        def __getattr__(self, name):
            return getattr(session, name)

        def state(self):
            raise OSError("cut")

    episode._session = Cut()
    with pytest.raises(ConnectionError, match="cut"):
        episode.act(Action("resolve"))
    with pytest.raises(ConnectionError, match="Incident closed"):
        episode.abandon()  # and so does whoever asks for its score
    assert not episode.done
    episode._session = session
    episode.leave()


def test_idle_sessions_are_closed_and_opened_again(monkeypatch):
    # A trainer may take longer over a step of its optimizer than a server waits.
    monkeypatch.setattr("logtriage.server.app.IDLE_SECONDS", 0.3)
    with serving_here(make_app(2)) as url, Server(url) as server:
        episode = server.open("single_crash", "train", 0)
        time.sleep(0.5)
        with pytest.raises(ConnectionError, match="call reset first"):
            episode.act(Action("resolve"))  # what was left open for too long is gone
        episode.leave()
        tools = TriageTools(server.open)
        for _ in range(3):  # more often than there are sessions; the one before is left open
            opening = tools.reset(task="single_crash", split="train", index=0)
            assert "step 0 of" in opening
            time.sleep(0.4)
        tools.session.episode.leave()
