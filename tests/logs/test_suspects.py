"""Whom to suspect: trouble flows to whom it complains of."""

import pytest

from logtriage.logs.evidence import ServiceEvidence, Trouble
from logtriage.logs.levels import ERROR
from logtriage.logs.suspects import LIKELY, POSSIBLE, UNSURE, Suspect, how_sure, rank
from logtriage.real.observed import Measure


def service(name, gain=0.0, names=None, text="it failed"):
    one = ServiceEvidence(name)
    if gain:
        one.troubles.append(Trouble(10, 0.0, gain, text, (0, 0), ERROR, 0, names or {}))
    return one


def ranked(*services, **more):
    found = rank({one.name: one for one in services}, **more)
    assert sum(one.share for one in found) == pytest.approx(1.0) or not found
    return [one.service for one in found]


def test_the_loudest_is_not_the_root_if_it_names_another():
    loud = service("web", 200.0, {"cart": 10.0})
    middle = service("cart", 50.0, {"cart-db": 10.0})
    assert ranked(loud, middle, service("cart-db", 5.0))[0] == "cart-db"
    assert ranked(loud, middle, service("cart-db"))[0] == "cart-db"  # though it prints nothing


def test_those_who_name_each_other_end():
    found = rank({"a": service("a", 50.0, {"b": 10.0}), "b": service("b", 50.0, {"a": 10.0})})
    assert [one.share for one in found] == pytest.approx([0.5, 0.5])
    assert how_sure(found) == UNSURE


def test_a_symptom_that_names_nobody_points_to_a_callee_in_trouble():
    web = service("web", 100.0, text="upstream timed out")
    cart = service("cart", 20.0)
    calls = {"web": ("cart", "mail"), "cart": ()}
    alone, graph = (
        {one.service: one.share for one in rank({"web": web, "cart": cart}, calls=given)}
        for given in (None, calls)
    )
    assert graph["cart"] > max(graph["web"], alone["cart"])


def test_unusual_metrics_count():
    usual = Measure("cart", "cpu_pct", "%", (13.0,), 12.0, 11.0, 14.0, 1.0)
    unusual = usual._replace(values=(97.0,))
    web = service("web", 5.0)
    assert ranked(web, service("cart"), measures=[usual]) == ["web"]
    assert ranked(web, service("cart"), measures=[unusual]) == ["cart", "web"]


@pytest.mark.parametrize(
    ("shares", "sure"),
    [
        ((1.0,), LIKELY),
        ((0.7, 0.3), LIKELY),
        ((0.55, 0.4), POSSIBLE),
        ((0.3, 0.1), POSSIBLE),
        ((0.5, 0.45), UNSURE),
    ],
)
def test_how_sure_is_told_by_the_distance(shares, sure):
    assert how_sure([Suspect(str(i), share) for i, share in enumerate(shares)]) == sure
