"""The drawing shows what was shown, all of it escaped, and the truth only at the end."""

import re
from html import unescape
from xml.etree import ElementTree

import pytest
from test_environment import investigation

from logtriage.drawing import Seen, draw, health
from logtriage.environment import TriageEnvironment
from logtriage.episode import Sight
from logtriage.incidents import ALL_TASKS, SPLITS, TASKS, sample_incident
from logtriage.models import TriageAction
from logtriage.telemetry import Alert, Metric
from logtriage.topology import DEFAULT_TOPOLOGY


def words(html):
    """The text of an HTML fragment, style left out."""
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.S))


@pytest.mark.parametrize("row, told", [
    (None, "unseen"),
    (Metric("a", "0", "12", "12"), "healthy"),
    (Metric("a", "0", "18", "12"), "suffering"),
    (Metric("a", "1", "12", "12"), "suffering"),
    (Metric("a", "0", "36", "12"), "failing"),
    (Metric("a", "5", "12", "12"), "failing"),
])  # fmt: skip
def test_health_is_what_the_legend_says(row, told):
    assert health(row) == told


def test_it_is_well_formed_whatever_the_graph():
    env = TriageEnvironment()
    for number, split in enumerate(SPLITS):
        for task in ALL_TASKS:
            env.reset(task=task, split=split, index=number)
            for action in ("remediate", "sudo", "resolve"):
                env.step(TriageAction(action_type=action, value="restart:<b>&" * (action == "remediate")))
                root = ElementTree.fromstring(f"<page>{env.render_web({})}</page>")
            assert len(root.findall(".//rect")) == len(sample_incident(task, split, number).topology.services)
            assert root.find(".//b[.='restart:']") is None and "restart:<b>&" in words(env.render_web({}))


def test_everything_shown_is_drawn_and_the_newest_value_wins():
    opening = Sight(0, 8, alerts=[Alert("api-gateway", "errors", "30")], lines=["ERROR api-gateway <script>"])
    opening = opening._replace(metrics=[Metric("user-db", "3", "20", "12"), Metric("api-gateway", "31", "90", "56")])
    later = Sight(1, 8, metrics=[Metric("user-db", "9", "40", "12")], lines=["WARN user-db slow"])
    html = draw(DEFAULT_TOPOLOGY, [Seen("", opening), Seen("request_more_logs user-db", later)])
    text = " ".join(words(html).split())
    assert "9% failed 40 ms" in text and "3% failed" not in text and "31% failed 90 ms" in text
    assert "api-gateway errors 30%" in text and "ERROR api-gateway <script>" in text and "<script>" not in html
    assert "user-db 9% 40 ms 12 ms now" in text and "api-gateway 31% 90 ms 56 ms step 0" in text
    assert text.index("WARN user-db slow") < text.index("ERROR api-gateway")
    cured = Sight(2, 8, notice="did restart on user-db", alerts=[])
    assert "alerts: none" in words(draw(DEFAULT_TOPOLOGY, [Seen("", opening), Seen("remediate restart:user-db", cured)]))


@pytest.mark.parametrize("task", TASKS)
def test_the_truth_is_drawn_at_the_end_and_not_before(task):
    env = TriageEnvironment()
    assert env.render_web({}) is None and env.web_actions({}) == []
    for index in range(5):
        incident = sample_incident(task, "test", index)
        shown = env.reset(task=task, split="test", index=index).text
        for action in investigation(incident):
            shown += f"\n{action.action_type} {action.value}\n{env.step(action).text}"
            drawn = words(env.render_web({}))
            # Every word of the drawing was shown, but for its own labels, the same in every drawing.
            own = words(draw(incident.topology, [Seen("", Sight(0, 1))]))
            units_apart = re.sub(r"(\d)(ms|%)", r"\1 \2", shown)
            known = set(re.findall(r"[\w-]+", units_apart + own)) | {
                "now",
                "reported",
                "no",
                "lines",
                "failed",
                "is",
                "incident",
            }
            assert set(re.findall(r"[\w-]+", drawn)) <= known, task
            assert "What it was" not in drawn
        env.step(TriageAction(action_type="resolve"))
        drawn = words(env.render_web({}))
        told = incident.injection.fault.name.replace("-", " ") if incident.injection else "a false alarm"
        assert f"What it was: {told}" in drawn and f"Severity {incident.severity}" in drawn
        assert f"score {env.score.total:.2f}" in drawn and env.web_actions({}) == []


def test_every_offered_action_is_valid_and_none_is_missing():
    env = TriageEnvironment()
    env.reset(task="cascading_failure", split="unseen_topology", index=3)
    offered = env.web_actions({})
    services = len(sample_incident("cascading_failure", "unseen_topology", 3).topology.services)
    assert len({label for label, _ in offered}) == len(offered) == 3 + services * 7 + 4 + 1 + 2
    for _, action in offered:
        env.reset(task="cascading_failure", split="unseen_topology", index=3)
        assert env.step(TriageAction(**action)).error == ""
