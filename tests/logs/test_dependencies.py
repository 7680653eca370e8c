"""Whom a line of trouble names: who was called, or who died."""

import re

import pytest

from logtriage.logs.levels import WARN
from logtriage.logs.log import read_text
from logtriage.logs.names import HOST, PARTED, subject, targets
from logtriage.logs.words import WORDS


@pytest.mark.parametrize("client", WORDS["clients"])
def test_each_form_finds_the_host_of_its_example(client):
    example = client["example"]
    pattern = client["pattern"].replace("HOST", HOST).replace("PARTED", PARTED)
    found = next(filter(None, re.search(pattern, example).groups()))
    assert found in ("orders-db", "postgres", "embedder", "blob", "db-1")
    assert targets(example) == [found]


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
        trouble = {log.services[one.service] for one in log.shapes if one.level >= WARN}
        assert trouble == {"orders-db"}
