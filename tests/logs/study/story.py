"""Play an incident in a small set of services and write down what each one logs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from random import Random

from formats import fields, show
from usual import LINES, NOISE, STORES


@dataclass(frozen=True)
class Case:
    """Log files, and the services that may be called the first suspect."""

    name: str
    files: dict[str, bytes]
    roots: set[str]
    note: str


@dataclass(frozen=True)
class Svc:
    """A service: what kind it is, what it deals with, and whom it calls."""

    kind: str
    noun: str
    calls: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hum:
    """Lines that a service prints at a steady pace between two minutes."""

    service: str
    lines: list[str]
    every: float
    start: float = 0
    stop: float = 10_000


@dataclass(frozen=True)
class Story:
    """One incident: each text starts with the letter of its level."""

    name: str
    note: str
    services: dict[str, Svc]
    form: str
    root: str = ""
    first: list[str] = field(default_factory=list)
    fault: list[str] = field(default_factory=list)
    felt: dict[str, list[str]] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    hums: list[Hum] = field(default_factory=list)
    one_file: str = ""
    names: str = "{svc}.log"
    hidden: tuple[str, ...] = ()
    roots: set[str] | None = None
    calm: float = 55
    bad: float = 12
    after: float = 0
    again: float = 0
    wait: float = 0.4
    share: float = 0.85
    lines: int = 1000
    zones: dict[str, float] = field(default_factory=dict)
    skew: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One entry of a log, in seconds from the start."""

    at: float
    service: str
    level: str
    logger: str
    text: str


USERS = ["amira", "joost", "li.wei", "paula", "svein", "t.okafor", "ruth", "dmitri"]


def fill(text: str, noun: str, deps: list[str], rng: Random) -> str:
    """Put plausible values in the marked places of a text."""
    values = {
        "id": lambda: str(rng.randrange(10_000, 999_999)),
        "n": lambda: str(rng.randrange(2, 48)),
        "big": lambda: str(rng.randrange(1000, 9999)),
        "ms": lambda: str(rng.randrange(3, 180)),
        "slow": lambda: str(rng.randrange(5000, 30_000)),
        "hex": lambda: f"{rng.getrandbits(32):08x}",
        "uuid": lambda: (
            f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4c1d-"
            f"9f3a-{rng.getrandbits(48):012x}"
        ),
        "user": lambda: rng.choice(USERS),
        "noun": lambda: noun,
        "dep": lambda: rng.choice(deps or ["upstream"]),
    }
    return re.sub(r"\{(\w+)\}", lambda hit: values[hit[1]]() if hit[1] in values else hit[0], text)


class Play:
    """Run a story from its first minute to its last."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.rng = Random(story.name)
        self.lines: list[Line] = []
        self.begin = story.calm * 60
        self.end = (story.calm + story.bad) * 60
        self.last = self.end + story.after * 60
        self.usual = {name: self.habits(svc) for name, svc in story.services.items()}

    def habits(self, svc: Svc) -> list[str]:
        """Choose the lines that a service prints on a usual day."""
        pool = [line for line in LINES[svc.kind] if svc.calls or "{dep}" not in line]
        return self.rng.sample(pool, min(5, len(pool))) + list(svc.lines)

    def add(self, at: float, service: str, text: str) -> None:
        """Write one line of a service."""
        svc = self.story.services.get(service, Svc("web", "item"))
        level, rest = ("I", text) if text[1] != " " else (text[0], text[2:])
        logger = ""
        if rest.startswith("@"):
            logger, rest = rest[1:].split(" ", 1)
        said = fill(rest, svc.noun, svc.calls.split(), self.rng)
        self.lines.append(Line(at, service, level, logger, said))

    def fails(self, service: str, at: float) -> bool:
        """Say whether a call to a service goes wrong at this time."""
        if service != self.story.root or not self.begin <= at < self.end:
            return False
        grown = min(1, 0.4 + (at - self.begin) / 120)
        return self.rng.random() < self.story.share * grown

    def visit(self, service: str, at: float) -> tuple[bool, float]:
        """Play one call; say whether it failed and when it ended."""
        story, rng = self.story, self.rng
        if self.fails(service, at):
            if story.fault:
                self.add(at + rng.uniform(0.01, 0.1), service, rng.choice(story.fault))
            return True, at + story.wait * rng.uniform(0.8, 1.2)
        svc = story.services[service]
        for dep in svc.calls.split():
            if rng.random() < 0.75:
                failed, at = self.visit(dep, at + rng.uniform(0.004, 0.05))
                if failed:
                    if service in story.felt:
                        self.add(at + 0.01, service, rng.choice(story.felt[service]))
                    return True, at + rng.uniform(0.01, 0.05)
        if svc.kind not in STORES or rng.random() < 0.4:
            odd = rng.random() < 0.015 and (svc.calls or svc.kind != "web")
            pool = NOISE.get(svc.kind) if odd else None
            self.add(at, service, rng.choice(pool or self.usual[service]))
        return False, at + rng.uniform(0.002, 0.06)

    def requests(self) -> Iterator[float]:
        """Give the times at which requests come in."""
        pace = self.last * len(self.story.services) * 0.6 / self.story.lines
        at = self.rng.uniform(0, 5)
        while at < self.last:
            yield at
            busy = 1.5 if self.begin <= at < self.end else 1
            at += self.rng.expovariate(busy / pace)

    def run(self) -> list[Line]:
        """Play everything and give the lines in order."""
        story, rng = self.story, self.rng
        called = {dep for svc in story.services.values() for dep in svc.calls.split()}
        entries = [name for name in story.services if name not in called]
        if entries:
            for at in self.requests():
                self.visit(rng.choice(entries), at)
        self.onset()
        for hum in story.hums:
            at = hum.start * 60 + rng.uniform(0, hum.every)
            while at < min(hum.stop * 60, self.last):
                self.add(at, hum.service, rng.choice(hum.lines))
                at += hum.every * rng.uniform(0.6, 1.4)
        return sorted(self.lines, key=lambda line: line.at)

    def onset(self) -> None:
        """Write the root's lines at the start of the trouble, once or again and again."""
        at = self.begin
        while at < self.end:
            step = at
            for text in self.story.first:
                self.add(step, self.story.root, text)
                step += self.rng.uniform(0.3, 4)
            if not self.story.again:
                return
            at += self.story.again * 60


def tell(story: Story) -> Case:
    """Make the files of a case from its story."""
    rng = Random(story.name + " print")
    day = datetime(2024, 1 + rng.randrange(12), 1 + rng.randrange(28), rng.randrange(1, 20))
    files: dict[str, list[str]] = {}
    for line in Play(story).run():
        if line.service in story.hidden:
            continue
        seconds = line.at + story.skew.get(line.service, 0)
        when = day.replace(tzinfo=UTC) + timedelta(seconds=seconds)
        zone = timezone(timedelta(hours=story.zones.get(line.service, 0)))
        parts = fields(when.astimezone(zone), line.service, line.level, line.logger, line.text, rng)
        name = story.one_file or story.names.format(svc=line.service)
        form = story.forms.get(line.service, story.form)
        form = story.forms.get(f"{line.service} {line.level}", form)
        shown = show(form, parts)
        files.setdefault(name, []).append(shown)
    roots = {story.root} - {""} if story.roots is None else story.roots
    texts = {name: ("\n".join(rows) + "\n").encode() for name, rows in files.items()}
    return Case(story.name, texts, roots, story.note)
