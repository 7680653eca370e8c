"""The README's first picture is of what the agent did, and shows the incident of `watch`."""

from xml.etree import ElementTree

from triagelab.bench.picture import PATH, picture


def test_the_picture_is_fresh():
    text = PATH.read_text()
    assert text == picture(), "run `python scripts/make_results.py smollm2`"
    assert len(text) < 10_000 and "<script" not in text and "href" not in text
    ElementTree.fromstring(text)
