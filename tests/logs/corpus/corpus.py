"""Logs written for tests, from the tables beside this file: one incident in many formats
(formats.yaml, shop.yaml), the same with the root's log absent, in the words of many clients
(clients.yaml), and odd incidents (scenarios.yaml, whose files are written as lines.yaml says).
"""

import csv
import io
import json
import random
import zlib
from collections import UserDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = "orders-db"
LEVELS = ("INFO", "WARN", "ERROR", "FATAL")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PIDS = {"gateway": 612, "orders": 1188, "catalog": 1203, "payments": 1377}
OLDEST, NEWEST, BY_SERVICE = "oldest first", "newest first", "service"
QUIET, TROUBLE = timedelta(minutes=45), timedelta(minutes=10)  # of the shop's incident

Files = dict[str, bytes]


@dataclass(frozen=True)
class Entry:
    """One log entry; a text with line breaks is a message with its stack trace."""

    at: datetime
    service: str
    level: str
    text: str


class Scenario(NamedTuple):
    """The files of one case, and the services that may be named first in it."""

    name: str
    files: Files
    roots: set[str]
    note: str


def table(name: str) -> Any:
    """A table that stands beside this file."""
    return yaml.load((Path(__file__).parent / name).read_text(), yaml.CSafeLoader)


# ---- the fields that a format may have in braces ----


class Time(datetime):
    """A time that knows milliseconds, as %L."""

    def __format__(self, form: str) -> str:
        return self.strftime(form.replace("%L", f"{self.microsecond // 1000:03d}"))


def local(entry: Entry, hours: int = 0) -> Time:
    """The time of an entry, some hours from UTC."""
    at = entry.at.astimezone(timezone(timedelta(hours=hours)))
    return Time.fromtimestamp(at.timestamp(), at.tzinfo).replace(microsecond=at.microsecond)


def micros(entry: Entry) -> int:
    """Microseconds since 1970."""
    return (entry.at - EPOCH) // timedelta(microseconds=1)


def code(*parts: object, length: int = 12) -> str:
    """A hex id that is always the same for the same parts."""
    return sha256(repr(parts).encode()).hexdigest()[:length]


def pod(service: str) -> str:
    """The name of a service's pod."""
    return f"{service}-{code(service, length=10)}-{code('pod', service, length=5)}"


def pod_or_replica(entry: Entry) -> str:
    """The name of a pod, which for `web-0` is its own."""
    mark = "" if entry.service[-2] == "-" else "-7f6d8b9c4-k2x8p"
    return entry.service + mark


def pid(service: str) -> int:
    """The process id of a service."""
    return PIDS.get(service) or 600 + int(code(service, length=3), 16)


def head(entry: Entry) -> str:
    """The message without its stack trace."""
    return entry.text.partition("\n")[0]


def trace(entry: Entry) -> str:
    """The stack trace, or nothing."""
    return entry.text.partition("\n")[2]


def after(entry: Entry, start: str) -> str:
    """The quoted stack trace after a sign of its own, or nothing."""
    return start + json.dumps(trace(entry)) if trace(entry) else ""


def process(entry: Entry, first: int) -> str:
    """A syslog's name of a process; the kernel has no id."""
    named = f"{entry.service}[{first + len(entry.service)}]"
    return "kernel" if entry.service == "kernel" else named


