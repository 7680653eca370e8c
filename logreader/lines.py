"""Open bytes that others wrote, cut them into lines of bounded length, make them safe to show."""

import bz2
import gzip
import io
import lzma
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, cast

from logtriage.play.actions import visible

from .words import WORDS

CHUNK = 1 << 20  # bytes read at once
MOST_LINE = 1 << 16  # bytes kept of a line; a stack trace on one line has some thousand
MOST_LINES = 20_000  # lines handed on at once
# What `tail`, `minikube logs` and the like print before the lines of a file, a command that prints
# the log of one container or pod, as it is pasted with its output, and the first line of `systemctl
# status`. In such a paste, what looks like a heading or a command ends the lines of the one before.
HEADING = re.compile(
    rb"^==> (.{1,200}?)(?: \[\w+\])? <==\r?$"
    rb"|^(?:.{0,60}[$#>] |[#=>-]{2,}.{0,40}[ (]|[ \t]+)?(?:sudo )?"
    rb"(?:(?:kubectl|k|oc)(?: -\S+=\S+| -\S+ \S+)*|docker|podman) logs"
    rb"(?: +-[\w-]+(?:=\S+| +(?!-)\S+)?)*? +(?:[a-z]+/)?([a-z0-9][\w.-]{1,200})"
    rb"(?= *\r?$| +[-|>&;(12]|\)).*$"
    rb"|^\W{0,4}([a-z0-9][\w.@-]{1,80}\.(?:service|socket|mount|timer)) - .*$",
    re.MULTILINE,
)
PART = re.compile(rb"#{2,}+ ?([\w.-]+)?(?=[ ,(:\r]|$)|\$ |\S{1,60}[$#] ")
COLOURS = re.compile(rb"\x1b\[[0-9;]*m|#033\[[0-9;]*m")  # of a terminal; nothing else is removed
# Text that a chat template could take for the end of a turn, a call or a role: `<|im_end|>`,
# `</tool_call>`, `[INST]`.
MARKERS = re.compile(r"<(?=[|/\w\uff5c])|\[(?=/?(?:INST|TOOL|AVAILABLE_TOOLS|SYS)\b)")

UNPACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
# How files begin that cannot be read, why, and the command that makes them readable.
REFUSED = {bytes.fromhex(start): words for start, words in WORDS["refused"].items()}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)  # raised by a broken packed file


@dataclass
class Reading:
    """Counts that are kept while a file is read."""

    lines: int = 0
    cut: int = 0  # lines longer than `MOST_LINE`; the rest of each was left out


def unpacked(raw: BinaryIO, name: str) -> BinaryIO:
    """Unpack a packed stream; `ValueError` with the command that helps if it is no text."""
    stream = io.BufferedReader(cast(io.RawIOBase, raw), CHUNK)
    head = stream.peek(8)[:8]
    for start, (why, command) in REFUSED.items():
        if head.startswith(start):
            raise ValueError(f"{visible(name, 200)} {why}: {command} {quoted(name)} | ... triage -")
    for start, unpack in UNPACKERS.items():
        if head.startswith(start):
            return cast(BinaryIO, unpack(stream))
    return cast(BinaryIO, stream)


def blocks(parts: Iterable[bytes], reading: Reading) -> Iterator[list[bytes]]:
    """Yield the lines of a file, some thousand at a time, in bounded memory; update `reading`."""
    rest, dropping = b"", False  # the line that the last part broke off in
    held: list[bytes] = []  # lines held back, so that the file's last line can join them
    for chunk in parts:
        if b"\x1b" in chunk or b"#033" in chunk:
            chunk = COLOURS.sub(b"", chunk)
        if dropping:
            _, end, chunk = chunk.partition(b"\n")
            dropping = not end
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MOST_LINE:  # no end in sight: keep its beginning, and skip to the next line
            lines.append(rest)
            rest, dropping = b"", True
        if lines:
            yield from _bounded(held, reading)
            held = lines
    yield from _bounded([*held, rest] if rest else held, reading)


def under_headings(parts: Iterable[bytes], name_of: Callable[[str], str]) -> Iterator[bytes]:
    """Yield the parts of a file whose lines stand under headings (`==> web.log <==`, `$ docker logs
    web`) with the name of its heading before each line, as containers' logs have it; a heading
    loses its own words.
    """
    rest, name, by_command = b"", b"", False
    for chunk in chain(parts, [b""]):
        *lines, rest = (rest + chunk).split(b"\n")
        end = b"\n"
        if not chunk or len(rest) > MOST_LINE:
            lines, rest, end = [*lines, rest], b"", b""
        for number, line in enumerate(lines):
            if heading := HEADING.match(line):
                by_command = heading[1] is None
            elif by_command:
                heading = PART.match(line)
            if heading:
                words = next(filter(None, heading.groups()), b"").decode("utf-8", "replace")
                spelled = name_of(words) or words.replace(" ", "_")
                name, line = f"{spelled} | ".encode() if words else b"", b""
            lines[number] = name + line
        yield b"\n".join(lines) + (end if lines else b"")


def _bounded(lines: list[bytes], reading: Reading) -> Iterator[list[bytes]]:
    """Yield lines cut to `MOST_LINE` bytes, `MOST_LINES` lines at a time."""
    for start in range(0, len(lines), MOST_LINES):
        some = lines[start : start + MOST_LINES]
        reading.lines += len(some)
        if max(map(len, some)) > MOST_LINE:
            reading.cut += sum(len(line) > MOST_LINE for line in some)
            some = [line[:MOST_LINE] for line in some]
        yield some


def defused(text: str) -> str:
    """Make visible text safe for a model: a backslash breaks the markers of chat templates."""
    return MARKERS.sub(lambda marker: marker[0] + "\\", text)


def quoted(name: str) -> str:
    """Quote a file's name for a shell; return an empty string if a terminal cannot show it."""
    if name == "-" or not name.isprintable():
        return "-" if name == "-" else ""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
