"""A small kit: it turns tables of flows of log lines into log files."""

import random
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple


class Client(NamedTuple):
    """A client library, and what it prints when `orders-db` does not answer."""

    name: str
    text: str


class Scenario(NamedTuple):
    """The files of one case, and the services that may be named first in it."""

    name: str
    files: dict[str, bytes]
    roots: set[str]
    note: str


class Flow(NamedTuple):
    """Lines of one service from minute `begin` to `end`, about one in `every` seconds.

    A tuple of texts means: draw one for each line. `every` 0 means: print one line.
    """

    service: str
    level: str
    begin: float
    end: float
    every: float
    text: str | tuple[str, ...]


class File(NamedTuple):
    """A log file: its name, how it writes a line, and which lines it has."""

    name: str
    write: Callable[[datetime, str, str, str], str]
    flows: list[Flow]


class Case(NamedTuple):
    """A scenario before its lines are drawn."""

    name: str
    roots: set[str]
    note: str
    files: list[File]


def info(service: str, every: float, *texts: str, begin: float = 0, end: float = 60) -> Flow:
    """The everyday lines of a service."""
    return Flow(service, "INFO", begin, end, every, texts)


def once(service: str, level: str, minute: float, text: str) -> Flow:
    """One line."""
    return Flow(service, level, minute, minute, 0, text)


def fill(text: str, rng: random.Random) -> str:
    """Put numbers in place of <n> (four digits), <ms>, <id> (eight hex digits) and <ip>."""
    while "<n>" in text:
        text = text.replace("<n>", str(rng.randrange(1000, 9999)), 1)
    text = text.replace("<ms>", str(rng.randrange(4, 90)))
    text = text.replace("<id>", f"{rng.getrandbits(32):08x}")
    return text.replace("<ip>", f"10.4.{rng.randrange(4)}.{rng.randrange(2, 250)}")


def seconds(flow: Flow, rng: random.Random) -> list[float]:
    """When the lines of a flow are printed, in seconds from the start."""
    if not flow.every:
        return [flow.begin * 60]
    times = []
    at = flow.begin * 60 + flow.every * rng.random()
    while at < flow.end * 60:
        times.append(at)
        at += flow.every * rng.uniform(0.5, 1.5)
    return times


def draw(file: File, start: datetime, rng: random.Random) -> bytes:
    """Write a file's lines in the order of their times."""
    lines = []
    for flow in file.flows:
        texts = (flow.text,) if isinstance(flow.text, str) else flow.text
        for at in seconds(flow, rng):
            service = fill(flow.service, rng)
            lines.append((at, service, flow.level, fill(rng.choice(texts), rng)))
    lines.sort(key=lambda line: line[0])
    written = [
        file.write(start + timedelta(seconds=at), service, level, text)
        for at, service, level, text in lines
    ]
    return ("\n".join(written) + "\n").encode()


def build(case: Case, start: datetime) -> Scenario:
    """Draw all files of a case; the same name always gives the same files."""
    rng = random.Random(zlib.crc32(case.name.encode()))
    files = {file.name: draw(file, start, rng) for file in case.files}
    return Scenario(case.name, files, case.roots, case.note)
