"""The drawing shows what was shown, all of it escaped, and the truth only at the end."""

import re
from html import unescape
from xml.etree import ElementTree

import pytest
from test_environment import investigation

from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from logtriage.play.drawing import draw, health
from logtriage.play.episode import Step
from logtriage.play.observation import Observation
from logtriage.play.scoring import single_faults
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import ALL_TASKS, SPLITS, TASKS
from logtriage.world.telemetry import Alert, Metric
from logtriage.world.topology import DEFAULT_TOPOLOGY


def words(html):
    """The text of an HTML fragment, style left out, a space between words."""
    return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.S)).split())


@pytest.mark.parametrize("row, expected", [
    (None, "unseen"),
    (Metric("a", 0, 12, 12), "healthy"),
    (Metric("a", 0, 18, 12), "suffering"),
    (Metric("a", 1, 12, 12), "suffering"),
    (Metric("a", 0, 36, 12), "failing"),
    (Metric("a", 5, 12, 12), "failing"),
    (Metric("a", 0, 60, 50), "healthy"),  # against its own usual time
])  # fmt: skip
def test_health_is_what_the_legend_says(row, expected):
    assert health(row) == expected


def test_it_is_well_formed_whatever_the_graph():
    env = TriageEnvironment()
    for number, split in enumerate(SPLITS):
        for task in ALL_TASKS:
            env.reset(task=task, split=split, index=number)
            for action in ("remediate", "sudo", "resolve"):
                env.step(
                    TriageAction(action_type=action, value="restart:<b>&" * (action == "remediate"))
                )
                root = ElementTree.fromstring(f"<page>{env.render_web({})}</page>")
            assert len(root.findall(".//rect")) == len(
                sample_incident(task, split, number).topology.services
            )
            assert root.find(".//b[.='restart:']") is None and "<b>&" in words(env.render_web({}))


def test_everything_shown_is_drawn_and_the_newest_value_wins():
    opening = Observation(
        0, 8, alerts=[Alert("api-gateway", "errors", 30)], lines=["ERROR api-gateway <script>"]
    )
    opening = opening._replace(
        metrics=[Metric("user-db", 3, 20, 12), Metric("api-gateway", 31, 90, 56)]
    )
    later = Observation(1, 8, metrics=[Metric("user-db", 9, 40, 12)], lines=["WARN user-db slow"])
    html = draw(DEFAULT_TOPOLOGY, opening, [Step(Action("request_more_logs", ("user-db",)), later)])
    text = words(html)
    assert "9% failed 40 ms" in text and "3% failed" not in text and "31% failed 90 ms" in text
    assert (
        "api-gateway errors 30%" in text
        and "ERROR api-gateway <script>" in text
        and "<script>" not in html
    )
    assert "user-db 9% 40 ms 12 ms now" in text and "api-gateway 31% 90 ms 56 ms step 0" in text
    assert (
        text.index("WARN user-db slow")
        < text.index("step 0: the incident is reported")
        < text.index("ERROR api-gateway")
    )
    boxes = {
        box.get("class"): box for box in ElementTree.fromstring(f"<page>{html}</page>").iter("rect")
    }
    assert set(boxes) == {"failing alerted", "failing", "unseen"}
    cured = Observation(2, 8, notice="did restart on user-db", alerts=[])
    assert "alerts: none" in words(
        draw(DEFAULT_TOPOLOGY, opening, [Step(Action("remediate", ("restart", "user-db")), cured)])
    )


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
            # Every word of the drawing was shown, but for its own labels, the same in every
            # drawing.
            own = words(draw(incident.topology, Observation(0, 1)))
            units_apart = re.sub(r"(\d)(ms|%)", r"\1 \2", shown)
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


def test_the_verdict_adds_up():
    env = TriageEnvironment()
    env.reset(task="cascading_failure", split="test", index=21)  # a crash of user-db, P1, for dba
    for action in (
        Action("classify_severity", ("P1",)),
        Action("remediate", ("scale", "user-db")),
        Action("remediate", ("restart", "user-db")),
        Action("identify_root_cause", ("user-db",)),
        Action("escalate", ("dba",)),
        Action("resolve"),
    ):
        assert "The gate" not in words(env.render_web({}))
        env.step(TriageAction(action_type=action.type, value=action.value))
    drawn, score = words(env.render_web({})), env.score
    root = ElementTree.fromstring(f"<page>{env.render_web({})}</page>")
    rows = list(root.find(".//div[@class='score']/table"))[1:]
    shown = [float(row[-1].text) for row in rows]
    assert [row[1].text for row in rows[:4]] == ["P1", "user-db", "scale user-db", "dba"]
    assert [row[2].text for row in rows[:4]] == ["P1", "user-db", "restart user-db", "dba"]
    assert (
        len(shown) == 6
        and shown[-1] == pytest.approx(-score.cost)
        and score.cost > 0
        and sum(shown) == pytest.approx(score.total, abs=0.003)
    )
    assert "The gate" not in drawn


NAMED, END = Action("identify_root_cause", ("user-db",)), Action("resolve")


@pytest.mark.parametrize("actions, why", [
    ([NAMED, Action("escalate", ("sre",)), END], "the right root cause, and the wrong team"),
    ([NAMED, END], "the right root cause, and nobody"),
    ([Action("ignore")], "a real fault was ignored"),
])  # fmt: skip
def test_the_gate_says_why(actions, why):
    env = TriageEnvironment()
    env.reset(task="cascading_failure", split="test", index=21)
    for action in actions:
        env.step(TriageAction(action_type=action.type, value=action.value))
    drawn = words(env.render_web({}))
    assert (
        env.score.gate == 0.0 and f"The gate makes it 0: {why}" in drawn and "score 0.00" in drawn
    )


def test_two_faults_show_both_answers_and_half_a_gate():
    env, where = TriageEnvironment(), {"task": "double_fault", "split": "test"}
    found = (sample_incident(**where, index=index) for index in range(100))
    incident = next(
        one
        for one in found
        if len({fault.team for fault in single_faults(one)}) == 2 and one.severity != "P3"
    )
    roots, team = [fault.root for fault in single_faults(incident)], incident.team
    env.reset(**where, index=incident.index)
    for action in (
        *(Action("identify_root_cause", (root,)) for root in roots),
        Action("escalate", (team,)),
        Action("resolve"),
    ):
        env.step(TriageAction(action_type=action.type, value=action.value))
    drawn = words(env.render_web({}))
    assert env.score.gate == 0.5 and "The gate halves it" in drawn and "makes it 0" not in drawn
    assert drawn.count(" and ".join(roots)) == 2  # answered, and true
