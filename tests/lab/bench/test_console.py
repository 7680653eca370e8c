"""What can be played, simulated and real, and the console that plays it, widget by widget."""

from html import escape, unescape

from lab_helpers import secrets

from logtriage.world.call_graph import Service
from logtriage.world.incidents import sample_incident
from logtriage.world.topology import Topology
from triagelab.bench.console import Console
from triagelab.real.cases import load_source

WHERE = ("cascading_failure", "test", 7)


class Screen:
    """What a user has in front of them."""

    def __init__(self, *coordinates):
        self.console = Console(*coordinates)
        choice, self.kind, action, self.view = self.console.widget.children
        self.task, self.split, self.index, self.open = choice.children
        self.value, self.act = action.children

    def press(self, kind, value=None):
        self.kind.value = kind
        if value is not None:
            self.value.value = value
        self.act.click()


def test_an_incident_is_played_and_its_end_shows_the_score_and_disables_the_button():
    screen, incident = Screen(*WHERE), sample_incident(*WHERE)
    assert (screen.task.value, screen.split.value, screen.index.value) == WHERE
    assert all(escape(line) in screen.view.value for line in screen.console.episode.opening.lines)
    assert "step 0 of 12" in screen.view.value and "score" not in screen.view.value.split("<svg")[1]
    screen.press("request_more_logs", "user-db")
    observation = screen.console.episode.history[-1].observation
    assert "step 1 of 12" in screen.view.value and "<svg" in screen.view.value
    assert all(escape(line) in screen.view.value for line in observation.lines)
    screen.press("classify_severity", incident.severity)
    screen.press("identify_root_cause", incident.root)
    screen.press("remediate", f"{incident.remedy}:{incident.root}")
    screen.press("escalate", incident.team)
    assert f"paged {incident.team}" in screen.view.value and "What it was" not in screen.view.value
    screen.press("resolve")
    assert screen.act.disabled
    assert "<b>score 0.99</b>" in screen.view.value and "What it was" in screen.view.value
    end = screen.view.value
    screen.press("escalate", "sre")
    assert screen.view.value == end and screen.console.episode.record.steps == 6


def test_incidents_are_played_on_a_call_graph_of_ones_own():
    front, store = Service("front", "edge", calls=("store",)), Service("store", "database")
    topology = Topology((front, store))
    screen = Screen(*WHERE, topology)
    assert "unseen_topology" not in screen.split.options
    screen.index.value = 8
    screen.open.click()
    screen.kind.value = "identify_root_cause"
    assert screen.value.options == ("front", "store") and screen.view.value.count("<rect") == 2


def test_a_real_incident_is_played_and_its_end_shows_the_truth_and_the_guesses():
    screen = Screen("real", "petshop", 0)
    screen.index.value = 4
    screen.open.click()
    case = load_source("petshop").cases[4]
    other = next(name for name in case.services if name != case.truth.root)
    assert screen.index.max == len(load_source("petshop").cases) - 1
    screen.press("request_more_logs", case.truth.root)
    screen.press("identify_root_cause", other)
    screen.press("identify_root_cause", case.truth.root)
    html = unescape(screen.view.value)
    assert not [secret for secret in secrets(case) if secret in html]
    screen.press("resolve")
    html = unescape(screen.view.value)
    assert "score 0.00" in html and "in 3 guesses" in html and screen.act.disabled
    assert case.truth.fault.replace("_", " ") in html
    assert f">{other}</td>" in html and f">{other}, {case.truth.root}</td>" in html
