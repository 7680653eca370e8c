"""What can be played, simulated and real."""

import pytest

from logtriage import catalogue
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.real.real_episode import RealEpisode
from logtriage.world.topology import DEFAULT_TOPOLOGY


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
