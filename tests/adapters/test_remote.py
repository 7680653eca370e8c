"""An incident played on a server is the incident played here: every observation, every score, every
row.
"""

import time
from random import Random
from threading import Thread

import pandas as pd
import pytest
import uvicorn
from conftest import SESSIONS, free_port
from test_command_line import refusal, run

from logtriage.adapters.gymnasium import TriageGym
from logtriage.adapters.remote import Server
from logtriage.bench.audit import audit
from logtriage.bench.registry import make_policy
from logtriage.bench.rollouts import rollout
from logtriage.play.actions import Action, action_values
from logtriage.play.episode import Episode
from logtriage.play.tools import TriageTools
from logtriage.policies.policy import ConversationPolicy
from logtriage.server.app import make_app
from logtriage.world.tasks import ALL_TASKS, SPLITS, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY


@pytest.fixture(scope="module")
def server(url):
    with Server(url) as server:
        yield server


def both(server, make, *arguments, **options):
    """The rows of a fresh policy here and there, timing left out."""
    here = rollout(make(), *arguments, progress=False, **options)
    there = rollout(make(), *arguments, progress=False, open_episode=server.open, **options)
    return here.drop(columns="seconds"), there.drop(columns="seconds")


@pytest.mark.parametrize("policy", ["random", "loudest", "novice", "trace"])
def test_scripted_policies_earn_the_same(server, policy):
    for split in SPLITS:
        here, there = both(server, lambda: make_policy(policy), list(ALL_TASKS), split, 6)
        pd.testing.assert_frame_equal(here, there)


def test_the_audit_needs_nothing_that_is_not_on_the_wire(server):
    here, there = (
        audit(make_policy("novice"), list(TASKS), "test", 4, progress=False, open_episode=opened)
        for opened in (Episode.open, server.open)
    )
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"))


def test_the_belief_needs_nothing_that_is_not_on_the_wire(server):
    pd.testing.assert_frame_equal(
        *both(server, lambda: make_policy("belief"), list(TASKS), "test", 4)
    )
    assert server.open("single_crash", "test", 0).incident.topology == DEFAULT_TOPOLOGY


def test_the_constant_policy_earns_the_same(server, constant):
    pd.testing.assert_frame_equal(*both(server, lambda: constant, list(TASKS), "test", 4))


def test_every_observations_is_the_same(server):
    # Random actions with invalid ones among them; an empty list is not the same as none.
    random = Random("remote")
    for number in range(20):
        where = random.choice(list(ALL_TASKS)), random.choice(list(SPLITS)), number
        here, there = Episode.open(*where), server.open(*where)
        assert there.opening == here.opening and there.incident.topology == here.incident.topology
        values = {**action_values(here.incident.topology), "sudo": ("x" * 100_000, "\ud800", "")}
        while not here.done:
            kind = random.choice(list(values))
            value, confidence = (
                random.choice((*values[kind], "nothing")),
                random.choice((None, 0.3)),
            )
            action = Action.parse(kind, value, confidence)
            assert there.act(action) == here.act(action)
            assert there.done == here.done and there.score == here.score
        for name in ("steps", "closed_by", "confidence"):
            assert vars(there.record)[name] == vars(here.record)[name]
        with pytest.raises(ValueError, match="Incident closed"):
            there.act(Action("resolve"))
        with pytest.raises(ValueError, match="Incident closed"):
            there.refuse("resolve")
        there.abandon()  # nothing happens to a closed one


class Babbler(ConversationPolicy):
    """Stands for a language model: calls, several at once, malformed ones, and silence, each by
    chance.
    """

    def __init__(self, name):
        super().__init__(name)
        self.transcripts = []

    def reply(self, messages, seed):
        return self._say(Random(f"{len(messages)}/{messages[1]['content']}")), None

    def converse(self, episode, attempt=0):
        played = super().converse(episode, attempt)
        self.transcripts.append(played.messages)
        return played

    def _say(self, random):
        said = random.choice(["call", "call", "call", "unreadable", "silence"])
        if said != "call":
            return {
                "role": "assistant",
                "content": "<tool_call>{" if said == "unreadable" else "I give up.",
            }
        calls = [
            ("request_more_logs", {"service": "all"}),
            ("identify_root_cause", {"service": "user-db" * random.choice((1, 200))}),
            ("escalate", {"team": "dba"}),
            ("escalate", "dba"),
            ("sudo", {}),
            ("resolve", {}),
        ]
        chosen = random.sample(calls, random.choice((1, 1, 2)))
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": n, "arguments": a}} for n, a in chosen],
        }


