"""What can be played, simulated and real, and the console that plays it, widget by widget."""

from html import escape, unescape

import pytest
from real_secrets import secrets

from logtriage import catalogue
from logtriage.console import Console
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.real.cases import SOURCES, load_source
from logtriage.real.real_episode import RealEpisode
from logtriage.world.call_graph import Service
from logtriage.world.incidents import sample_incident
from logtriage.world.topology import DEFAULT_TOPOLOGY, Topology

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


@pytest.fixture
def screen():
    return Screen(*WHERE)


def test_a_press_takes_the_chosen_action_and_draws_what_it_brought(screen):
    assert (screen.task.value, screen.split.value, screen.index.value) == WHERE
    assert all(escape(line) in screen.view.value for line in screen.console.episode.opening.lines)
    assert "step 0 of 12" in screen.view.value and "score" not in screen.view.value.split("<svg")[1]
    screen.press("request_more_logs", "user-db")
    observation = screen.console.episode.history[-1].observation
    assert "step 1 of 12" in screen.view.value and "<svg" in screen.view.value
    assert all(escape(line) in screen.view.value for line in observation.lines)
    screen.press("escalate", "dba")
    assert "paged dba" in screen.view.value and screen.console.episode.record.team == "dba"


def test_the_end_shows_the_score_and_disables_the_button(screen):
    incident = sample_incident(*WHERE)
    screen.press("classify_severity", incident.severity)
    screen.press("identify_root_cause", incident.root)
    screen.press("remediate", f"{incident.remedy}:{incident.root}")
    screen.press("escalate", incident.team)
    assert "What it was" not in screen.view.value
    screen.press("resolve")
    assert screen.act.disabled
    assert "<b>score 1.00</b>" in screen.view.value and "What it was" in screen.view.value
    end = screen.view.value
    screen.press("escalate", "sre")
    assert screen.view.value == end and screen.console.episode.record.steps == 5


def test_another_incident_is_opened_with_its_own_call_graph(screen):
    screen.press("resolve")
    screen.task.value, screen.split.value, screen.index.value = "single_crash", "unseen_topology", 3
    screen.kind.value = "identify_root_cause"
    screen.open.click()
    incident = sample_incident("single_crash", "unseen_topology", 3)
    assert screen.value.options == incident.topology.names and not screen.act.disabled
    assert "step 0 of" in screen.view.value and incident.topology.names[-1] in screen.view.value


def test_incidents_are_played_on_a_call_graph_of_ones_own():
    front, store = Service("front", "edge", calls=("store",)), Service("store", "database")
    topology = Topology((front, store))
    screen = Screen(*WHERE, topology)
    assert "unseen_topology" not in screen.split.options
    screen.index.value = 8
    screen.open.click()
    screen.kind.value = "identify_root_cause"
    assert screen.value.options == ("front", "store") and screen.view.value.count("<rect") == 2


@pytest.mark.parametrize("source", SOURCES)
def test_real_incidents_are_played(source):
    screen, cases = Screen("real", source, 0), load_source(source).cases
    assert screen.index.max == len(cases) - 1
    for index, case in list(enumerate(cases))[::4]:
        screen.index.value = index
        screen.open.click()
        screen.press("request_more_logs", case.truth.root)
        shown = unescape(screen.view.value)
        assert not [one for one in secrets(case) if one in shown]
        screen.press("identify_root_cause", case.truth.root)
        screen.press("resolve")
        assert "score 1.00" in screen.view.value and screen.act.disabled


def test_both_kinds_open():
    assert isinstance(catalogue.open_incident("single_crash", "test", 3), Episode)
    assert isinstance(catalogue.open_incident("real", "petshop", 3), RealEpisode)
    with pytest.raises(ValueError, match="call graphs of their own; leave out the topology"):
        catalogue.open_incident("real", "petshop", 3, DEFAULT_TOPOLOGY)
    with pytest.raises(ValueError, match="choose one of petshop, nezha"):
        catalogue.open_incident("real", "test", 3)


def test_the_end_of_a_real_incident_shows_the_truth_and_the_guesses():
    episode = catalogue.open_incident("real", "petshop", 0)
    truth = episode.incident.case.truth
    others = [name for name in episode.incident.topology.names if name != truth.root]
    assert catalogue.draw_end(episode) == ""
    for service in (others[0], truth.root):
        episode.act(Action("identify_root_cause", (service,)))
    episode.act(Action("resolve"))
    html = catalogue.draw_end(episode)
    assert "score 0.00" in html and "in 3 guesses" in html and truth.fault in html
    assert f"<td>{others[0]}</td>" in html and f"<td>{others[0]}, {truth.root}</td>" in html
