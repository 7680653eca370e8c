"""A server on a custom call graph: sessions, task API and page."""

from pathlib import Path

import pandas as pd
import pytest
from conftest import serving_here
from fastapi.testclient import TestClient
from test_command_line import refusal

from logtriage.adapters.remote import Server
from logtriage.environment import TriageEnvironment
from logtriage.play.episode import Episode
from logtriage.registry import make_policy
from logtriage.server.app import make_app
from logtriage.world.tasks import TASKS, splits_on
from logtriage.world.topology_file import load_topology
from triagelab.bench.rollouts import rollout

PATH = Path(__file__).parents[2] / "examples" / "shop.yaml"
SHOP = load_topology(PATH)


@pytest.fixture(scope="module")
def address():
    with serving_here(make_app(4, SHOP)) as address:
        yield address


def test_the_environment_plays_on_it():
    env = TriageEnvironment(SHOP)
    for where in ({"task": "cascading_failure"}, {}):
        assert tuple(env.reset(split="test", index=1, **where).services) == SHOP.services
    assert [split["name"] for split in env.list_splits()] == splits_on(SHOP)
    assert env.num_tasks("train") == 3000
    for call in (
        lambda: env.num_tasks("unseen_topology"),
        lambda: env.reset(split="unseen_topology"),
    ):
        with pytest.raises(ValueError, match="unseen_topology draws its own"):
            call()
    assert "web" in env.render_web({}) and len(env.web_actions({})) > 50


def test_episodes_there_are_the_episodes_here(address):
    where = (list(TASKS), "test", 3)
    with Server(address) as server:
        here, there = (
            rollout(make_policy("belief"), *where, open_episode=opened)
            for opened in (lambda *where: Episode.open(*where, SHOP), server.open)
        )
        pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"))
        assert server.open("single_crash", "test", 0).incident.topology == SHOP
        with pytest.raises(ConnectionError, match="unseen_topology draws its own"):
            server.open("single_crash", "unseen_topology", 0)


def test_the_page_is_of_that_graph():
    with TestClient(make_app(4, SHOP)) as client:
        page = client.get("/web", params={"task": "cascading_failure", "split": "test", "index": 3})
        assert page.status_code == 200 and all(name in page.text for name in SHOP.names)
        assert "unseen_topology" not in page.text  # it is not offered
        refused = client.get("/web", params={"split": "unseen_topology"})
        assert refused.status_code == 400 and "draws its own call graphs" in refused.text
        answer = client.post("/reset", json={"task": "single_crash", "split": "unseen_topology"})
        assert answer.status_code == 422 and "draws its own" in answer.text


def test_a_file_that_cannot_be_played_is_refused_in_one_line(tmp_path, address):
    bad = tmp_path / "bad.yaml"
    bad.write_text("services:\n- {name: web, kind: cloud}\n")
    for command in (("evaluate", "--policy", "trace", "--episodes", 2), ("serve",)):
        assert f"{bad}: unknown kind 'cloud'" in refusal(*command, "--topology", bad)
    few = ("evaluate", "--policy", "trace", "--episodes", 2, "--topology")
    assert "start it with `serve --topology`" in refusal(*few, PATH, "--env-url", address)
    assert "draws its own call graphs" in refusal(*few, PATH, "--split", "unseen_topology")
    lone = tmp_path / "lone.yaml"
    lone.write_text("services: [{name: web, kind: edge}]\n")
    assert "needs a service that others wait for" in refusal(*few, lone)
