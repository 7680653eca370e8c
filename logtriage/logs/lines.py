"""Bytes that somebody else wrote, as lines of bounded length; and any text of theirs made safe to
show.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

CHUNK = 1 << 20  # bytes read at once
MOST_LINE = 1 << 16  # bytes kept of a line; a stack trace on one line has some thousand
MOST_DOCUMENT = 1 << 23  # likewise of a line that is a batch of records, as OTLP's are
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")  # of a terminal; no other control sequence is taken off
SHOWN = 300  # characters of a line that an answer repeats
# What a chat template could take for the end of a turn, a call or a role: `<|im_end|>`,
# `</tool_call>`, `[INST]`.
MARKERS = re.compile(r"<(?=[|/\w\uff5c])|\[(?=/?(?:INST|TOOL|AVAILABLE_TOOLS|SYS)\b)")


class Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass
class Reading:
    """What came of reading a file.

    Attributes:
        size: bytes.
        lines: lines in it.
        cut: lines that were longer than the bound; the rest of each was left out.
    """

    size: int = 0
    lines: int = 0
    cut: int = 0


def blocks(stream: Readable, reading: Reading, most: int = MOST_LINE) -> Iterator[list[bytes]]:
    """The lines of a stream, some thousand at a time, without their ends; memory stays bounded
    whatever the stream holds.

    Args:
        stream: read to its end.
        reading: is kept up to date.
        most: bytes kept of a line.
    """
    rest, dropping = b"", False  # of the line that the last chunk ended in
    while chunk := stream.read(CHUNK):
        reading.size += len(chunk)
        if b"\x1b" in chunk:
            chunk = COLOURS.sub(b"", chunk)
        if dropping:
            _, end, chunk = chunk.partition(b"\n")
            if not end:
                continue
            dropping = False
        *lines, last = (rest + chunk).split(b"\n")
        if len(last) > most:  # no end in sight: keep its beginning, and skip to the next line
            lines.append(last)
            last, dropping = b"", True
        rest = last
        if lines:
            yield _bounded(lines, reading, most)
    if rest:
        yield _bounded([rest], reading, most)


def _bounded(lines: list[bytes], reading: Reading, most: int) -> list[bytes]:
    reading.lines += len(lines)
    if max(map(len, lines)) > most:
        reading.cut += sum(len(line) > most for line in lines)
        lines = [line[:most] for line in lines]
    return lines


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
    """Visible text as a model may read it: what its template would take for a marker of its own is
    broken by a backslash.
    """
    return MARKERS.sub(lambda found: found[0] + "\\", text)
