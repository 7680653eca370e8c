"""Small helpers that the formats share."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

from incident import Entry

Format = Callable[[list[Entry]], dict[str, bytes]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Pids(dict[str, int]):
    """The process id of each service: a number that its name gives."""

    def __missing__(self, service: str) -> int:
        return 600 + int(code(service, length=3), 16)


PIDS = _Pids(gateway=612, orders=1188, catalog=1203, payments=1377)


def clock(at: datetime, pattern: str, hours: int = 0) -> str:
    """Write a time as strftime does, some hours from UTC; %L stands for the milliseconds."""
    local = at.astimezone(timezone(timedelta(hours=hours)))
    return local.strftime(pattern.replace("%L", f"{at.microsecond // 1000:03d}"))


def micros(at: datetime) -> int:
    """Count the microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


def nano_iso(at: datetime) -> str:
    """Write a time with nine digits after the second, as container runtimes do."""
    return f"{clock(at, '%Y-%m-%dT%H:%M:%S.%f')}{at.microsecond % 997:03d}Z"


def head(entry: Entry) -> str:
    """Return the message without its stack trace."""
    return entry.text.split("\n", 1)[0]


def trace(entry: Entry) -> str:
    """Return the stack trace, or nothing."""
    return entry.text.partition("\n")[2]


def code(*parts: object, length: int = 12) -> str:
    """Make a hex id that is always the same for the same parts."""
    return sha256(repr(parts).encode()).hexdigest()[:length]


def pod(service: str) -> str:
    """Name the pod of a service."""
    return f"{service}-{code(service, length=10)}-{code('pod', service, length=5)}"


def lines(rows: list[str]) -> bytes:
    """Join rows to a text file."""
    return ("\n".join(rows) + "\n").encode()


def json_lines(records: list[dict]) -> bytes:
    """Write one compact JSON object a line."""
    return lines([json.dumps(record, separators=(",", ":")) for record in records])


def table(rows: list[list], quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    """Write rows as CSV."""
    out = io.StringIO()
    csv.writer(out, quoting=quoting, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def each_service(entries: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """Pair each service that wrote something with its own entries."""
    names = sorted({entry.service for entry in entries})
    return [(name, [entry for entry in entries if entry.service == name]) for name in names]
