"""Policies of the laboratory on a server: they see, do and score what they do here."""

from functools import partial

import pandas as pd
import pytest
from helpers import SHOP, free_port, refusal, serving_here

from logtriage.adapters.remote import Server
from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.server.app import make_app
from logtriage.world.tasks import TASKS
from triagelab.bench.audit import judge_result
from triagelab.bench.rollouts import rollout


@pytest.fixture(scope="module")
def shop():
    """The address of a server on a custom call graph."""
    with serving_here(make_app(4, SHOP)) as address:
        yield address


def test_belief_and_audit_need_nothing_that_is_not_on_the_wire(shop):
    belief, tasks = make_policy("belief"), list(TASKS)
    with Server(shop) as server:
        here, there = (
            rollout(belief, tasks, "test", 3, open_episode=opened, judge=judge_result)
            for opened in (partial(Episode.open, topology=SHOP), server.open)
        )
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"))


def test_evaluate_says_what_a_server_cannot_do(url, tmp_path, shop):
    assert "tells no answers" in refusal("evaluate", "--policy", "oracle", "--env-url", url)
    few = ("evaluate", "--policy", "trace", "--episodes", 2)
    nowhere = f"http://127.0.0.1:{free_port()}"
    message = refusal(*few, "--env-url", nowhere)
    assert nowhere in message and "python -m logtriage serve" in message
    path = tmp_path / "graph.yaml"
    services = "{name: web, kind: edge, calls: [db]}, {name: db, kind: database}"
    path.write_text(f"services: [{services}]\n")
    message = refusal(*few, "--topology", path, "--env-url", shop)
    assert "start it with `serve --topology`" in message
    message = refusal(*few, "--topology", path, "--split", "unseen_topology")
    assert "draws its own call graphs" in message
    path.write_text("services: [{name: web, kind: edge}]\n")
    assert "needs a service that others wait for" in refusal(*few, "--topology", path)