FIELDS: dict[str, Callable[[Entry], Any]] = {
    "service": lambda e: e.service,
    "level": lambda e: e.level,
    "lower": lambda e: e.level.lower(),
    "letter": lambda e: e.level[0],
    "text": lambda e: e.text,
    "head": head,
    "trace": trace,
    "lines": lambda e: e.text.count("\n") + 1,
    "trace_lines": lambda e: trace(e).split("\n"),
    "trace_or_dash": lambda e: trace(e) or "-",
    "escaped": lambda e: e.text.replace("\n", "#012").replace("\t", "#011"),
    "quoted_text": lambda e: json.dumps(e.text),
    "quoted_head": lambda e: json.dumps(head(e)),
    "stack": lambda e: after(e, " stack="),
    "error": lambda e: after(e, " error="),
    "cause": lambda e: after(e, " \x1b[3mcause\x1b[0m\x1b[2m=\x1b[0m"),
    "at": local,
    "berlin": lambda e: local(e, 2),
    "new_york": lambda e: local(e, -4),
    "iso": lambda e: f"{local(e):%Y-%m-%dT%H:%M:%S.%LZ}",
    "nano": lambda e: f"{local(e):%Y-%m-%dT%H:%M:%S.%f}{e.at.microsecond % 997:03d}Z",
    "seconds": lambda e: micros(e) / 1e6,
    "seconds_3": lambda e: micros(e) // 1000 / 1000,
    "seconds_rounded": lambda e: round(e.at.timestamp(), 3),
    "millis": lambda e: micros(e) // 1000,
    "millis_later": lambda e: micros(e) // 1000 + 812,
    "micros": micros,
    "monotonic": lambda e: micros(e) - 1715600000000000,
    "nanos": lambda e: micros(e) * 1000,
    "nanos_later": lambda e: micros(e) * 1000 + 7_000_000,
    "tens": lambda e: e.at.microsecond // 10,
    "sevenths": lambda e: e.at.microsecond // 7,
    "second_8": lambda e: e.at.second % 8,
    "second_9": lambda e: e.at.second % 9,
    "second_9_1": lambda e: e.at.second % 9 + 1,
    "second_60": lambda e: 60 + e.at.second,
    "pid": lambda e: pid(e.service),
    "pod": lambda e: pod(e.service),
    "pod_id": lambda e: code(pod(e.service)),
    "boot": lambda e: code("boot", length=32),
    "compose": lambda e: f"{e.service}-1",
    "process_700": lambda e: process(e, 700),
    "process_900": lambda e: process(e, 900),
    "unnumbered": lambda e: e.service.rstrip("-0123456789"),
    "pod_or_replica": pod_or_replica,
    "id16": lambda e: code(e.text, e.at, length=16),
    "id32": lambda e: code(e.text, e.at, length=32),
    "at_id16": lambda e: code(e.at, e.text, length=16),
    "at_id40": lambda e: code(e.at, e.text, length=40),
    "at_only16": lambda e: code(e.at, length=16),
    "event": lambda e: int(code(e.at, e.text, length=40), 16),
    "word_id": lambda e: code(head(e).split()[0], length=8),
    "task": lambda e: code("task", e.service, length=32),
    "container": lambda e: code("container", e.service, length=64),
    "word_0": lambda e: e.text.split()[0],
    "word_1": lambda e: e.text.split()[1],
    "status": lambda e: int(e.text.split()[2]),
    "word_3": lambda e: e.text.split()[3],
}  # fmt: skip


class Fields(UserDict[str, Any]):
    """The fields of an entry, each worked out when it is asked for."""

    def __init__(self, entry: Entry, form: dict[str, Any], **more: object) -> None:
        super().__init__(more)
        self._entry, self._form = entry, form

    def __missing__(self, name: str) -> Any:
        if name == "name":
            return self._form["name"][LEVELS.index(self._entry.level)]
        if name == "paint":
            return self._form["paint"].get(self._entry.service, 36)
        return FIELDS[name](self._entry)


def filled(form: Any, fields: Fields) -> Any:
    """A text, or an object of texts, with fields for braces; a field alone keeps its type."""
    if isinstance(form, list):
        return [filled(one, fields) for one in form]
    if isinstance(form, dict):
        found = {}
        for key, value in form.items():
            name, _, needs = key.partition("?")
            if not needs or fields[needs]:
                found[name] = filled(value, fields)
        return found
    if not isinstance(form, str):
        return form
    alone = form.startswith("{") and form.endswith("}") and form[1:-1].isidentifier()
    return fields[form[1:-1]] if alone else form.format_map(fields)


# ---- files ----


def rows_of(entry: Entry, form: dict[str, Any], number: int) -> list[Any]:
    """The lines, records or columns that an entry is written as."""
    fields = Fields(entry, form, number=number)
    if "split" in form:
        lines = filled(form["split"], fields).split("\n")
        every = [Fields(entry, form, line=line) for line in lines]
        return [filled(form["record"], one) for one in every]
    if "columns" in form:
        return [[*filled(form["columns"], fields).values()]]
    start = filled(form.get("start", ""), fields)
    if "record" in form:
        record = filled(form["record"], fields)
        return [start + compact(record)] if start else [record]
    text = str(filled(form["row"], fields))
    if form.get("indented"):
        return [start + text.replace("\n", "\n" + " " * len(start))]
    return [start + line for line in text.split("\n")] if start else [text]


def compact(record: object) -> str:
    """JSON without blanks."""
    return json.dumps(record, separators=(",", ":"))


