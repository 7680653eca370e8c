"""The drawing shows what was shown, all of it escaped, and the truth only at the end."""

import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree

import pytest
from test_environment import investigation

from logtriage.drawing import draw, gate_reason
from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from logtriage.play.episode import Episode, Step
from logtriage.play.observation import Observation
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS
from logtriage.world.telemetry import Alert, Metric
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.wording import Reading, read_line


def words(html):
    """The text of an HTML fragment, style left out, a space between words."""
    return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.S)).split())


@pytest.mark.parametrize("split", SPLITS)
def test_it_is_well_formed_whatever_the_graph(split):
    env = TriageEnvironment()
    for task in TASKS:
        env.reset(task=task, split=split, index=3)
        for action, value in (("remediate", "restart:<b>&"), ("sudo", ""), ("resolve", "")):
            env.step(TriageAction(action_type=action, value=value))
            html = env.render_web({})
            root = ElementTree.fromstring(f"<page>{html}</page>")
        services = sample_incident(task, split, 3).topology.services
        assert len(root.findall(".//rect")) == len(services)
        assert root.find(".//b[.='restart:']") is None and "<b>&" in words(html)


def test_everything_shown_is_drawn_and_the_newest_value_wins():
    opening = Observation(
        *(0, 8),
        alerts=[Alert("api-gateway", "errors", 30)],
        metrics=[
            *(Metric("user-db", 3, 20, 12), Metric("api-gateway", 31, 90, 56)),
            Metric("payment-db", 0, 60, 50),  # against its own usual time
            *(Metric("auth-service", 0, 18, 12), Metric("email-queue", 0, 36, 12)),
        ],
        lines=["ERROR api-gateway <script>"],
    )
    later = Observation(1, 8, metrics=[Metric("user-db", 9, 40, 12)], lines=["WARN user-db slow"])
    html = draw(DEFAULT_TOPOLOGY, opening, [Step(Action("request_more_logs", ("user-db",)), later)])
    text = words(html)
    for drawn in (
        "9% failed 40 ms",
        "31% failed 90 ms",
        "api-gateway errors 30%",
        "user-db 9% 40 ms 12 ms now",
        "api-gateway 31% 90 ms 56 ms step 0",
    ):
        assert drawn in text
    assert "3% failed 20 ms" not in text and "<script>" not in html
    order = ("WARN user-db slow", "step 0: the incident is reported", "ERROR api-gateway <script>")
    places = [text.index(line) for line in order]
    assert places == sorted(places)
    drawn = ElementTree.fromstring(f"<page>{html}</page>").iter("rect")
    boxes = [box.get("class") for box in drawn]
    health = dict(zip(DEFAULT_TOPOLOGY.names, boxes, strict=True))
    assert health == {
        **dict.fromkeys(DEFAULT_TOPOLOGY.names, "unseen"),
        **{"api-gateway": "failing alerted", "user-db": "failing", "email-queue": "failing"},
        **{"payment-db": "healthy", "auth-service": "suffering"},
    }
    healed = Step(Action("remediate", ("restart", "user-db")), Observation(2, 8, alerts=[]))
    assert "alerts: none" in words(draw(DEFAULT_TOPOLOGY, opening, [healed]))


@pytest.mark.parametrize("task", TASKS)
def test_the_truth_is_drawn_at_the_end_and_not_before(task):
    env = TriageEnvironment()
    assert env.render_web({}) is None and env.web_actions({}) == []
    for index in range(5):
        incident = sample_incident(task, "test", index)
        text = env.reset(task=task, split="test", index=index).text
        for action in investigation(incident):
            text += f"\n{action.action_type} {action.value}\n{env.step(action).text}"
            drawn = words(env.render_web({}))
            # Every word of the drawing was shown, but for its own labels, the same in every
            # drawing.
            own = words(draw(incident.topology, Observation(0, 1)))
            units_apart = re.sub(r"(\d)(ms|%)", r"\1 \2", text)
            labels = {"now", "reported", "no", "lines", "failed", "is", "incident", "invalid"}
            known = set(re.findall(r"[\w-]+", f"{units_apart} {own}")) | labels
            assert set(re.findall(r"[\w-]+", drawn)) <= known, task
            assert "What it was" not in drawn
        env.step(TriageAction(action_type="resolve"))
        drawn = words(env.render_web({}))
        cause = (
            incident.injection.fault.name.replace("-", " ")
            if incident.injection
            else "a false alarm"
        )
        assert f"What it was: {cause}" in drawn and incident.severity in drawn
        assert f"score {env.state.score['total']:.2f}" in drawn and env.web_actions({}) == []


