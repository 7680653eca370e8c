"""Logs by which somebody was blamed for sure who is not the root: whoever a line mentions was taken
for one that it calls, and whatever parts the lines of one program for services.
"""

import json
from datetime import UTC, datetime

import pytest
from shop_log import START, calm, trouble, written

from logtriage.logs.answer import LIKELY, answer_of
from logtriage.logs.log import read_named

SHOP = ("gateway", "orders", "payments", "users", "db")
LOST = "orders: order {n} is lost"
# The root, its line, and lines of others.
STORIES = """
db ~ db: could not read block {n} in relation orders: read only 0 of 8192 bytes
db ~ db: canceling statement due to statement timeout: UPDATE orders SET state = {n}
db ~ db: query of orders@10.2.3.4 stopped, page {n} of file is unreadable
elastic ~ elastic: [orders][{n}] marking shard as stale after I/O error
ledger ~ ledger: request {n} of payments failed: page 7 is damaged ~ payments: {n} not booked
ledger ~ ledger: booking failed: page {n} is damaged peer=payments ~ payments: {n} not booked
ledger ~ ledger: booking for payments.shop.svc:{n} failed: page 7 is damaged ~ payments: {n} failed
auth ~ auth: token for client gateway not signed: key {n} is revoked ~ gateway: no session
db ~ db: could not fsync segment {n} ~ alertmanager: firing HighErrorRate service=orders value={n}
"""
# What parts the lines of one program, and how they are written.
PARTS = {
    "tenants": ("acme globex initech", "{level} tenant={who} {text}"),
    "hosts": ("fra-a fra-b ams-a", "{who} {level} {text}"),
    "threads": ("grpc-default kafka-consumer quartz-cron", "{level} [{who}] {text}"),
    "logged in": ("ana bo chen", "{level} {who} {text}"),
    "devices": ("kitchen cellar attic", "{level} {who}: {text}"),
    "steps": ("lint unit package", "[{who}] {level} {text}"),
    "methods": ("createorder getcart listusers", "{level} rpc={who} {text}"),
    "symbols": ("EURUSD GBPUSD USDJPY", "{level} {who} {text}"),
    "json tenants": ("acme globex initech", "tenant"),
    "json zones": ("eu-west-1 us-east-1 ap-south-1", "az"),
}
DID = (
    "order {n} saved",
    "login of {n}",
    "cart {n} is empty",
    "import of {n} rows",
    "lock {n} taken",
)


def log_of_parts(names, form):
    """Lines of one program, of the second part of which some are trouble."""
    rows = [
        (10 * i + at, "INFO", name, DID[i % 5].format(n=97 * i))
        for i in range(360)
        for at, name in enumerate(names)
    ]
    rows += trouble(names[1], "order {n} not saved: row is locked")
    for second, level, who, text in sorted(rows):
        time = f"{datetime.fromtimestamp(START + second, UTC):%Y-%m-%d %H:%M:%S}"
        yield (
            f"{time} " + form.format(level=level, who=who, text=text)
            if "{" in form
            else (json.dumps({"ts": f"{time}Z", "level": level, "message": text, form: who}))
        )


@pytest.mark.parametrize("name", PARTS)
def test_what_parts_the_lines_of_one_program_is_no_service_for_sure(name):
    names, form = PARTS[name]
    text = "\n".join(log_of_parts(names.split(), form))
    assert answer_of(read_named({"app.log": text.encode()})).sure != LIKELY


@pytest.mark.parametrize("story", STORIES.strip().split("\n"))
def test_whom_a_broken_service_mentions_is_not_the_root_for_sure(story):
    root, *lines = story.split(" ~ ")
    rows = calm(sorted({*SHOP, *(line.split(":")[0] for line in lines)}))
    for line in (*lines, LOST):
        rows += trouble(*line.split(": ", 1), step=6 if line == lines[0] else 4)
    answer = answer_of(read_named({"app.log": written(rows).encode()}))
    assert answer.sure != LIKELY or answer.root == root