def written(form: dict[str, Any], entries: list[Entry]) -> bytes:
    """One file in a format."""
    if "batch" in form:
        return lined(map(compact, batches(form, entries)))
    rows = [row for i, one in enumerate(entries, 1) for row in rows_of(one, form, i)]
    if "columns" in form:
        out = io.StringIO()
        quoting = csv.QUOTE_ALL if form.get("quoted") else csv.QUOTE_MINIMAL
        writer = csv.writer(out, quoting=quoting, lineterminator="\n")
        writer.writerows([[*form["columns"]], *rows])
        return b"\xef\xbb\xbf" * form.get("mark", False) + out.getvalue().encode()
    if "document" in form:
        document = form["document"]
        whole = {document["key"]: rows, **document["rest"]} if "key" in document else rows
        return json.dumps(whole, indent=document.get("indent")).encode()
    return lined(row if isinstance(row, str) else compact(row) for row in rows)


def batches(form: dict[str, Any], entries: list[Entry]) -> Iterable[dict[str, Any]]:
    """Objects of OTLP, each with some entries, grouped by service."""
    for first in range(0, len(entries), form["batch"]):
        groups = []
        for service, own in by_service(entries[first : first + form["batch"]]).items():
            told = {"service.name": service, "host.name": pod(service)}
            resource = [{"key": key, "value": {"stringValue": one}} for key, one in told.items()]
            records = [record for one in own for record in rows_of(one, form, 0)]
            scopes = [{"scope": {"name": "app"}, "logRecords": records}]
            groups.append({"resource": {"attributes": resource}, "scopeLogs": scopes})
        yield {"resourceLogs": groups}


def lined(rows: Iterable[str]) -> bytes:
    """Rows as a text file."""
    return ("\n".join(rows) + "\n").encode()


def by_service(entries: list[Entry]) -> dict[str, list[Entry]]:
    """The entries of each service, by name."""
    names = sorted({entry.service for entry in entries})
    return {name: [entry for entry in entries if entry.service == name] for name in names}


def formatted(form: dict[str, Any], entries: list[Entry]) -> Files:
    """The files of an incident in a format."""
    order, name = form.get("order", OLDEST), form["file"]
    if order == BY_SERVICE:
        entries = [one for own in by_service(entries).values() for one in own]
    elif order == NEWEST:
        entries = entries[::-1]
    groups = [*by_service(entries).values()] if "{" in name else [entries]
    return {filled(name, Fields(own[0], form)): written(form, own) for own in groups}


FORMATS: dict[str, Callable[[list[Entry]], Files]] = {
    name: partial(formatted, form) for name, form in table("formats.yaml").items()
}


# ---- the incident of a shop ----


def shop_fields(rng: random.Random) -> dict[str, Any]:
    """Fresh numbers and ids for a text of shop.yaml."""
    return {
        "order": rng.randint(480000, 499999),
        "customer": rng.randint(1000, 99999),
        "sku": f"SKU-{rng.randint(100, 9999)}",
        "hex": f"{rng.getrandbits(48):012x}",
        "ip": f"203.0.113.{rng.randint(2, 250)}",
        "port": rng.randint(32768, 60999),
        "pid": rng.randint(2100, 9800),
        "ms": rng.randint(3, 180),
        "slow": rng.randint(30000, 30040),
        "n": rng.randint(10, 59),
        "m": rng.randint(1, 5),
        "offset": rng.randint(1000, 90000),
        "micros": f"{rng.randint(0, 999):03d}",
        "price": f"{rng.randint(5, 400)}.{rng.randint(0, 99):02d}",
    }


def incident(seed: int = 7) -> list[Entry]:
    """A shop's requests run gateway -> orders -> orders-db; the gateway calls catalog and payments
    as well. After a quiet time a lock in orders-db blocks its writers, and orders and then the
    gateway suffer from it. Catalog and payments stay well.
    """
    rng, texts = random.Random(seed), table("shop.yaml")
    start = datetime(2024, 5, 14, 9, 3, 11, tzinfo=UTC)
    begin = start + QUIET

    def entry(at: datetime, service: str, level: str, text: str) -> Entry:
        text = text.replace("{trace}", texts["trace"])
        return Entry(at, service, level, text.format(**shop_fields(rng)))

    def usual(first: datetime, length: timedelta, count: int) -> list[Entry]:
        rows = rng.choices(texts["usual"], [row[0] for row in texts["usual"]], k=count)
        return [entry(first + length * rng.random(), who, "INFO", text) for _, who, text in rows]

    def now_and_then(first: datetime, length: timedelta, times: int) -> list[Entry]:
        rows = texts["now and then"] * times
        return [entry(first + length * rng.random(), *row) for row in rows]

    entries = usual(start, QUIET, 480) + now_and_then(start, QUIET, 2)
    for seconds, *row in texts["opening"]:
        entries.append(entry(begin + timedelta(seconds=seconds + rng.random()), *row))
    for count, delay, *row in texts["suffering"]:
        for _ in range(count):
            late = timedelta(seconds=rng.uniform(delay, TROUBLE.total_seconds()))
            entries.append(entry(begin + late, *row))
    entries += [
        one
        for one in usual(begin, TROUBLE, 110)
        if one.service != "orders" and "upstream=orders" not in one.text  # finished work of orders
    ]
    entries += now_and_then(begin, TROUBLE, 1)
    return sorted(entries, key=lambda one: one.at)


