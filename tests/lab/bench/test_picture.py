"""The README's first picture is of what the agent did, and shows the incident of `watch`."""

from xml.etree import ElementTree

from logtriage.play.actions import Action
from logtriage.server.page import FIRST
from logtriage.world.incidents import sample_incident
from triagelab.bench.picture import PATH, SPLIT, TASK, picture, played
from triagelab.bench.watch import CHOSEN


def test_the_picture_is_fresh():
    text = PATH.read_text()
    assert text == picture(), "run `make results`"
    assert len(text) < 10_000 and "<script" not in text and "href" not in text
    ElementTree.fromstring(text)


def test_the_incident_makes_the_point():
    (_, before), (actions, after) = played("base model"), played("trained agent")
    assert before < 0.5 and after > 0.9
    root = sample_incident(TASK, SPLIT, CHOSEN).root
    assert Action("identify_root_cause", (root,)) in actions


def test_the_page_opens_on_the_same_incident_whose_owner_is_the_usual_one():
    incident = sample_incident(TASK, SPLIT, FIRST)
    owner = incident.topology.services[incident.injection.position].owner
    assert FIRST == CHOSEN and incident.team == owner
