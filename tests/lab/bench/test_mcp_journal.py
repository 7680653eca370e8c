"""What agents did over MCP is kept, and every score is confirmed by `verify`."""

import pytest
from helpers import refusal, run
from mcp.shared.memory import create_connected_server_and_client_session
from test_mcp import INCIDENTS, play_all

from logtriage.adapters import mcp as door
from logtriage.world.tasks import TASKS
from triagelab.bench.verify import MATCH, verify


@pytest.mark.parametrize("how", ["stdio", "http"])
def test_what_is_kept_is_what_was_played(how, tmp_path):
    path = tmp_path / "mine.jsonl"
    options = ["--split", "test", "--episodes", str(INCIDENTS), "--trajectories", str(path)]
    left, checks = play_all(how, options), verify(path)
    assert {check.verdict for check in checks} == {MATCH}
    assert len(checks) == INCIDENTS * len(TASKS)
    assert not left or checks[0].row["closed_by"] == "timeout"


def test_an_incident_that_was_opened_is_not_opened_again(tmp_path, monkeypatch):
    answers = []

    async def serve(server):
        async with create_connected_server_and_client_session(server) as client:
            for name in ("open_incident", "resolve", "open_incident"):  # and leaves
                answers.append((await client.call_tool(name, {})).content[0].text)

    monkeypatch.setattr(door, "serve_stdio", serve)
    path = tmp_path / "mine.jsonl"
    options = ("--task", "single_crash", "--first", 5, "--trajectories", path, "--episodes")
    for count in (2, 3):
        result = run("mcp", *options, count)
        assert result.exit_code == 0 and result.output == "", result.output
    opened = [text.split("\n")[0] for text in answers if text.startswith("incident")]
    assert opened == [f"incident single_crash/test/{index}" for index in (5, 6, 7)]
    assert [check.row["closed_by"] for check in verify(path)] == ["resolve", "timeout", "resolve"]
    assert "ask for others, or name another file" in refusal("mcp", *options, 3)