# ---- the same shop, whose database prints nothing ----

SILENT_START, SILENT_QUIET, SILENT_END = datetime(2025, 3, 11, 9, tzinfo=UTC), 2700, 3300  # seconds
EVERYDAY = [
    ("gateway", 4.0, "GET /orders/{n} 200 in {ms}ms"),
    ("gateway", 8.0, "GET /products 200 in {ms}ms"),
    ("orders", 5.0, "loaded order {n} in {ms}ms"),
    ("catalog", 8.0, "listed 24 products in {ms}ms"),
    ("payments", 12.0, "captured payment {n} in {ms}ms"),
]
CLIENTS: dict[str, str] = table("clients.yaml")


def silent(name: str) -> Files:
    """The log of the shop as JSON: orders prints a client's message, and the gateway a 502."""
    rng, lines = random.Random(zlib.crc32(name.encode())), []

    def say(at: float, level: str, service: str, text: str) -> None:
        entry = Entry(SILENT_START + timedelta(seconds=at), service, level, text)
        ts = FIELDS["iso"](entry)
        line = {"ts": ts, "level": level, "service": service, "msg": text}
        lines.append((at, json.dumps(line)))

    for service, every, text in EVERYDAY:
        hurt = service == "orders" or "/orders" in text
        at = every * rng.random()
        while at < (SILENT_QUIET if hurt else SILENT_END):
            number, ms = rng.randrange(1000, 9999), rng.randrange(4, 60)
            say(at, "INFO", service, text.format(n=number, ms=ms))
            at += every * rng.uniform(0.5, 1.5)
    at = SILENT_QUIET + 2.0
    while at < SILENT_END:
        order, said = rng.randrange(1000, 9999), CLIENTS[name]
        if rng.randrange(3) == 0:
            said = f"failed to load order {order}: {said}"
        say(at, "ERROR", "orders", said)
        say(at + 0.02, "ERROR", "gateway", f"GET /orders/{order} 502 upstream orders answered 500")
        at += 3.0 * rng.uniform(0.5, 1.5)
    return {"app.log": lined(line for _, line in sorted(lines))}


# ---- odd incidents ----


def numbered(text: str, rng: random.Random) -> str:
    """Numbers in place of <n> (four digits), <ms>, <id> (eight hex digits) and <ip>."""
    while "<n>" in text:
        text = text.replace("<n>", str(rng.randrange(1000, 9999)), 1)
    text = text.replace("<ms>", str(rng.randrange(4, 90)))
    text = text.replace("<id>", f"{rng.getrandbits(32):08x}")
    return text.replace("<ip>", f"10.4.{rng.randrange(4)}.{rng.randrange(2, 250)}")


def drawn(
    form: dict[str, Any], flows: list[list[Any]], start: datetime, rng: random.Random
) -> bytes:
    """A file's lines in the order of their times."""
    found = []
    for service, level, begin, end, every, *texts in flows:
        times, at = [], begin * 60 + (every * rng.random() if every else 0)
        while at < end * 60 or not (every or times):
            times.append(at)
            at += every * rng.uniform(0.5, 1.5) if every else 0
        for at in times:
            who = numbered(service, rng)
            found.append((at, who, level, numbered(rng.choice(texts), rng)))
    found.sort(key=lambda one: one[0])
    rows = [rows_of(Entry(start + timedelta(seconds=at), *row), form, 0) for at, *row in found]
    return lined(one if isinstance(one, str) else json.dumps(one) for row in rows for one in row)


def scenarios() -> dict[str, Scenario]:
    """All odd incidents by name; the same name always gives the same files."""
    forms, found = table("lines.yaml"), {}
    for case in table("scenarios.yaml"):
        name, start = case["name"], case["starts"]
        rng = random.Random(zlib.crc32(name.encode()))
        files = {
            file: drawn(forms[one["form"]], one["flows"], start, rng)
            for file, one in case["files"].items()
        }
        found[name] = Scenario(name, files, set(case["roots"]), case["note"])
    return found
