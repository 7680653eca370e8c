"""Logs written for tests, from the tables beside this file. Incidents are flows of lines: one of a
shop (shop.yaml) is written in many formats (formats.yaml), another in the words of many clients of
a database without a log (clients.yaml), and odd ones (scenarios.yaml) as lines.yaml says.
"""

import csv
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

ROOT = "orders-db"  # of both incidents of the shop
LEVELS = ("INFO", "WARN", "ERROR", "FATAL")

Files = dict[str, bytes]


class Entry(NamedTuple):
    """One log entry; a text with line breaks is a message with its stack trace."""

    at: datetime
    service: str
    level: str
    text: str


def table(name: str) -> Any:
    """A table that stands beside this file."""
    return yaml.load((Path(__file__).parent / name).read_text(), yaml.CSafeLoader)


FORMATS, LINES, SHOP, CLIENTS = map(
    table, ("formats.yaml", "lines.yaml", "shop.yaml", "clients.yaml")
)
SCENARIOS = {case["name"]: case for case in table("scenarios.yaml")}


# ---- from flows to entries ----

DRAWN: dict[str, Callable[[Random], str]] = {
    "n": lambda random: str(random.randrange(1000, 9999)),
    "ms": lambda random: str(random.randrange(4, 90)),
    "id": lambda random: f"{random.getrandbits(32):08x}",
    "ip": lambda random: f"10.4.{random.randrange(4)}.{random.randrange(2, 250)}",
}


def numbered(text: str, random: Random) -> str:
    """Fresh numbers in place of <n>, <ms>, <id> and <ip>."""
    return re.sub("<(n|ms|id|ip)>", lambda match: DRAWN[match[1]](random), text)


def drawn(flows: Sequence[Sequence[Any]], start: datetime, random: Random) -> list[Entry]:
    """What flows print, in order: [service, level, first minute, last minute, about one line in so
    many seconds (0: one line), texts].
    """
    entries = []
    for service, level, begin, end, every, *texts in flows:
        at = begin * 60 + every * random.random()
        while at < end * 60 or not every:
            row = (numbered(service, random), level, numbered(random.choice(texts), random))
            entries.append(Entry(start + timedelta(seconds=at), *row))
            if not every:
                break
            at += every * random.uniform(0.5, 1.5)
    return sorted(entries, key=lambda entry: entry.at)


@cache
def incident() -> list[Entry]:
    """A lock in the shop's database, which its callers suffer from."""
    return drawn(SHOP["locked"]["flows"], SHOP["locked"]["starts"], Random(7))


def in_format(name: str) -> Files:
    """That incident in a format."""
    return formatted(FORMATS[name], incident())


def of_client(name: str) -> Files:
    """The log of the shop whose database prints nothing, in the words of one of its clients."""
    flows = [
        [*flow, *(text.replace("CLIENT", CLIENTS[name]) for text in texts)]
        for *flow, texts in ((*flow[:5], flow[5:]) for flow in SHOP["silent"]["flows"])
    ]
    entries = drawn(flows, SHOP["silent"]["starts"], Random(zlib.crc32(name.encode())))
    return {"app.log": written(LINES["json_iso"], entries)}


def of_scenario(name: str) -> Files:
    """The files of an odd incident."""
    case, random = SCENARIOS[name], Random(zlib.crc32(name.encode()))
    return {
        file: written(LINES[part["form"]], drawn(part["flows"], case["starts"], random))
        for file, part in case["files"].items()
    }


# ---- the fields that a format may have in braces ----


class Time(datetime):
    """A time that knows milliseconds, as %L."""

    def __format__(self, form: str) -> str:
        return self.strftime(form.replace("%L", f"{self.microsecond // 1000:03d}"))


def local(entry: Entry, hours: int = 0) -> Time:
    """The time of an entry, some hours from UTC."""
    at = entry.at.astimezone(timezone(timedelta(hours=hours)))
    return Time.combine(at.date(), at.timetz())


def code(*parts: object) -> str:
    """A long hex id that is always the same for the same parts."""
    return sha256(repr(parts).encode()).hexdigest()


