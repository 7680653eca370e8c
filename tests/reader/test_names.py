"""Names of services, and whom a text names: who was called, or who died."""

import re

import pytest

from logreader.levels import WARN
from logreader.lines import MARKERS
from logreader.log import read_text
from logreader.names import (
    HOST,
    MOST_NAME,
    PARTED,
    Namer,
    file_service,
    program,
    service_name,
    subject,
    targets,
)
from logreader.words import WORDS
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


@pytest.mark.parametrize("client", WORDS["clients"])
def test_each_form_finds_the_host_of_its_example(client):
    example = client["example"]
    pattern = client["pattern"].replace("HOST", HOST).replace("PARTED", PARTED)
    name = next(filter(None, re.search(pattern, example).groups()))
    assert name in ("orders-db", "postgres", "embedder", "blob", "db-1", "etcdserver")
    assert targets(example) == [WORDS["libraries"].get(name, name)]


@pytest.mark.parametrize("known", WORDS["programs"], ids=lambda known: known["name"])
def test_a_program_is_known_by_its_own_lines_and_by_no_others(known):
    assert program(known["example"]) == known["name"]
    assert program(f"web: the log has {known['name']}, and says ERROR: failed") == ""


NOBODY = """failed at line:42 ~ main.go:12: failed ~ Error at app.js:1200:12
at com.example.Cart.load(Cart.java:1234) ~ File "/app/main.py", line 1234, in load ~ took:1500
duration:1500 ms ~ status:503 ~ error code:5001 ~ listening on port:8080
see https://docs.example.com/x ~ https://hooks.slack.com/services/x timed out
localhost:5432 refused ~ 127.0.0.1:5432 refused ~ 12:30:45 failed ~ 2026-11-22T03:04:05 failed
mail to a@b.com: refused ~ calling the service failed ~ the request returned 503 items
Could not resolve placeholder in a.yaml"""


@pytest.mark.parametrize("line", re.split(r" ~ |\n", NOBODY))
def test_in_other_lines_nobody_is_named(line):
    assert targets(line) == []


def test_a_name_within_a_cluster_is_its_first_part():
    assert targets("dial tcp orders-db.shop.svc.cluster.local:5432: refused") == ["orders-db"]
    assert targets("http://orders-db.internal:80/x", ["orders-db"]) == ["orders-db"]
    assert targets("http://a-x:80/ then http://b-x:80/ and a-x:80 refused") == ["a-x", "b-x"]


@pytest.mark.parametrize(
    ("speaker", "line"),
    [
        ("kernel", "Out of memory: Killed process 4711 (orders-db) total-vm:1kB"),
        ("kernel", "oom-kill:constraint=CONSTRAINT_MEMCG,task=orders-db,pid=4711"),
        ("kernel", "orders-db[4711]: segfault at 0 ip 0"),
        ("kubelet", 'Error syncing pod="shop/orders-db-7d9c5b7c9f-x2b4q" err="CrashLoopBackOff"'),
        ("kubelet", "Back-off restarting failed container=orders-db"),
        ("systemd", "orders-db.service: Main process exited, code=killed, status=9/KILL"),
        ("containerd", 'level=error msg="failed to start" name=orders-db'),
        ("supervisord", "WARN exited: orders-db (exit status 1; not expected)"),
        ("monit", "error : process 4711 (orders-db) is not running"),
    ],
)
def test_a_line_of_the_platform_is_about_whom_it_names(speaker, line):
    assert subject(line) == "orders-db"
    # Whether the one that died has lines of its own or none.
    for others in (["web", "cart"], ["web", "orders-db"]):
        rows = [
            f"Nov 22 03:{i // 60:02d}:{i % 60:02d} node1 {who}[{i}]: {text}"
            for i in range(60)
            for who, text in [
                (others[i % 2], f"request {i} of a customer"),
                (speaker, line if i > 50 else f"all is well, check {i} done"),
            ]
        ]
        log = read_text("\n".join(rows)).tally
        trouble = {log.services[shape.service] for shape in log.shapes if shape.level >= WARN}
        assert trouble == {"orders-db"}