def test_a_language_model_reads_and_earns_the_same(server):
    made = []
    here, there = both(
        server, lambda: made.append(Babbler("babbler")) or made[-1], list(TASKS), "test", 20
    )
    pd.testing.assert_frame_equal(here, there)
    assert made[0].transcripts == made[1].transcripts
    assert {"timeout", "resolve"} <= set(here["closed_by"]) and here[
        "steps"
    ].nunique() > 5  # some walk away at once


def test_sessions_are_used_again(server):
    for _ in range(SESSIONS + 5):
        episode = server.open("single_crash", "train", 0)
        episode.act(Action("resolve"))


def test_what_a_server_cannot_do_is_said(server, url):
    with pytest.raises(ValueError, match="choose one of single_crash"):
        server.open(TASKS["single_crash"], "test", 0)
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=nowhere), Server(nowhere):
        pass
    for where in (("nope", "test", 0), ("single_crash", "dev", 0), ("single_crash", "test", -1)):
        for _ in range(SESSIONS):
            with pytest.raises(ValueError, match=r"unknown|>= 0"):
                server.open(*where)  # a session for each of these would fill the server
    with pytest.raises(ConnectionError, match=r"CAPACITY_REACHED"), Server(url) as crowded:
        for index in range(SESSIONS + 1):
            crowded.open("single_crash", "test", index)


def test_evaluate_writes_the_same_rows_over_the_wire(url, tmp_path):
    arguments = (
        "evaluate",
        "--policy",
        "trace",
        "--policy",
        "random",
        "--task",
        "all",
        "--episodes",
        3,
        "--json",
    )
    frames = []
    for name, where in (("here", ()), ("there", ("--env-url", url))):
        result = run(*arguments, tmp_path / name, *where)
        assert result.exit_code == 0, result.output
        frames.append(pd.read_json(tmp_path / name).drop(columns="seconds"))
    pd.testing.assert_frame_equal(*frames)


def test_evaluate_says_what_it_cannot_play_over_the_wire(url):
    assert "oracle knows the answer" in refusal("evaluate", "--policy", "oracle", "--env-url", url)
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert nowhere in refusal(
        "evaluate", "--policy", "trace", "--episodes", 2, "--env-url", nowhere
    )


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


ROW = {"task": "single_crash", "split": "train", "index": 0}


def test_sessions_closed_as_silent_are_opened_again(monkeypatch):
    # A trainer may take longer over a step of its optimizer than a server waits.
    monkeypatch.setattr("logtriage.server.app.IDLE_SECONDS", 0.6)
    config = uvicorn.Config(make_app(3), port=free_port(), log_level="error")
    running = uvicorn.Server(config)
    thread = Thread(target=running.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not running.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        with Server(f"http://127.0.0.1:{config.port}") as server:
            for _ in range(2):
                for episode in [server.open("single_crash", "train", index) for index in range(3)]:
                    episode.act(Action("resolve"))
                    assert episode.done
                time.sleep(1.2)
            episode = server.open("single_crash", "train", 0)
            time.sleep(1.2)
            with pytest.raises(ConnectionError, match="call reset first"):
                episode.act(
                    Action("resolve")
                )  # an incident left open for too long is gone, and that is said
            for env in (TriageGym(open_episode=server.open), TriageTools(server.open)):
                for _ in range(
                    4
                ):  # more often than there are sessions; the incident before is left open, and lost
                    opening = env.reset(**({} if isinstance(env, TriageGym) else ROW))
                    assert "step 0 of" in str(opening)
                    time.sleep(0.8)
                episode = env._episode if isinstance(env, TriageGym) else env.session.episode
                episode.leave()
    finally:
        running.should_exit = True
        thread.join()
