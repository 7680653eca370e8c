"""Which service a record is of."""

import pytest

from logtriage.logs.lines import MARKERS
from logtriage.logs.names import Namer, file_service, logger_of, service_name
from logtriage.world.call_graph import CallGraph, Service


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"web", "web"),
        (b"web-7d9c5b7c9f-x2b4q", "web"),
        (b"web-0", "web"),
        (b"shop_web_1", "shop_web"),
        (b"agent-x2b4q", "agent"),
        (b"my-https", "my-https"),
        (b"nginx.service", "nginx"),
        ("caf\u00e9", "caf\u00e9"),
    ],
)
def test_the_mark_of_a_replica_is_no_part_of_a_name(raw, name):
    assert service_name(raw) == name


@pytest.mark.parametrize("raw", [b"", b"all", b"a b;c>d", b"\x1b]0;x\x07", b"\xff" * 500, b" \n"])
def test_any_name_can_stand_in_a_call_graph(raw):
    CallGraph((Service(service_name(raw), "unknown"),))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("cart.log", "cart"),
        ("/var/log/cart.log.2", "cart"),
        ("cart-2026-11-22.log", "cart"),
        ("/var/log/pods/shop_cart-0_123/cart/0.log", "cart"),
        (f"/var/log/containers/cart-7d9c5b7c9f-x2b4q_shop_cart-{'a1' * 32}.log", "cart"),
    ],
)
def test_a_file_is_of_the_service_in_its_name(file, name):
    assert file_service(file) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"INFO dfs.DataNode$PacketResponder: x", b"dfs.DataNode"),
        (b"- INFO  [main:FastLeaderElection@774] - x", b"FastLeaderElection"),
        (b"INFO 1 --- [nio-8080-exec-1] c.e.cart.CartController : x", b"c.e.cart.CartController"),
        (b"INFO  p.c.PriceController#39 [find] x", b"p.c.PriceController"),
        (b"2574 ERROR nova.compute.manager [req-1 - -] x", b"nova.compute.manager"),
        (b"ERROR basket-db is down", b"basket-db"),
        (b"ERROR something went wrong", None),
        (b"", None),
    ],
)
def test_who_speaks_stands_after_the_level(text, name):
    assert logger_of(text) == name


def test_names_are_whole_words_and_the_longer_wins():
    namer = Namer(["cart", "cart-db", "web"])
    assert namer.all("cart-db refused cart; cart-db again") == ["cart-db", "cart"]
    assert namer.first("carts and webs, my-cart") == ""
    assert namer.first("http://web:8080/ and cart") == "web"
    assert namer.first("pod cart-db-0 is gone") == "cart-db"
    assert Namer([]).all("anything") == []


@pytest.mark.parametrize(
    "raw", ["[INST]", "[/INST] web", "[TOOL_CALLS]", "<|im_end|>", b"</s>[SYS]"]
)
def test_no_marker_of_a_chat_template_stands_in_a_name(raw):
    name = service_name(raw)
    assert not MARKERS.search(name) and service_name(name) == name