def test_every_offered_action_is_valid_and_none_is_missing():
    env = TriageEnvironment()
    env.reset(task="cascading_failure", split="unseen_topology", index=3)
    offered = env.web_actions({})
    services = len(sample_incident("cascading_failure", "unseen_topology", 3).topology.services)
    assert len({label for label, _ in offered}) == len(offered) == 3 + services * 7 + 4 + 1 + 2
    for _, action in offered:
        env.reset(task="cascading_failure", split="unseen_topology", index=3)
        assert env.step(TriageAction(**action)).error == ""


def played(where, *actions):
    """The environment after these actions, and the words of its drawing."""
    env = TriageEnvironment()
    env.reset(**where)
    for action in actions:
        env.step(TriageAction(action_type=action.type, value=action.value))
    return env, words(env.render_web({}))


# A crash of user-db, P1, for dba.
CRASH = {"task": "cascading_failure", "split": "test", "index": 21}


def test_the_verdict_adds_up():
    env, drawn = played(
        CRASH,
        Action("classify_severity", ("P1",)),
        Action("remediate", ("scale", "user-db")),
        Action("remediate", ("restart", "user-db")),
        Action("identify_root_cause", ("user-db",)),
        Action("escalate", ("dba",)),
        Action("resolve"),
    )
    root = ElementTree.fromstring(f"<page>{env.render_web({})}</page>")
    rows = list(root.find(".//div[@class='score']/table"))[1:]
    assert [row[1].text for row in rows[:4]] == ["P1", "user-db", "scale user-db", "dba"]
    assert [row[2].text for row in rows[:4]] == ["P1", "user-db", "restart user-db", "dba"]
    points = [float(row[-1].text) for row in rows]
    score = env.state.score
    assert len(points) == 6 and points[-1] == pytest.approx(-score["cost"]) and score["cost"] > 0
    assert sum(points) == pytest.approx(score["total"], abs=0.003)
    assert "The gate" not in drawn


NAMED, END = Action("identify_root_cause", ("user-db",)), Action("resolve")


@pytest.mark.parametrize("actions, why", [
    ([NAMED, Action("escalate", ("sre",)), END], "the right root cause, and the wrong team paged"),
    ([NAMED, END], "the right root cause, and nobody paged"),
    ([Action("ignore")], "a real fault was ignored"),
])  # fmt: skip
def test_the_gate_says_why(actions, why):
    env, drawn = played(CRASH, *actions)
    assert env.state.score["gate"] == 0.0 and "score 0.00" in drawn
    said = (
        rf"The gate makes it 0, and not 0\.\d\d: {why}\. It was for dba, the owner; user-db shows"
    )
    assert re.search(said + r', if asked, the crash: "[A-Z]+ user-db ', drawn)


def gate_after(incident, *actions):
    """Why the gate makes the score of these actions 0."""
    episode = Episode(incident)
    for action in actions:
        episode.act(action)
    return gate_reason(episode)


@pytest.mark.parametrize("task", TASKS)
def test_the_gate_quotes_a_line_of_the_root_that_means_the_fault(task):
    for index in range(40):
        incident = sample_incident(task, "test", index)
        if incident.injection is None:
            continue
        actions = [Action("request_more_logs", (incident.root,)), Action("ignore")]
        line = re.search(r': "(.*)"$', gate_after(incident, *actions))[1]
        assert read_line(line) == (incident.root, Reading("proof", incident.injection.fault.name))


def test_the_gate_says_if_no_line_tells_of_the_fault():
    mute = replace(TASKS["single_crash"], proof=0)
    said = gate_after(sample_incident(mute, "test", 0), Action("ignore"))
    assert re.search(
        r"; no line tells of the [a-z ]+, even if [\w-]+ is asked at every step$", said
    )
