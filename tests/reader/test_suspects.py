"""Whom to suspect: trouble flows to whom it complains of, and stays where nobody else is blamed."""

import pytest

from logreader.evidence import ServiceEvidence, Trouble
from logreader.levels import ERROR, WARN
from logreader.sureness import confidence, doubts
from logreader.suspects import MOST_HOPS, chain_to, rank


def service(name, gain=0.0, blamed="", text="it failed", level=ERROR, silent=False):
    """Evidence on a service: ten lines of one kind of trouble, all of which blame somebody."""
    names = {blamed: 10.0} if blamed else {}
    troubles = [Trouble(10, 0.0, gain, text, (0, 0), level, 0, names)] if gain else []
    return ServiceEvidence(name, lines=5.0, troubles=troubles, silent=silent)


def evidence(*services):
    return {service.name: service for service in services}


def shares(*services, calls=None):
    ranked = rank(evidence(*services), calls)
    assert sum(suspect.share for suspect in ranked) == pytest.approx(1.0) or not ranked
    return {suspect.service: suspect.share for suspect in ranked}


DB, MIDDLE, LOUD = service("db", 5.0), service("cart", 50.0, "db"), service("web", 200.0, "cart")


@pytest.mark.parametrize(
    ("services", "first"),
    [
        ((LOUD, MIDDLE, DB), "db"),
        ((LOUD, MIDDLE, service("db")), "db"),  # though it prints nothing
        ((service("web", 200.0), MIDDLE, service("db")), "web"),
        ((service("db", silent=True), service("mail", 1.0)), "db"),
    ],
)
def test_the_loudest_is_not_the_root_if_it_names_another(services, first):
    assert next(iter(shares(*services))) == first


def test_those_who_name_each_other_share_it_and_it_ends():
    both = service("a", 50.0, "b"), service("b", 50.0, "a")
    assert shares(*both) == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}
    assert chain_to("a", evidence(*both)) == ["a", "b"]


@pytest.mark.parametrize(("text", "more"), [("upstream timed out", True), ("it failed", False)])
def test_a_symptom_that_names_nobody_points_to_a_callee_in_trouble(text, more):
    both = service("web", 100.0, text=text), service("cart", 20.0)
    graph = shares(*both, calls={"web": ("cart", "mail"), "cart": ()})
    assert (graph["cart"] > shares(*both)["cart"]) == more


def test_a_chain_goes_from_the_root_to_the_last_that_complains_and_is_bounded():
    shop = evidence(LOUD, MIDDLE, service("mail", 2.0, "db"), DB)  # mail complains less than cart
    assert chain_to("db", shop) == ["db", "cart", "web"] and chain_to("web", shop) == ["web"]
    ring = [service(f"s{i}", 9.0, f"s{(i + 1) % 20}") for i in range(20)]
    assert len(chain_to("s0", evidence(*ring))) == MOST_HOPS


def sure(*services, gain=40.0):
    weighed = evidence(*services)
    return confidence(rank(weighed), weighed, gain)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (sure(service("db", 5.0, text="page 7 is corrupt")), sure(DB)),
        (sure(DB, service("web", 1.0, "db")), sure(DB, service("web", 1.0))),
        (sure(DB, service("mail", 1.0)), sure(DB, service("mail", 4.0))),
        (sure(DB, gain=40.0), sure(DB, gain=11.0)),
    ],
    ids=["its lines tell of a cause", "others blame it", "nobody is near", "the window is clear"],
)
def test_confidence_grows_by_what_speaks_for_it(more, less):
    assert 0.0 < less < more < 1.0 and sure() == 0.0


@pytest.mark.parametrize(
    "services",
    [
        [service("db", silent=True)],
        [service("db", 9.0, text="upstream timed out", silent=True)],
        [service("db", 9.0, text="page 7 is corrupt", level=WARN)],
        [service("db", 9.0, text="page 7 is corrupt"), service("web", 1.0, "db")],
    ],
    ids=["silent", "silent after symptoms", "warnings of a cause", "a cause, and others blame it"],
)
def test_what_takes_a_doubt_away(services):
    # That each doubt is told stands in test_answer.py.
    assert doubts(rank(evidence(*services)), evidence(*services)) == []
