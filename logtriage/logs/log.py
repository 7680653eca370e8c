"""A log of one's own, read: from files or text to its counts.

log = read_log([Path("app.log")])
log.tally.services
"""

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .commands import quoted_file
from .formats import Format, recognise
from .lines import CHUNK, Readable, Reading, blocks, visible
from .names import Namer, file_service, logger_of, service_name
from .tally import DIGITS, HEXADECIMAL, Tally

STDIN = "-"
PACKED = {
    b"\x1f\x8b": "gzip -dc",
    b"BZh": "bzip2 -dc",
    b"\xfd7zXZ": "xz -dc",
    b"(\xb5/\xfd": "zstd -dc",
}
WIDE = (b"\xff\xfe", b"\xfe\xff")  # how text in UTF-16 begins


@dataclass(frozen=True)
class LogFile:
    """One of the files that a log is read from.

    Attributes:
        name: as it was given; `-` for standard input.
        format: how it is written.
        reading: its size and lines.
        records: of its lines, those that could be read.
    """

    name: str
    format: Format
    reading: Reading
    records: int


@dataclass
class Log:
    """A log that was read."""

    tally: Tally
    files: list[LogFile] = field(default_factory=list)

    @property
    def dated(self) -> str:
        """What its times say, see `times.Stamp.dated`; empty where it has none."""
        stated = {file.format.dated for file in self.files}
        return next(
            (one for one in ("time of day", "day of the year", "date") if one in stated), ""
        )


def read_log(
    paths: Sequence[str | Path], services: Sequence[str] = (), stdin: BinaryIO | None = None
) -> Log:
    """Read files in order; `-` is standard input.

    Args:
        paths: of the files.
        services: names that are known of the cluster. A record is then of the one that its own
            field or its text names; without them, of whom it says.
        stdin: what `-` reads.

    Raises:
        ValueError: for a file that is packed or is text in UTF-16, with what to do.
        OSError: for one that cannot be read.
    """
    log = Log(_tally(services, alone=len(paths) == 1))
    for path in map(str, paths):
        if path == STDIN:
            _read_stream(log, path, stdin or sys.stdin.buffer, services)
        else:
            with open(path, "rb") as stream:
                _read_stream(log, path, stream, services)
    return log


def read_text(text: str, services: Sequence[str] = ()) -> Log:
    """The log that a text is; see `read_log`."""
    log = Log(_tally(services, alone=True))
    _read_stream(log, "log", io.BytesIO(text.encode("utf-8", "replace")), services)
    return log


def _tally(services: Sequence[str], alone: bool) -> Tally:
    """Counts for these services; where none are known and there is one file, who speaks in it by
    its own words is a service.
    """
    if services:
        namer, known = Namer(services), set(services)

        def named(raw: bytes | str) -> str:
            name = service_name(raw)
            return name if name in known else namer.first(name) or name

        def speaker(text: bytes) -> str:
            return namer.first(text.decode("utf-8", "replace"))

        # Calm lines must not be told apart by less than what tells these names apart.
        short = {name.encode().translate(None, HEXADECIMAL) for name in services}
        return Tally(speaker, named, HEXADECIMAL if len(short) == len(known) else DIGITS)

    def logger(text: bytes) -> str:
        found = logger_of(text)
        return service_name(found) if found else ""

    return Tally(logger if alone else lambda text: "")


def _read_stream(log: Log, name: str, stream: Readable, services: Sequence[str]) -> None:
    first = stream.read(CHUNK)
    for start, way in PACKED.items():
        if first.startswith(start):
            raise ValueError(
                _refused(name, "is packed; unpack it on the way", way, " | ... triage -")
            )
    if first.startswith(WIDE):
        way = "iconv -f UTF-16 -t UTF-8"
        raise ValueError(_refused(name, "is text in UTF-16; make it UTF-8 first", way))
    lines = first.split(b"\n")
    format = recognise(lines[:-1] or lines)
    reading, tally = Reading(), log.tally
    before = tally.records
    service = "log" if name == STDIN else file_service(name)
    named = tally.named(service)
    known = named in services  # then a file is of that service, whoever its lines name
    service = named if known else service
    read = format.reader()
    number = len(log.files)
    rest = _Chained(first, stream)
    if format.document:
        document = b"\n".join(_bounded_document(blocks(rest, reading), format.most_line))
        tally.add(read([document]), service, number, 0, known)
    else:
        for lines in blocks(rest, reading, format.most_line):
            tally.add(read(lines), service, number, reading.lines - len(lines), known)
        tally.add(
            read([b""]), service, number, reading.lines, known
        )  # an end, to who waits for one
    log.files.append(LogFile(name, format, reading, tally.records - before))


def _refused(name: str, why: str, way: str, then: str = "") -> str:
    """Why a file is not read, and the command that helps, where its name may stand in one."""
    file = STDIN if name == STDIN else quoted_file(name)
    return f"{visible(name, 200)} {why}" + (f": {way} {file}{then}" if file else "")


def _bounded_document(batches: Iterable[list[bytes]], most: int) -> Iterator[bytes]:
    """The lines of a document, up to so many bytes; the rest is read and left out."""
    size = 0
    for lines in batches:
        for line in lines:
            size += len(line) + 1  # its end: lines may be empty
            if size <= most:
                yield line


class _Chained:
    """A stream whose beginning was read already."""

    def __init__(self, first: bytes, rest: Readable) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int) -> bytes:
        first, self._first = self._first, b""
        return first or self._rest.read(size)
