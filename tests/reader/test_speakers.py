"""Logs by which somebody was blamed for sure who is not the root: whoever a line mentions was taken
for one that it calls, and whatever parts the lines of one program for services.
"""

import pytest
from shop_log import calm, trouble, written

from logreader.answer import answer_of
from logreader.log import read_named
from logreader.speakers import score_of
from logreader.sureness import LIKELY

SHOP = ("gateway", "orders", "payments", "users", "db")
# The root, its line, and lines of others.
STORIES = """
db ~ db: could not read block {n} in relation orders: read only 0 of 8192 bytes
db ~ db: query of orders@10.2.3.4 stopped, page {n} of file is unreadable
auth ~ auth: token for client gateway not signed: key {n} is revoked ~ gateway: no session
db ~ db: could not fsync segment {n} ~ alertmanager: firing HighErrorRate service=orders value={n}
"""
# Three parts of one program, and how its lines are written.
JSON = '{{"ts": "{time}Z", "level": "{level}", "message": "{text}", '
PARTS = {
    "tenants": ("acme globex initech", "{time} {level} tenant={who} {text}"),
    "hosts": ("fra-a fra-b ams-a", "{time} {who} {level} {text}"),
    "threads": ("grpc-default kafka-consumer quartz-cron", "{time} {level} [{who}] {text}"),
    "logged in": ("ana bo chen", "{time} {level} {who} {text}"),
    "devices": ("kitchen cellar attic", "{time} {level} {who}: {text}"),
    "steps": ("lint unit package", "{time} [{who}] {level} {text}"),
    "methods": ("createorder getcart listusers", "{time} {level} rpc={who} {text}"),
    "json tenants": ("acme globex initech", JSON + '"tenant": "{who}"}}'),
    "json zones": ("eu-west-1 us-east-1 ap-south-1", JSON + '"az": "{who}"}}'),
}
DID = [
    "order {n} saved",
    "login of {n}",
    "cart {n} is empty",
    "import of {n} rows",
    "lock {n} taken",
]


@pytest.mark.parametrize("name", PARTS)
def test_what_parts_the_lines_of_one_program_is_no_service_for_sure(name):
    names, form = PARTS[name][0].split(), PARTS[name][1]
    rows = trouble(names[1], "order {n} not saved: row is locked")
    for at, did in enumerate(DID):
        for name in names:
            rows += trouble(name, did, "INFO", 10 * at, step=50)
    lines = [line.split(" ", 4) for line in written(rows).splitlines()]
    text = "\n".join(
        form.format(time=f"{day} {at}", level=level, who=who[:-1], text=text)
        for day, at, level, who, text in lines
    )
    answer = answer_of(read_named({"app.log": text.encode()}))
    assert answer.suspects[0].service == names[1] and answer.sure != LIKELY


@pytest.mark.parametrize("story", STORIES.strip().split("\n"))
def test_whom_a_broken_service_mentions_is_not_the_root_for_sure(story):
    root, *lines = story.split(" ~ ")
    lines += ["orders: order {n} is lost"] * (root == "db")
    rows = calm(sorted({*SHOP, *(line.split(":")[0] for line in lines)}))
    for line in lines:
        rows += trouble(*line.split(": ", 1), step=6 if line == lines[0] else 4)
    answer = answer_of(read_named({"app.log": written(rows).encode()}))
    assert answer.sure != LIKELY or answer.root == root


def test_source_files_do_not_speak():
    rows = (f"E1122 03:04:{i:02d}.000001 1 {'abc'[i % 3]}art.go:12] lost {i}" for i in range(60))
    log = read_named({"app.log": "\n".join(rows).encode()})
    assert log.files[0].layout.speaker == "" and log.tally.services == ["log"]


@pytest.mark.parametrize("width", [8, 12])  # of the column; the longest name has nine letters
def test_names_in_a_column_filled_up_with_blanks_speak_in_a_short_log(width):
    said = ("billing invoice sent", "mailer message queued", "scheduler tick done")
    pairs = [line.split(" ", 1) for line in said * 6]
    rows = [
        f"2026-11-22 03:00:{second:02d} INFO  {name:{width}} {text}"
        for second, (name, text) in enumerate(pairs)
    ]
    log = read_named({"app.log": "\n".join(rows).encode()})
    assert sorted(log.tally.services) == ["billing", "mailer", "scheduler"]


@pytest.mark.parametrize(
    ("names", "proven"),
    [
        (("cart-db", "cart-service", "mail-queue"), True),
        (("CartService", "MailDb", "WebApi"), False),  # classes
        (("red-one", "red-two", "blue-one"), False),
    ],
)
def test_names_that_say_what_kind_of_service_they_are_of_prove_themselves(names, proven):
    names = [name for name in names for _ in range(8)]
    lines = [f"{name}: item {i} is done" for i, name in enumerate(names)]
    assert score_of(names, lines, ())[1] is proven
