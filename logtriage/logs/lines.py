"""Bytes that somebody else wrote: opened, cut into lines of bounded length, made safe to show."""

import bz2
import gzip
import io
import lzma
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, cast

CHUNK = 1 << 20  # bytes read at once
MOST_LINE = 1 << 16  # bytes kept of a line; a stack trace on one line has some thousand
MOST_LINES = 20_000  # handed on together
COLOURS = re.compile(rb"\x1b\[[0-9;]*m|#033\[[0-9;]*m")  # of a terminal; nothing else is taken off
SHOWN = 300  # characters of a line that an answer repeats
# What a chat template could take for the end of a turn, a call or a role: `<|im_end|>`,
# `</tool_call>`, `[INST]`.
MARKERS = re.compile(r"<(?=[|/\w\uff5c])|\[(?=/?(?:INST|TOOL|AVAILABLE_TOOLS|SYS)\b)")

UNPACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
# What a file begins with that is not read, and the command that makes it readable.
REFUSED = {
    b"(\xb5/\xfd": ("is packed by zstd; unpack it first", "zstd -dc"),
    b"PK\x03\x04": ("is a zip archive; unpack it first", "unzip -p"),
    b"\xff\xfe": ("is text in UTF-16; make it UTF-8 first", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("is text in UTF-16; make it UTF-8 first", "iconv -f UTF-16 -t UTF-8"),
}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)  # of a packed file


@dataclass
class Reading:
    """What came of reading a file."""

    lines: int = 0
    cut: int = 0  # of them, those longer than the bound; the rest of each was left out


def unpacked(raw: BinaryIO, name: str) -> BinaryIO:
    """A stream of bytes as they were before gzip, bzip2 or xz packed them.

    Raises:
        ValueError: for what cannot be read as lines, with the command that helps.
    """
    stream = io.BufferedReader(cast(io.RawIOBase, raw), CHUNK)
    head = stream.peek(8)[:8]
    for start, (why, command) in REFUSED.items():
        if head.startswith(start):
            raise ValueError(f"{visible(name, 200)} {why}: {command} {quoted(name)} | ... triage -")
    opener = next((one for start, one in UNPACKERS.items() if head.startswith(start)), None)
    return cast(BinaryIO, opener(stream) if opener else stream)


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, `CHUNK` at a time."""
    return iter(partial(stream.read, CHUNK), b"")


def blocks(parts: Iterable[bytes], reading: Reading) -> Iterator[list[bytes]]:
    """The lines of a file that comes in parts, some thousand at a time, without their ends; memory
    stays bounded whatever it holds. `reading` is kept up to date.
    """
    rest, dropping = b"", False  # of the line that the last part ended in
    held: list[bytes] = []  # lines to which the last one of the file may belong
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


def _bounded(lines: list[bytes], reading: Reading) -> Iterator[list[bytes]]:
    """Lines cut to `MOST_LINE`, `MOST_LINES` at a time."""
    for start in range(0, len(lines), MOST_LINES):
        some = lines[start : start + MOST_LINES]
        reading.lines += len(some)
        if max(map(len, some)) > MOST_LINE:
            reading.cut += sum(len(line) > MOST_LINE for line in some)
            some = [line[:MOST_LINE] for line in some]
        yield some


def visible(text: bytes | str, most: int = SHOWN) -> str:
    """Text of a log as it may be printed: on one line, each character that is no letter, sign or
    blank written as its escape, and cut at `most` characters.
    """
    if isinstance(text, bytes):
        text = text[: 4 * most].decode("utf-8", "backslashreplace")
    text = text.strip()
    cut = len(text) > most
    text = text[:most].replace("\t", " ")
    if not text.isprintable():
        text = "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
        )
    return text + "..." if cut else text


def defused(text: str) -> str:
    """Visible text as a model may read it: markers of its template are broken by a backslash."""
    return MARKERS.sub(lambda found: found[0] + "\\", text)


def quoted(name: str) -> str:
    """A file's name as one word of a shell; empty for one that a terminal cannot show as it is."""
    if name == "-" or not name.isprintable():
        return "-" if name == "-" else ""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
