"""The README's first picture is of what the agent did, and shows the incident of `watch`."""

from xml.etree import ElementTree

from logtriage.play.actions import Action
from logtriage.recorded import CHOSEN
from logtriage.world.incidents import sample_incident
from triagelab.bench.picture import PATH, picture, played


def test_the_picture_is_fresh():
    text = PATH.read_text()
    assert text == picture(), "run `make results`"
    assert len(text) < 10_000 and "<script" not in text and "href" not in text
    ElementTree.fromstring(text)


def test_the_incident_makes_the_point():
    (_, before), (actions, after) = played("base model"), played("trained agent")
    assert before < 0.5 and after > 0.9
    root = sample_incident(*CHOSEN).root
    assert Action("identify_root_cause", (root,)) in actions


def test_the_team_to_page_is_the_usual_one():
    incident = sample_incident(*CHOSEN)
    owner = incident.topology.services[incident.injection.position].owner
    assert incident.team == owner
