"""The README's first picture is of what the trained agent did, and moves without a script."""

from xml.etree import ElementTree

import animate

from logtriage.server.page import FIRST
from logtriage.world.incidents import sample_incident
from triagelab.bench.watch import CHOSEN


def test_the_picture_is_fresh():
    text = animate.PATH.read_text()
    assert text == animate.picture(), "run `make results`"
    assert len(text) < 150_000 and "<script" not in text and "href" not in text
    ElementTree.fromstring(text)


def test_the_incident_makes_the_point():
    rows = animate.rows_at(CHOSEN)
    assert rows["trained agent"].score > 0.9 > 0.4 > rows["loudest"].score
    root = sample_incident(animate.TASK, animate.SPLIT, CHOSEN).root
    assert f"identify_root_cause:{root}" in rows["trained agent"].did


def test_the_page_opens_on_the_incident_of_watch_whose_owner_is_the_usual_one():
    incident = sample_incident(animate.TASK, animate.SPLIT, FIRST)
    owner = incident.topology.services[incident.injection.position].owner
    assert FIRST == CHOSEN and incident.team == owner
