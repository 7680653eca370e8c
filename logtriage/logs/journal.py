"""The journal of systemd: its export (`journalctl -o export`) and its JSON (`-o json`).

In the export an entry is lines of `FIELD=value`, and an empty line ends it. A value with line ends
in it stands apart: the field's name alone on a line, eight bytes that count the value's (the lowest
first), and the value.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .levels import ERROR, FATAL, WARN
from .lines import MOST_LINE
from .records import Reader, Record
from .structured import flat, objects_of
from .times import number_to_second

UNITS = ("_SYSTEMD_UNIT", "UNIT", "_SYSTEMD_USER_UNIT", "SYSLOG_IDENTIFIER", "_COMM")
TIME = "__REALTIME_TIMESTAMP"  # microseconds since 1970
# Of syslog, as text and as bytes: 0 to 2 are worse than an error.
PRIORITIES = {
    key: level
    for priority, level in {"0": FATAL, "1": FATAL, "2": FATAL, "3": ERROR, "4": WARN}.items()
    for key in (priority, priority.encode())
}
WANTED = {name.encode(): name for name in (*UNITS, "MESSAGE", "PRIORITY", TIME)}


def export_reader() -> Reader:
    """A reader of the journal's export."""
    entry: dict[str, bytes] = {}
    name = b""  # of a value that stands apart
    value, length = b"", -1  # what is read of it, and its bytes, or -1 before they are known

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        nonlocal name, value, length
        for place, line in enumerate(lines):
            if name:
                value += line + b"\n"
                if length < 0 and len(value) >= 9:
                    length, value = int.from_bytes(value[:8], "little"), value[8:]
                if 0 <= length < len(value) or len(value) > MOST_LINE:
                    if name in WANTED:
                        entry[WANTED[name]] = value[: max(0, length)]
                    name, value, length = b"", b"", -1
            elif line:
                field, equals, text = line.partition(b"=")
                if field in WANTED:
                    if equals:
                        entry[WANTED[field]] = text
                    else:
                        name = field
                elif not equals:
                    name = field[:64] or b"?"
            elif entry:
                yield _told(entry, entry.get("MESSAGE", b""), place)
                entry.clear()

    return read


def journal_json_reader() -> Reader:
    """A reader of the journal's JSON."""

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        for place, line in enumerate(lines):
            for one in objects_of(line):
                yield _told(one, _text(one.get("MESSAGE")), place)

    return read


def _text(message: object) -> bytes:
    """A message, which is a list of bytes where it is no text."""
    if isinstance(message, list) and all(isinstance(one, int) for one in message):
        return bytes(one & 255 for one in message[:MOST_LINE])
    return flat(message).encode("utf-8", "replace")


def _told(entry: Mapping[str, Any], text: bytes, place: int) -> Record:
    """The record of an entry, whose values are text or bytes."""
    second = -1
    stated = entry.get(TIME)
    if isinstance(stated, str | bytes) and len(stated) < 20:
        # `isdigit` alone takes "²" for a digit, which `int` does not.
        second = number_to_second(int(stated)) if stated.isascii() and stated.isdigit() else -1
    service: bytes | str | None = None
    for name in UNITS:
        found = entry.get(name)
        if isinstance(found, str | bytes) and found:
            service = found
            break
    # What a program prints has 6 by default, and its text may say more.
    priority = entry.get("PRIORITY")
    level = PRIORITIES.get(priority) if isinstance(priority, str | bytes) else None
    return second, service, level, text, place
