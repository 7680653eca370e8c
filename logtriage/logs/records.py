"""A record is what a line says: when, who, how bad, and the text. Readers of lines of text make
them here; those of JSON and the like are in `structured` and `journal`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from .times import LOOK, STAMPS, Clock, Stamp

# (second or -1, service or None, level or None, text, place among the lines given). A level of None
# is read from the text; a service of None is the file's, or whom the text names.
Record = tuple[int, bytes | str | None, int | None, bytes, int]
# From lines in order to records. A reader remembers what went before: it is of one stream.
Reader = Callable[[Sequence[bytes]], Iterable[Record]]

# Of a stack trace, the lines that say what happened.
CAUSE = re.compile(rb"\s*(?:Caused by: |[\w.$]{0,200}(?:Error|Exception|Panic)\b|panic: )")
MOST_SPEAKERS = 10_000  # whose last time is remembered


def text_reader(
    stamp: Stamp | None,
    before: re.Pattern[bytes] | None = None,
    after: re.Pattern[bytes] | None = None,
    payload: Callable[[bytes], tuple[int | None, str | None, bytes]] | None = None,
) -> Reader:
    """A reader of lines of text.

    Args:
        stamp: how they write their time; None where they have none, and each line is a record.
        before: what stands before the time; its first group is the service.
        after: what stands after it, likewise; a group that took no part names nobody.
        payload: level, service and text of what is left where it is JSON.

    A line without a time, where others have one, goes on with the one before: it is left out, but
    for those of a stack trace that say what happened.
    """
    clock = None if stamp is None else Clock(stamp)
    search = (stamp or STAMPS[0]).pattern.search
    known = {} if clock is None else clock.minutes
    # Of each service, when it last spoke; that of a stream of one is at hand.
    last: dict[bytes | str | None, int] = {}
    only = before is None
    latest = -1

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        nonlocal latest
        for place, line in enumerate(lines):
            service: bytes | str | None = None
            level, second = None, -1
            if before is not None:
                head = before.match(line)
                if head:
                    service, line = head[1], line[head.end() :]
            if clock is not None:
                found = search(line, 0, LOOK)
                if found:
                    minute, at, zone = found.groups()
                    start = known.get((minute, zone))
                    second = clock.at(minute, at, zone) if start is None else start + int(at)
                if found is None or second < 0:
                    if CAUSE.match(line):
                        yield latest if only else last.get(service, -1), service, None, line, place
                    continue
                begin, end = found.span()
                text = line[end:] if not begin else line[:begin] + line[end:]
                text = text.removeprefix(b"[]").lstrip()
            else:
                text = line.lstrip()
            if after is not None:
                head = after.match(text)
                if head:
                    service = service or head[1] or None
                    text = text[head.end() :]
            if only:
                latest = second
            elif second >= 0:
                if len(last) >= MOST_SPEAKERS:
                    last.clear()
                last[service] = second
            if payload is not None and text[:1] == b"{":
                level, inner, text = payload(text)
                service = service or inner
            if text:
                yield second, service, level, text, place

    return read
