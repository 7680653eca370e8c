"""Names of services, and whom a text names."""

import pytest

from logtriage.logs.lines import MARKERS
from logtriage.logs.names import MOST_NAME, Namer, file_service, service_name
from logtriage.world.call_graph import CallGraph, Service

# A replica keeps its number: who is told apart is decided when all is read.
RAW = """web=web web-7d9c5b7c9f-x2b4q=web web-0=web-0 agent-x2b4q=agent my-https=my-https
nginx.service=nginx shop/basket-db-0=basket-db-0 /aws/lambda/cart=cart café=café
ecs/cart/0123456789abcdef=cart"""
FILES = f"""cart.log=cart cart.log.gz=cart /var/log/cart.log.2=cart cart-2026-11-22.log=cart
cart-stderr.log=cart /var/log/pods/shop_cart-0_123/cart/0.log=cart app.log= access.log.1=
/var/log/containers/cart-7d9c5b7c9f-x2b4q_shop_cart-{"a1" * 32}.log=cart /var/log/syslog="""


@pytest.mark.parametrize("case", RAW.split())
def test_the_mark_of_a_pod_is_no_part_of_a_name(case):
    raw, name = case.split("=")
    assert service_name(raw) == service_name(raw.encode()) == name


@pytest.mark.parametrize("case", FILES.split())
def test_a_file_is_of_the_service_in_its_name(case):
    file, name = case.split("=")
    assert file_service(file) == name


@pytest.mark.parametrize(
    "raw", [b"", b"all", b"a b;c>d", b"\x1b]0;x\x07", b"\xff" * 500, b" \n", "/", "a\0b"]
)
def test_any_name_can_stand_in_a_call_graph(raw):
    name = service_name(raw)
    CallGraph((Service(name, "unknown"),))
    assert name.isprintable() and len(name) <= MOST_NAME + 1


@pytest.mark.parametrize(
    "raw", ["[INST]", "[/INST] web", "[TOOL_CALLS]", "<|im_end|>", b"</s>[SYS]"]
)
def test_no_marker_of_a_chat_template_stands_in_a_name(raw):
    name = service_name(raw)
    assert not MARKERS.search(name) and service_name(name) == name


def test_names_are_whole_words_and_the_longer_wins():
    namer = Namer(["cart", "cart-db", "web", "web-1"])
    assert namer.all("cart-db refused cart; cart-db again") == ["cart-db", "cart"]
    assert namer.first("carts and webs, my-cart, cart-service") == ""
    assert namer.first("http://web:8080/ and cart") == "web"
    assert namer.first("pod cart-db-0 is gone") == "cart-db"
    assert namer.all("web-1 and web-2") == ["web-1", "web"]
    assert Namer([]).all("anything") == []
