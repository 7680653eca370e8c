"""One door for simulated and real incidents."""

import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.real import door
from logtriage.real.cases import SOURCES
from logtriage.real.real_episode import RealEpisode
from logtriage.world.tasks import ALL_TASKS, MAX_INDEX, SPLITS
from logtriage.world.topology import DEFAULT_TOPOLOGY


def test_one_door_opens_both_kinds():
    assert isinstance(door.open_incident("single_crash", "test", 3), Episode)
    assert isinstance(door.open_incident("real", "petshop", 3), RealEpisode)
    with pytest.raises(ValueError, match="call graphs of their own; leave out the topology"):
        door.open_incident("real", "petshop", 3, DEFAULT_TOPOLOGY)
    with pytest.raises(ValueError, match="choose one of petshop, nezha"):
        door.open_incident("real", "test", 3)


def test_what_can_be_opened():
    assert door.tasks_on(None) == [*ALL_TASKS, "real"]
    assert "real" not in door.tasks_on(DEFAULT_TOPOLOGY)
    assert door.splits_of("real") == list(SOURCES)
    assert door.splits_of("single_crash") == list(SPLITS)
    assert door.last_incident("real", "petshop") == 25
    assert door.last_incident("single_crash", "test") == MAX_INDEX


def test_the_end_of_a_real_incident_tells_the_truth_and_the_guesses():
    episode = door.open_incident("real", "petshop", 0)
    truth = episode.incident.case.truth
    others = [name for name in episode.incident.topology.names if name != truth.root]
    assert door.draw_end(episode) == ""
    for service in (others[0], truth.root):
        episode.act(Action("identify_root_cause", (service,)))
    episode.act(Action("resolve"))
    html = door.draw_end(episode)
    assert "score 0.00" in html and "in 3 guesses" in html and truth.fault in html
    assert f"<td>{others[0]}</td>" in html and f"<td>{others[0]}, {truth.root}</td>" in html
