"""The README's first picture is of what the trained agent did, and moves without a script."""

import re
from xml.etree import ElementTree

import animate
import pytest
from browser import open_tab

from logtriage.world.incidents import sample_incident


@pytest.fixture(scope="module")
def index():
    return max(range(animate.INCIDENTS), key=animate.shows)


def test_the_picture_is_fresh():
    text = animate.PATH.read_text()
    assert text == animate.picture(), "run `make results`"
    assert len(text) < 150_000 and "<script" not in text and "href" not in text
    ElementTree.fromstring(text)


def test_the_incident_makes_the_point(index):
    rows = animate.rows_at(index)
    assert rows["trained agent"].score > 0.9 > 0.4 > rows["loudest"].score
    root = sample_incident(animate.TASK, animate.SPLIT, index).root
    assert f"identify_root_cause:{root}" in rows["trained agent"].did


def test_it_ends_as_it_stands_still(index):
    with open_tab("file://") as tab:

        def seen(seconds):
            """The texts that are seen then."""
            tab.evaluate(
                "at => document.getAnimations().forEach("
                "one => {one.pause(); one.currentTime = 1000 * at})",
                seconds,
            )
            return tab.evaluate(
                "[...document.querySelectorAll('.span')].filter("
                "one => getComputedStyle(one).opacity == 1).map(one => one.textContent.trim())"
            )

        tab.goto(f"file://{animate.PATH}")
        whole = float(re.search(r"([\d.]+)s step-end", animate.PATH.read_text())[1])
        first, last = seen(0.0), seen(whole - 0.1)
        assert len([text for text in first if "0% failed" in text]) == 7
        assert not any("The agent" in text for text in first)
        assert any("the agent scores" in text for text in last)
        tab.emulate_media(reduced_motion="reduce")
        assert tab.evaluate("document.getAnimations().length") == 0 and seen(0.0) == last
