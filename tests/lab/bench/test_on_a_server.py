"""Policies of the laboratory on a server: they see, do and score what they do here."""

from functools import partial

import pandas as pd
from helpers import SHOP, free_port, refusal, serving_here

from logtriage.adapters.remote import Server
from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.server.app import make_app
from logtriage.world.tasks import TASKS
from triagelab.bench.audit import judge_result
from triagelab.bench.rollouts import rollout


def test_belief_and_audit_need_nothing_that_is_not_on_the_wire():
    belief, tasks = make_policy("belief"), list(TASKS)
    with serving_here(make_app(4, SHOP)) as shop, Server(shop) as server:
        here, there = (
            rollout(belief, tasks, "test", 3, open_episode=opened, judge=judge_result)
            for opened in (partial(Episode.open, topology=SHOP), server.open)
        )
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"))


def test_evaluate_says_what_a_server_cannot_do(url, tmp_path):
    assert "tells no answers" in refusal("evaluate", "--policy", "oracle", "--env-url", url)
    few = ("evaluate", "--policy", "trace", "--episodes", 2)
    nowhere = f"http://127.0.0.1:{free_port()}"
    message = refusal(*few, "--env-url", nowhere)
    assert nowhere in message and "python -m logtriage serve" in message
    path = tmp_path / "graph.yaml"
    path.write_text("services: [{name: web, kind: edge}]\n")
    message = refusal(*few, "--topology", path, "--env-url", url)
    assert "start it with `serve --topology`" in message
    assert "needs a service that others wait for" in refusal(*few, "--topology", path)
