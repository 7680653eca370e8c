"""Read your own log, from files or text, and count its lines: `read_log(["app.log"]).tally`."""

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from logtriage.play.actions import visible

from .layouts import ObjectLayout, TextLayout, layout_of
from .lines import BROKEN, CHUNK, HEADING, Reading, under_headings, unpacked
from .names import file_service
from .objects import MOST_OBJECT
from .tally import UNNAMED, Tally
from .times import format_time

STDIN = "-"
SAMPLE_BYTES = 1 << 18  # bytes at the start of a file that tell how to read it


@dataclass
class LogFile:
    """One of the files that a log is read from."""

    name: str  # as it was given; `-` for standard input
    layout: TextLayout | ObjectLayout  # how it is read
    packed: bool  # whether it was unpacked on the way
    reading: Reading = field(default_factory=Reading)
    records: int = 0  # how many records could be read
    untimed: int = 0  # how many of these have no time


@dataclass
class Log:
    """A log that was read."""

    tally: Tally  # its counts
    files: list[LogFile] = field(default_factory=list)
    ordered: bool = False  # whether no line has a time, so that line numbers are taken instead

    def time(self, second: int) -> str:
        """Format a time by the log's own clock, or in UTC, marked `Z`, if the log states zones."""
        if self.ordered:
            return f"line {second + 1}"
        periods = [period for file in self.files for period in file.layout.periods]
        zoned = all(file.layout.zoned for file in self.files)
        return format_time(second, min(periods, default=0), "Z" * zoned)


def read_log(
    paths: Sequence[str | Path], services: Sequence[str] = (), stdin: BinaryIO | None = None
) -> Log:
    """Read files, unpacked if they are packed; `-` is standard input. `services` are known names of
    services, which settle who speaks.

    Raises:
        ValueError: if a file is broken, zipped or text in UTF-16; the message says what to do.
        OSError: if a file cannot be read.
    """
    with ExitStack() as opened:
        streams: dict[str, BinaryIO] = {}
        for name in map(str, paths):
            if name == STDIN:
                streams[name] = stdin or sys.stdin.buffer
            else:
                streams[name] = opened.enter_context(open(name, "rb"))
        return _read(streams, services)


def read_text(text: str, services: Sequence[str] = ()) -> Log:
    """Read a text as a log; see `read_log`."""
    return read_named({"log": text.encode("utf-8", "replace")}, services)


def read_named(files: Mapping[str, bytes], services: Sequence[str] = ()) -> Log:
    """Read files from memory, given their contents by name; see `read_log`."""
    return _read({name: io.BytesIO(body) for name, body in files.items()}, services)


def _read(opened: Mapping[str, BinaryIO], services: Sequence[str]) -> Log:
    """Read all files, each by a layout of its own, into one tally."""
    log, parts = Log(Tally(services)), []
    several = len(opened) > 1  # the name of a single file is no evidence of who speaks
    named = {name: file_service(name) if several and name != STDIN else "" for name in opened}
    for name, raw in opened.items():
        stream = unpacked(raw, name)
        with _whole(name):
            head = stream.read(SAMPLE_BYTES)
            if head.lstrip()[:1] in (b"{", b"["):  # an object may be large
                head += stream.read(MOST_OBJECT)
        rest = iter(partial(stream.read, CHUNK), b"")
        if HEADING.search(head):
            rest = under_headings(chain([head], rest), file_service)
            head = next(rest)
        layout = layout_of(head, services, bool(named[name]))
        log.files.append(LogFile(name, layout, not isinstance(stream, io.BufferedReader)))
        parts.append(chain([head], rest))
    near = min((file.layout.begins for file in log.files if file.layout.begins >= 0), default=None)
    log.ordered = len(opened) == 1 and not log.files[0].layout.periods
    for number, file in enumerate(log.files):
        batches = file.layout.batches(parts[number], file.reading, near, log.ordered)
        with _whole(file.name):
            file.records, file.untimed = log.tally.add(batches, number, named[file.name] or UNNAMED)
    log.tally.settle()
    return log


@contextmanager
def _whole(name: str) -> Iterator[None]:
    """Turn the errors of reading a broken packed file into `ValueError`."""
    try:
        yield
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it cannot be read at all
        why = f"is no whole packed file ({error}); pack or copy it again"
        raise ValueError(f"{visible(name, 200)} {why}") from None