def micros(entry: Entry) -> int:
    """Microseconds since 1970."""
    return (entry.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def process(entry: Entry) -> str:
    """A syslog's name of a process; the kernel has no id."""
    named = f"{entry.service}[{700 + len(entry.service)}]"
    return "kernel" if entry.service == "kernel" else named


def pod_or_replica(entry: Entry) -> str:
    """The name of a pod, which for `web-0` is its own."""
    return entry.service + ("" if entry.service[-2] == "-" else "-7f6d8b9c4-k2x8p")


def head(entry: Entry) -> str:
    """The message without its stack trace."""
    return entry.text.partition("\n")[0]


def trace(entry: Entry) -> str:
    """The stack trace, or nothing."""
    return entry.text.partition("\n")[2]


FIELDS: dict[str, Callable[[Entry], Any]] = {
    "service": lambda e: e.service,
    "level": lambda e: e.level,
    "lower": lambda e: e.level.lower(),
    "letter": lambda e: e.level[0],
    "text": lambda e: e.text,
    "head": head,
    "trace": trace,
    "trace_lines": lambda e: trace(e).split("\n"),
    "stack": lambda e: " stack=" + json.dumps(trace(e)) if trace(e) else "",
    "words": lambda e: e.text.split(),
    "status": lambda e: int(e.text.split()[2]),
    "escaped": lambda e: e.text.replace("\n", "#012").replace("\t", "#011"),
    "quoted_text": lambda e: json.dumps(e.text),
    "quoted_head": lambda e: json.dumps(head(e)),
    "at": local,
    "berlin": lambda e: local(e, 2),
    "new_york": lambda e: local(e, -4),
    "iso": lambda e: f"{local(e):%Y-%m-%dT%H:%M:%S.%LZ}",
    "nano": lambda e: f"{local(e):%Y-%m-%dT%H:%M:%S.%f}713Z",
    "seconds": lambda e: e.at.timestamp(),
    "millis": lambda e: micros(e) // 1000,
    "micros": micros,
    "nanos": lambda e: micros(e) * 1000,
    "thread": lambda e: e.at.second % 9 + 1,
    "id": lambda e: code(e.at, e.text),
    "service_id": lambda e: code(e.service),
    "pid": lambda e: 600 + int(code(e.service)[:3], 16),
    "pod": lambda e: f"{e.service}-{code(e.service):.10}-{code('pod', e.service):.5}",
    "pod_or_replica": pod_or_replica,
    "unnumbered": lambda e: e.service.rstrip("-0123456789"),
    "compose": lambda e: f"{e.service}-1",
    "process": process,
}


class Fields(dict[str, Any]):
    """The fields of an entry, each worked out when it is asked for."""

    def __init__(self, entry: Entry, form: dict[str, Any], **more: object) -> None:
        if "name" in form:
            more["name"] = form["name"][LEVELS.index(entry.level)]
        super().__init__(more)
        self._entry = entry

    def __missing__(self, name: str) -> Any:
        return FIELDS[name](self._entry)


def filled(form: Any, fields: Fields) -> Any:
    """A text, or an object of texts, with fields for braces; a field alone keeps its type."""
    if isinstance(form, list):
        return [filled(part, fields) for part in form]
    if isinstance(form, dict):
        made = {}
        for key, value in form.items():
            name, _, needs = key.partition("?")
            if not needs or fields[needs]:
                made[name] = filled(value, fields)
        return made
    if not isinstance(form, str):
        return form
    alone = form.startswith("{") and form.endswith("}") and form[1:-1].isidentifier()
    return fields[form[1:-1]] if alone else form.format_map(fields)


# ---- from entries to files ----


def rows_of(entry: Entry, form: dict[str, Any]) -> list[Any]:
    """The lines, records or columns that an entry is written as."""
    fields = Fields(entry, form)
    if "split" in form:
        lines = filled(form["split"], fields).split("\n")
        return [filled(form["record"], Fields(entry, form, line=line)) for line in lines]
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
    rows = [row for entry in entries for row in rows_of(entry, form)]
    if "batch" in form:
        rows = [*batches(form, entries)]
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
    lines = (row if isinstance(row, str) else compact(row) for row in rows)
    return ("\n".join(lines) + "\n").encode()


def batches(form: dict[str, Any], entries: list[Entry]) -> Iterator[dict[str, Any]]:
    """Objects of OTLP, each with some entries, grouped by service."""
    for first in range(0, len(entries), form["batch"]):
        groups = []
        for own in by_service(entries[first : first + form["batch"]]):
            names = {"key": "service.name", "value": {"stringValue": own[0].service}}
            records = [record for entry in own for record in rows_of(entry, form)]
            scopes = [{"scope": {"name": "app"}, "logRecords": records}]
            groups.append({"resource": {"attributes": [names]}, "scopeLogs": scopes})
        yield {"resourceLogs": groups}


def by_service(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The entries of each service, by name."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.service, []).append(entry)
    return [groups[name] for name in sorted(groups)]


def formatted(form: dict[str, Any], entries: list[Entry]) -> Files:
    """The files of an incident in a format."""
    if form.get("order") == "service":
        entries = [entry for own in by_service(entries) for entry in own]
    elif form.get("order") == "newest first":
        entries = entries[::-1]
    groups = by_service(entries) if "{" in form["file"] else [entries]
    return {filled(form["file"], Fields(own[0], form)): written(form, own) for own in groups}
