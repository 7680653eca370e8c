"""A server on a custom call graph: sessions, task API and page."""

import pytest
from fastapi.testclient import TestClient
from helpers import SHOP, refusal

from logtriage.environment import TriageEnvironment
from logtriage.server.app import make_app
from logtriage.world.tasks import splits_on


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


def test_the_page_is_of_that_graph():
    with TestClient(make_app(4, SHOP)) as client:
        page = client.get("/web", params={"task": "cascading_failure", "split": "test", "index": 3})
        assert page.status_code == 200 and all(name in page.text for name in SHOP.names)
        assert "unseen_topology" not in page.text  # it is not offered
        refused = client.get("/web", params={"split": "unseen_topology"})
        assert refused.status_code == 400 and "draws its own call graphs" in refused.text
        answer = client.post("/reset", json={"task": "single_crash", "split": "unseen_topology"})
        assert answer.status_code == 422 and "draws its own" in answer.text


def test_a_file_that_cannot_be_played_is_refused_in_one_line(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("services:\n- {name: web, kind: cloud}\n")
    assert f"{bad}: unknown kind 'cloud'" in refusal("serve", "--topology", bad)
